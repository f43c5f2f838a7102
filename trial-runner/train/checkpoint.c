#include "trial-runner/train/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/formats/safetensors.h"
#include "base/json.h"

#define FORMAT "assay-checkpoint-1"
#define HEADER_SLACK ((size_t)16 << 20) /* room for the JSON header and the reports in it */

/* The buffers that make up the state. */
struct part {
    const char *name;
    struct buf *buf;
    size_t shape[2]; /* K, elements of a member */
};

#define MAX_PARTS 6

static size_t list_parts(const struct loop *l, struct part ret[MAX_PARTS])
{
    size_t n = 0, k = l->members, params = l->model->shape.n_params;
    ret[n++] = (struct part){"params", l->model->params, {k, params}};
    ret[n++] = (struct part){"moment1", l->optimizer->moment1, {k, params}};
    if (l->optimizer->moment2)
        ret[n++] = (struct part){"moment2", l->optimizer->moment2, {k, params}};
    ret[n++] = (struct part){"steps", l->optimizer->step, {k, 1}};
    ret[n++] = (struct part){"active", l->optimizer->active, {k, 1}};
    ret[n++] = (struct part){"loss_sum", l->loss_sum, {k, 1}};
    return n;
}

static size_t total_bytes(const struct loop *l)
{
    struct part parts[MAX_PARTS];
    size_t n = list_parts(l, parts), total = 0;
    for (size_t i = 0; i < n; i++)
        total += parts[i].shape[0] * parts[i].shape[1] * 4;
    return total;
}

static json_t *metadata(const struct loop *l)
{
    JSON_AUTO m = json_pack("{s:s, s:s}", "format", FORMAT, "fingerprint", l->opts.fingerprint);
    for (size_t k = 0; k < l->members; k++) {
        char key[32];
        (void)snprintf(key, sizeof key, "report.%zu", k);
        if (json_object_set_new(m, key, json_string(str_cstr(&l->last_report[k]))) != 0)
            return NULL;
    }
    return as_steal(m);
}

as_status checkpoint_write(struct loop *l, const char *path, struct as_err *err)
{
    struct part parts[MAX_PARTS];
    struct safetensors_tensor tensors[MAX_PARTS + 1];
    size_t n = list_parts(l, parts), at = 0;
    int64_t position[2] = {l->epoch, l->step};
    AS_AUTO(as_freep) char *bytes = as_calloc(total_bytes(l), 1);
    JSON_AUTO meta = metadata(l);
    if (!bytes || !meta)
        return as_fail(err, AS_E_NOMEM, "out of memory for a checkpoint");
    for (size_t i = 0; i < n; i++) {
        size_t count = parts[i].shape[0] * parts[i].shape[1];
        bool whole = buf_kind_get(parts[i].buf) == BUF_I32;
        tensors[i] = (struct safetensors_tensor){.name = parts[i].name,
                                                 .type = whole ? SAFETENSORS_I32 : SAFETENSORS_F32,
                                                 .n_dims = 2,
                                                 .shape = {parts[i].shape[0], parts[i].shape[1]},
                                                 .data = bytes + at};
        as_status st = buf_download(parts[i].buf, 0, bytes + at, count, err);
        if (st < 0)
            return st;
        at += count * 4;
    }
    tensors[n] = (struct safetensors_tensor){
        .name = "position", .type = SAFETENSORS_I64, .n_dims = 1, .shape = {2}, .data = position};
    return safetensors_write(path, meta, tensors, n + 1, err);
}

static as_status check_identity(const struct loop *l, const struct safetensors *s,
                                struct as_err *err)
{
    const char *format = safetensors_metadata(s, "format");
    const char *of = safetensors_metadata(s, "fingerprint");
    if (!as_streq(format, FORMAT))
        return as_fail(err, AS_E_INVAL,
                       "it is not a checkpoint: its format is '%.40s', expected '%s'",
                       format ? format : "", FORMAT);
    if (!as_streq(of, l->opts.fingerprint))
        return as_fail(err, AS_E_INVAL,
                       "the checkpoint belongs to another job (another train document, data set or "
                       "seed)");
    return AS_OK;
}

static as_status restore_part(const struct part *p, const struct safetensors *s, struct as_err *err)
{
    size_t n = p->shape[0] * p->shape[1];
    AS_AUTO(as_freep) void *values = as_calloc(n, 4);
    if (!values)
        return as_fail(err, AS_E_NOMEM, "out of memory for a checkpoint");
    bool whole = buf_kind_get(p->buf) == BUF_I32;
    as_status st =
        safetensors_copy(s, p->name, whole ? SAFETENSORS_I32 : SAFETENSORS_F32, n, values, err);
    return st < 0 ? st : buf_upload(p->buf, 0, values, n, err);
}

static as_status restore(struct loop *l, const struct safetensors *s, struct as_err *err)
{
    struct part parts[MAX_PARTS];
    int64_t position[2];
    as_status st = check_identity(l, s, err);
    if (st == AS_OK)
        st = safetensors_copy(s, "position", SAFETENSORS_I64, 2, position, err);
    if (st < 0)
        return st;
    if (position[0] < 0 || position[0] > l->epochs || position[1] < 0 ||
        position[1] >= l->steps_per_epoch || (position[0] == l->epochs && position[1] > 0))
        return as_fail(err, AS_E_INVAL, "epoch %" PRId64 ", step %" PRId64 " is not in this job",
                       position[0], position[1]);
    size_t n = list_parts(l, parts);
    for (size_t i = 0; st == AS_OK && i < n; i++)
        st = restore_part(&parts[i], s, err);
    for (size_t k = 0; st == AS_OK && k < l->members; k++) {
        char key[32];
        (void)snprintf(key, sizeof key, "report.%zu", k);
        const char *line = safetensors_metadata(s, key);
        str_clear(&l->last_report[k]);
        str_puts(&l->last_report[k], line ? line : "");
        st = str_check(&l->last_report[k], err);
    }
    l->epoch = position[0];
    l->step = position[1];
    return st;
}

as_status checkpoint_read(struct loop *l, const char *path, bool *ret_found, struct as_err *err)
{
    AS_AUTO(safetensors_freep) struct safetensors *s = NULL;
    as_status st = safetensors_read(path, total_bytes(l) + HEADER_SLACK, &s, err);
    if (st == AS_E_NOT_FOUND) {
        *ret_found = false;
        return AS_OK;
    }
    if (st < 0)
        return st;
    st = restore(l, s, err);
    if (st < 0)
        return as_err_prefix(err, st, "%.200s", path);
    *ret_found = true;
    return AS_OK;
}
