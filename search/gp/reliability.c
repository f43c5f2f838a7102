/* The state: {"open": [[trial, model, lowest, highest], …], "models": [{"missed": [0, 1, …],
 * "lost": [missed, of, until]}, …]}. An end that is not finite is null. */
#include "search/gp/reliability.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

#define DEVIATIONS 3.0
#define MISSED_MOST 0.45
#define LOST_LEAST 12 /* results without its turns; or half of all, if that is more */

/* ---- the record of a model ---- */

size_t reliability_misses(const struct reliability_record *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += r->missed[i];
    return n;
}

static void add_result(struct reliability_record *r, bool missed)
{
    if (r->n == RELIABILITY_NEWEST)
        memmove(r->missed, r->missed + 1, --r->n * sizeof *r->missed);
    r->missed[r->n++] = missed;
}

static void judge(struct reliability_record *r, uint64_t results)
{
    if (r->lost_n && results >= r->lost_until)
        *r = (struct reliability_record){0};
    size_t misses = reliability_misses(r);
    if (r->lost_n || r->n < RELIABILITY_LEAST || (double)misses <= MISSED_MOST * (double)r->n)
        return;
    uint64_t rest = results / 2 > LOST_LEAST ? results / 2 : LOST_LEAST;
    *r = (struct reliability_record){
        .lost_missed = misses, .lost_n = r->n, .lost_until = results + rest};
}

unsigned reliability_lost(const struct reliability *c)
{
    unsigned lost = 0;
    for (unsigned t = 0; t < RELIABILITY_MODELS; t++)
        lost |= (unsigned)reliability_has_lost(c, t) << t;
    return lost;
}

/* ---- predictions and results ---- */

/* The trial of this number; SIZE_MAX: it was cancelled. */
static size_t find_trial(const struct training_set *s, uint64_t number)
{
    for (size_t i = s->n; i-- > 0;)
        if (s->trials[i].number == number)
            return i;
    return SIZE_MAX;
}

void reliability_check(struct reliability *c, const struct training_set *s)
{
    size_t kept = 0;
    for (size_t k = 0; k < c->n_open; k++) {
        const struct reliability_interval p = c->open[k];
        size_t i = find_trial(s, p.number);
        if (i == SIZE_MAX || s->state[i] == OBSERVED_FAILED)
            continue;
        if (s->state[i] != OBSERVED_COMPLETED) {
            c->open[kept++] = p;
            continue;
        }
        double cost = s->costs[i * s->spec->n_objectives];
        if (!reliability_has_lost(c, p.target))
            add_result(&c->of[p.target], !(cost >= p.lowest && cost <= p.highest));
    }
    c->n_open = kept;
    judge(&c->of[SURROGATE_PLAIN], training_set_results(s));
    judge(&c->of[SURROGATE_SMOOTH], training_set_results(s));
    if (reliability_has_lost(c, SURROGATE_WARPED) || c->of[SURROGATE_PLAIN].n >= RELIABILITY_LEAST)
        judge(&c->of[SURROGATE_WARPED], training_set_results(s));
}

void reliability_watch(struct reliability *c, uint64_t number, const struct surrogate *m,
                       double mean, double deviation)
{
    if (c->n_open == RELIABILITY_OPEN || !surrogate_is_objective(m->target))
        return;
    double off = DEVIATIONS * sqrt(deviation * deviation + gp_model_noise(m->model));
    c->open[c->n_open++] = (struct reliability_interval){
        number, m->target, surrogate_back(m, mean - off), surrogate_back(m, mean + off)};
}

/* ---- the state ---- */

static bool read_interval(const json_t *j, struct reliability_interval *ret)
{
    const json_t *lowest = json_array_get(j, 2), *highest = json_array_get(j, 3);
    json_int_t number = json_integer_value(json_array_get(j, 0));
    json_int_t target = json_integer_value(json_array_get(j, 1));
    if (json_array_size(j) != 4 || number < 0 || target < 0 || target >= RELIABILITY_MODELS)
        return false;
    *ret = (struct reliability_interval){
        .number = (uint64_t)number,
        .target = (surrogate_target)target,
        .lowest = json_is_number(lowest) ? json_number_value(lowest) : -INFINITY,
        .highest = json_is_number(highest) ? json_number_value(highest) : INFINITY};
    return true;
}

static size_t read_count(const json_t *list, size_t i)
{
    json_int_t v = json_integer_value(json_array_get(list, i));
    return v > 0 ? (size_t)v : 0;
}

static void read_record(const json_t *j, struct reliability_record *ret)
{
    const json_t *missed = json_object_get(j, "missed"), *lost = json_object_get(j, "lost");
    for (size_t i = 0; i < json_array_size(missed); i++)
        add_result(ret, json_integer_value(json_array_get(missed, i)) == 1);
    ret->lost_missed = read_count(lost, 0);
    ret->lost_n = read_count(lost, 1);
    ret->lost_until = read_count(lost, 2);
}

void reliability_read(const json_t *state, struct reliability *ret)
{
    const json_t *open = json_object_get(state, "open"), *models = json_object_get(state, "models");
    *ret = (struct reliability){0};
    for (size_t i = 0; i < json_array_size(open) && ret->n_open < RELIABILITY_OPEN; i++)
        ret->n_open += read_interval(json_array_get(open, i), &ret->open[ret->n_open]);
    for (size_t t = 0; t < RELIABILITY_MODELS; t++)
        read_record(json_array_get(models, t), &ret->of[t]);
}

/* + 0.0: a store may lose the sign of zero */
static json_t *write_end(double v)
{
    return isfinite(v) ? json_real(v + 0.0) : json_null();
}

static json_t *write_record(const struct reliability_record *r)
{
    JSON_AUTO missed = json_array();
    for (size_t i = 0; i < r->n; i++)
        if (json_array_append_new(missed, json_integer(r->missed[i])) < 0)
            return NULL;
    if (!r->lost_n)
        return json_pack("{s:O}", "missed", missed);
    return json_pack("{s:O, s:[I,I,I]}", "missed", missed, "lost", (json_int_t)r->lost_missed,
                     (json_int_t)r->lost_n, (json_int_t)r->lost_until);
}

json_t *reliability_write(const struct reliability *c)
{
    JSON_AUTO open = json_array();
    JSON_AUTO models = json_array();
    bool any = c->n_open > 0;
    for (size_t k = 0; k < c->n_open; k++) {
        const struct reliability_interval *p = &c->open[k];
        if (json_array_append_new(open, json_pack("[I,I,o,o]", (json_int_t)p->number,
                                                  (json_int_t)p->target, write_end(p->lowest),
                                                  write_end(p->highest))) < 0)
            return NULL;
    }
    for (size_t t = 0; t < RELIABILITY_MODELS; t++) {
        any |= c->of[t].n > 0 || c->of[t].lost_n > 0;
        if (json_array_append_new(models, write_record(&c->of[t])) < 0)
            return NULL;
    }
    return any ? json_pack("{s:O, s:O}", "open", open, "models", models) : json_null();
}
