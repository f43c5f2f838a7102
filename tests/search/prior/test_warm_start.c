/* Snapshots of earlier sweeps: what fits the space, what is refused, and distances. */
#include "search/prior/warm_start.h"

#include <math.h>
#include <string.h>

#include "base/yaml_reader.h"
#include "search/space/encoding.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define SPACE                                                                                      \
    "x: {type: float, min: 0, max: 10}\n"                                                          \
    "n: {type: int, min: 1, max: 64, scale: log}\n"                                                \
    "c: {type: categorical, values: [a, b]}\n"                                                     \
    "d: {type: float, min: 0, max: 1, when: {c: b}}\n"                                             \
    "k: {type: constant, value: 3}\n"

static as_status parse(const struct space *s, const char *yaml, struct warm_start **ret,
                       struct as_err *err)
{
    JSON_AUTO j = NULL;
    struct json_fields f;
    ck_ok(yaml_parse(yaml, strlen(yaml), &j, err), *err);
    ck_ok(json_fields_init(&f, j, "/search", err), *err);
    return warm_start_parse(&f, s, ret, err);
}

START_TEST(keeps_what_fits)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    AS_AUTO(warm_start_freep) struct warm_start *w = NULL;
    AS_AUTO(warm_start_freep) struct warm_start *again = NULL;
    struct as_err err = {0};
    ck_ok(encoding_create(s, &e, &err), err);
    ck_ok(parse(s,
                "prior:\n"
                "- sweep: old\n"
                "  completed: 40\n"
                "  trials:\n"
                "  - {params: {x: 5, n: 8, c: b, d: 0.5, k: 9, gone: 1}, cost: 2}\n"
                "  - {params: {x: 2.5, c: z}, cost: -1}\n" /* another value of c */
                "  - {params: {x: 11, n: 8}, cost: -9}\n"  /* outside of the range */
                "  - {params: {gone: 1}, cost: 0}\n"
                "  - {params: {n: 64}, cost: 3}\n"
                "- {sweep: foreign, completed: 1, trials: [{params: {y: 1}, cost: 0}]}\n",
                &w, &err),
          err);
    ck_assert(w->n == 2 && w->sweeps[0].n == 3 && w->sweeps[1].n == 0);
    const double *p = w->sweeps[0].points;
    const bool *known = w->sweeps[0].known;
    ck_assert(known[0] && !known[1] && !known[2] && !known[3]); /* the best one first */
    ck_assert_double_eq_tol(p[0], 0.25, 1e-12);
    ck_assert(known[5] && known[6] && known[7] && known[8] && !known[9]);
    ck_assert(p[5] == 0.5 && p[7] == 1 && fabs(p[6] - 0.5) < 1e-12);
    const json_t *first = json_array_get(w->canonical, 0);
    ck_assert_int_eq(json_integer_value(json_object_get(first, "dropped")), 2);
    ck_assert_uint_eq(json_array_size(json_object_get(first, "trials")), 3);
    JSON_AUTO search = json_pack("{s:O}", "prior", w->canonical);
    struct json_fields f;
    ck_ok(json_fields_init(&f, search, "/search", &err), err);
    ck_ok(warm_start_parse(&f, s, &again, &err), err);
    ck_assert(json_equal(w->canonical, again->canonical));
    ck_assert_mem_eq(again->sweeps[0].points, p, 3 * e->n * sizeof *p);
}
END_TEST

START_TEST(distances_and_slopes)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    AS_AUTO(warm_start_freep) struct warm_start *w = NULL;
    struct as_err err = {0};
    double slope[5];
    ck_ok(encoding_create(s, &e, &err), err);
    ck_ok(parse(s,
                "prior:\n- sweep: old\n  completed: 10\n  trials:\n"
                "  - {params: {x: 5, n: 8, c: b, d: 0.5}, cost: 0}\n"
                "  - {params: {x: 6, n: 16, c: b, d: 0.4}, cost: 1}\n"
                "  - {params: {x: 1, c: a}, cost: 2}\n",
                &w, &err),
          err);
    ck_assert_uint_eq(w->sweeps[0].n, 2); /* ceil(0.15 x 10) */
    double point[5] = {0, 0.2, 0, 0.1, 0};
    warm_start_place(w, 0, 0, point);
    ck_assert(point[0] == 0.5 && point[2] == 1 && point[3] == 0.5);
    double near = warm_start_distance(w, 0, e, point, NULL);
    ck_assert(near >= 0 && near < 0.5);
    point[2] = 0;
    ck_assert(warm_start_distance(w, 0, e, point, NULL) > near + 1);
    point[2] = 1, point[0] = 0.61, point[3] = 0.3;
    double at = warm_start_distance(w, 0, e, point, slope);
    ck_assert(at > near);
    for (size_t j = 0; j < 4; j++) {
        double off[5];
        memcpy(off, point, sizeof off);
        off[j] += 1e-6;
        double up = warm_start_distance(w, 0, e, off, NULL);
        off[j] -= 2e-6;
        double numeric = (up - warm_start_distance(w, 0, e, off, NULL)) / 2e-6;
        ck_assert_msg(j == 2 || fabs(numeric - slope[j]) < 1e-4 * (1 + fabs(numeric)),
                      "%zu: %g, not %g", j, slope[j], numeric);
    }
}
END_TEST

