#include "tests/search/sweep.h"

#include <math.h>

#include "base/json.h"
#include "search/gp/gp.h"
#include "tests/support/check_main.h"

void sweep_init(struct sweep *w, const struct space *s, uint64_t seed, bool cached)
{
    *w = (struct sweep){.spec = {.space = s, .method = &search_gp, .seed = seed, .n_objectives = 1},
                        .cache = cached ? search_cache_create() : NULL};
}

void sweep_done(struct sweep *w)
{
    for (size_t i = 0; i < w->n; i++)
        config_free((struct config *)w->trials[i].config);
    free(w->trials);
    json_decref(w->state);
    json_decref(w->reason);
    search_cache_free(w->cache);
    *w = (struct sweep){0};
}

static struct observation *append(struct sweep *w, struct config *c)
{
    ck_assert_int_eq(as_reserve_one(&w->trials, w->n, &w->cap, sizeof *w->trials, NULL), AS_OK);
    w->trials[w->n] = (struct observation){.number = w->n, .config = c, .state = OBSERVED_PENDING};
    return &w->trials[w->n++];
}

as_status sweep_ask(struct sweep *w, struct as_err *err)
{
    struct history h = {w->trials, w->n};
    struct suggestion s = {0};
    as_status st = suggest(&w->spec, &h, w->state, w->n, w->index, w->cache, &s, err);
    if (st < 0)
        return st;
    append(w, s.config)->is_suggested = true;
    w->index++;
    json_decref(w->state);
    json_decref(w->reason);
    w->state = s.state;
    w->reason = s.reason;
    return AS_OK;
}

void sweep_tell(struct sweep *w, size_t trial, double value)
{
    w->trials[trial].state = OBSERVED_COMPLETED;
    w->trials[trial].values[0] = value;
}

void sweep_add(struct sweep *w, const struct config *c, double value)
{
    append(w, config_copy(c));
    sweep_tell(w, w->n - 1, value);
}

double sweep_number(const struct sweep *w, size_t trial, size_t i)
{
    const struct config_entry *e = &w->trials[trial].config->entries[i];
    if (!e->active)
        return NAN;
    switch (w->spec.space->params[i].kind) {
    case PARAM_FLOAT:
        return e->value.real;
    case PARAM_INT:
        return (double)e->value.integer;
    default:
        return (double)e->value.choice;
    }
}

struct training_set *sweep_training_set(const struct sweep *w)
{
    struct training_set *set = NULL;
    struct as_err err = {0};
    const struct history h = {w->trials, w->n};
    ck_ok(training_set_create(&w->spec, &h, NULL, &set, &err), err);
    return set;
}

double sweep_bowl(const struct sweep *w, size_t trial)
{
    double sum = 0;
    for (size_t i = 0; i < w->spec.space->n; i++) {
        const struct space_param *p = &w->spec.space->params[i];
        const struct config_entry *e = &w->trials[trial].config->entries[i];
        double u = e->active ? param_encode(p, e->value) : 0.9;
        sum += (1 + (double)i) * (u - 0.35) * (u - 0.35);
    }
    return sum;
}

void sweep_check(const struct sweep *w, size_t trial)
{
    const struct space *s = w->spec.space;
    const struct config *c = w->trials[trial].config;
    for (size_t i = 0; i < s->n; i++) {
        ck_assert_int_eq(c->entries[i].active, config_wants(s, c, i));
        ck_assert(!c->entries[i].active || param_contains(&s->params[i], c->entries[i].value));
    }
    ck_assert(space_allows(s, c));
    const json_t *repeat = trial + 1 == w->n ? json_object_get(w->reason, "repeat") : NULL;
    for (size_t t = 0; t < trial && !repeat; t++)
        ck_assert_msg(!config_equal(s, c, w->trials[t].config), "trial %zu repeats %zu", trial, t);
}
