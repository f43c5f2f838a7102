/* The shape of a trial's tensors. It decides whether a trial may share a process with another one,
 * and how much memory a member needs.
 *
 * A shape is a text that begins with the data set's name, because a group reads one data set.
 * Trials of a sweep with equal texts may be members of one group. */
#ifndef ASSAY_SCHEDULER_ASSIGN_SHAPE_H
#define ASSAY_SCHEDULER_ASSIGN_SHAPE_H

#include <jansson.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/assign/grouping.h"
#include "scheduler/rows/dataset_row.h"

#define SHAPE_MAX 1024 /* bytes; a check of the table has the same limit */

/* Computes the shapes of the trials of one sweep. */
struct shaper;

/* Create a shaper from a document (borrowed for the call) and the data sets that its trials may
 * name. *ret is NULL if the document has no trial.train. AS_E_NOMEM. */
AS_MUST_CHECK as_status shaper_create(const json_t *document, const struct dataset_row *datasets,
                                      size_t n, struct shaper **ret, struct as_err *err);
void shaper_free(struct shaper *s);
AS_DEFINE_FREEP(struct shaper, shaper_free)

/* The shape of the trial with these parameters. A trial has no shape without a shaper (NULL), with
 * a data set that does not exist, or with a train document that the trainer would refuse: it runs
 * alone and fails with the reason. ret->text is in the arena. AS_E_NOMEM. */
AS_MUST_CHECK as_status shaper_shape(const struct shaper *s, struct arena *a, const json_t *params,
                                     struct trial_shape *ret, struct as_err *err);

#endif
