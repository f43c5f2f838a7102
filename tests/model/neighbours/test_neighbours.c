/* Nearest neighbours: by hand, against a plain reference that sorts all rows, and hostile bytes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/neighbours/neighbours.h"
#include "tests/support/check_main.h"

static struct as_err err;

#define ROWS ((size_t)83)
#define INPUTS ((size_t)5)
#define OUTPUTS ((size_t)3)

/* scikit-learn 1.2.1: X = [[0], [1], [2], [4], [4]], y = [0, 1, 1, 2, 0];
 * KNeighborsClassifier(3).fit(X, y).predict_proba([[0.9], [4], [3]]) is
 *   [[1/3, 2/3, 0], [1/3, 1/3, 1/3], [1/3, 1/3, 1/3]]
 * and with weights="distance", of [0.9]: shares 1/0.9, 1/0.1, 1/1.1 of the classes 0, 1, 1; of [4]:
 *   [1/2, 0, 1/2], because two rows are at distance 0. */
START_TEST(by_hand)
{
    const float x[] = {0, 1, 2, 4, 4}, queries[] = {0.9F, 4, 3};
    const int32_t labels[] = {0, 1, 1, 2, 0};
    const struct neighbours_shape shape = {.inputs = 1, .outputs = 3, .classes = true};
    const struct neighbours_rows rows = {.x = x, .n = 5, .labels = labels};
    const struct neighbours_opts three = {3, false, 1}, near_three = {3, true, 1};
    AS_AUTO(as_freep) char *bytes = NULL;
    AS_AUTO(neighbours_done) struct neighbours m = {0};
    size_t len = 0;
    float ret[9];
    ck_ok(neighbours_write(&shape, &rows, &bytes, &len, &err), err);
    ck_assert_uint_eq(len, neighbours_bytes(&shape, 5));
    ck_ok(neighbours_read(bytes, len, &shape, &m, &err), err);
    ck_ok(neighbours_predict(&m, &three, queries, 3, ret, &err), err);
    const float third = 1.0F / 3,
                uniform[] = {third, 2 * third, 0, third, third, third, third, third, third};
    for (size_t i = 0; i < 9; i++)
        ck_assert_float_eq_tol(ret[i], uniform[i], 1e-7F);
    ck_ok(neighbours_predict(&m, &near_three, queries, 2, ret, &err), err);
    double near = 1 / 0.9, one = 1 / 0.1, two = 1 / 1.1;
    ck_assert_double_eq_tol((double)ret[0], near / (near + one + two), 1e-6);
    ck_assert_double_eq_tol((double)ret[1], (one + two) / (near + one + two), 1e-6);
    ck_assert(ret[3] == 0.5F && ret[4] == 0 && ret[5] == 0.5F);
    /* of equally near rows the first one counts: of 3 it is 2, before both of 4 */
    ck_ok(neighbours_predict(&m, &(struct neighbours_opts){1, false, 1}, queries + 2, 1, ret, &err),
          err);
    ck_assert(ret[0] == 0 && ret[1] == 1 && ret[2] == 0);
    const float none = NAN;
    ck_ok(neighbours_predict(&m, &(struct neighbours_opts){2, true, 1}, &none, 1, ret, &err), err);
    ck_assert(isnan(ret[0]) && isnan(ret[2]));
}
END_TEST

/* ---- the plain reference ---- */

struct table {
    float x[ROWS * INPUTS], targets[ROWS * OUTPUTS], weights[ROWS];
    int32_t labels[ROWS];
};

/* Whole numbers, so that many distances are equal. */
static void fill(struct table *t, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed, 4);
    for (size_t i = 0; i < ROWS * INPUTS; i++)
        t->x[i] = (float)rng_below(&rng, 4);
    for (size_t i = 0; i < ROWS * OUTPUTS; i++)
        t->targets[i] = (float)rng_normal(&rng);
    for (size_t i = 0; i < ROWS; i++) {
        t->labels[i] = (int32_t)rng_below(&rng, OUTPUTS);
        t->weights[i] = (float)rng_below(&rng, 3) / 2; /* some rows count nothing */
    }
}

