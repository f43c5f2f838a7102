/* The list of benchmark problems, and one problem opened for use.
 *
 * The families define their rows in their own files; this file searches them in the order in which
 * they are reported. A problem is opened by parsing its space and reading its table. Its scale is
 * measured with a fixed Sobol set, so that "small regret" means the same on every problem and every
 * machine. */
#include "bench/search/problems.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/yaml_reader.h"
#include "bench/search/disguise.h"
#include "bench/search/learners.h"
#include "bench/search/problems_priv.h"
#include "bench/search/surrogate.h"
#include "bench/search/table.h"
#include "search/sampling/sampler.h"

#define SCALE_POINTS 512
/* Purposes 1..15 of the counter's low byte are the search's own. */
#define NOISE_PURPOSE 200

static const struct {
    const char *name;
    const struct problem_def *defs;
} families[] = {
    {"classical", classical_problems},
    {"mixed", mixed_problems},
    {"conditional", conditional_problems},
    {"noisy", noisy_problems},
    {"real", real_problems},
    {"real", surrogate_problems},
    {"real", learners_problems},
    {"real", trainer_problems},
    {"table", table_problems},
    {"rough", rough_problems},
    {"flat", flat_problems},
    {"flat", unsaid_problems},
    {"flat", uneven_problems},
    {"flat", few_problems},
    {"flat", strange_problems},
};

double problem_draw(unsigned instance, unsigned a, unsigned b)
{
    uint32_t w[4];
    philox4x32(7702, instance, (uint64_t)a << 32 | b, w);
    return w[0] / 4294967296.0;
}

static const struct problem_def *walk(size_t i, const char *name, const char **ret_family)
{
    for (size_t f = 0; f < AS_ARRAY_LEN(families); f++)
        for (const struct problem_def *d = families[f].defs; d->name != NULL; d++, i--)
            if (name != NULL ? as_streq(d->name, name) : i == 0) {
                if (ret_family != NULL)
                    *ret_family = families[f].name;
                return d;
            }
    return NULL;
}

size_t problem_count(void)
{
    size_t n = 0;
    for (size_t f = 0; f < AS_ARRAY_LEN(families); f++)
        for (const struct problem_def *d = families[f].defs; d->name != NULL; d++)
            n++;
    return n;
}

const struct problem_def *problem_at(size_t i)
{
    return walk(i, NULL, NULL);
}

const struct problem_def *problem_find(const char *name)
{
    return walk(0, name, NULL);
}

/* One number per parameter, as problem_fn expects it. */
static void numbers_of(const struct space *s, const struct config *c, double *x)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct config_entry *e = &c->entries[i];
        const struct space_param *p = &s->params[i];
        if (!e->active)
            x[i] = NAN;
        else if (p->kind == PARAM_FLOAT)
            x[i] = e->value.real;
        else if (p->kind == PARAM_INT)
            x[i] = (double)e->value.integer;
        else
            x[i] = (double)e->value.choice;
    }
}

/* The same values under the conditions of the declared problem: what does not apply is left out. */
static double declared_value(const struct problem *p, const struct config *c)
{
    AS_AUTO(config_freep) struct config *d = config_create(p->declared->space);
    if (d == NULL)
        abort(); /* a benchmark without memory has no figures */
    for (size_t i = 0; i < p->space->n; i++)
        d->entries[i] = c->entries[i];
    config_settle(p->declared->space, d);
    return problem_value(p->declared, d);
}

/* What `c` stands for. */
static struct config *undisguised(const struct problem *p, const struct config *c)
{
    struct config *inner = disguise_remove(p->disguise, c);
    if (inner == NULL)
        abort(); /* a benchmark without memory has no figures */
    return inner;
}

double problem_value(const struct problem *p, const struct config *c)
{
    double x[PROBLEM_MAX_PARAMS];
    if (p->disguise != NULL) {
        AS_AUTO(config_freep) struct config *inner = undisguised(p, c);
        return problem_value(p->declared, inner);
    }
    if (p->declared != NULL)
        return declared_value(p, c);
    if (p->table != NULL)
        return table_value(p->table, c);
    numbers_of(p->space, c, x);
    return p->def->fn(p, x);
}

