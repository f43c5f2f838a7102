/* A claim of a request that may wait: what the operations that claim have in common. Its time of
 * arrival decides which results a suggestion has to know, so a claim that waited for the ends of
 * attempts gets a later one. */
#ifndef ASSAY_API_SERVER_CLAIMING_H
#define ASSAY_API_SERVER_CLAIMING_H

#include "api/server/call.h"
#include "scheduler/assign/claims.h"

/* Try the claim once: set its arrived_ns and is_last, call claim_trials(), and wake others that
 * wait if the claim left something for them. The errors of claim_trials(). */
AS_MUST_CHECK as_status claiming_try(struct call *c, struct claim_request *req, bool is_last,
                                     struct claim_list *ret, struct as_err *err);

/* From now on a try has to know the results that are recorded now. */
void claiming_arrive_anew(struct call *c);

/* The try found nothing: wait (call_wait). */
void claiming_wait(struct call *c, const struct claim_list *list);

#endif
