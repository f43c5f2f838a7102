/* A space from JSON: whatever parses has a canonical form that parses to the same, draws values of
 * its own domain, and numbers its grid both ways. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "search/grid.h"
#include "search/sampler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_config(const struct space *s, const struct config *c)
{
    AS_AUTO(config_freep) struct config *back = NULL;
    JSON_AUTO j = config_to_json(s, c);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_AUTO j = NULL;
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(space_freep) struct space *again = NULL;
    if (json_parse((const char *)data, size, &j, NULL) < 0 || space_parse(j, "", &s, NULL) < 0)
        return 0;
    JSON_AUTO canonical = space_to_json(s);
    if (!canonical || space_parse(canonical, "", &again, NULL) < 0)
        abort();
    JSON_AUTO twice = space_to_json(again);
    if (!json_equal(canonical, twice))
        abort();
    for (uint64_t t = 0; t < 8; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        if (sampler_suggest(s, t % 2 ? SEARCH_SOBOL : SEARCH_RANDOM, 1, t, NULL, &c, NULL, NULL) <
            0)
            abort();
        check_config(s, c);
    }
    check_grid(s);
    return 0;
}
