/* The thread that finds the measurements of one attempt where `trial.report` says: in what the
 * program prints, and in CSV, JSON and TensorBoard files.
 *
 * It writes each as a line of JSON to the file COLLECTED_NAME of the attempt's folder, which the
 * outbox sends like $ASSAY_REPORT. So a server that is away stops nobody, and a runner that starts
 * again finds everything on disk.
 *
 * Main passes on the output of the process, and may not pass on more than there is room for: a
 * program that prints faster than patterns are tried waits at its pipe. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECT_COLLECTOR_H
#define ASSAY_TRIAL_RUNNER_COLLECT_COLLECTOR_H

#include <jansson.h>

#include "base/status.h"
#include "base/str.h"

struct collector;

/* Whom it works for. Both are called from its thread. */
struct collector_owner {
    void (*note)(void *arg, const char *text); /* a line for the trial's log */
    void (*wake)(void *arg);                   /* main's wake-up */
    void *arg;
    struct folder_watch *watch; /* tells when files are written; NULL: they are looked at only */
};

#define COLLECTED_NAME "collected.jsonl"

/* Start collecting for an attempt whose folder is made and whose process is not started yet: what
 * is in the files now is not the program's.
 *   folder     of the attempt; borrowed
 *   report     trial.report of the claim, the names in its paths replaced; borrowed
 *   directory  where the program will run; NULL: the runner's own
 *   owner      copied; what it points to outlives the collector
 *   ret        owned by the caller
 * AS_E_INVAL: a source is wrong; AS_E_NOT_FOUND: no such directory; AS_E_NOMEM, AS_E_IO. */
AS_MUST_CHECK as_status collector_start(const char *folder, const json_t *report,
                                        const char *directory, const struct collector_owner *owner,
                                        struct collector **ret, struct as_err *err);
void collector_free(struct collector *c);

/* For main, which never waits. How many bytes of output may be passed on now; SIZE_MAX: any number.
 * If there is no room, main's wake-up follows as soon as there is. */
size_t collector_room(struct collector *c);
/* Pass output on. What there is no room for is lost, with a warning: at the end of a process main
 * passes on what is left in the pipe, for which room is kept. */
void collector_add(struct collector *c, const char *bytes, size_t len);
/* The process has started. */
void collector_began(struct collector *c);
/* The process has ended; its output may not all be passed on yet. */
void collector_ended(struct collector *c);

/* For the delivery thread: wait until all measurements are in the file that were in the output
 * passed on, or in the program's files, when this was called. */
void collector_catch_up(struct collector *c);

/* The process has ended and its output was passed on: wait until all is written to the file. */
void collector_finish(struct collector *c);

/* After collector_finish: append what is known about why a metric was not found: sources where
 * nothing was. */
void collector_explain(const struct collector *c, struct str *b);

#endif
