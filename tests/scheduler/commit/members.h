/* Members for tests of the committer: made, submitted, waited for. */
#ifndef ASSAY_TESTS_SCHEDULER_COMMIT_MEMBERS_H
#define ASSAY_TESTS_SCHEDULER_COMMIT_MEMBERS_H

#include "scheduler/commit/committer.h"
#include "tests/support/service.h"

/* A member, with an arena of its own. */
struct member {
    struct commit_member m;
    struct arena a;
    struct measurement points[4];
    struct trial_note notes[2];
    bool is_done;
};

/* One that records `loss` at a step, and one that ends with an outcome. */
struct member *member_record(struct attempt_ref ref, int64_t step, double loss);
struct member *member_end(struct attempt_ref ref, attempt_outcome outcome);
/* One that claims; the texts live as long as it. */
struct member *member_claim(const char *runner, int64_t epoch, const char *claim_id, int64_t max);
/* The end has the loss as its final value. */
void member_final(struct member *x, double loss);
void member_free(struct member *x);

/* Submit them in one call and wait for all. Fails the test if the queue refuses them. */
void members_commit(struct committer *c, struct member **list, size_t n);
/* Submit without waiting; wait. */
as_status members_submit(struct committer *c, struct member **list, size_t n, struct as_err *err);
void members_wait(struct member **list, size_t n);
bool member_is_done(struct member *x);

#endif