struct found {
    double distance;
    size_t row;
};

static int nearest_first(const void *a, const void *b)
{
    const struct found *l = a, *r = b;
    if (l->distance < r->distance || l->distance > r->distance)
        return l->distance < r->distance ? -1 : 1;
    return l->row < r->row ? -1 : 1;
}

static void plain(const struct table *t, bool classes, bool weighted, size_t k, bool by_distance,
                  const float *x, double ret[OUTPUTS])
{
    struct found all[ROWS];
    size_t n = 0;
    double sum = 0;
    for (size_t r = 0; r < ROWS; r++) {
        double d = 0;
        for (size_t i = 0; i < INPUTS; i++)
            d += pow((double)x[i] - (double)t->x[r * INPUTS + i], 2);
        if (!weighted || t->weights[r] > 0)
            all[n++] = (struct found){d, r};
    }
    qsort(all, n, sizeof *all, nearest_first);
    memset(ret, 0, OUTPUTS * sizeof *ret);
    for (size_t i = 0; i < k && i < n; i++) {
        size_t r = all[i].row;
        double w = weighted ? (double)t->weights[r] : 1, d = sqrt(all[i].distance);
        if (by_distance)
            w = all[0].distance == 0 ? (d == 0 ? w : 0) : w / d;
        sum += w;
        for (size_t o = 0; o < OUTPUTS; o++)
            ret[o] +=
                w * (classes ? t->labels[r] == (int32_t)o : (double)t->targets[r * OUTPUTS + o]);
    }
    for (size_t o = 0; o < OUTPUTS; o++)
        ret[o] /= sum;
}

static void model_of(const struct table *t, bool classes, bool weighted, char **bytes, size_t *len,
                     struct neighbours *m)
{
    const struct neighbours_shape shape = {INPUTS, OUTPUTS, classes};
    const struct neighbours_rows rows = {.x = t->x,
                                         .n = ROWS,
                                         .labels = classes ? t->labels : NULL,
                                         .targets = classes ? NULL : t->targets,
                                         .weights = weighted ? t->weights : NULL};
    ck_ok(neighbours_write(&shape, &rows, bytes, len, &err), err);
    ck_ok(neighbours_read(*bytes, *len, &shape, m, &err), err);
}

START_TEST(against_a_plain_reference)
{
    static const size_t ks[] = {1, 2, 7, 40, 1000};
    static struct table t, others;
    bool classes = _i & 1, weighted = _i & 2, by_distance = _i & 4;
    AS_AUTO(as_freep) char *bytes = NULL;
    AS_AUTO(neighbours_done) struct neighbours m = {0};
    size_t len = 0;
    fill(&t, 1);
    fill(&others, 2);
    model_of(&t, classes, weighted, &bytes, &len, &m);
    for (size_t i = 0; i < AS_ARRAY_LEN(ks); i++) {
        float ret[ROWS * OUTPUTS], by_threads[ROWS * OUTPUTS], alone[OUTPUTS];
        struct neighbours_opts opts = {ks[i], by_distance, 1};
        ck_ok(neighbours_predict(&m, &opts, others.x, ROWS, ret, &err), err);
        opts.threads = 3; /* the same bits */
        ck_ok(neighbours_predict(&m, &opts, others.x, ROWS, by_threads, &err), err);
        ck_assert_mem_eq(by_threads, ret, sizeof ret);
        for (size_t r = 0; r < ROWS; r++) {
            double expected[OUTPUTS];
            plain(&t, classes, weighted, ks[i], by_distance, others.x + r * INPUTS, expected);
            for (size_t o = 0; o < OUTPUTS; o++)
                ck_assert_double_eq_tol((double)ret[r * OUTPUTS + o], expected[o], 1e-6);
            ck_ok(neighbours_predict(&m, &opts, others.x + r * INPUTS, 1, alone, &err), err);
            ck_assert_mem_eq(alone, ret + r * OUTPUTS, sizeof alone);
        }
    }
}
END_TEST

/* ---- bytes ---- */

