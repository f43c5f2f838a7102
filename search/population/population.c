/* The order of trials is computed anew for each suggestion: feasible by value, or by fronts and
 * crowding distance (Deb et al. 2002), then those that break bounds, by how much in units of the
 * observed range, then trials that stopped at a rung, then failures. A trial's number breaks ties,
 * so the order does not depend on when results arrived. */
#include "search/population/population.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "search/pareto/pareto.h"
#include "search/population/design.h"
#include "search/prior/warm_start.h"
#include "search/problem/explain.h"

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
}

/* ---- the order ---- */

/* By what a trial is ranked; small is good, the first difference decides. */
struct place {
    size_t row;
    int class; /* 0 feasible, 1 breaks bounds, 2 partial, 3 failed */
    double key[2];
    uint64_t number;
};

static int compare_places(const void *x, const void *y)
{
    const struct place *a = x, *b = y;
    if (a->class != b->class)
        return a->class - b->class;
    for (size_t k = 0; k < 2; k++)
        if (a->key[k] != b->key[k])
            return a->key[k] < b->key[k] ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* The sum of what the trial's outcomes are out of bounds, each in units of its observed range. */
static double violation(const struct training_set *s, const double *range, size_t i)
{
    double sum = 0;
    for (size_t k = 0; k < s->spec->n_outcomes; k++) {
        double o = s->trials[i].outcomes[k];
        const struct outcome_bound *b = &s->spec->outcomes[k];
        sum += (fmax(0, o - b->max) + fmax(0, b->min - o)) / range[k];
    }
    return sum;
}

/* The place of a trial that has no values of the last step, or none within bounds. */
static struct place place_of(const struct training_set *s, const double *range, size_t i)
{
    struct place p = {.row = i, .number = s->trials[i].number};
    if (s->state[i] == OBSERVED_FAILED) {
        p.class = 3;
    } else if (s->state[i] == OBSERVED_PARTIAL) {
        const struct training_rung *rung = training_set_rung(s, i);
        p.class = 2;
        p.key[0] = rung ? -rung->place : INFINITY;
        p.key[1] = rung ? rung->costs[0] : 0;
    } else {
        p.class = 1;
        p.key[0] = violation(s, range, i);
    }
    return p;
}

static void read_ranges(const struct training_set *s, double *range)
{
    for (size_t k = 0; k < s->spec->n_outcomes; k++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < s->n; i++) {
            if (s->state[i] != OBSERVED_COMPLETED)
                continue;
            low = fmin(low, s->trials[i].outcomes[k]);
            high = fmax(high, s->trials[i].outcomes[k]);
        }
        range[k] = high > low ? high - low : 1;
    }
}

/* What a crowding distance is computed from: the members of one front by one objective. */
struct crowd {
    size_t at; /* in the list of places */
    double value;
};

