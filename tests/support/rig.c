/* Writes jobs for groups of the trainer, runs them in this process, and compares their outputs.
 *
 * A trial is run twice, for example in a group and alone. Their outputs go to folders with
 * different tags, and must be the same bytes. Where only nearly equal numbers are promised (another
 * back end), rig_distance() compares the tensors of two models. */
#include "tests/support/rig.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "data/formats/safetensors.h"
#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"
#include "tests/support/temp_folder.h"
#include "trial-runner/train/group.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"

void rig_digits(struct rig *r, const char *path, size_t rows)
{
    struct str b = {0};
    str_printf(
        &b,
        "{\"format\":\"csv\",\"task\":\"classification\",\"target\":\"-1\",\"rows\":%zu,"
        "\"features\":64,\"outputs\":10,\"classes\":[\"0\",\"1\",\"2\",\"3\",\"4\",\"5\","
        "\"6\",\"7\",\"8\",\"9\"],\"paths\":{\"table\":\"%s\",\"decoded\":\"%s/%zu.decoded\"}}",
        rows, path, r->dir, rows);
    free(r->dataset);
    r->dataset = str_take(&b);
    (void)snprintf(r->name, sizeof r->name, "digits");
}

void rig_open(struct rig *r)
{
    char path[PATH_MAX];
    *r = (struct rig){0};
    temp_folder_make(r->dir);
    (void)snprintf(path, sizeof path, "%s/examples/digits.csv", source_root());
    rig_digits(r, path, RIG_DIGITS_ROWS);
}

static json_t *text_or_null(const char *s)
{
    return s ? json_string(s) : json_null();
}

void rig_data(struct rig *r, const char *name, const struct dataset_paths *paths,
              dataset_format format, dataset_task task)
{
    struct dataset_info info = {0};
    const char *target = format == DATASET_CSV ? "-1" : NULL;
    char decoded[200];
    (void)snprintf(decoded, sizeof decoded, "%s/%s.decoded", r->dir, name);
    ck_ok(dataset_inspect(paths, format, target, task, NULL, &info, &r->err), r->err);
    JSON_AUTO doc = dataset_info_to_json(&info);
    ck_assert_int_eq(json_object_set_new(
                         doc, "paths",
                         json_pack("{s:o, s:o, s:o, s:o}", "table", text_or_null(paths->table),
                                   "features", text_or_null(paths->features), "targets",
                                   text_or_null(paths->targets), "decoded", json_string(decoded))),
                     0);
    free(r->dataset);
    r->dataset = json_format(doc);
    (void)snprintf(r->name, sizeof r->name, "%s", name);
    dataset_info_done(&info);
}

void rig_close(struct rig *r)
{
    free(as_steal(r->dataset));
    temp_folder_remove(r->dir);
}

static struct rig *of_case; /* fixtures of libcheck have no argument */

static void open_of_case(void)
{
    rig_open(of_case);
}

static void close_of_case(void)
{
    rig_close(of_case);
}

void rig_fixture(TCase *t, struct rig *r)
{
    of_case = r;
    tcase_add_checked_fixture(t, open_of_case, close_of_case);
}

static void put_member(const struct rig *r, const char *tag, const struct trial *t, struct str *out)
{
    str_printf(out, "{\"id\":\"%s\",\"train\":{\"dataset\":\"%s\",%s},\"seed\":\"%s\"", t->id,
               r->name, t->train, t->seed);
    str_printf(out, ",\"report\":\"%s/%s/%s/report\"", r->dir, tag, t->id);
    str_printf(out, ",\"checkpoints\":\"%s/%s/%s/checkpoints\"", r->dir, tag, t->id);
    str_printf(out, ",\"artifacts\":\"%s/%s/%s/artifacts\"}", r->dir, tag, t->id);
}

char *rig_member(const struct rig *r, const char *tag, const struct trial *t)
{
    struct str b = {0};
    put_member(r, tag, t, &b);
    return str_take(&b);
}

void rig_job(struct rig *r, const char *tag, const struct trial *const *trials, size_t n,
             size_t slots)
{
    AS_AUTO(str_done) struct str b = {0};
    AS_AUTO(as_freep) char *path = file_join(r->dir, "job.json");
    str_printf(&b, "{\"slots\":%zu,\"dataset\":%s,\"members\":[", slots, r->dataset);
    for (size_t i = 0; i < n; i++) {
        str_puts(&b, i ? "," : "");
        put_member(r, tag, trials[i], &b);
    }
    str_puts(&b, "]}");
    ck_ok(file_replace(path, b.s, b.len, 0644, &r->err), r->err);
}

