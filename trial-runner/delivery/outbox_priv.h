/* What the files of the outbox share. Private to it. */
#ifndef ASSAY_TRIAL_RUNNER_DELIVERY_OUTBOX_PRIV_H
#define ASSAY_TRIAL_RUNNER_DELIVERY_OUTBOX_PRIV_H

#include "trial-runner/delivery/outbox.h"

/* ---- outbox_send.c: requests ---- */

/* A kind of request. `kind` is for those that go together with those of other attempts. */
struct outbox_request {
    const char *method, *verb;
    bool is_shared;
    batch_kind kind;
};

extern const struct outbox_request outbox_replace_files;

/* Send one request of the attempt, also in a newer world of its gang, until the server answers.
 * Sets o->gone, o->code. ret NULL allowed; *ret is owned by the caller. */
AS_MUST_CHECK as_status outbox_send(struct outbox *o, const struct outbox_request *q,
                                    const json_t *body, json_t **ret, struct as_err *err);
/* Send a request once, of a rank with the headers that say in which world it leads. */
AS_MUST_CHECK as_status outbox_send_alone(struct outbox *o, const struct outbox_request *q,
                                          int64_t world, const json_t *body, json_t **ret,
                                          struct as_err *err);
/* The epoch that the header says: any of the gang's, because no rank leads in what it uses. */
int64_t outbox_known_world(struct attempt *a);
/* Did the server refuse the content? Then sending it again is useless. */
bool outbox_is_refused(as_status st);
/* Add a warning to the trial's log. Only the first ones are written. */
void outbox_warn(struct outbox *o, const char *what, const char *why);

/* ---- outbox_lines.c ---- */

/* Send the measurements that were read. What is refused is noted in the trial's log. */
AS_MUST_CHECK as_status outbox_flush_items(struct outbox *o, struct as_err *err);
/* Send all that the trial had measured before the bytes of its checkpoint were read. */
AS_MUST_CHECK as_status outbox_lines_before(struct outbox *o, struct as_err *err);

/* ---- outbox_files.c ---- */

/* Before the batch is sent: keep what forks of its steps begin from. */
AS_MUST_CHECK as_status outbox_keep_for_forks(struct outbox *o, struct as_err *err);
/* The batch was sent: the server has what was kept for its steps. */
void outbox_forget_kept(const struct outbox *o);

#endif
