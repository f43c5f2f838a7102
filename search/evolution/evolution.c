/* The population is computed from the history for each suggestion; nothing is kept (decision 4012).
 * A second parameter is changed with probability SECOND_CHANGE, so that pairs that only work
 * together are found. */
#include "search/evolution/evolution.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "search/population/moves.h"
#include "search/population/population.h"
#include "search/problem/explain.h"

#define SECOND_CHANGE 0.4 /* probability */

/* The place of each trial that ended in the order, and which rows are in the population. */
static size_t list_population(const struct population *p, size_t *ret_rows)
{
    const struct training_set *s = p->set;
    size_t n = 0;
    for (size_t i = s->n; i-- > 0 && n < EVOLUTION_POPULATION;)
        if (s->state[i] != OBSERVED_PENDING)
            ret_rows[n++] = i;
    return n;
}

/* The best of a sample. `rank` is [set->n]. */
static size_t choose_parent(struct rng *r, size_t *rows, size_t n, const size_t *rank)
{
    size_t best = 0, sample = n < EVOLUTION_SAMPLE ? n : EVOLUTION_SAMPLE;
    for (size_t i = 0; i < sample; i++) {
        size_t j = i + (size_t)rng_below(r, n - i), row = rows[j];
        rows[j] = rows[i];
        rows[i] = row;
        if (i == 0 || rank[row] < rank[best])
            best = row;
    }
    return best;
}

/* A parameter that is active and has more than one value; d if there is none. */
static size_t choose_parameter(const struct encoding *e, struct rng *r, const bool *active)
{
    size_t n = 0, found = e->n;
    for (size_t j = 0; j < e->n; j++)
        n += active[j] && e->params[j].kind != ENCODED_CONSTANT;
    uint64_t left = n ? rng_below(r, n) : 0;
    for (size_t j = 0; j < e->n && n; j++) {
        if (!active[j] || e->params[j].kind == ENCODED_CONSTANT)
            continue;
        if (left-- == 0) {
            found = j;
            break;
        }
    }
    return found;
}

static double changed_number(const struct encoding *e, size_t j, struct rng *r, double now)
{
    double width = EVOLUTION_LEAST * pow(EVOLUTION_MOST / EVOLUTION_LEAST, rng_uniform(r)), step;
    do
        step = width * rng_normal(r);
    while (step == 0);
    double x = moves_reflect(now + step);
    if (e->params[j].kind != ENCODED_LEVELS)
        return x;
    uint64_t before = encoding_level(e, j, now), level = encoding_level(e, j, x);
    if (level == before)
        level =
            (step > 0 && before + 1 < e->params[j].levels) || before == 0 ? before + 1 : before - 1;
    return encoding_place(e, j, level);
}

static void change(const struct encoding *e, size_t j, struct rng *r, double *point)
{
    point[j] = e->params[j].kind == ENCODED_CHOICE ? moves_other_choice(r, &e->params[j], point[j])
                                                   : changed_number(e, j, r, point[j]);
}

static as_status describe(const struct population *p, size_t parent, const size_t *changed,
                          size_t n, json_t *reason, struct as_err *err)
{
    JSON_AUTO names = json_array();
    int bad = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || changed[i] != changed[0])
            bad |= json_array_append_new(names,
                                         json_string(p->set->spec->space->params[changed[i]].name));
    bad |= json_object_set_new(reason, "parent",
                               json_integer((json_int_t)p->set->trials[parent].number));
    bad |= json_object_set(reason, "changed", names);
    return bad ? as_fail(err, AS_E_NOMEM, "out of memory for a suggestion's reason") : AS_OK;
}

static as_status evolution_propose(void *self, const struct population *p, struct rng *r,
                                   double *ret_point, json_t *reason, struct as_err *err)
{
    const struct encoding *e = p->set->enc;
    size_t rows[EVOLUTION_POPULATION], changed[2], n_changed = 0;
    (void)self;
    AS_AUTO(as_freep) size_t *rank = as_calloc(p->set->n, sizeof *rank);
    AS_AUTO(as_freep) bool *active = as_calloc(2, e->n * sizeof *active);
    if (!rank || !active)
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    for (size_t i = 0; i < p->n; i++)
        rank[p->order[i]] = i;
    size_t parent = choose_parent(r, rows, list_population(p, rows), rank);
    memcpy(ret_point, training_set_point(p->set, parent), e->n * sizeof *ret_point);
    size_t times = 1 + (rng_uniform(r) < SECOND_CHANGE);
    for (size_t k = 0; k < times; k++) {
        encoding_active(e, ret_point, active);
        memcpy(active + e->n, active, e->n * sizeof *active);
        size_t j = choose_parameter(e, r, active);
        if (j == e->n)
            break;
        change(e, j, r, ret_point);
        encoding_active(e, ret_point, active);
        moves_activate(e, active + e->n, active, r, ret_point);
        changed[n_changed++] = j;
    }
    return describe(p, parent, changed, n_changed, reason, err);
}

static void evolution_explain(const json_t *reason, struct str *b)
{
    size_t i;
    const json_t *name;
    str_printf(b, "trial %" PRId64 " with ", explain_count(reason, "parent"));
    json_array_foreach(json_object_get(reason, "changed"), i, name) str_printf(
        b, "%s%s", i ? " and " : "", json_is_string(name) ? json_string_value(name) : "?");
    str_puts(b, " changed");
}

static const struct population_method evolution = {
    .purpose = SEARCH_DRAW_EVOLUTION, .propose = evolution_propose, .explain = evolution_explain};

const struct search_method search_evolution = POPULATION_METHOD("evolution", evolution);
