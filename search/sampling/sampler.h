/* Drawing a configuration without looking at results: grid, random, Sobol.
 *
 * Pure in its inputs: (space, method, seed, index) fix the answer, in any order of asking, on any
 * server. All randomness is Philox keyed by the sweep's seed, with the counter's high word
 * `index << 8 | purpose` (enum search_purpose). Not promised: equal last bits of a value on a log
 * scale between versions of the C library's exp and log.
 *
 * What the space does not allow is drawn again, keyed by (index, number of the draw): random draws
 * from a later place of the same stream, Sobol takes the same point of another scrambling. A finite
 * space in which SAMPLER_MAX_DRAWS draws found nothing is listed, and a configuration drawn from
 * the list. Spaces without constraints draw once.
 *
 * The index counts the method's own suggestions from 0, without holes: index t of a grid sweep is
 * cell t (grid.h), of a Sobol sweep point t (sobol.h). */
#ifndef ASSAY_SEARCH_SAMPLER_H
#define ASSAY_SEARCH_SAMPLER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/space/config.h"
#include "search/sampling/grid.h"
#include "search/space/space.h"

#define SAMPLER_MAX_DRAWS 100000
#define SAMPLER_CHECK_DRAWS 1000

typedef enum search_method { SEARCH_GRID, SEARCH_RANDOM, SEARCH_SOBOL, SEARCH_GP } search_method;

/* The low byte of the Philox counter's high word. Numbers are never reused: replays depend on them.
 */
enum search_purpose {
    SEARCH_DRAW_RANDOM = 1,      /* values of a random trial */
    SEARCH_DRAW_SCRAMBLE = 2,    /* Owen scrambling of Sobol points; trial number 0 */
    SEARCH_DRAW_ENSEMBLE = 3,    /* the halves of the held-out rows; trial number 0 */
    SEARCH_DRAW_GP_FIT = 4,      /* random starts of a fit */
    SEARCH_DRAW_GP_RAW = 5,      /* candidates: scrambling of their Sobol points */
    SEARCH_DRAW_GP_MOVE = 6,     /* candidates: moves of the best trials */
    SEARCH_DRAW_GP_START = 7,    /* which candidate an optimiser starts from */
    SEARCH_DRAW_GP_DESIGN = 8,   /* initial points that are drawn again */
    SEARCH_DRAW_IMPORTANCE = 16, /* posterior draws, point sets and resampling; trial number 0 */
    SEARCH_DRAW_LISTED = 24      /* one of the allowed configurations of a finite space */
};

/* `pointer` names the field in errors ("/search/method"). AS_E_INVAL: no such method. */
AS_MUST_CHECK as_status search_method_parse(const char *name, const char *pointer,
                                            search_method *ret, struct as_err *err);
const char *search_method_format(search_method m); /* "grid", … Never NULL. */

/* The configuration of that index; gp draws its initial design as Sobol does.
 *   ret_config  owned by the caller, config_free()
 *   ret_reason  new reference, or NULL when not wanted: {"method": "random"},
 *               {"method": "grid", "cell": 3, "cells": 12}, {"method": "sobol", "point": 5}; with
 *               "redraws": n when n draws were not allowed
 * AS_E_EXHAUSTED  the grid has no cell of that number: the search is over, not an error
 * AS_E_INVAL      the grid is not possible (see grid_create)
 * AS_E_UNSUPPORTED nothing that is allowed was found; pointer and message name the constraint
 * AS_E_TOO_LARGE, AS_E_NOMEM
 * O(parameters) for each draw of random and Sobol; a grid is made anew each time: who has one uses
 * sampler_suggest_cell. Safe from any thread. */
AS_MUST_CHECK as_status sampler_suggest(const struct space *s, search_method method, uint64_t seed,
                                        uint64_t index, struct config **ret_config,
                                        json_t **ret_reason, struct as_err *err);

/* sampler_suggest of method grid with the space's grid at hand. */
AS_MUST_CHECK as_status sampler_suggest_cell(const struct grid *g, uint64_t index,
                                             struct config **ret_config, json_t **ret_reason,
                                             struct as_err *err);

/* Does a search of this space find configurations that are allowed? Looks at SAMPLER_CHECK_DRAWS
 * draws only, far fewer than a suggestion does, so that what passes here will not fail later. At
 * once where there are no constraints. AS_E_UNSUPPORTED as above; AS_E_NOMEM. */
AS_MUST_CHECK as_status sampler_check(const struct space *s, uint64_t seed, struct as_err *err);

#endif
