/* Sends the ends and measurements of all attempts of a runner to the server, many in one request.
 *
 * Delivery threads hand over parts and wait. One thread sends what has come together, as one
 * request: at once when none is on its way, so that parts are combined under load only. Each part
 * has its own answer: one that is refused disturbs no other. Parts that an unreachable server did
 * not answer are repeated, with a growing pause, as calls of their own are. */
#ifndef ASSAY_TRIAL_RUNNER_DELIVERY_SENDER_H
#define ASSAY_TRIAL_RUNNER_DELIVERY_SENDER_H

#include "api/client/client.h"
#include "trial-runner/attempt/options.h"
#include "trial-runner/delivery/batch_request.h"

struct sender;

/* Start the thread. `o` is borrowed. AS_E_NOMEM; AS_E_INVAL: the server's URL. */
AS_MUST_CHECK as_status sender_create(const struct options *o, struct sender **ret,
                                      struct as_err *err);
/* End the request in progress, and the thread. Nobody may wait in sender_send() any more. */
void sender_free(struct sender *s);
AS_DEFINE_FREEP(struct sender, sender_free)

/* All is borrowed for the call. */
struct sender_part {
    batch_kind kind;
    const struct attempt_id *id;
    int64_t world_epoch;        /* of a rank */
    const json_t *body;         /* of its single request */
    int64_t until_ns;           /* one try, which ends then; 0: patience without an end */
    const struct client *owner; /* once this client is interrupted, the call ends */
};

struct sender_answer {
    json_t *body;              /* of an accepted part; the caller's; else NULL */
    char code[BATCH_CODE_MAX]; /* of the problem that a part was refused with; else "" */
    /* The part is to be sent by its single request: the server has no route for many, or does not
     * take the whole request. Set with AS_OK; nothing else is. */
    bool alone;
};

/* Send a part, and wait for its answer. Two parts of one attempt are sent in the order of the calls
 * if the second call begins after the first has returned. The statuses of client_call().
 * AS_E_UNAVAILABLE: the time has ended or the owner was interrupted; the server may have taken the
 * part, and a repeat is safe. */
AS_MUST_CHECK as_status sender_send(struct sender *s, const struct sender_part *part,
                                    struct sender_answer *ret, struct as_err *err);

/* Owners were interrupted: end their calls. */
void sender_wake(struct sender *s);

#endif
