/* What one attempt has to say to the server, over its runner protocol: measurements from the report
 * file, the tail of output, files, the end. Used by the delivery thread alone.
 *
 * The report file is the queue of measurements: it is read only as fast as the server takes them.
 */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_OUTBOX_H
#define ASSAY_TRIAL_RUNNER_AGENT_OUTBOX_H

#include "trial-runner/agent/attempt.h"
#include "trial-runner/agent/fileset.h"
#include "trial-runner/agent/report_reader.h"

#define OUTBOX_BATCH_ITEMS 1000
#define OUTBOX_BATCH_BYTES (256 << 10)

struct outbox {
    struct attempt *attempt; /* borrowed */
    struct report_reader report;
    int report_fd;       /* -1: not there yet */
    bool report_refused; /* noted already: what is there is not a file */
    int64_t offset;
    json_t *items; /* of the batch being gathered */
    size_t items_bytes;
    unsigned log_version;    /* of the tail last sent */
    unsigned notes;          /* warnings put into the trial's log */
    struct fileset uploaded; /* checkpoints the server has */
    bool gone;               /* the server said that the attempt is not current: write nothing */
};

void outbox_init(struct outbox *o, struct attempt *a);
void outbox_done(struct outbox *o);

/* Each of these repeats its requests until the server answers, through restarts of the server.
 * AS_E_STALE, AS_E_NOT_FOUND: the attempt is not current; o->gone is set. AS_E_UNAVAILABLE: the
 * client was interrupted. What the server refuses for another reason is noted in the trial's log
 * and passed over. AS_E_NOMEM; AS_E_IO. */

/* Send what the report file holds beyond what was sent. `last`: the child has ended, so a last line
 * without its new line counts. */
AS_MUST_CHECK as_status outbox_measurements(struct outbox *o, bool last, struct as_err *err);

/* Send measurements from the first again (the server knows those that it has). */
void outbox_rewind(struct outbox *o);

/* Put the tail of output when it changed. */
AS_MUST_CHECK as_status outbox_log(struct outbox *o, struct as_err *err);

/* Upload the checkpoint folder when it changed since the last time. */
AS_MUST_CHECK as_status outbox_checkpoints(struct outbox *o, struct as_err *err);
AS_MUST_CHECK as_status outbox_artifacts(struct outbox *o, struct as_err *err);

/* Make the artifacts durable, as the result will be: a later runner may have to send them. */
AS_MUST_CHECK as_status outbox_sync_artifacts(const struct outbox *o, struct as_err *err);

/* Put the log of the attempt's result, then complete it. */
AS_MUST_CHECK as_status outbox_result(struct outbox *o, struct as_err *err);

#endif
