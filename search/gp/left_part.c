/* The threshold moves with every trial, so that a split which one early trial suggested is dropped
 * as soon as another trial contradicts it. Nothing of a part is kept between suggestions. */
#include "search/gp/left_part.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "search/gp/effect.h"
#include "search/population/design.h"
#include "search/problem/random_stream.h"
#include "search/sampling/sobol.h"

/* The constants are of decision 4034. */
#define RESULTS_LEAST 16
#define TEST_LEAST 12 /* trials outside of the part, before effects are weighed */
#define GROWTH 1.1
#define IDLE 1.0        /* evidence, as a logarithm, that a number has no effect */
#define EXPLAINED 0.3   /* of the variance, by a split */
#define WIDTH 0.15      /* of the range: a narrower side is no part */
#define LEVELS_LEAST 9  /* of a number that is not continuous */
#define NEWEST 8        /* trials, or a fifth, which gained at most */
#define STILL 0.01      /* so much of the way from the part's median to the best */
#define TRIALS_LEAST 4  /* that a part gets, */
#define TRIALS_NUMBER 2 /* and for each number so many more */
#define PATIENCE 12     /* then it goes on while its newest trials gained */
#define GAIN 0.05       /* so much of the way from its median to the best trial of all */
#define SPREAD_AMONG 8

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for the parts of a space");
}

/* ---- the state: {"tested": n, "idle": [param, …]} ---- */

struct idle_numbers idle_read(const json_t *state, const struct encoding *e)
{
    struct idle_numbers idle = {0};
    const json_t *item, *list = json_object_get(state, "idle");
    json_int_t n = json_integer_value(json_object_get(state, "tested"));
    size_t i;
    if (n <= 0)
        return idle;
    idle.n_tested = (size_t)n;
    json_array_foreach((json_t *)list, i, item)
    {
        json_int_t param = json_is_integer(item) ? json_integer_value(item) : -1;
        if (param >= 0 && (size_t)param < e->n && idle.n < e->n)
            idle.params[idle.n++] = (size_t)param;
    }
    return idle;
}

json_t *idle_write(const struct idle_numbers *idle)
{
    if (!idle->n_tested)
        return json_null();
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < idle->n; i++)
        if (json_array_append_new(list, json_integer((json_int_t)idle->params[i])) < 0)
            return NULL;
    return json_pack("{s:I, s:O}", "tested", (json_int_t)idle->n_tested, "idle", list);
}

bool idle_holds(const struct idle_numbers *idle, size_t param)
{
    for (size_t i = 0; i < idle->n; i++)
        if (idle->params[i] == param)
            return true;
    return false;
}

/* ---- splits ---- */

bool part_holds(const struct left_part *p, const double *point)
{
    return point[p->param] >= p->lower && point[p->param] <= p->upper;
}

struct result {
    double place, cost;
    size_t trial;
};

