/* The next configuration to try, and the reason for it.
 *
 * Pure in its inputs: (spec, history, state, number, index) fix the answer bit for bit on one
 * machine, with and without a cache, on any server. All randomness is Philox (problem/draw.h). */
#ifndef ASSAY_SEARCH_SUGGEST_H
#define ASSAY_SEARCH_SUGGEST_H

#include "base/mem.h"
#include "base/status.h"
#include "search/problem/method.h"
#include "search/problem/problem.h"
#include "search/search_cache.h"

/* The method of that name, static. NULL: the default method. `pointer` names the field in errors
 * ("/search/method"). AS_E_INVAL: no such method; *ret is untouched. */
AS_MUST_CHECK as_status search_method_parse(const char *name, const char *pointer,
                                            const struct search_method **ret, struct as_err *err);

/* Suggest trial `number`.
 *   spec, history  borrowed; history NULL is the same as empty
 *   state from the previous suggestion of the sweep, NULL for the first; anything that is not a
 *   state of this spec is the same as NULL
 *   cache          NULL: none
 *   ret            owned by the caller, suggestion_done(); untouched on failure
 * AS_E_EXHAUSTED: nothing is left to suggest. Every cell of a grid was tried, or every
 * configuration of a finite space that could be found under its constraints. This is a result, not
 * an error.
 * AS_E_INVAL: the grid is not possible (see grid_create).
 * AS_E_UNSUPPORTED: no configuration that the parameter constraints allow was found.
 * AS_E_TOO_LARGE, AS_E_NOMEM.
 * There is a suggestion for every history, also one with failures, NaN, duplicates or constants. If
 * the model cannot be fitted, it is a Sobol point, and the reason says so. Safe from any thread. */
AS_MUST_CHECK as_status suggest(const struct search_spec *spec, const struct history *history,
                                const json_t *state, uint64_t number, uint64_t index,
                                struct search_cache *cache, struct suggestion *ret,
                                struct as_err *err);

/* Append why a suggestion is as it is, in words, as its method says it (search_method.explain). Of
 * a method that is not known it is only the name; nothing for a reason that names none. */
void suggest_explain(const json_t *reason, const json_t *metrics, struct str *b);

#endif