double problem_observe(const struct problem *p, const struct config *c, uint64_t seed,
                       uint64_t trial)
{
    if (p->disguise != NULL) {
        AS_AUTO(config_freep) struct config *inner = undisguised(p, c);
        return problem_observe(p->declared, inner, seed, trial);
    }
    double v = problem_value(p, c);
    if (p->def->fn_observe != NULL) {
        double x[PROBLEM_MAX_PARAMS];
        numbers_of(p->space, c, x);
        return p->def->fn_observe(p, x, v, seed, trial);
    }
    if (p->def->noise > 0) {
        struct rng r;
        rng_init(&r, seed, trial << 8 | NOISE_PURPOSE);
        v += p->def->noise * rng_normal(&r);
    }
    return v;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static as_status take_scale(struct problem *p, struct as_err *err)
{
    double regret[SCALE_POINTS];
    size_t n = 0;
    if (p->surrogate != NULL) {
        p->scale = surrogate_median(p->surrogate) - p->optimum;
        return AS_OK;
    }
    for (uint64_t i = 0; i < SCALE_POINTS; i++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        as_status st = sampler_draw(p->space, SAMPLER_SOBOL, 0, i, &c, NULL, err);
        if (st < 0)
            return st;
        double v = problem_value(p, c);
        if (isfinite(v))
            regret[n++] = v - p->optimum;
    }
    qsort(regret, n, sizeof *regret, by_size);
    p->scale = n > 0 ? regret[n / 2] : 0;
    return p->scale > 0 ? AS_OK : as_fail(err, AS_E_INVAL, "%s: no spread of values", p->def->name);
}

/* The space's document, and that of the learners' file (NULL without one). */
static as_status read_space(const struct problem *p, const char *path, json_t **ret_space,
                            json_t **ret_learners, struct as_err *err)
{
    const char *text = p->def->parameters;
    if (text != NULL)
        return yaml_parse(text, strlen(text), ret_space, err);
    if (p->def->fn != fn_learners)
        return table_read_parameters(path, ret_space, err);
    as_status st = learners_read(path, ret_learners, err);
    if (st == AS_OK)
        *ret_space = json_incref(json_object_get(*ret_learners, "parameters"));
    return st;
}

static as_status open_space(struct problem *p, const char *path, struct as_err *err)
{
    JSON_AUTO doc = NULL;
    JSON_AUTO learners = NULL;
    as_status st = read_space(p, path, &doc, &learners, err);
    if (st == AS_OK)
        st = space_parse(doc, "/parameters", &p->space, err);
    if (st == AS_OK && learners != NULL)
        st = learners_create(learners, p->space, &p->learners, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "%s", p->def->name);
    if (p->space->n > PROBLEM_MAX_PARAMS)
        return as_fail(err, AS_E_TOO_LARGE, "%s: more than %d parameters", p->def->name,
                       PROBLEM_MAX_PARAMS);
    p->parameters = space_to_json(p->space);
    return p->parameters != NULL ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

/* The declared problem, and its space without the conditions. */
static as_status open_flat(struct problem *p, struct as_err *err)
{
    const char *name;
    json_t *parameter;
    as_status st = problem_open(problem_find(p->def->flat_of), &p->declared, err);
    if (st < 0)
        return st;
    p->optimum = p->declared->optimum;
    p->scale = p->declared->scale;
    p->parameters = json_deep_copy(p->declared->parameters);
    if (p->parameters == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    json_object_foreach(p->parameters, name, parameter)(void) json_object_del(parameter, "when");
    st = space_parse(p->parameters, "/parameters", &p->space, err);
    return st < 0 ? as_err_prefix(err, st, "%s", p->def->name) : AS_OK;
}

as_status problem_open(const struct problem_def *def, struct problem **ret, struct as_err *err)
{
    AS_AUTO(problem_freep) struct problem *p = as_calloc(1, sizeof *p);
    AS_AUTO(str_done) struct str path = {0};
    if (p == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    p->def = def;
    p->optimum = def->optimum;
    (void)walk(0, def->name, &p->family);
    str_printf(&path, def->fn == fn_learners ? "%s/learners/%s.json" : "%s/tables/%s.csv",
               BENCH_SEARCH_DIR, def->name);
    as_status st = str_check(&path, err);
    if (st == AS_OK && def->flat_of != NULL) {
        st = open_flat(p, err);
        if (st == AS_OK)
            *ret = as_steal(p);
        return st;
    }
    if (st < 0)
        return st;
    st = open_space(p, str_cstr(&path), err);
    if (st < 0)
        return st;
    if (def->fn == NULL) {
        st = table_read(str_cstr(&path), p->space, &p->table, err);
        if (st < 0)
            return st;
        p->optimum = table_lowest(p->table);
    } else if (def->fn == fn_surrogate) {
        st = surrogate_open(def->arg, p->space, &p->surrogate, err);
        if (st < 0)
            return st;
    } else if (p->learners != NULL) {
        p->optimum = learners_lowest(p->learners);
    }
    st = take_scale(p, err);
    if (st < 0)
        return st;
    *ret = as_steal(p);
    return AS_OK;
}

as_status problem_open_disguised(const struct problem_def *def, unsigned number,
                                 struct problem **ret, struct as_err *err)
{
    AS_AUTO(problem_freep) struct problem *p = as_calloc(1, sizeof *p);
    if (p == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    as_status st = problem_open(def, &p->declared, err);
    if (st < 0)
        return st;
    const struct problem *inner = p->declared;
    p->def = def;
    p->family = inner->family;
    p->optimum = inner->optimum;
    p->scale = inner->scale;
    st =
        disguise_create(inner->space, inner->parameters, number, &p->parameters, &p->disguise, err);
    if (st == AS_OK)
        st = space_parse(p->parameters, "/parameters", &p->space, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s in disguise", def->name);
    *ret = as_steal(p);
    return AS_OK;
}

void problem_free(struct problem *p)
{
    if (p == NULL)
        return;
    table_free(p->table); /* refers to the space */
    surrogate_free(p->surrogate);
    learners_free(p->learners);
    disguise_free(p->disguise);
    problem_free(p->declared);
    space_free(p->space);
    json_decref(p->parameters);
    free(p);
}