int rig_run(struct rig *r, const char *backend, size_t threads)
{
    static atomic_bool stop;
    AS_AUTO(as_freep) char *path = file_join(r->dir, "job.json");
    AS_AUTO(job_done) struct job job = {0};
    AS_AUTO(channel_done) struct channel channel;
    struct group_opts opts = {.stop = &stop, .checkpoint_ns = 3600 * NS_PER_S, .threads = threads};
    channel_init(&channel, -1);
    (void)setenv("ASSAY_BACKEND", backend, 1);
    ck_ok(job_read(path, &job, &r->err), r->err);
    return group_run(&job, &channel, &opts);
}

int rig_solo(struct rig *r, const char *tag, const struct trial *t, const char *backend)
{
    rig_job(r, tag, &t, 1, 1);
    return rig_run(r, backend, 1);
}

char *rig_read(const struct rig *r, const char *tag, const char *id, const char *name,
               size_t *ret_len)
{
    char path[256];
    char *bytes = NULL;
    (void)snprintf(path, sizeof path, "%s/%s/%s/%s", r->dir, tag, id, name);
    return file_read(path, 1 << 26, &bytes, ret_len, NULL) == AS_OK ? bytes : NULL;
}

void rig_same(const struct rig *r, const char *a, const char *b, const struct trial *t)
{
    static const char *const names[] = {"report", "artifacts/predictions.npy",
                                        "artifacts/targets.npy", "artifacts/model.safetensors"};
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
        size_t n = 0, m = 0;
        AS_AUTO(as_freep) char *x = rig_read(r, a, t->id, names[i], &n);
        AS_AUTO(as_freep) char *y = rig_read(r, b, t->id, names[i], &m);
        if ((i == 1 || i == 2) && !x && !y)
            continue; /* text has neither */
        ck_assert_msg(x && y, "%s of %s: %s %s", names[i], t->id, x ? "" : a, y ? "" : b);
        ck_assert_msg(n == m && memcmp(x, y, n) == 0, "%s of %s differ: %s\n%s", names[i], t->id,
                      i == 0 ? x : "", i == 0 ? y : "");
    }
}

static struct safetensors *model_of(const struct rig *r, const char *tag, const struct trial *t)
{
    size_t n = 0;
    struct safetensors *s = NULL;
    struct as_err err;
    char *bytes = rig_read(r, tag, t->id, "artifacts/model.safetensors", &n);
    ck_assert_ptr_nonnull(bytes);
    ck_ok(safetensors_parse(bytes, n, &s, &err), err);
    return s;
}

double rig_distance(const struct rig *r, const char *a, const char *b, const struct trial *t)
{
    AS_AUTO(safetensors_freep) struct safetensors *x = model_of(r, a, t), *y = model_of(r, b, t);
    double worst = 0;
    ck_assert_uint_eq(safetensors_count(x), safetensors_count(y));
    for (size_t i = 0; i < safetensors_count(x); i++) {
        const struct safetensors_tensor *p = safetensors_at(x, i), *q = safetensors_at(y, i);
        double most = 0, apart = 0;
        ck_assert_str_eq(p->name, q->name);
        ck_assert_uint_eq(p->size_bytes, q->size_bytes);
        for (size_t k = 0; k < p->size_bytes / sizeof(float); k++) {
            float u, v;
            memcpy(&u, (const char *)p->data + k * sizeof u, sizeof u);
            memcpy(&v, (const char *)q->data + k * sizeof v, sizeof v);
            ck_assert(isfinite(u) && isfinite(v));
            most = fmax(most, fabs((double)u));
            apart = fmax(apart, fabs((double)u - (double)v));
        }
        worst = fmax(worst, most > 0 ? apart / most : apart);
    }
    return worst;
}

double rig_last(const struct rig *r, const char *tag, const struct trial *t, const char *name)
{
    size_t n = 0;
    double v = 0;
    AS_AUTO(as_freep) char *text = rig_read(r, tag, t->id, "report", &n);
    ck_assert(text && n > 0 && text[n - 1] == '\n');
    text[n - 1] = 0;
    const char *last = strrchr(text, '\n');
    last = last ? last + 1 : text;
    struct as_err err;
    JSON_AUTO j = NULL;
    ck_ok(json_parse(last, strlen(last), &j, &err), err);
    ck_assert_msg(json_number_get(json_object_get(j, name), &v), "%s in %s", name, last);
    return v;
}
