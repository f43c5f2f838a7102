/* Problems that are forests fitted to real runs: of a choice among five learners, of optimisers of
 * a small network, of pipelines, of classifiers of texts. Each learner (optimiser, loss,
 * classifier) is a part of its own, so what it does not read has no effect there; a parameter that
 * is not active goes right at a split. The scripts of learners/ made the files, whose form
 * forests.py describes; unlike surrogate.h's they need no other program. */
#ifndef ASSAY_BENCH_SEARCH_LEARNERS_H
#define ASSAY_BENCH_SEARCH_LEARNERS_H

#include <jansson.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/space/space.h"

struct learners;

/* The file's document, whose "parameters" are the space's: new reference. AS_E_INVAL, AS_E_IO,
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status learners_read(const char *path, json_t **ret, struct as_err *err);

/* Build the forests. The document is borrowed for the call; the space must outlive them.
 * AS_E_INVAL: a part or tree that is not complete. AS_E_NOMEM. */
AS_MUST_CHECK as_status learners_create(const json_t *doc, const struct space *s,
                                        struct learners **ret, struct as_err *err);
void learners_free(struct learners *l);
AS_DEFINE_FREEP(struct learners, learners_free)

/* The error at x, and x where it is lowest (problem_fn and problem_best_fn of problems.h). */
double learners_value(const struct learners *l, const double *x);
void learners_best(const struct learners *l, double *x);
double learners_lowest(const struct learners *l);

#endif
