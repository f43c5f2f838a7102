/* How much suggestions should avoid failures: a weight for the model of failures, and what it has
 * to predict.
 *
 * Beside the best values there is often a region that fails (memory, divergence). The other models
 * do not see failed trials and expect the best values behind the border, so that the mere
 * probability of a failure is outweighed there. The weight grows and the threshold falls with each
 * failure, and the other way with each completed trial, so that about one trial in ten fails.
 * Failures that come anywhere say nothing about places, and a weight would only lead the search
 * away from good ones. So both count as far as the nearest trials predict failures better than the
 * commonest end does, or as the model of failures has little noise. */
#ifndef ASSAY_SEARCH_GP_FAILURE_PENALTY_H
#define ASSAY_SEARCH_GP_FAILURE_PENALTY_H

#include "search/regression/training_set.h"

struct failure_penalty {
    double weight;    /* of ln P(the trial completes); at least 1 */
    double threshold; /* a trial completes where the model of failures (1: failed) is below it */
};

/* theta: of the model of failures (gp_model_theta); its lengthscales measure which trials are near,
 * and its noise how far ends are random. O(n d) for each of the 64 newest trials. */
struct failure_penalty failure_penalty_of(const struct training_set *s, const double *theta);

#endif
