/* One suggestion: which configuration a trial should try, and why.
 *
 * Pure in its inputs: (space, method, seed, trial number, history) fix the answer, in any order of
 * asking, on any server. All randomness is Philox keyed by the sweep's seed, with the counter's
 * high word `trial number << 8 | purpose` (enum search_purpose). Not promised: equal last bits of a
 * value on a log scale between versions of the C library's exp and log.
 *
 * Trial numbers here count from 0 and have no holes: trial t of a grid sweep is cell t (grid.h),
 * trial t of a Sobol sweep is point t (sobol.h). */
#ifndef ASSAY_SEARCH_SAMPLER_H
#define ASSAY_SEARCH_SAMPLER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/config.h"
#include "search/space.h"

typedef enum search_method { SEARCH_GRID, SEARCH_RANDOM, SEARCH_SOBOL } search_method;

/* The low byte of the Philox counter's high word. Numbers are never reused: replays depend on them.
 */
enum search_purpose {
    SEARCH_DRAW_RANDOM = 1,   /* values of a random trial */
    SEARCH_DRAW_SCRAMBLE = 2, /* Owen scrambling of Sobol points; trial number 0 */
    SEARCH_DRAW_ENSEMBLE = 3  /* the halves of the held-out rows; trial number 0 */
};

/* `pointer` names the field in errors ("/search/method"). AS_E_INVAL: no such method.
 * AS_E_UNSUPPORTED: gp, which is not in this version yet. */
AS_MUST_CHECK as_status search_method_parse(const char *name, const char *pointer,
                                            search_method *ret, struct as_err *err);
const char *search_method_format(search_method m); /* "grid", … Never NULL. */

/* A trial that ended or is under way. */
struct observation {
    uint64_t trial_number;
    const struct config *config; /* borrowed */
    bool has_value;              /* false: pending, failed, or a value that is not finite */
    double value;                /* of the sweep's metric */
};

/* Everything known when the suggestion is made, each list ascending by trial number. */
struct history {
    const struct observation *finished;
    size_t n_finished;
    const struct observation *pending;
    size_t n_pending;
    bool maximize; /* the metric's goal */
};

/* Suggest trial `trial_number`.
 *   history     borrowed; NULL is the same as empty; grid, random and Sobol do not look at it
 *   ret_config  owned by the caller, config_free()
 *   ret_reason  new reference, or NULL when not wanted: {"method": "random"},
 *               {"method": "grid", "cell": 3, "cells": 12}, {"method": "sobol", "point": 5}
 * AS_E_EXHAUSTED  the grid has no cell of that number: the search is over, not an error
 * AS_E_INVAL      the grid is not possible (see grid_create)
 * AS_E_TOO_LARGE, AS_E_NOMEM
 * O(parameters) for random and Sobol; for grid see grid_cell. Safe from any thread. */
AS_MUST_CHECK as_status sampler_suggest(const struct space *s, search_method method, uint64_t seed,
                                        uint64_t trial_number, const struct history *history,
                                        struct config **ret_config, json_t **ret_reason,
                                        struct as_err *err);

#endif
