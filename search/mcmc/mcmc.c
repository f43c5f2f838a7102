/* Chains of trials. What a chain was at when it made a suggestion is not in the history, so the
 * state has it; whether it went there is drawn by the number of the trial, so it is decided once,
 * whoever decides. */
#include "search/mcmc/mcmc.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "search/mcmc/chain.h"
#include "search/population/design.h"
#include "search/population/population.h"
#include "search/problem/explain.h"

/* Moves of one proposal over what was tried; in a finite space nothing may be left. */
#define MOVES_MOST 100
#define NO_ROW TRAINING_SET_NONE

struct chain {
    uint64_t at, tried; /* numbers of trials */
    bool has_tried;     /* it waits for that trial */
    int64_t steps, accepted;
};

struct chains {
    const struct population *p; /* borrowed */
    double *cost;               /* [set->n]: of each trial that ended */
    double spread;              /* the temperature before the first step */
    struct chain *chains;       /* with room for one more */
    size_t n, now;              /* now: the chain that proposes */
    size_t row;                 /* where that chain is */
    bool *scratch;              /* [2 x parameters] */
};

static void chains_free(void *self)
{
    struct chains *s = self;
    if (!s)
        return;
    free(s->cost);
    free(s->chains);
    free(s->scratch);
    free(s);
}

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
}