static int compare_crowd(const void *x, const void *y)
{
    const struct crowd *a = x, *b = y;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* key[1] of a front's members: minus the crowding distance. */
static void set_crowding(const double *costs, size_t m, struct place *places, const size_t *front,
                         size_t n, struct crowd *work)
{
    for (size_t k = 0; k < m; k++) {
        for (size_t i = 0; i < n; i++)
            work[i] = (struct crowd){front[i], costs[front[i] * m + k]};
        qsort(work, n, sizeof *work, compare_crowd);
        double range = work[n - 1].value - work[0].value;
        places[work[0].at].key[1] = places[work[n - 1].at].key[1] = -INFINITY;
        for (size_t i = 1; i + 1 < n && range > 0; i++)
            places[work[i].at].key[1] -= (work[i + 1].value - work[i - 1].value) / range;
    }
}

/* Fronts one after another; key[0] is the number of the front. The first n places are feasible. */
static as_status set_fronts(const struct training_set *s, struct place *places, size_t n,
                            struct as_err *err)
{
    size_t m = s->spec->n_objectives, n_left = n, n_front = 0;
    AS_AUTO(as_freep) double *costs = as_calloc(n, m * sizeof *costs);
    AS_AUTO(as_freep) double *rest = as_calloc(n, m * sizeof *rest);
    AS_AUTO(as_freep) size_t *left = as_calloc(n, sizeof *left);
    AS_AUTO(as_freep) size_t *front = as_calloc(n, sizeof *front);
    AS_AUTO(as_freep) struct crowd *work = as_calloc(n, sizeof *work);
    if (!costs || !rest || !left || !front || !work)
        return out_of_memory(err);
    for (size_t i = 0; i < n; i++) {
        memcpy(costs + i * m, s->costs + places[i].row * m, m * sizeof *costs);
        left[i] = i;
    }
    for (double rank = 0; n_left > 0; rank++) {
        for (size_t i = 0; i < n_left; i++)
            memcpy(rest + i * m, costs + left[i] * m, m * sizeof *rest);
        as_status st = gp_pareto_front(rest, n_left, m, NULL, front, &n_front, err);
        if (st < 0)
            return st;
        size_t kept = 0, next = 0;
        for (size_t i = 0; i < n_left; i++) {
            if (next < n_front && front[next] == i) {
                places[left[i]].key[0] = rank;
                front[next++] = left[i];
            } else {
                left[kept++] = left[i];
            }
        }
        n_left = kept;
        set_crowding(costs, m, places, front, n_front, work);
    }
    return AS_OK;
}

static as_status set_order(struct population *p, struct as_err *err)
{
    const struct training_set *s = p->set;
    size_t n = 0, m = s->spec->n_objectives;
    double range[SEARCH_MAX_OUTCOMES];
    AS_AUTO(as_freep) struct place *places = as_calloc(s->n + 1, sizeof *places);
    if (!places || !(p->order = as_calloc(s->n + 1, sizeof *p->order)))
        return out_of_memory(err);
    read_ranges(s, range);
    for (size_t i = 0; i < s->n; i++)
        if (s->feasible[i])
            places[n++] = (struct place){
                .row = i, .key = {m == 1 ? s->costs[i] : 0}, .number = s->trials[i].number};
    as_status st = m > 1 && n > 0 ? set_fronts(s, places, n, err) : AS_OK;
    for (size_t i = 0; i < s->n && st == AS_OK; i++) {
        if (s->state[i] != OBSERVED_PENDING && !s->feasible[i])
            places[n++] = place_of(s, range, i);
    }
    qsort(places, n, sizeof *places, compare_places);
    for (size_t i = 0; i < n; i++)
        p->order[i] = places[i].row;
    p->n = n;
    return st;
}

as_status population_read(const struct search_spec *spec, const struct history *history,
                          struct training_places *places, struct population *ret,
                          struct as_err *err)
{
    struct population p = {0};
    as_status st = training_set_create(spec, history, places, &p.set, err);
    if (st == AS_OK)
        st = set_order(&p, err);
    if (st < 0) {
        population_done(&p);
        return st;
    }
    *ret = p;
    return AS_OK;
}

void population_done(struct population *p)
{
    training_set_free(p->set);
    free(p->order);
    *p = (struct population){0};
}

/* ---- caches ---- */

struct search_method_cache *population_cache_create(void)
{
    return as_calloc(1, sizeof(struct training_places));
}

void population_cache_free(struct search_method_cache *c)
{
    if (c)
        training_places_done((struct training_places *)c);
    free(c);
}

size_t population_cache_bytes(const struct search_method_cache *c)
{
    return training_places_bytes((const struct training_places *)c);
}

/* ---- a suggestion ---- */

static bool is_initial(const struct population *p)
{
    const struct training_set *s = p->set;
    return s->n < design_size(s) || s->n_completed + s->n_partial == 0;
}

/* A proposal that is allowed and new. *ret_found: false if there was none. */
static as_status try_proposals(const struct population_method *m, const struct population *p,
                               double *point, struct suggestion *s, bool *ret_found,
                               struct as_err *err)
{
    struct rng r;
    void *self = NULL;
    const struct encoding *e = p->set->enc;
    as_status st = m->begin ? m->begin(p, &self, err) : AS_OK;
    if (st < 0)
        return st;
    rng_init(&r, p->set->spec->seed, p->turn->index << 8 | m->purpose);
    for (size_t i = 0; i < POPULATION_TRIES && st == AS_OK && !*ret_found; i++) {
        st = m->propose(self, p, &r, point, s->reason, err);
        if (st < 0)
            break;
        encoding_snap(e, point);
        *ret_found = encoding_allows(e, point, p->set->scratch) &&
                     !training_set_tried(p->set, point, DESIGN_TOLERANCE);
    }
    if (st == AS_OK && m->keep)
        st = m->keep(self, &s->state, err);
    if (m->end)
        m->end(self);
    return st;
}

/* Set the point; *ret_phase and *ret_why are static. */
static as_status choose_point(const struct population_method *m, const struct population *p,
                              double *point, struct suggestion *s, const char **ret_phase,
                              const char **ret_why, struct as_err *err)
{
    uint64_t index = p->turn->index;
    bool found = false;
    *ret_phase = "initial";
    if (!p->set->enc->n_varied) {
        *ret_why = "the space has one configuration";
        return design_anywhere(p->set, index, point, err);
    }
    if (is_initial(p))
        return design_point(p->set, index, WARM_START_SWEEPS, point, err);
    as_status st = try_proposals(m, p, point, s, &found, err);
    if (st < 0 || found) {
        *ret_phase = "search";
        return st;
    }
    *ret_why = "every proposal was tried before or is not allowed";
    return design_anywhere(p->set, index, point, err);
}

as_status population_suggest(const struct search_spec *spec, const struct history *history,
                             const json_t *state, uint64_t number, uint64_t index,
                             struct search_method_cache *cache, struct suggestion *ret,
                             struct as_err *err)
{
    const struct population_turn turn = {.number = number, .index = index, .state = state};
    AS_AUTO(population_done) struct population p = {0};
    AS_AUTO(suggestion_done) struct suggestion s = {0};
    const char *phase, *why = NULL;
    as_status st = population_read(spec, history, (struct training_places *)cache, &p, err);
    if (st < 0)
        return st;
    p.turn = &turn;
    AS_AUTO(as_freep) double *point = as_calloc(p.set->enc->n, sizeof *point);
    s.config = config_create(spec->space);
    s.reason = json_pack("{s:s, s:I, s:I, s:I}", "method", spec->method->name, "observed",
                         (json_int_t)p.set->n_completed, "pending", (json_int_t)p.set->n_pending,
                         "failed", (json_int_t)p.set->n_failed);
    if (!point || !s.config || !s.reason)
        return out_of_memory(err);
    st = choose_point(spec->method->own, &p, point, &s, &phase, &why, err);
    if (st < 0)
        return st;
    bool is_search = as_streq(phase, "search");
    encoding_to_config(p.set->enc, point, s.config);
    if (json_object_update_new(s.reason,
                               json_pack("{s:s, s:o*, s:s*}", "phase", phase, "point",
                                         is_search ? NULL : json_integer((json_int_t)index),
                                         "fallback", why)) < 0)
        return out_of_memory(err);
    *ret = s;
    s = (struct suggestion){0};
    return AS_OK;
}

void population_explain(const struct search_method *m, const json_t *reason, const json_t *metrics,
                        struct str *b)
{
    const struct population_method *own = m->own;
    (void)metrics;
    if (as_streq(explain_text(reason, "phase"), "search"))
        own->explain(reason, b);
    else
        explain_design(reason, b);
    explain_seen(reason, b);
}
