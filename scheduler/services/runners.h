/* Runners: register, heartbeat, leave, list, remove.
 *
 * A runner registers with a secret, and every later request shows it: a token may be shared by many
 * runners, and with the token alone none of them can speak for another. The database has its
 * SHA-256. While a runner is live, its name belongs to its secret; a name whose lease has ended, or
 * that has left, is free. A runner without a secret (of a server before there were secrets) is
 * asked for none until it registers again.
 *
 * A runner has a name and an epoch. Each registration begins the next epoch, and requests of an
 * older epoch get AS_E_STALE ("stale_epoch" in the API). A runner's lease is one row, which
 * heartbeats extend by the database's clock. An attempt is held for as long as its runner's
 * lease. */
#ifndef ASSAY_SCHEDULER_SERVICES_RUNNERS_H
#define ASSAY_SCHEDULER_SERVICES_RUNNERS_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/gang_row.h"
#include "scheduler/rows/page.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/store.h"

struct runner_register {
    const char *name; /* a slug */
    int64_t slots;    /* 1..1024 */
    const char *const *gpus;
    size_t n_gpus;                    /* at most 64 */
    const char *gpu_faults;           /* JSON list of {gpu, reason}; NULL: none */
    const char *host, *version;       /* NULL allowed */
    int64_t cpus, memory_bytes;       /* that trials may use; 0: not said */
    const char *machine;              /* equal for all runners of one machine; NULL: not said */
    bool shares;                      /* cpus and memory_bytes are the machine's: all runners of it
                                         that say so use them together */
    const char *job, *fleet;          /* that it belongs to; NULL: not said */
    const char *walls;                /* JSON list: what stands around its trials; NULL: not said */
    const struct attempt_ref *resume; /* attempts that it still runs */
    size_t n_resume;
    const struct attempt_said *said; /* what it says about some of them */
    size_t n_said;
    const struct seat_said *seats; /* ranks of gangs that it still runs */
    size_t n_seats;
    const char *secret; /* SHA-256 in hexadecimal; NULL: none */
};

struct heartbeat {
    int64_t epoch;
    const struct attempt_ref *attempts; /* attempts that it holds */
    size_t n;
    const struct attempt_said *said; /* what it says about some of them */
    size_t n_said;
    const struct seat_said *seats; /* ranks of gangs that it holds */
    size_t n_seats;
    const char *gpu_faults; /* as above; NULL: as before. runner_gpu_faults() stores it */
};

#define RUNNER_SECRET_SIZE 65 /* with the NUL */

/* Make a secret for a runner that registers without one: random, 256 bits, in hexadecimal. */
void runner_secret_make(char ret[RUNNER_SECRET_SIZE]);

struct registration {
    int64_t epoch, lease_ms, heartbeat_ms;
    struct directive_list directives; /* for the attempts of `resume` that are not current */
};

/* Begin a new epoch. Attempts of older epochs that `resume` does not list are lost at once. Listed
 * attempts that are still current move to the new epoch; if another runner had the name, all its
 * attempts are lost. AS_E_INVAL: the name or a count. AS_E_CONFLICT: the name belongs to a live
 * runner with another secret. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status runner_register(struct store *db, struct arena *a,
                                        const struct runner_register *req, struct registration *ret,
                                        struct as_err *err);

/* Extend the lease, and record what the runner says about its processes: the backstop of
 * trial_timeout counts from a process's begin, and never for one that ended in time. Returns a
 * directive to stop for every listed attempt that is not current. An
 * attempt that runs there according to the database, and that two heartbeats in a row did not list,
 * is lost when it is older than a lease; before that, the answer to its claim may still be on its
 * way. A runner that had expired and still has its epoch is live again. AS_E_NOT_FOUND: never
 * registered. AS_E_STALE: another epoch is current, or the runner left: register again.
 * AS_E_DENIED: the secret is not the runner's. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status runner_heartbeat(struct store *db, struct arena *a,
                                         const struct runner_id *id, const struct heartbeat *beat,
                                         struct directive_list *ret, struct as_err *err);

/* Replace the list of GPUs that the runner has set aside (JSON list of {gpu, reason}). Heartbeats
 * carry it. AS_E_STALE: another epoch is current. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status runner_gpu_faults(struct store *db, const struct runner_id *id,
                                          const char *gpu_faults, struct as_err *err);

/* Return its attempts to the queue without using a restart. A repeat is safe. AS_E_NOT_FOUND,
 * AS_E_STALE, AS_E_DENIED, AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status runner_leave(struct store *db, const struct runner_id *id,
                                     struct as_err *err);

/* Forget the runner, whoever it is: its attempts return to the queue, and its name is free. A
 * process that still has the name registers again. AS_E_NOT_FOUND, AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status runner_remove(struct store *db, const char *name, struct as_err *err);

/* Tell the runner with its next heartbeat to hand its attempts back and to leave, as SIGTERM does;
 * or no longer: one that has heard it leaves in any case. A runner that has left and registers
 * again is told nothing. AS_E_NOT_FOUND; AS_E_CONFLICT: it has left; AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status runner_drain(struct store *db, const char *name, bool is_draining,
                                     struct as_err *err);

/* Live runners first, then by name. AS_E_INVAL: the cursor. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status runner_list(struct store *db, struct arena *a, const struct page_req *page,
                                    struct runner_page *ret, struct as_err *err);

#endif
