/* The shape of a trial's tensors: what decides whether it may share a process with another one, and
 * how much memory a member needs.
 *
 * A shape is a text that begins with the data set's name, because a group reads one. Trials of a
 * sweep with equal texts may be members of one group. */
#ifndef ASSAY_SCHEDULER_ASSIGN_SHAPE_H
#define ASSAY_SCHEDULER_ASSIGN_SHAPE_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/assign/grouping.h"
#include "scheduler/rows/dataset_row.h"

#define SHAPE_MAX 1024 /* bytes; the table's check */

/* Tells the shapes of one sweep's trials. */
struct shaper;

/* Of a document (borrowed for the call) and the data sets that its trials may name; NULL in *ret
 * when it has no trial.train. AS_E_NOMEM. */
AS_MUST_CHECK as_status shaper_create(const json_t *document, const struct dataset_row *datasets,
                                      size_t n, struct shaper **ret, struct as_err *err);
void shaper_free(struct shaper *s);
AS_DEFINE_FREEP(struct shaper, shaper_free)

/* The shape of the trial with these parameters; none without a shaper (NULL), for a data set that
 * is not there, and for a train document that the trainer would refuse: it runs alone and fails
 * with the reason. ret->text is in the arena. AS_E_NOMEM. */
AS_MUST_CHECK as_status shaper_shape(const struct shaper *s, struct arena *a, const json_t *params,
                                     struct trial_shape *ret, struct as_err *err);

#endif
