/* Arrays behind one reader: NPY, NPZ and safetensors. array_bytes.c has IDX and CIFAR.
 *
 * Each format gives struct array two functions and a state. array_read() counts the values that
 * were read, so no format checks that itself. All values become doubles: that is exact for each
 * type that is read, except 64-bit integers from 2^53 on, and the code of data sets needs only one
 * path.
 *
 * A safetensors file is in memory as a whole while its tensor is read. The others are streams. */
#include "data/formats/array.h"

#include <string.h>

#include "data/formats/safetensors.h"
#include "base/str.h"

void array_done(struct array *a)
{
    if (a->state)
        a->free(a->state);
    free(a->name);
    *a = (struct array){0};
}

as_status array_read(struct array *a, size_t count, double *ret, struct as_err *err)
{
    if (count > a->n_values - a->at)
        return as_fail(err, AS_E_INVAL, "%.200s holds %zu values, asked for more", a->name,
                       a->n_values);
    as_status st = a->read(a->state, count, ret, err);
    if (st != AS_OK)
        return st;
    a->at += count;
    return a->at == a->n_values && a->end ? a->end(a->state, err) : AS_OK;
}

/* ---- NPY, NPZ ---- */

static as_status npy_values(void *state, size_t count, double *ret, struct as_err *err)
{
    return npy_read(state, count, ret, err);
}

static void free_npy(void *state)
{
    npy_free(state);
}

/* `npy` is taken. */
static as_status array_from_npy(struct npy *npy, const char *name, struct array *ret,
                                struct as_err *err)
{
    const struct npy_header *h = npy_header_of(npy);
    struct array a = {.n_dims = h->n_dims,
                      .n_values = h->n_values,
                      .name = as_strdup(name),
                      .state = npy,
                      .read = npy_values,
                      .free = free_npy};
    memcpy(a.shape, h->shape, sizeof a.shape);
    if (!a.name) {
        array_done(&a);
        return as_fail_nomem(err);
    }
    *ret = a;
    return AS_OK;
}

as_status array_open_npy(const char *path, struct array *ret, struct as_err *err)
{
    struct npy *npy = NULL;
    as_status st = npy_open(path, &npy, err);
    if (st != AS_OK)
        return st;
    return array_from_npy(npy, path, ret, err);
}

as_status array_open_npz(const char *path, const char *name, struct array *ret, struct as_err *err)
{
    struct npy *npy = NULL;
    as_status st = npy_open_zip(path, name, &npy, err);
    if (st != AS_OK)
        return st;
    return array_from_npy(npy, name, ret, err);
}

/* ---- safetensors ---- */

struct tensor_state {
    struct safetensors *file;
    const struct safetensors_tensor *tensor;
    size_t at;
};

static void free_tensor(void *state)
{
    struct tensor_state *t = state;
    safetensors_free(t->file);
    free(t);
}

#define CONVERT(T)                                                                                 \
    for (size_t i = 0; i < count; i++) {                                                           \
        T v;                                                                                       \
        memcpy(&v, in + (t->at + i) * sizeof v, sizeof v);                                         \
        ret[i] = (double)v;                                                                        \
    }                                                                                              \
    break

static as_status tensor_values(void *state, size_t count, double *ret, struct as_err *err)
{
    struct tensor_state *t = state;
    const char *in = t->tensor->data;
    (void)err;
    switch (t->tensor->type) {
    case SAFETENSORS_F32:
        CONVERT(float);
    case SAFETENSORS_F64:
        CONVERT(double);
    case SAFETENSORS_I64:
        CONVERT(int64_t);
    case SAFETENSORS_I32:
        CONVERT(int32_t);
    case SAFETENSORS_U8:
        CONVERT(uint8_t);
    }
    t->at += count;
    return AS_OK;
}

static as_status fail_no_tensor(const char *path, const char *name, const struct safetensors *file,
                                struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    for (size_t i = 0; i < safetensors_count(file) && list.len < 160; i++)
        str_printf(&list, "%s%.40s", i ? ", " : "", safetensors_at(file, i)->name);
    return as_fail(err, AS_E_INVAL, "%.200s has no tensor '%.80s'; it has: %s", path, name,
                   str_cstr(&list));
}

as_status array_open_safetensors(const char *path, const char *name, struct array *ret,
                                 struct as_err *err)
{
    AS_AUTO(safetensors_freep) struct safetensors *file = NULL;
    as_status st = safetensors_read(path, ARRAY_MAX_TENSORS_BYTES, &file, err);
    if (st != AS_OK)
        return st;
    const struct safetensors_tensor *tensor = safetensors_get(file, name);
    if (!tensor)
        return fail_no_tensor(path, name, file, err);
    struct array a = {.n_dims = tensor->n_dims,
                      .n_values = 1,
                      .name = as_strdup(name),
                      .read = tensor_values,
                      .free = free_tensor};
    struct tensor_state *t = as_calloc(1, sizeof *t);
    if (!a.name || !t) {
        free(a.name);
        free(t);
        return as_fail_nomem(err);
    }
    memcpy(a.shape, tensor->shape, sizeof tensor->shape);
    for (size_t i = 0; i < a.n_dims; i++)
        a.n_values *= a.shape[i]; /* no overflow: its bytes are in the file */
    *t = (struct tensor_state){.file = as_steal(file), .tensor = tensor};
    a.state = t;
    *ret = a;
    return AS_OK;
}

const char *array_metadata(const struct array *a, const char *key)
{
    const struct tensor_state *t = a->state;
    return a->read == tensor_values ? safetensors_metadata(t->file, key) : NULL;
}
