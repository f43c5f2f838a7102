/* Stacking in layers: the sweep of a further layer. It trains configurations of another sweep
 * again, on the columns of the data set and on what trials of that sweep predicted for the rows
 * that they held out (train.stack). Pure. */
#ifndef ASSAY_CLI_COMMANDS_LAYER_SWEEP_H
#define ASSAY_CLI_COMMANDS_LAYER_SWEEP_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define LAYER_TRIALS 5 /* usually so many */
#define LAYER_MOST_TRIALS 32
#define LAYER_MOST 4 /* layers, with the first */

/* Which trials: the members of `chosen`, an ensemble of the sweep (the API's Ensemble), of falling
 * weight, and where these are fewer than n, members of `best`, the mean of its best trials (NULL:
 * no more). A list of members, each with its number and params; owned by the caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status layer_choose(const json_t *chosen, const json_t *best, size_t n,
                                     json_t **ret, struct as_err *err);

/* The document of the sweep of a layer.
 *   sweep    the API's Sweep of the layer before
 *   trials   from layer_choose(): what it sees, and what it trains again; those with a `sweep` are
 *            of that one, which has the same parameters
 *   time_ms  for all of it; 0: no limit
 * Its name is that of the first layer with the number of this one, "NAME-layer2". AS_E_INVAL: the
 * sweep does not use the built-in trainer, or its trials have no folds. AS_E_NOMEM. ret is owned by
 * the caller. */
AS_MUST_CHECK as_status layer_document(const json_t *sweep, const json_t *trials, int64_t time_ms,
                                       json_t **ret, struct as_err *err);

/* The same configurations, for POST /v1/sweeps/{sweep}/trials. New reference; NULL: memory is out.
 */
json_t *layer_first_trials(const json_t *trials);

#endif