static int by_place(const void *a, const void *b)
{
    const struct result *p = a, *q = b;
    if (p->place != q->place)
        return p->place > q->place ? 1 : -1;
    return (p->trial > q->trial) - (p->trial < q->trial);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Find the threshold of number j whose two sides explain most of the variance, where the side
 * without the best trial is the worse one. Returns the share that it explains; 0: there is none. */
static double find_split(const struct training_set *s, size_t j, struct result *r, size_t n,
                         struct left_part *ret)
{
    double mean = 0, all = 0, most = 0, left = 0, best = training_set_point(s, s->best)[j];
    for (size_t i = 0; i < n; i++) {
        r[i].place = training_set_point(s, r[i].trial)[j];
        mean += r[i].cost / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        all += (r[i].cost - mean) * (r[i].cost - mean);
    qsort(r, n, sizeof *r, by_place);
    for (size_t i = 0; i + 1 < n; i++) {
        left += r[i].cost - mean; /* less than 0: the lower side is the better one */
        double cut = 0.5 * (r[i].place + r[i + 1].place), n_left = (double)(i + 1);
        double share = left * left * (1 / n_left + 1 / ((double)n - n_left)) / all;
        bool is_upper = best <= cut;
        if (r[i].place == r[i + 1].place || (is_upper ? 1 - cut : cut) < WIDTH ||
            (is_upper ? left >= 0 : left <= 0) || !(share > most))
            continue;
        most = share;
        *ret = (struct left_part){
            .param = j, .lower = is_upper ? cut : 0, .upper = is_upper ? 1 : cut};
    }
    return most;
}

/* ---- which part ---- */

/* What the results say of a part. */
struct part_record {
    double median;       /* of its costs */
    double best, before; /* its lowest cost, and that without its newest PATIENCE trials */
};

/* costs: room for all results. */
static struct part_record read_part(const struct training_set *s, struct left_part *p,
                                    double *costs)
{
    struct part_record r = {.best = INFINITY, .before = INFINITY};
    size_t n = 0, seen = 0;
    for (size_t i = 0; i < s->n; i++)
        p->n_trials += part_holds(p, training_set_point(s, i));
    for (size_t i = 0; i < s->n; i++) {
        if (!part_holds(p, training_set_point(s, i)))
            continue;
        seen++;
        if (s->feasible[i]) {
            costs[n++] = s->costs[i];
            r.best = fmin(r.best, s->costs[i]);
        }
        if (seen + PATIENCE <= p->n_trials)
            r.before = r.best;
    }
    qsort(costs, n, sizeof *costs, by_value);
    r.median = costs[n / 2];
    return r;
}

/* gained: by the newest trials of the sweep. */
static bool deserves_trial(const struct training_set *s, const struct left_part *p,
                           const struct part_record *r, double gained)
{
    double way = r->median - s->costs[s->best];
    if (!(gained <= STILL * way))
        return false;
    size_t wanted = TRIALS_LEAST + TRIALS_NUMBER * s->enc->n_varied;
    return p->n_trials < wanted || !isfinite(r->before) || r->before - r->best > GAIN * way;
}

static double gained_lately(const struct training_set *s, size_t n_results)
{
    size_t newest = n_results / 5 > NEWEST ? n_results / 5 : NEWEST, n = 0;
    double before = INFINITY;
    for (size_t i = 0; i < s->n && n + newest < n_results; i++) {
        if (!s->feasible[i])
            continue;
        before = fmin(before, s->costs[i]);
        n++;
    }
    return before - s->costs[s->best];
}

static bool may_split(const struct encoded_param *p)
{
    return p->kind == ENCODED_CONTINUOUS ||
           (p->kind == ENCODED_LEVELS && p->levels >= LEVELS_LEAST);
}

/* r, costs: room for all results. */
static bool choose_split(const struct training_set *s, struct result *r, double *costs,
                         struct left_part *ret)
{
    double most = EXPLAINED;
    bool is_found = false;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->feasible[i])
            r[n++] = (struct result){.cost = s->costs[i], .trial = i};
    double gained = gained_lately(s, n);
    for (size_t j = 0; j < s->enc->n; j++) {
        struct left_part p = {0};
        double share = may_split(&s->enc->params[j]) ? find_split(s, j, r, n, &p) : 0;
        if (!(share > most))
            continue;
        struct part_record record = read_part(s, &p, costs);
        if (!deserves_trial(s, &p, &record, gained))
            continue;
        most = share;
        *ret = p;
        is_found = true;
    }
    return is_found;
}

/* ---- idle numbers ---- */

static bool is_outside(const struct training_set *s, size_t i, const void *arg)
{
    return s->state[i] == OBSERVED_COMPLETED && !part_holds(arg, training_set_point(s, i));
}

/* A fit that fails changes nothing. */
static as_status find_idle(const struct training_set *s, const struct left_part *p,
                           struct gp_fit_work **work, struct idle_numbers *ret, struct as_err *err)
{
    AS_AUTO(effects_done) struct effects e = {0};
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += is_outside(s, i, p);
    if (n < TEST_LEAST)
        return AS_OK;
    as_status st = effects_reserve(&e, s, err);
    if (st == AS_OK)
        st = effects_weigh(&e, &(struct effect_trials){n, is_outside, NULL, p}, work, err);
    if (st < 0)
        return st == AS_E_NUMERIC ? AS_OK : st;
    *ret = (struct idle_numbers){.n_tested = s->n_completed};
    for (size_t c = 0; c < e.t.columns.n_real; c++)
        if (e.none[c] > IDLE && e.best[c] < EFFECT_WEAK)
            ret->params[ret->n++] = e.t.param[c];
    return AS_OK;
}

static bool is_searched_in_parts(const struct training_set *s)
{
    return s->spec->n_objectives == 1 && !s->spec->n_outcomes && !s->spec->earlier && !s->rungs &&
           !s->n_avoided && !s->enc->is_conditional && !s->enc->n_category &&
           s->n_feasible >= RESULTS_LEAST;
}

as_status part_choose(const struct training_set *s, struct idle_numbers *idle,
                      struct gp_fit_work **work, bool *ret_found, struct left_part *ret,
                      struct as_err *err)
{
    *ret_found = false;
    if (!is_searched_in_parts(s))
        return AS_OK;
    AS_AUTO(as_freep) struct result *results = as_calloc(s->n, sizeof *results);
    AS_AUTO(as_freep) double *costs = as_calloc(s->n, sizeof *costs);
    struct left_part p;
    if (!results || !costs)
        return out_of_memory(err);
    if (!choose_split(s, results, costs, &p))
        return AS_OK;
    if ((double)s->n_completed >= GROWTH * (double)idle->n_tested) {
        as_status st = find_idle(s, &p, work, idle, err);
        if (st < 0)
            return st;
    }
    *ret_found = idle->n > 0 && !idle_holds(idle, p.param);
    *ret = p;
    return AS_OK;
}

/* ---- points ---- */

static double distance(const struct encoding *e, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < e->n; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

bool part_spread(const struct training_set *s, const struct left_part *p, uint64_t number,
                 double *ret_point)
{
    const struct encoding *e = s->enc;
    uint64_t key = rng_mix(s->spec->seed, number << 8 | SEARCH_DRAW_GP_RAW);
    double point[SPACE_MAX_PARAMS], most = -1;
    for (size_t k = 0; k < SPREAD_AMONG; k++) {
        double nearest = INFINITY;
        for (size_t i = 0; i < e->n; i++)
            sobol_column(key, k, 1, (unsigned)i, &point[i], 1);
        encoding_from_unit(e, point, point);
        point[p->param] = p->lower + point[p->param] * (p->upper - p->lower);
        encoding_snap(e, point);
        for (size_t i = 0; i < s->n; i++)
            if (part_holds(p, training_set_point(s, i)))
                nearest = fmin(nearest, distance(e, point, training_set_point(s, i)));
        if (nearest <= most || !part_holds(p, point) || !encoding_allows(e, point, s->scratch) ||
            training_set_tried(s, point, DESIGN_TOLERANCE))
            continue;
        most = nearest;
        memcpy(ret_point, point, e->n * sizeof *point);
    }
    return most >= 0;
}
