/* The children of `assay up`: started in order, started again with back-off when they die, stopped
 * in the reverse order. One thread; signals are blocked and waited for, never handled. */
#ifndef ASSAY_CLI_UP_SUPERVISOR_H
#define ASSAY_CLI_UP_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "cli/up/spawn.h"

#define SUPERVISOR_MAX 80
#define SUPERVISOR_MAX_ARGS 40

struct supervisor;

/* Blocks SIGCHLD, SIGINT, SIGTERM and SIGHUP for the process. `notes_path` is the file that lists
 * the children for a successor (leftover.h); copied. NULL when memory is out. */
struct supervisor *supervisor_create(const char *notes_path);
/* The children must have been stopped; those that were not die with this process. */
void supervisor_free(struct supervisor *s);
AS_DEFINE_FREEP(struct supervisor, supervisor_free)

/* One step of stopping a child: send the signal, wait so long. */
struct stop_step {
    int signal;
    int wait_ms;
};

/* How a kind of child is stopped, after which SIGKILL follows; signal 0 ends it. */
extern const struct stop_step stop_runner[], stop_server[], stop_database[];

/* Add a child; everything is copied. ret is its index. AS_E_TOO_LARGE past the limits; AS_E_NOMEM.
 */
AS_MUST_CHECK as_status supervisor_add(struct supervisor *s, const char *name,
                                       const struct spawn_spec *spec, const struct stop_step *stop,
                                       int *ret, struct as_err *err);

/* Another command line from the next start on. */
AS_MUST_CHECK as_status supervisor_set_argv(struct supervisor *s, int index,
                                            const char *const *argv, struct as_err *err);

AS_MUST_CHECK as_status supervisor_start(struct supervisor *s, int index, struct as_err *err);

/* Wait for up to timeout_ms for a signal; reap; start again what died and is due. False when a stop
 * was asked for (SIGINT, SIGTERM, SIGHUP). */
bool supervisor_wait(struct supervisor *s, int64_t timeout_ms);

bool supervisor_stopping(const struct supervisor *s);

/* How often this child has died so far, and how it died last (a status of waitpid). */
unsigned supervisor_deaths(const struct supervisor *s, int index);
int supervisor_last_status(const struct supervisor *s, int index);
bool supervisor_running(const struct supervisor *s, int index);

/* Run a command to its end. AS_E_TIMEOUT; AS_E_UNAVAILABLE when a stop was asked for meanwhile (the
 * command is killed in both cases); AS_E_IO when it failed; the end of its log is said on stderr.
 */
AS_MUST_CHECK as_status supervisor_run(struct supervisor *s, const char *name,
                                       const struct spawn_spec *spec, int64_t timeout_ms,
                                       struct as_err *err);

/* Stop the children first to last (indices, inclusive) together and wait until they are gone.
 * Another SIGINT or SIGTERM meanwhile goes on to the next step at once. */
void supervisor_stop(struct supervisor *s, int first, int last);

/* Milliseconds to wait before the nth start in a row (n from 1): 200 ms, doubled, at most 10 s. */
int64_t supervisor_backoff_ms(unsigned deaths_in_a_row);

/* The last lines of a file, for messages; owned by the caller, "" when it cannot be read. */
char *supervisor_log_end(const char *path);

#endif
