/* A claim of a request that may wait: what the operations that claim have in common. Its time of
 * arrival decides which results a suggestion has to know, so a claim that waited for the ends of
 * attempts gets a later one. */
#ifndef ASSAY_API_SERVER_CLAIMING_H
#define ASSAY_API_SERVER_CLAIMING_H

#include "api/server/call.h"

/* Make `m` a try of the claim: its arrived_ns and is_last are set. `req` is borrowed until `m` is
 * done. */
void claiming_begin(struct call *c, struct claim_request *req, int64_t wait_ms,
                    struct commit_member *m);

/* Wake others that wait, if the try left something for them. True: it found nothing, and the call
 * waits from now on (call_wait). */
bool claiming_waits(struct call *c, const struct claim_request *req, int64_t wait_ms,
                    const struct claim_list *list);

/* Give each trial of the answer the token of its attempt. AS_E_UNAVAILABLE: repeat the claim, which
 * reads its trials again. */
AS_MUST_CHECK as_status claiming_add_tokens(struct call *c, const struct claim_list *list,
                                            struct as_err *err);

/* Wake others, if the claim left something for them. */
void claiming_wake(struct call *c, const struct claim_list *list);

#endif
