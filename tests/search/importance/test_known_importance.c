/* Importance from trials alone, on functions whose indices are known. */
#include <math.h>

#include "search/importance/importance.h"
#include "tests/support/check_main.h"
#include "tests/search/importance/known_importance.h"

#define SEEDS 6

struct score {
    size_t good, all; /* indices; good: the truth is in the interval, or within 0.05 */
    double idle;      /* largest total of a parameter without effect */
};

static void add_index(struct score *s, double got, double low, double high, double want)
{
    s->all++;
    s->good += (low <= want && want <= high) || fabs(got - want) < 0.05;
}

static struct score measure(const struct known_problem *p, size_t n, bool clustered)
{
    struct score s = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct known_trials t;
        struct as_err err;
        struct importance *i = NULL;
        known_trials_make(p, n, clustered, seed, &t);
        ck_ok(importance_compute(&t.spec, &t.history, 0, &i, &err), err);
        ck_assert_msg(i->n == p->d, "%s: %s", p->name, i->reason);
        for (size_t k = 0; k < i->n; k++) {
            const struct importance_parameter *q = &i->parameters[k];
            add_index(&s, q->first, q->first_low, q->first_high, p->first[k]);
            add_index(&s, q->total, q->total_low, q->total_high, p->total[k]);
            if (p->total[k] < 1e-3)
                s.idle = fmax(s.idle, q->total);
        }
        importance_free(i);
        known_trials_done(&t);
    }
    return s;
}

/* The seeds are fixed. The bounds are the measured values, with room for another C library. Spread
 * trials: 93 to 100 %. If four fifths of the trials lie around one point, a process with one length
 * scale everywhere is too certain of the rest: 80 to 100 %, and about 55 % on Ishigami's waves. */
START_TEST(spread_trials)
{
    const struct known_problem *p = &known_problems[_i];
    struct score s = measure(p, 150, false);
    ck_assert_msg(s.good * 10 >= s.all * 9, "%s: %zu of %zu", p->name, s.good, s.all);
    ck_assert_msg(s.idle < (p->noise > 0 ? 0.1 : 0.05), "%s: idle total %g", p->name, s.idle);
}
END_TEST

START_TEST(clustered_trials)
{
    const struct known_problem *p = &known_problems[_i];
    struct score s = measure(p, 200, true);
    ck_assert_msg(s.good * 100 >= s.all * (_i == 0 ? 40 : 75), "%s: %zu of %zu", p->name, s.good,
                  s.all);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_known_importance");
    TCase *t = tcase_create("known_importance");
    tcase_add_loop_test(t, spread_trials, 0, (int)n_known_problems);
    tcase_add_loop_test(t, clustered_trials, 0, (int)n_known_problems);
    suite_add_tcase(s, t);
    return s;
}
