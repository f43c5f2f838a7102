/* Opens the oracle and the back end under test, and keeps the same data on both.
 *
 * A tensor has an odd offset and a gap after each member, so that no alignment is taken for
 * granted. Buffers are filled completely with random numbers and compared completely, so that a
 * write between members or past the end fails the test. The random numbers restart at
 * twin_open(). */
#include "tests/kernels/twin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

#define OFFSET 3 /* odd: see the head of the file */
#define GAP 5
#define KEPT_MAX 2048

static struct backend *backends[SIDES];
static struct buf *kept[KEPT_MAX];
static size_t n_kept;
static struct rng draws;
static size_t lay_offset, lay_gap;

static void give_up(as_status st, const char *name, const struct as_err *err)
{
    fprintf(stderr, "back end %s: %s\n", name, err->msg);
    bool absent = st == AS_E_UNAVAILABLE || st == AS_E_UNSUPPORTED;
    exit(strcmp(name, "cuda") == 0 && absent ? 77 : EXIT_FAILURE);
}

void twin_open(void)
{
    const char *name = getenv("ASSAY_TEST_BACKEND");
    if (name == NULL)
        name = "cpu";
    struct as_err err;
    as_status st = backend_open("reference", NULL, &backends[0], &err);
    if (st < 0)
        give_up(st, "reference", &err);
    st = backend_open(name, NULL, &backends[1], &err);
    if (st < 0)
        give_up(st, name, &err);
    rng_init(&draws, 2026, 0);
    twin_lay(OFFSET, GAP);
}

void twin_lay(size_t offset, size_t gap)
{
    lay_offset = offset;
    lay_gap = gap;
}

void twin_probe(void)
{
    twin_open();
    twin_close();
}

void twin_close(void)
{
    while (n_kept > 0)
        buf_free(kept[--n_kept]);
    for (int s = 0; s < SIDES; s++)
        backend_freep(&backends[s]);
}

bool twin_is_emulated(void)
{
    return getenv("ASSAY_TEST_EMULATED") != NULL;
}

struct backend *twin_backend(int side)
{
    return backends[side];
}

static struct twin twin_create(buf_kind kind, size_t n, bool shared, const void *data, size_t len)
{
    struct as_err err;
    struct twin t = {.n = len, .offset = lay_offset, .stride = shared ? 0 : n + lay_gap};
    for (int s = 0; s < SIDES; s++) {
        ck_assert_uint_lt(n_kept, KEPT_MAX);
        ck_ok(buf_create(backends[s], kind, len, &t.side[s], &err), err);
        kept[n_kept++] = t.side[s];
        ck_ok(buf_upload(t.side[s], 0, data, len, &err), err);
    }
    return t;
}

static size_t length(size_t members, size_t n, bool shared)
{
    return lay_offset + (shared ? 1 : members) * (n + lay_gap);
}

struct twin twin_f32(size_t members, size_t n, bool shared, float lo, float hi)
{
    size_t len = length(members, n, shared);
    float *data = calloc(len, sizeof(*data));
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < len; i++)
        data[i] = lo + (hi - lo) * (float)rng_uniform(&draws);
    struct twin t = twin_create(BUF_F32, n, shared, data, len);
    free(data);
    return t;
}

struct twin twin_i32(size_t members, size_t n, bool shared, int32_t lo, int32_t hi)
{
    size_t len = length(members, n, shared);
    int32_t *data = calloc(len, sizeof(*data));
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < len; i++)
        data[i] = (int32_t)((int64_t)lo + (int64_t)rng_below(&draws, (uint64_t)((int64_t)hi - lo)));
    struct twin t = twin_create(BUF_I32, n, shared, data, len);
    free(data);
    return t;
}

struct tensor twin_at(const struct twin *t, int side)
{
    return tensor_at(t->side[side], t->offset, t->stride);
}

static void set(const struct twin *t, size_t k, size_t i, const void *value)
{
    struct as_err err;
    for (int s = 0; s < SIDES; s++)
        ck_ok(buf_upload(t->side[s], t->offset + k * t->stride + i, value, 1, &err), err);
}

void twin_set_f32(const struct twin *t, size_t k, size_t i, float value)
{
    set(t, k, i, &value);
}

void twin_set_i32(const struct twin *t, size_t k, size_t i, int32_t value)
{
    set(t, k, i, &value);
}

static void get(const struct twin *t, int side, size_t k, size_t i, void *ret)
{
    struct as_err err;
    ck_ok(buf_download(t->side[side], t->offset + k * t->stride + i, ret, 1, &err), err);
}

float twin_get_f32(const struct twin *t, int side, size_t k, size_t i)
{
    float value;
    get(t, side, k, i, &value);
    return value;
}

int32_t twin_get_i32(const struct twin *t, int side, size_t k, size_t i)
{
    int32_t value;
    get(t, side, k, i, &value);
    return value;
}

/* `how` says how two elements are compared. */
struct how {
    const char *what;
    float atol, rtol;
    bool nan_is_nan;
};

static void same_f32(const struct how *how, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (how->nan_is_nan && isnan(a[i]) && isnan(b[i]))
            continue;
        if (isinf(a[i]) && a[i] == b[i])
            continue;
        bool close = fabsf(a[i] - b[i]) <= how->atol + how->rtol * fabsf(a[i]);
        ck_assert_msg(close, "%s, element %zu of %zu: oracle %.9g, %s %.9g", how->what, i, n,
                      (double)a[i], backend_name(backends[1]), (double)b[i]);
    }
}

static void same_i32(const struct how *how, const int32_t *a, const int32_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(a[i] == b[i], "%s, element %zu of %zu: oracle %d, %s %d", how->what, i, n,
                      a[i], backend_name(backends[1]), b[i]);
}

static void same(const struct twin *t, const struct how *how)
{
    struct as_err err;
    void *data[SIDES];
    for (int s = 0; s < SIDES; s++) {
        data[s] = calloc(t->n, sizeof(float));
        ck_assert_ptr_nonnull(data[s]);
        ck_ok(buf_download(t->side[s], 0, data[s], t->n, &err), err);
    }
    if (buf_kind_get(t->side[0]) == BUF_F32)
        same_f32(how, data[0], data[1], t->n);
    else
        same_i32(how, data[0], data[1], t->n);
    for (int s = 0; s < SIDES; s++)
        free(data[s]);
}

void twin_same(const struct twin *t, const char *what, float atol, float rtol)
{
    same(t, &(struct how){what, atol, rtol, false});
}

void twin_same_or_nan(const struct twin *t, const char *what, float atol, float rtol)
{
    same(t, &(struct how){what, atol, rtol, true});
}
