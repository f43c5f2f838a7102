/* Runners: their epochs, their leases, and the attempts that they hold.
 *
 * Each registration increases the epoch, so that a replaced process is refused from then on. The
 * secret of an epoch never changes: a claim checks it once, and its writes name the epoch. A
 * runner and the database may disagree about what it runs. For attempts that it lists but does not
 * hold, it gets directives. Attempts that it holds but does not list are lost. */
#include "scheduler/services/runners.h"

#include <jansson.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "scheduler/services/cursor_priv.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/gathering_store.h"
#include "scheduler/store/runner_store.h"
#include "scheduler/store/seat_store.h"
#include "scheduler/store/trial_held_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/lifecycle/gang_repair.h"
#include "scheduler/lifecycle/transition.h"

#define RUNNER_SLOTS_MAX 1024
#define RUNNER_GPUS_MAX 64

static as_status runner_event(struct tx *t, const char *name, const char *state, struct as_err *err)
{
    struct event_new e = {.type = "runner.changed", .runner = name, .state = state};
    return store_event_add(t, &e, err);
}

/* The ranks of a runner that just left, or registered without them, go now. If the database fails,
 * the reaper does it. */
static void drop_ranks(struct store *db, const char *runner)
{
    struct as_err why = {0};
    int64_t n = 0;
    as_status st = gangs_drop_orphans(db, runner, &n, &why);
    if (st != AS_OK)
        log_write(LOG_WARN, "ranks of a runner", "runner=%s detail=\"%s\"", runner, why.msg);
}

/* Register. */

void runner_secret_make(char ret[RUNNER_SECRET_SIZE])
{
    uint8_t bytes[(RUNNER_SECRET_SIZE - 1) / 2];
    random_bytes(bytes, sizeof bytes);
    hex_format(bytes, sizeof bytes, ret);
}

/* The same for ranks of gangs. Those that it does not list are orphans of its older epoch, and
 * slots that were kept free for a gang are no longer. */
static as_status resume_seats(struct tx *t, struct arena *a, const struct runner_register *req,
                              bool is_same, struct registration *ret, struct as_err *err)
{
    int64_t given_up = 0;
    as_status st =
        store_seat_resume(t, req->name, ret->epoch, req->seats, is_same ? req->n_seats : 0, err);
    if (st == AS_OK && is_same)
        st = store_seat_beat(t, req->name, req->seats, req->n_seats, err);
    if (st == AS_OK)
        st = store_seat_not_current(t, a, req->name, req->seats, req->n_seats, &ret->directives,
                                    err);
    if (st == AS_OK)
        st = store_gathering_give_up(t, req->name, RUNNER_SLOTS_MAX, &given_up, err);
    return st;
}

static as_status register_runner(struct tx *t, struct arena *a, const struct runner_register *req,
                                 const char *gpus, struct registration *ret, struct as_err *err)
{
    const struct sched_config *config = store_config(tx_store(t));
    struct runner_new n = {.name = req->name,
                           .host = req->host,
                           .version = req->version,
                           .gpus = gpus,
                           .gpu_faults = req->gpu_faults,
                           .slots = req->slots,
                           .cpus = req->cpus,
                           .memory_bytes = req->memory_bytes,
                           .machine = req->machine,
                           .shares = req->shares,
                           .job = req->job,
                           .fleet = req->fleet,
                           .walls = req->walls,
                           .lease_ms = config->lease_ms,
                           .secret = req->secret};
    struct trial_list_heads gone = {0};
    int64_t lost = 0;
    *ret =
        (struct registration){.lease_ms = config->lease_ms, .heartbeat_ms = config->heartbeat_ms};
    bool is_same = false;
    as_status st = store_runner_is_same(t, req->name, req->secret, &is_same, err);
    if (st != AS_OK)
        return st;
    st = store_runner_register(t, &n, &ret->epoch, err);
    if (st != AS_OK)
        return st;
    size_t n_resume = is_same ? req->n_resume : 0; /* the others are another runner's */
    st = store_trial_held(t, a, req->name, req->resume, n_resume, &gone, err);
    if (st != AS_OK)
        return st;
    st = trials_lose(t, a, &gone, "lost", "its runner registered again and no longer runs it",
                     &lost, err);
    if (st != AS_OK)
        return st;
    st = store_trial_resume(t, req->name, ret->epoch, req->resume, n_resume, err);
    if (st != AS_OK)
        return st;
    st = store_attempt_say(t, req->name, req->said, req->n_said, err);
    if (st != AS_OK)
        return st;
    st =
        store_trial_not_current(t, a, req->name, req->resume, req->n_resume, &ret->directives, err);
    if (st != AS_OK)
        return st;
    st = resume_seats(t, a, req, is_same, ret, err);
    return st == AS_OK ? runner_event(t, req->name, "live", err) : st;
}

