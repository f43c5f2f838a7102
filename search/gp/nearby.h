/* Moves of the few trials that have succeeded, while nearly all trials fail.
 *
 * Where almost the whole space fails, one or two results say where it does not. A model may not
 * see that: beside thirty failures, one success looks like noise. So while the newest trials fail,
 * every second suggestion stays near a success, until there are enough of them for the models. How
 * near, the trials say: each failure in the neighbourhood shrinks the moves, and each success
 * widens them. If the success was an accident, the other half of the suggestions goes on without
 * it.
 *
 * With many pending trials all suggestions stay near the first success until a second one has
 * ended, or a dozen have failed around it (decision 4041): a model of one value knows no direction,
 * and puts the others where the success already is, some within a thousandth of it. */
#ifndef ASSAY_SEARCH_GP_NEARBY_H
#define ASSAY_SEARCH_GP_NEARBY_H

#include <stdbool.h>
#include <stdint.h>

#include "search/regression/training_set.h"

/* Have only a few trials succeeded, beside many more that failed, and none of the newest three? */
bool nearby_is_needed(const struct training_set *s);
/* Has one trial alone succeeded, beside nine that failed, of which fewer than twelve are in its
 * neighbourhood, while at least four are pending? O(n d). */
bool nearby_is_all(const struct training_set *s);

/* Move one of the trials that succeeded. `number` is the suggestion's and keys the draws.
 *   ret_point  enc->n places, snapped, allowed and not tried; of no meaning unless true is returned
 * O(n d) for each of at most 64 draws. */
bool nearby_point(const struct training_set *s, uint64_t number, double *ret_point);

#endif
