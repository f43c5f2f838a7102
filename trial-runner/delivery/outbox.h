/* Sends what one attempt produces to the server: measurements and notes, the tail of its
 * output, files, the result. The delivery thread alone uses it.
 *
 * These files are the queue of measurements: they are read only as fast as the server takes
 * them. */
#ifndef ASSAY_TRIAL_RUNNER_DELIVERY_OUTBOX_H
#define ASSAY_TRIAL_RUNNER_DELIVERY_OUTBOX_H

#include "trial-runner/attempt/attempt.h"
#include "trial-runner/delivery/batch_request.h"
#include "trial-runner/delivery/fileset.h"
#include "trial-runner/reports/report_reader.h"

#define REPORT_NAME "report.jsonl" /* in the attempt's folder: its ASSAY_REPORT */
#define OUTBOX_BATCH_ITEMS 1000
#define OUTBOX_BATCH_BYTES (256 << 10)

/* A file of lines of JSON that is sent. */
struct outbox_file {
    const char *name;  /* in the attempt's folder */
    const char *label; /* in warnings */
    struct report_reader reader;
    int fd;       /* -1: the file does not exist yet, or is not read */
    bool refused; /* it is not a regular file, which is noted already */
    int64_t offset;
};

#define OUTBOX_FILES 2 /* what the trial writes, and what the collector found */
#define OUTBOX_MAX_NOTES 64

struct outbox {
    struct attempt *attempt; /* borrowed */
    struct outbox_file files[OUTBOX_FILES];
    struct outbox_file *reading; /* one of them */
    json_t *texts;               /* {name: text}: notes that the server has not heard */
    json_t *named;               /* {name: true}: all notes so far, at most OUTBOX_MAX_NOTES */
    int64_t texts_due_ns;
    json_t *seen;    /* {name: true}: metrics so far, for messages */
    json_t *skipped; /* {name: true}: fields that were none, for messages */
    json_t *items;   /* the batch being collected */
    size_t items_bytes;
    unsigned log_version;      /* version of the tail that was sent last */
    int64_t usage_due_ns;      /* when the use of the machine is sent next; 0: it was never sent */
    unsigned warnings;         /* put into the trial's log */
    struct fileset uploaded;   /* checkpoints that the server has */
    uint64_t kept;             /* a bit for each step whose checkpoint is kept for forks */
    int64_t brief_until_ns;    /* each request is sent once, and none after that; 0: patience */
    char code[BATCH_CODE_MAX]; /* of the problem that ended the last request; "" */
    bool output_sent;          /* all of the output */
    bool may_ride;             /* the last measurement may go with the end … */
    bool rides;                /* … and does: it is the one in `items` */
    bool end_sent;             /* the end was sent: without an answer the server may have it */
    bool gone;                 /* the server said that the attempt is not current: write nothing */
};

void outbox_init(struct outbox *o, struct attempt *a);
void outbox_done(struct outbox *o);

/* Each of these repeats its requests until the server answers, also through restarts of the server.
 * AS_E_STALE, AS_E_NOT_FOUND: the attempt is not current; o->gone is set. AS_E_UNAVAILABLE: the
 * client was interrupted. Content that the server refuses for another reason is noted in the
 * trial's log and skipped. With brief_until_ns set, AS_E_UNAVAILABLE is also every other failure
 * that might pass. AS_E_NOMEM; AS_E_IO. */

/* Send the new lines of $ASSAY_REPORT and of what was collected, and that the checkpoint cannot be
 * used which the server gave (attempt->lost). */
AS_MUST_CHECK as_status outbox_measurements(struct outbox *o, struct as_err *err);

/* The same when the child has ended: a last line without a newline counts. With may_ride, what is
 * left stays if it is one measurement and nothing else: outbox_result() sends it with the end,
 * which the server stores in one transaction. With early stopping it may not, because a measurement
 * may decide what the end is. */
AS_MUST_CHECK as_status outbox_last_measurements(struct outbox *o, struct as_err *err);

/* Start again from the first measurement. The server ignores measurements that it has. */
void outbox_rewind(struct outbox *o);

/* Send the tail of output if it has changed. */
AS_MUST_CHECK as_status outbox_log(struct outbox *o, struct as_err *err);

/* Send what the attempt has used of its machine, if it is due, or with `last` what there is. It is
 * tried once: the next one has all of it, and no result waits for it. Not within the first five
 * seconds of the process, whatever `last` says, so that it costs short trials nothing. Every rank
 * sends its own. */
void outbox_usage(struct outbox *o, bool last);

/* The server has the checkpoints that are in the folder now: send only what changes. For a rank
 * that does not lead yet: those of the leader are newer. */
AS_MUST_CHECK as_status outbox_skip_checkpoints(struct outbox *o, struct as_err *err);

/* Upload the checkpoint folder if it has changed since the last time. The server keeps it only
 * after every measurement that the trial wrote before it: what comes after a checkpoint is computed
 * again by an attempt that goes on from it, what comes before is not. */
AS_MUST_CHECK as_status outbox_checkpoints(struct outbox *o, struct as_err *err);
/* The attempt has ended, and another may go on from its checkpoints, on this runner too: keep those
 * that the server has (cache.h). What cannot be kept is downloaded then. */
void outbox_keep_checkpoints(const struct outbox *o);
AS_MUST_CHECK as_status outbox_artifacts(struct outbox *o, struct as_err *err);

/* Is there more output to send than its tail? Waits until it is on disk. */
bool outbox_has_output(const struct outbox *o);
/* Send all of the output, if there is more than the tail. Not `patiently`: the attempt has no
 * result that the server waits for, and after some tries its output is lost. */
AS_MUST_CHECK as_status outbox_output(struct outbox *o, bool patiently, struct as_err *err);

/* Make the artifacts durable before the result is: a later runner may have to send both. *ret_n:
 * how many there are. */
AS_MUST_CHECK as_status outbox_sync_artifacts(const struct outbox *o, size_t *ret_n,
                                              struct as_err *err);
/* Likewise the files of measurements. Those that the trial has removed or replaced by something
 * else are none. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status outbox_sync_measurements(const struct outbox *o, struct as_err *err);

/* Send the log of the attempt's result, then complete the attempt, with the measurement that rides.
 * If the server refuses that, each is sent by itself. */
AS_MUST_CHECK as_status outbox_result(struct outbox *o, struct as_err *err);

/* Complete the attempt, without its log. */
AS_MUST_CHECK as_status outbox_end_again(struct outbox *o, struct as_err *err);

#endif