static as_status register_check(const struct runner_register *req, struct as_err *err)
{
    if (!as_slug_valid(req->name))
        return as_fail_at(err, AS_E_INVAL, "/name",
                          "'%.63s' is not a name: lower-case letters, digits, '.', '_', '-', at "
                          "most 63",
                          req->name);
    if (req->slots < 1 || req->slots > RUNNER_SLOTS_MAX)
        return as_fail_at(err, AS_E_INVAL, "/slots", "found %lld, expected 1 to %d",
                          (long long)req->slots, RUNNER_SLOTS_MAX);
    if (req->fleet && !as_slug_valid(req->fleet))
        return as_fail_at(err, AS_E_INVAL, "/fleet",
                          "'%.63s' is not a name: lower-case letters, digits, '.', '_', '-', at "
                          "most 63",
                          req->fleet);
    if (req->n_gpus > RUNNER_GPUS_MAX)
        return as_fail_at(err, AS_E_INVAL, "/gpus", "%zu GPUs, expected at most %d", req->n_gpus,
                          RUNNER_GPUS_MAX);
    return AS_OK;
}

as_status runner_register(struct store *db, struct arena *a, const struct runner_register *req,
                          struct registration *ret, struct as_err *err)
{
    as_status st = register_check(req, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO gpus = json_array();
    for (size_t i = 0; i < req->n_gpus; i++)
        json_array_append_new(gpus, json_string(req->gpus[i]));
    if (!gpus || json_array_size(gpus) != req->n_gpus)
        return as_fail_nomem(err);
    AS_AUTO(as_freep) char *text = json_format(gpus);
    if (!text)
        return as_fail_nomem(err);
    struct registration made;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = register_runner(run.tx, a, req, text, &made, err);
    if (run.status != AS_OK)
        return run.status;
    *ret = made;
    drop_ranks(db, req->name);
    return AS_OK;
}

/* Heartbeat. */

/* The lease could not be extended. A lost runner becomes live again; any other is refused. */
static as_status revive_runner(struct tx *t, struct arena *a, const struct runner_id *id,
                               struct as_err *err)
{
    struct runner_head runner;
    bool done = false;
    as_status st = store_runner_get(t, a, id->name, &runner, err);
    if (st != AS_OK)
        return st;
    st = runner_id_check(id, &runner, err);
    if (st != AS_OK)
        return st;
    st = store_runner_revive(t, id, store_config(tx_store(t))->lease_ms, &done, err);
    if (st != AS_OK)
        return st;
    if (!done)
        return as_fail(err, AS_E_STALE, "runner '%s' is %s at epoch %lld, not %lld: register again",
                       id->name, runner.state, (long long)runner.epoch, (long long)id->epoch);
    return runner_event(t, id->name, "live", err);
}

/* The same for the ranks that it holds or lists. */
static as_status beat_seats(struct tx *t, struct arena *a, const struct runner_id *id,
                            const struct heartbeat *b, struct directive_list *ret,
                            struct held_seat_list *ret_missing, struct as_err *err)
{
    int64_t lease_ms = store_config(tx_store(t))->lease_ms;
    as_status st = store_seat_beat(t, id->name, b->seats, b->n_seats, err);
    if (st == AS_OK)
        st = store_seat_missing(t, a, id->name, b->seats, b->n_seats, lease_ms, ret_missing, err);
    if (st == AS_OK)
        st = store_seat_not_current(t, a, id->name, b->seats, b->n_seats, ret, err);
    return st;
}

/* *ret_missing, *ret_seats: attempts and ranks that it holds and does not list. Each statement is a
 * wait for the database, and a heartbeat must not wait long: an idle runner needs one. */
static as_status extend_lease(struct tx *t, struct arena *a, const struct runner_id *id,
                              const struct heartbeat *b, struct directive_list *ret,
                              struct trial_list_heads *ret_missing,
                              struct held_seat_list *ret_seats, struct as_err *err)
{
    int64_t lease_ms = store_config(tx_store(t))->lease_ms;
    struct runner_beat runner;
    *ret = (struct directive_list){0};
    *ret_missing = (struct trial_list_heads){0};
    ret_seats->n = 0;
    as_status st = store_runner_beat(t, id, lease_ms, &runner, err);
    if (st != AS_OK)
        return st;
    if (!runner.is_live)
        st = revive_runner(t, a, id, err);
    if (st != AS_OK)
        return st;
    st = store_attempt_say(t, id->name, b->said, b->n_said, err);
    if (st == AS_OK && (runner.has_trials || b->n > 0))
        st = store_trial_missing(t, a, id->name, b->attempts, b->n, lease_ms, ret_missing, err);
    if (st == AS_OK && b->n > 0)
        st = store_trial_not_current(t, a, id->name, b->attempts, b->n, ret, err);
    ret->drain = runner.is_draining;
    if (st != AS_OK || (!runner.has_seats && b->n_seats == 0))
        return st;
    return beat_seats(t, a, id, b, ret, ret_seats, err);
}

static as_status lose_missing(struct store *db, struct arena *a,
                              const struct trial_list_heads *missing, struct as_err *err)
{
    int64_t lost = 0;
    if (missing->n == 0)
        return AS_OK;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status =
            trials_lose(run.tx, a, missing, "lost", "its runner no longer runs it", &lost, err);
    return run.status;
}

as_status runner_heartbeat(struct store *db, struct arena *a, const struct runner_id *id,
                           const struct heartbeat *beat, struct directive_list *ret,
                           struct as_err *err)
{
    struct directive_list directives = {0};
    struct trial_list_heads missing = {0};
    struct held_seat_list seats = {0};
    struct tx_run run = tx_run_start(db, TX_SOFT, err);
    while (tx_run_again(&run))
        run.status = extend_lease(run.tx, a, id, beat, &directives, &missing, &seats, err);
    if (run.status != AS_OK)
        return run.status;
    as_status st = lose_missing(db, a, &missing, err);
    if (st == AS_OK)
        st = gangs_drop_missing(db, &seats, err);
    if (st != AS_OK)
        return st;
    *ret = directives;
    return AS_OK;
}

/* Faults. */

static as_status set_faults(struct tx *t, const struct runner_id *id, const char *gpu_faults,
                            struct as_err *err)
{
    bool done = false;
    as_status st = store_runner_faults(t, id, gpu_faults, &done, err);
    if (st != AS_OK)
        return st;
    if (!done)
        return as_fail(err, AS_E_STALE, "epoch %lld of runner '%.63s' is not current",
                       (long long)id->epoch, id->name);
    return runner_event(t, id->name, "live", err);
}

as_status runner_gpu_faults(struct store *db, const struct runner_id *id, const char *gpu_faults,
                            struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = set_faults(run.tx, id, gpu_faults, err);
    return run.status;
}

/* Leave. */

/* It could not leave: has it left already, or has it been replaced? */
static as_status check_left(struct tx *t, struct arena *a, const struct runner_id *id,
                            struct as_err *err)
{
    struct runner_head runner;
    as_status st = store_runner_get(t, a, id->name, &runner, err);
    if (st != AS_OK)
        return st;
    if (runner.epoch != id->epoch)
        return as_fail(err, AS_E_STALE, "runner '%s' is at epoch %lld, not %lld", id->name,
                       (long long)runner.epoch, (long long)id->epoch);
    return runner_id_check(id, &runner, err);
}

/* Put what the runner holds back into the queue. */
static as_status release_held(struct tx *t, struct arena *a, const char *name, const char *reason,
                              struct as_err *err)
{
    struct trial_list_heads held = {0};
    int64_t released = 0;
    as_status st = store_trial_held(t, a, name, NULL, 0, &held, err);
    if (st != AS_OK)
        return st;
    return trials_lose(t, a, &held, "released", reason, &released, err);
}

static as_status leave_runner(struct tx *t, struct arena *a, const struct runner_id *id,
                              struct as_err *err)
{
    bool done = false;
    as_status st = store_runner_leave(t, id, &done, err);
    if (st != AS_OK)
        return st;
    if (!done)
        return check_left(t, a, id, err);
    st = release_held(t, a, id->name, "its runner left", err);
    if (st != AS_OK)
        return st;
    return runner_event(t, id->name, "left", err);
}

as_status runner_leave(struct store *db, const struct runner_id *id, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = leave_runner(run.tx, &a, id, err);
    if (run.status == AS_OK)
        drop_ranks(db, id->name);
    return run.status;
}

static as_status remove_runner(struct tx *t, struct arena *a, const char *name, struct as_err *err)
{
    bool done = false;
    as_status st = store_runner_remove(t, name, &done, err);
    if (st != AS_OK)
        return st;
    if (!done)
        return as_fail(err, AS_E_NOT_FOUND, "there is no runner '%.63s'", name);
    st = release_held(t, a, name, "its runner was removed", err);
    if (st != AS_OK)
        return st;
    return runner_event(t, name, "left", err);
}

as_status runner_remove(struct store *db, const char *name, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = remove_runner(run.tx, &a, name, err);
    if (run.status == AS_OK)
        drop_ranks(db, name);
    return run.status;
}

static as_status drain_runner(struct tx *t, const char *name, bool is_draining, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct runner_head runner;
    bool done = false;
    as_status st = store_runner_get(t, &a, name, &runner, err);
    if (st == AS_OK)
        st = store_runner_drain(t, name, is_draining, &done, err);
    if (st != AS_OK)
        return st;
    if (!done)
        return as_fail(err, AS_E_CONFLICT, "runner '%.63s' has left already", name);
    return runner_event(t, name, runner.state, err);
}

as_status runner_drain(struct store *db, const char *name, bool is_draining, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = drain_runner(run.tx, name, is_draining, err);
    return run.status;
}

/* List. */

/* Live runners have rank 0 and come first, the others have rank 1; by name within a rank. */
struct place {
    int64_t rank;
    const char *name;
};

static as_status read_place(struct arena *a, const struct page_req *page, struct place *ret,
                            struct as_err *err)
{
    const char *f[2];
    if (!page->cursor)
        return AS_OK;
    as_status st = cursor_read(a, page->cursor, "runners", f, 2, err);
    if (st != AS_OK)
        return st;
    *ret = (struct place){.rank = as_streq(f[0], "1"), .name = f[1]};
    return AS_OK;
}

as_status runner_list(struct store *db, struct arena *a, const struct page_req *page,
                      struct runner_page *ret, struct as_err *err)
{
    struct place after = {.name = ""};
    struct runner_page rows = {0};
    int64_t size = 0, next_rank = -1;
    as_status st = page_size(page, &size, err);
    if (st != AS_OK)
        return st;
    st = read_place(a, page, &after, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_runner_list(run.tx, a, after.rank, after.name, size, &rows.rows, &rows.n,
                                       &next_rank, err);
    if (run.status != AS_OK)
        return run.status;
    if (next_rank >= 0) {
        const char *const place[] = {next_rank ? "1" : "0", rows.rows[rows.n - 1].name};
        rows.next_cursor = cursor_make(a, "runners", place, 2);
        if (!rows.next_cursor)
            return as_fail_nomem(err);
    }
    *ret = rows;
    return AS_OK;
}