/* Costs that are not credible take no part, and stay in the document. */
START_TEST(absurd_costs_are_dropped)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
    AS_AUTO(warm_start_freep) struct warm_start *w = NULL;
    struct as_err err = {0};
    ck_ok(parse(s,
                "prior:\n- sweep: old\n  completed: 6\n  trials:\n"
                "  - {params: {x: 1}, cost: 1e300}\n  - {params: {x: 2}, cost: 3}\n"
                "  - {params: {x: 3}, cost: -1e300}\n  - {params: {x: 4}, cost: -0.5}\n"
                "  - {params: {x: 5}, cost: 7e8}\n  - {params: {x: 6}, cost: -1e299}\n",
                &w, &err),
          err);
    ck_assert_uint_eq(w->sweeps[0].n_trials, 3);
    ck_assert(w->sweeps[0].costs[0] == -0.5 && w->sweeps[0].costs[2] == 7e8);
    ck_assert_double_eq_tol(w->sweeps[0].points[0], 0.4, 1e-12);
    const json_t *first = json_array_get(w->canonical, 0);
    ck_assert_uint_eq(json_array_size(json_object_get(first, "trials")), 6);
}
END_TEST

/* A long sweep keeps its best trials and a spread of the others. */
START_TEST(long_sweeps_are_thinned)
{
    static const size_t sizes[] = {1, 20, 100, 101, 137, 5000};
    for (size_t k = 0; k < AS_ARRAY_LEN(sizes); k++) {
        size_t kept = 0, widest = 0, last = 0;
        for (size_t rank = 0; rank < sizes[k]; rank++) {
            if (!warm_start_keeps(rank, sizes[k]))
                continue;
            widest = rank - last > widest ? rank - last : widest;
            last = rank;
            kept++;
        }
        ck_assert_uint_eq(kept, sizes[k] < WARM_START_TRIALS ? sizes[k] : WARM_START_TRIALS);
        ck_assert(warm_start_keeps(0, sizes[k]) && warm_start_keeps(sizes[k] - 1, sizes[k]));
        ck_assert_uint_le(widest, 1 + sizes[k] / 50);
    }
}
END_TEST

static const struct {
    const char *yaml, *pointer, *part;
} refusals[] = {
    {"prior: old", "/search/prior", "expected a list"},
    {"prior: [old]", "/search/prior/0", "found a name"},
    {"prior: [3]", "/search/prior/0", "expected an object"},
    {"prior: [{completed: 1, trials: []}]", "/search/prior/0/sweep", "missing"},
    {"prior: [{sweep: a, trials: []}]", "/search/prior/0/completed", "missing"},
    {"prior: [{sweep: a, completed: 1}]", "/search/prior/0/trials", "missing"},
    {"prior: [{sweep: a, completed: 1, trials: [], x: 1}]", "/search/prior/0/x", "not a known"},
    {"prior: [{sweep: a, completed: 1, trials: [{params: {x: 1}}]}]",
     "/search/prior/0/trials/0/cost", "missing"},
    {"prior: [{sweep: a, completed: 1, trials: [{cost: 1}]}]", "/search/prior/0/trials/0/params",
     "missing"},
    {"prior: [{sweep: a, completed: 1, trials: [{params: {x: 1}, cost: '1'}]}]",
     "/search/prior/0/trials/0/cost", "expected a number"},
    {"prior: [{}, {}, {}, {}, {}]", "/search/prior", "5 sweeps, at most 4"},
};

START_TEST(refuses)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SPACE);
    AS_AUTO(warm_start_freep) struct warm_start *w = NULL;
    struct as_err err = {0};
    as_status st = parse(s, refusals[_i].yaml, &w, &err);
    ck_assert_msg(st == AS_E_INVAL || st == AS_E_TOO_LARGE, "%d", (int)st);
    ck_assert_str_eq(err.pointer, refusals[_i].pointer);
    ck_assert_msg(strstr(err.msg, refusals[_i].part) != NULL, "%s", err.msg);
    ck_assert_ptr_null(w);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/prior/earlier");
    TCase *t = tcase_create("earlier");
    tcase_add_test(t, keeps_what_fits);
    tcase_add_test(t, distances_and_slopes);
    tcase_add_test(t, absurd_costs_are_dropped);
    tcase_add_test(t, long_sweeps_are_thinned);
    tcase_add_loop_test(t, refuses, 0, AS_ARRAY_LEN(refusals));
    suite_add_tcase(s, t);
    return s;
}
