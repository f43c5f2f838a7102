/* Sweeps of the built-in trainer and claims of groups, for tests. One service, `s`. A call that
 * fails ends the test. */
#ifndef ASSAY_TESTS_SCHEDULER_ASSIGN_GROUPED_H
#define ASSAY_TESTS_SCHEDULER_ASSIGN_GROUPED_H

#include "tests/support/service.h"

extern struct service s;
extern struct as_err err;

/* Open the service with a small data set, "toy". Closing it checks the invariants. */
void open_grouped(void);
void close_grouped(void);

/* A sweep of the built-in trainer over a learning rate and the width of its layer, one of `widths`,
 * such as "8, 16". Returns its id. */
const char *make_train(const char *name, const char *method, const char *widths, const char *limits,
                       const char *more);

/* A claim like `like`, with a new claim_id, that does not wait. n is SIZE_MAX if it fails. */
struct claim_list claim_as(struct service *sv, const struct claim_request *like, struct as_err *e);
struct claim_list take(const struct claim_request *like);
struct claim_list take_group(const char *runner, int64_t epoch, int64_t slots, int64_t k);
struct claim_list refill(const char *runner, int64_t epoch, const char *group, int64_t n);

/* Complete with that loss. */
void done(const struct claimed_row *c, double loss);

/* Trials that are so. */
int64_t count(const char *where);

#endif
