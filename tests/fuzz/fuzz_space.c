/* A space from JSON, with its constraints or without: whatever parses has a canonical form that
 * parses to the same, draws values of its own domain that are allowed, survives the encoding, and
 * numbers its grid both ways; its priors are finite. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "search/prior/prior_dist.h"
#include "search/space/encoding.h"
#include "search/sampling/grid.h"
#include "search/sampling/sampler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_config(const struct space *s, const struct config *c)
{
    AS_AUTO(config_freep) struct config *back = NULL;
    JSON_AUTO j = config_to_json(s, c);
    if (!space_allows(s, c))
        abort();
    for (size_t i = 0; i < s->n; i++)
        if (c->entries[i].active && !param_contains(&s->params[i], c->entries[i].value))
            abort();
    if (!j || config_from_json(s, j, "", &back, NULL) < 0 || !config_equal(s, c, back))
        abort();
}

static void check_grid(const struct space *s)
{
    AS_AUTO(grid_freep) struct grid *g = NULL;
    if (grid_create(s, "", &g, NULL) < 0)
        return;
    const uint64_t some[] = {0, grid_cells(g) / 2, grid_cells(g) - 1};
    for (size_t i = 0; i < AS_ARRAY_LEN(some); i++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        uint64_t back = 0;
        if (grid_cell(g, some[i], &c, NULL) < 0 || grid_index(g, c, &back, NULL) < 0 ||
            back != some[i])
            abort();
        check_config(s, c);
    }
}

/* Discrete values come back from their point; with floats, the point at least is the same. */
static void check_encoding(const struct encoding *e, const struct config *c)
{
    double point[SPACE_MAX_PARAMS], back[SPACE_MAX_PARAMS], x[2 * SPACE_MAX_PARAMS];
    int32_t z[SPACE_MAX_PARAMS];
    AS_AUTO(config_freep) struct config *d = config_create(e->space);
    encoding_from_config(e, c, point);
    encoding_to_config(e, point, d);
    encoding_from_config(e, d, back);
    encoding_features(e, point, x, z);
    for (size_t j = 0; j < e->n_real; j++)
        if (!(x[j] >= 0 && x[j] <= 1))
            abort();
    for (size_t i = 0; i < e->n; i++) {
        if (param_levels(&e->space->params[i]) > PARAM_EXACT_LEVELS)
            return; /* past what a double tells apart; conditions may turn over */
        if (!c->entries[i].active || e->params[i].kind == ENCODED_CONTINUOUS)
            continue;
        if (param_compare(&e->space->params[i], c->entries[i].value,
                          param_level(&e->space->params[i],
                                      param_level_of(&e->space->params[i], c->entries[i].value))))
            abort();
        if (e->params[i].kind != ENCODED_CONSTANT && point[i] != back[i] && d->entries[i].active)
            abort();
    }
}

/* Priors are finite everywhere, and draw values of the domain. */
static void check_priors(const struct encoding *e)
{
    double point[SPACE_MAX_PARAMS], slope[SPACE_MAX_PARAMS];
    for (double u = 0; u <= 1; u += 0.25) {
        for (size_t i = 0; i < e->n; i++) {
            const struct space_param *p = &e->space->params[i];
            point[i] = u;
            if (p->prior && (!param_contains(p, prior_dist_value(p, u)) ||
                             !isfinite(prior_dist_density(e, i, prior_dist_place(e, i, u)))))
                abort();
        }
        encoding_snap(e, point);
        double log = prior_dist_log(e, point, slope);
        if (!(log <= 0 && log >= -PRIOR_DIST_FLOOR))
            abort();
        for (size_t i = 0; i < e->n; i++)
            if (!isfinite(slope[i]))
                abort();
    }
}

/* The whole of a document's part, or the parameters alone. */
static as_status parse(const json_t *j, struct space **ret)
{
    const json_t *parameters = json_object_get(j, "parameters");
    if (!json_is_object(parameters) || json_object_get(parameters, "type"))
        return space_parse(j, "", ret, NULL);
    AS_AUTO(space_freep) struct space *s = NULL;
    as_status st = space_parse(parameters, "", &s, NULL);
    if (st == AS_OK)
        st = space_parse_constraints(s, json_object_get(j, "parameter_constraints"), "", NULL);
    if (st == AS_OK)
        st = space_parse_forbidden(s, json_object_get(j, "forbidden"), "", NULL);
    if (st == AS_OK)
        *ret = as_steal(s);
    return st;
}

static json_t *canonical_of(const struct space *s)
{
    return json_pack("{s:o, s:o, s:o}", "parameters", space_to_json(s), "parameter_constraints",
                     space_constraints_to_json(s), "forbidden", space_forbidden_to_json(s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_AUTO j = NULL;
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(space_freep) struct space *again = NULL;
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    if (json_parse((const char *)data, size, &j, NULL) < 0 || parse(j, &s) < 0)
        return 0;
    JSON_AUTO canonical = canonical_of(s);
    if (!canonical || parse(canonical, &again) < 0)
        abort();
    JSON_AUTO twice = canonical_of(again);
    if (!json_equal(canonical, twice))
        abort();
    if (encoding_create(s, &e, NULL) < 0)
        abort();
    check_priors(e);
    for (uint64_t t = 0; t < 8 && sampler_check(s, NULL) == AS_OK; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        if (sampler_draw(s, t % 2 ? SAMPLER_SOBOL : SAMPLER_RANDOM, 1, t, &c, NULL, NULL) < 0)
            abort();
        check_config(s, c);
        check_encoding(e, c);
    }
    check_grid(s);
    return 0;
}