/* The row of a trial; trials are in the order of their numbers. */
static size_t row_of(const struct training_set *set, uint64_t number)
{
    size_t low = 0, high = set->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (set->trials[mid].number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low < set->n && set->trials[low].number == number ? low : NO_ROW;
}

/* ---- costs ---- */

/* The distance of the quartiles of the design's costs; of its ends if that is 0. */
static as_status set_spread(struct chains *s, struct as_err *err)
{
    const struct training_set *set = s->p->set;
    size_t design = design_size(set), n = 0;
    AS_AUTO(as_freep) double *sorted = as_calloc(set->n, sizeof *sorted);
    if (!sorted)
        return out_of_memory(err);
    for (size_t i = 0; i < set->n && i < design; i++)
        if (isfinite(s->cost[i]))
            sorted[n++] = s->cost[i];
    qsort(sorted, n, sizeof *sorted, as_order_f64);
    s->spread = n ? sorted[3 * (n - 1) / 4] - sorted[(n - 1) / 4] : 0;
    if (!(s->spread > 0))
        s->spread = n && sorted[n - 1] > sorted[0] ? sorted[n - 1] - sorted[0] : 1;
    return AS_OK;
}

static void set_costs(struct chains *s)
{
    const struct training_set *set = s->p->set;
    for (size_t i = 0; i < set->n; i++)
        s->cost[i] = INFINITY;
    for (size_t k = 0; k < s->p->n; k++) {
        size_t i = s->p->order[k];
        if (set->feasible[i])
            s->cost[i] = set->spec->n_objectives == 1 ? set->costs[i] : (double)k / (double)s->p->n;
    }
}

static double temperature(const struct chains *s)
{
    return s->spread / (1 + (double)s->chains[s->now].steps / MCMC_COOLING);
}

/* ---- the state ---- */

static bool read_chain(const json_t *j, struct chain *ret)
{
    const json_t *tried = json_object_get(j, "try");
    *ret = (struct chain){.at = (uint64_t)json_integer_value(json_object_get(j, "at")),
                          .tried = (uint64_t)json_integer_value(tried),
                          .has_tried = json_is_integer(tried),
                          .steps = json_integer_value(json_object_get(j, "steps")),
                          .accepted = json_integer_value(json_object_get(j, "accepted"))};
    return json_is_integer(json_object_get(j, "at"));
}

static as_status read_chains(struct chains *s, const json_t *state, struct as_err *err)
{
    size_t i;
    const json_t *j, *list = json_object_get(state, "chains");
    s->chains = as_calloc(json_array_size(list) + 1, sizeof *s->chains);
    if (!s->chains)
        return out_of_memory(err);
    json_array_foreach(list, i, j) s->n += read_chain(j, &s->chains[s->n]);
    return AS_OK;
}

static as_status mcmc_keep(void *self, json_t **ret, struct as_err *err)
{
    const struct chains *s = self;
    struct chain *now = &s->chains[s->now];
    json_t *list = json_array();
    int bad = !list;
    now->tried = s->p->turn->number;
    now->has_tried = true;
    for (size_t i = 0; i < s->n; i++) {
        const struct chain *c = &s->chains[i];
        bad |= json_array_append_new(
            list, json_pack("{s:I, s:o*, s:I, s:I}", "at", (json_int_t)c->at, "try",
                            c->has_tried ? json_integer((json_int_t)c->tried) : NULL, "steps",
                            (json_int_t)c->steps, "accepted", (json_int_t)c->accepted));
    }
    *ret = json_pack("{s:o}", "chains", list);
    return bad || !*ret ? out_of_memory(err) : AS_OK;
}

/* ---- steps ---- */

/* One step of the chain s->now, which is at s->row, to a trial that ended. */
static void step_to(struct chains *s, size_t row, double u)
{
    struct chain *c = &s->chains[s->now];
    bool goes = chain_accepts(s->cost[s->row], s->cost[row], temperature(s), u);
    c->steps++;
    c->accepted += goes;
    if (goes) {
        s->row = row;
        c->at = s->p->set->trials[row].number;
    }
}

/* Where the chain s->now is; the best trial if its own is no longer there. */
static void find_chain(struct chains *s)
{
    const struct training_set *set = s->p->set;
    struct chain *c = &s->chains[s->now];
    s->row = row_of(set, c->at);
    if (s->row == NO_ROW || set->state[s->row] == OBSERVED_PENDING) {
        s->row = s->p->order[0];
        c->at = set->trials[s->row].number;
    }
}

/* Let every chain whose trial has ended go there or stay. A trial that was cancelled is no step. */
static void decide(struct chains *s)
{
    const struct training_set *set = s->p->set;
    for (s->now = 0; s->now < s->n; s->now++) {
        struct chain *c = &s->chains[s->now];
        size_t row = c->has_tried ? row_of(set, c->tried) : NO_ROW;
        struct rng r;
        if (row != NO_ROW && set->state[row] == OBSERVED_PENDING)
            continue;
        find_chain(s);
        rng_init(&r, set->spec->seed, c->tried << 8 | SEARCH_DRAW_MCMC_ACCEPT);
        if (row != NO_ROW)
            step_to(s, row, rng_uniform(&r));
        c->has_tried = false;
    }
}

/* The first chain that waits for no trial, or a new one. */
static void choose_chain(struct chains *s)
{
    const struct training_set *set = s->p->set;
    for (s->now = 0; s->now < s->n && s->chains[s->now].has_tried;)
        s->now++;
    if (s->now == s->n) {
        size_t design = design_size(set), nth = s->n++, last = s->p->order[0];
        for (size_t k = 0; k < s->p->n; k++) {
            if (s->p->order[k] >= design)
                continue;
            last = s->p->order[k];
            if (nth-- == 0)
                break;
        }
        s->chains[s->now] = (struct chain){.at = set->trials[last].number};
    }
    find_chain(s);
}

static as_status mcmc_begin(const struct population *p, void **ret_self, struct as_err *err)
{
    const struct training_set *set = p->set;
    struct chains *s = as_calloc(1, sizeof *s);
    bool ok = s && (s->cost = as_calloc(set->n, sizeof *s->cost)) &&
              (s->scratch = as_calloc(2, set->enc->n * sizeof *s->scratch));
    as_status st = ok ? AS_OK : out_of_memory(err);
    if (st == AS_OK) {
        s->p = p;
        set_costs(s);
        st = set_spread(s, err);
    }
    if (st == AS_OK)
        st = read_chains(s, p->turn->state, err);
    if (st < 0) {
        chains_free(s);
        return st;
    }
    decide(s);
    choose_chain(s);
    *ret_self = s;
    return AS_OK;
}

/* Move until a configuration is new. False: none was found; the point was tried or is not
 * allowed. */
static bool move_on(struct chains *s, struct rng *r, double *point, size_t *ret_changed)
{
    const struct training_set *set = s->p->set;
    const struct encoding *e = set->enc;
    for (size_t k = 0; k < MOVES_MOST; k++) {
        memcpy(point, training_set_point(set, s->row), e->n * sizeof *point);
        *ret_changed = chain_move(e, r, s->scratch, point);
        if (encoding_same(e, point, training_set_point(set, s->row), DESIGN_TOLERANCE))
            continue;
        size_t row = training_set_find(set, point, DESIGN_TOLERANCE, 0);
        if (row == NO_ROW && encoding_allows(e, point, set->scratch))
            return true;
        if (row == NO_ROW)
            s->chains[s->now].steps++; /* not allowed: the chain stays */
        else if (set->state[row] != OBSERVED_PENDING)
            step_to(s, row, rng_uniform(r));
    }
    return false;
}

static as_status mcmc_propose(void *self, const struct population *p, struct rng *r,
                              double *ret_point, json_t *reason, struct as_err *err)
{
    struct chains *s = self;
    size_t changed = 0;
    if (!move_on(s, r, ret_point, &changed))
        return AS_OK;
    const struct chain *c = &s->chains[s->now];
    json_t *acceptance =
        c->steps ? json_number_new((double)c->accepted / (double)c->steps) : json_null();
    JSON_AUTO more =
        json_pack("{s:I, s:I, s:[s], s:o, s:o}", "chain", (json_int_t)s->now, "parent",
                  (json_int_t)c->at, "changed", p->set->spec->space->params[changed].name,
                  "temperature", json_number_new(temperature(s)), "acceptance", acceptance);
    return more && json_object_update(reason, more) == 0
               ? AS_OK
               : as_fail(err, AS_E_NOMEM, "out of memory for a suggestion's reason");
}

static void mcmc_explain(const json_t *reason, struct str *b)
{
    const char *name = json_string_value(json_array_get(json_object_get(reason, "changed"), 0));
    double acceptance;
    if (name) {
        str_printf(b, "chain %" PRId64 " at trial %" PRId64 ", with %s changed",
                   explain_count(reason, "chain") + 1, explain_count(reason, "parent"), name);
        explain_number(json_object_get(reason, "temperature"), ", at temperature ", b);
        if (json_number_get(json_object_get(reason, "acceptance"), &acceptance))
            str_printf(b, ", %.0f%% of its steps accepted", 100 * acceptance);
    } else {
        explain_design(reason, b);
    }
}

static const struct population_method mcmc = {.purpose = SEARCH_DRAW_MCMC,
                                              .begin = mcmc_begin,
                                              .propose = mcmc_propose,
                                              .end = chains_free,
                                              .keep = mcmc_keep,
                                              .explain = mcmc_explain};

const struct search_method search_mcmc = POPULATION_METHOD("mcmc", mcmc);
