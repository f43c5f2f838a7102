/* The children of `assay up`: started in order, restarted with back-off when they die, stopped in
 * the reverse order. One thread. Signals are blocked and received with sigtimedwait(); there is no
 * signal handler. */
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
/* The children must have been stopped; others end with this process. */
void supervisor_free(struct supervisor *s);
AS_DEFINE_FREEP(struct supervisor, supervisor_free)

/* One step of stopping a child: send the signal, then wait up to wait_ms. */
struct stop_step {
    int signal;
    int wait_ms;
};

/* The steps to stop each kind of child. A row with signal 0 ends the steps; SIGKILL follows. */
extern const struct stop_step stop_runner[], stop_server[], stop_database[];

/* Add a child; all arguments are copied. *ret is its index. AS_E_TOO_LARGE past the limits;
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status supervisor_add(struct supervisor *s, const char *name,
                                       const struct spawn_spec *spec, const struct stop_step *stop,
                                       int *ret, struct as_err *err);

/* Change the command line from the next start on. */
AS_MUST_CHECK as_status supervisor_set_argv(struct supervisor *s, int index,
                                            const char *const *argv, struct as_err *err);

AS_MUST_CHECK as_status supervisor_start(struct supervisor *s, int index, struct as_err *err);

/* Wait up to timeout_ms for a signal, reap children, and restart those that died and are due. False
 * when a signal requested a stop (SIGINT, SIGTERM, SIGHUP). */
bool supervisor_wait(struct supervisor *s, int64_t timeout_ms);

bool supervisor_stopping(const struct supervisor *s);

/* Before a child that died twice in a row is started again: must that wait, and why? It is asked
 * again every second, and the reason is printed once. */
typedef bool supervisor_wait_fn(const void *ctx, char *ret_why, size_t size);
void supervisor_set_wait(struct supervisor *s, int index, supervisor_wait_fn *fn, const void *ctx);

/* The number of deaths of this child so far, and the status of waitpid() of the last one. */
unsigned supervisor_deaths(const struct supervisor *s, int index);
int supervisor_last_status(const struct supervisor *s, int index);
bool supervisor_running(const struct supervisor *s, int index);

/* Run a command to its end. AS_E_TIMEOUT; AS_E_UNAVAILABLE: a signal requested a stop (the command
 * is killed in both cases); AS_E_IO: it failed, and the end of its log is printed on stderr. */
AS_MUST_CHECK as_status supervisor_run(struct supervisor *s, const char *name,
                                       const struct spawn_spec *spec, int64_t timeout_ms,
                                       struct as_err *err);

/* Stop the children `first` to `last` (indices, inclusive) together and wait until they have ended.
 * Another SIGINT, SIGTERM or SIGHUP meanwhile begins the next step at once. */
void supervisor_stop(struct supervisor *s, int first, int last);

/* Milliseconds to wait after the nth death in a row (n from 1): 200 ms, doubled, at most 10 s. */
int64_t supervisor_backoff_ms(unsigned deaths_in_a_row);

/* The last lines of a file, for messages; owned by the caller, "" when it cannot be read. */
char *supervisor_log_end(const char *path);

#endif