START_TEST(hostile_bytes)
{
    static struct table t;
    const struct neighbours_shape shape = {INPUTS, OUTPUTS, true},
                                  wide = {INPUTS + 1, OUTPUTS, true},
                                  numbers = {INPUTS, OUTPUTS, false};
    AS_AUTO(as_freep) char *bytes = NULL;
    AS_AUTO(neighbours_done) struct neighbours m = {0}, no = {0};
    size_t len = 0;
    fill(&t, 1);
    model_of(&t, true, false, &bytes, &len, &m);
    ck_fails(neighbours_read(bytes, len, &wide, &no, &err), AS_E_INVAL, err, "expected 6 and 3");
    ck_fails(neighbours_read(bytes, len, &numbers, &no, &err), AS_E_INVAL, err, "3 numbers");
    for (size_t n = 0; n < len; n += 13)
        ck_assert_int_eq(neighbours_read(bytes, n, &shape, &no, &err), AS_E_INVAL);
    char *at = bytes + 24 + ROWS * INPUTS * sizeof(float); /* the classes */
    uint32_t class = OUTPUTS;
    float none = NAN, zero = 0;
    memcpy(at, &class, sizeof class);
    ck_fails(neighbours_read(bytes, len, &shape, &no, &err), AS_E_INVAL, err, "neighbour 0 has");
    memset(at, 0, sizeof class);
    memcpy(bytes + 24 + 4 * INPUTS * 2, &none, sizeof none);
    ck_fails(neighbours_read(bytes, len, &shape, &no, &err), AS_E_INVAL, err, "neighbour 2 has");
    memcpy(bytes + 24 + 4 * INPUTS * 2, &zero, sizeof zero);
    memcpy(bytes + len - sizeof zero, &zero, sizeof zero); /* the weight of the last row */
    ck_fails(neighbours_read(bytes, len, &shape, &no, &err), AS_E_INVAL, err, "neighbour 82 has");
}
END_TEST

/* Bytes need not be aligned. */
START_TEST(anywhere)
{
    static struct table t;
    const struct neighbours_shape shape = {INPUTS, OUTPUTS, true};
    AS_AUTO(as_freep) char *bytes = NULL;
    AS_AUTO(neighbours_done) struct neighbours m = {0}, other = {0};
    size_t len = 0;
    float a[OUTPUTS], b[OUTPUTS];
    fill(&t, 1);
    model_of(&t, true, true, &bytes, &len, &m);
    AS_AUTO(as_freep) char *moved = as_calloc(len + 1, 1);
    memcpy(moved + 1, bytes, len);
    ck_ok(neighbours_read(moved + 1, len, &shape, &other, &err), err);
    const struct neighbours_opts five = {5, true, 1};
    ck_ok(neighbours_predict(&m, &five, t.x, 1, a, &err), err);
    ck_ok(neighbours_predict(&other, &five, t.x, 1, b, &err), err);
    ck_assert_mem_eq(a, b, sizeof a);
}
END_TEST

START_TEST(refused)
{
    const float x[] = {1, 2}, weights[] = {0, 0};
    const int32_t labels[] = {0, 1};
    const struct neighbours_shape shape = {1, 2, true}, huge = {NEIGHBOURS_MAX_BYTES / 4, 2, true};
    const struct neighbours_rows none = {.x = x, .n = 2, .labels = labels, .weights = weights},
                                 two = {.x = x, .n = 2, .labels = labels};
    char *bytes = NULL;
    size_t len = 0;
    ck_fails(neighbours_write(&shape, &none, &bytes, &len, &err), AS_E_INVAL, err, "above 0");
    ck_fails(neighbours_write(&huge, &two, &bytes, &len, &err), AS_E_TOO_LARGE, err, "at most");
    ck_assert_ptr_null(bytes);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("neighbours");
    TCase *t = tcase_create("neighbours");
    tcase_add_test(t, by_hand);
    tcase_add_loop_test(t, against_a_plain_reference, 0, 8);
    tcase_add_test(t, hostile_bytes);
    tcase_add_test(t, anywhere);
    tcase_add_test(t, refused);
    suite_add_tcase(s, t);
    return s;
}
