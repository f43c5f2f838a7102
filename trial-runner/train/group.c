/* The life of a group: members arrive, wait for a slot, train in locksteps, end.
 *
 * The main thread runs in rounds. It reads requests from the runner, gives free slots to waiting
 * members, runs all locksteps (run_round), and takes out the members that ended. Locksteps and the
 * lists here change between rounds only, so they need no lock. During a round the main thread
 * sleeps in backend_for_each; the locksteps look at the socket for it and set watch.meet when a
 * line has come (run.c), which ends the round.
 *
 * On the host each member has a lockstep of its own (seat_apart); on a device one lockstep holds
 * all members (seat_together). Decision 0134 has the reasons.
 *
 * The data set is loaded when the first member is there, because its train document says how to
 * preprocess and split the rows. All later members must have the signature of the first. An error
 * of one member ends that member; an error of the device or the data set ends all of them. */
#include "trial-runner/train/group.h"

#include <stdio.h>

#include "data/dataset_read.h"
#include "base/clock.h"
#include "kernels/ops.h"
#include "trial-runner/train/lockstep.h"
#include "trial-runner/train/checkpoint.h"
#include "trial-runner/train/report_file.h"
#include "trial-runner/train/run.h"

#define WAIT_MS 100                 /* how often to look for a signal while no member trains */
#define THROUGHPUT_NS NS_PER_S      /* how often to send the throughput */
#define SERVED_NS (100 * NS_PER_MS) /* how often at most, if members end sooner than that */
#define MAX_WAITING ((size_t)256)   /* most members that wait for a slot */

/* What has happened since throughput was last sent. */
struct throughput {
    int64_t since_ns;
    uint64_t rows; /* watch.rows at since_ns */
    size_t most;   /* members that trained side by side */
    size_t done;   /* members that ended well */
    bool was_sent; /* at least one event before */
};

struct group {
    const struct job *job;
    struct channel *channel;
    const struct group_opts *opts;
    struct train_data data;
    struct backend *be;
    struct device_data *device;
    struct lockstep_setup setup;
    char *signature; /* of every member; NULL before the first */
    bool fused;      /* one lockstep for all members, instead of one for each */
    size_t bytes;    /* of one slot, on the device */
    struct watch watch;
    struct member *waiting[MAX_WAITING]; /* in order of arrival; owned, as those in locksteps are */
    size_t n_waiting;
    struct lockstep *lockstep[CONTROL_MAX_SLOTS]; /* owned */
    size_t n_locksteps;
    atomic_size_t begun; /* locksteps whose turn in this round has begun */
    bool closed;         /* no more members join */
    int exit;            /* of the last member that ended; the process's, in the single form */
    struct throughput throughput;
    struct team *team; /* this process is a rank of a large trial; else NULL, as the next */
    struct shared_step *shared; /* once its member has a slot */
    atomic_bool never;          /* ranks stop together: a stop of one is a request to all */
};

/* ---- events and log lines ---- */

static void log_line(FILE *to, const char *id, const char *text)
{
    (void)fflush(stdout);
    (void)fprintf(to, "%s%s%s%s\n", to == stderr ? "assay-train: " : "", id, *id ? ": " : "", text);
}

static void send_started(void *arg, const struct member *m)
{
    struct group *g = arg;
    int64_t before =
        m->epoch * m->layout.steps_per_epoch + (int64_t)((m->at - 1) / m->layout.per_batch);
    struct control_event e = {.kind = CONTROL_STARTED, .id = m->id, .step = before};
    channel_send(g->channel, &e);
}

static void send_ended(struct group *g, const char *id, int exit, const struct as_err *why)
{
    struct control_event e = {
        .kind = CONTROL_ENDED, .id = id, .exit = exit, .error = why ? why->msg : NULL};
    if (why)
        log_line(stderr, id, why->msg);
    channel_send(g->channel, &e);
    g->exit = exit;
    g->throughput.done += exit == EXIT_DONE;
}

/* Send the end of a member and free it. */
static void dismiss_member(struct group *g, struct member *m, int exit, const struct as_err *why)
{
    send_ended(g, m->id, exit, why);
    member_free(m);
}

static size_t n_members(const struct group *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_locksteps; i++)
        n += g->lockstep[i]->n;
    return n;
}

/* Send the rows trained per second since the last event, and the most members that trained them
 * side by side. The runner chooses the size of the next group by it. It is sent
 *   - each second;
 *   - sooner, if members are so short that each place was served twice: a second would be too late
 *     for the choice of the next size;
 *   - at the end of a group that has sent none.
 * The time includes what members cost at their beginning and end, as in a whole sweep. */
static void send_throughput(struct group *g, bool is_last)
{
    struct throughput *t = &g->throughput;
    int64_t ns = clock_mono_ns() - t->since_ns;
    uint64_t rows = atomic_load(&g->watch.rows);
    bool served = ns >= SERVED_NS && t->done >= 2 * t->most;
    if (rows == t->rows || !(ns >= THROUGHPUT_NS || served || (is_last && !t->was_sent)))
        return;
    struct control_event e = {.kind = CONTROL_THROUGHPUT,
                              .members = (int64_t)t->most,
                              .rows_per_second =
                                  (double)(rows - t->rows) * NS_PER_S / (double)(ns > 0 ? ns : 1)};
    channel_send(g->channel, &e);
    *t = (struct throughput){
        .since_ns = t->since_ns + ns, .rows = rows, .most = n_members(g), .was_sent = true};
}

/* ---- beginning ---- */

/* Create a member and let it wait for a slot. A member with a bad document ends here. */
static void receive_member(struct group *g, const struct control_member *from)
{
    struct as_err err;
    struct member *m = NULL;
    as_status st = AS_OK;
    if (g->n_waiting == MAX_WAITING)
        st = as_fail(&err, AS_E_TOO_LARGE, "%zu members wait for a slot", MAX_WAITING);
    if (st == AS_OK)
        st = member_create(g->job, from, &m, &err);
    if (st == AS_OK) {
        g->waiting[g->n_waiting++] = m;
        return;
    }
    send_ended(g, from->id, EXIT_FAILED, &err);
    member_free(m);
}

static as_status load_data(struct group *g, const struct train_spec *spec, struct as_err *err)
{
    struct dataset set = {0};
    struct dataset_paths paths = job_paths(g->job);
    as_status st = dataset_load_bytes(&paths, &g->job->info, &set, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "data set '%s'", spec->dataset);
    struct preprocess_opts opts = job_preprocess_opts(g->job, spec, set.n_rows);
    return train_data_prepare(&set, &g->job->info, &opts, &g->data, err);
}

static as_status check_memory(const struct group *g, struct as_err *err)
{
    size_t all, shared = device_data_bytes(&g->data);
    if (__builtin_mul_overflow(g->bytes, g->job->slots, &all) ||
        __builtin_add_overflow(all, shared, &all))
        all = SIZE_MAX;
    if (g->opts->memory_bytes == 0 || all <= g->opts->memory_bytes)
        return AS_OK;
    return as_fail(err, AS_E_NOMEM,
                   "%zu bytes are needed (%zu for the data, %zu for each of %zu members), but only "
                   "%zu are allowed (ASSAY_MEMORY_BYTES)",
                   all, shared, g->bytes, g->job->slots, g->opts->memory_bytes);
}

static void send_ready(struct group *g, const struct member *m)
{
    const struct net_plan *plan = m->plan;
    struct control_event e = {.kind = CONTROL_READY,
                              .bytes_per_member = (int64_t)g->bytes,
                              .bytes_shared = (int64_t)device_data_bytes(&g->data),
                              .flops_per_step =
                                  (int64_t)(plan->flops_train * (double)plan->max_rows),
                              .threads = (int64_t)backend_lanes(g->be)};
    channel_send(g->channel, &e);
    (void)printf(
        "%s: %zu rows to train on, %zu held out, %zu parameters, %zu bytes for each of %zu, "
        "%s\n",
        m->spec.dataset, g->data.n_train, g->data.n_val, plan->n_params, g->bytes, g->job->slots,
        backend_device(g->be));
}

/* Load the data and open the device, as the first member's document asks. Called once. */
static as_status open_group(struct group *g, const struct member *m, struct as_err *err)
{
    struct backend_opts opts = {.threads = (int)g->opts->threads,
                                .bf16 = m->spec.precision == TRAIN_BFLOAT16};
    as_status st = load_data(g, &m->spec, err);
    if (st != AS_OK)
        return st;
    st = backend_open(NULL, &opts, &g->be, err);
    if (st != AS_OK)
        return st;
    train_loss loss = train_spec_loss(&m->spec, g->job->info.task);
    g->fused = g->job->slots > 1 && !as_streq(backend_name(g->be), "cpu");
    st = device_data_create(g->be, &g->data, loss == TRAIN_CROSS_ENTROPY, &g->device, err);
    if (st != AS_OK)
        return st;
    g->setup = (struct lockstep_setup){g->be, g->job, &g->data, g->device, loss};
    g->signature = as_strdup(m->signature);
    if (!g->signature)
        return as_fail_nomem(err);
    /* With several slots this is what any member of the signature may need, even where each member
     * has a lockstep of its own: the runner plans with one figure for all. */
    g->bytes = lockstep_slot_bytes(&g->setup, m, g->job->slots);
    st = check_memory(g, err);
    if (st != AS_OK)
        return st;
    send_ready(g, m);
    return AS_OK;
}

/* ---- members in and out ---- */

/* Restore the checkpoint if there is one. The last report is written again, because the attempt
 * that wrote it may have died before the runner sent that line. */
static as_status resume_member(struct lockstep *ls, struct member *m, struct as_err *err)
{
    bool found = false;
    char text[80];
    m->saved_ns = clock_mono_ns();
    if (!m->checkpoint)
        return AS_OK;
    as_status st = checkpoint_read(ls, ls->n - 1, &found, err);
    if (st != AS_OK || !found)
        return st;
    (void)snprintf(text, sizeof text, "resumed at epoch %lld, micro-step %zu", (long long)m->epoch,
                   m->at);
    log_line(stdout, m->id, text);
    return report_file_append(&m->report, &m->last_report, err);
}

/* Put m into a slot of ls, at the beginning or at the position of its checkpoint. */
static as_status join_lockstep(struct lockstep *ls, struct member *m, struct as_err *err)
{
    as_status st = lockstep_join(ls, m, err);
    if (st != AS_OK)
        return st;
    st = resume_member(ls, m, err);
    if (st != AS_OK)
        return st;
    lockstep_settle(ls);
    return AS_OK;
}

static void drop_lockstep(struct group *g, size_t i)
{
    lockstep_free(g->lockstep[i]);
    for (g->n_locksteps--; i < g->n_locksteps; i++)
        g->lockstep[i] = g->lockstep[i + 1];
}

/* End the waiting members whose shape differs from the group's: no slot will ever fit them. */
static void dismiss_other_shapes(struct group *g)
{
    size_t kept = 0;
    for (size_t i = 0; i < g->n_waiting; i++) {
        struct member *m = g->waiting[i];
        struct as_err why;
        if (as_streq(m->signature, g->signature)) {
            g->waiting[kept++] = m;
            continue;
        }
        (void)as_fail(&why, AS_E_INVAL,
                      "its shape differs from its group's: '%.180s', expected '%.180s'",
                      m->signature, g->signature);
        dismiss_member(g, m, EXIT_FAILED, &why);
    }
    g->n_waiting = kept;
}

/* Remove the first n waiting members from the list. */
static void forget_waiting(struct group *g, size_t n)
{
    g->n_waiting -= n;
    for (size_t i = 0; i < g->n_waiting; i++)
        g->waiting[i] = g->waiting[i + n];
}

/* On a device: waiting members join the one lockstep, as long as it has room for them. */
static as_status seat_together(struct group *g, struct as_err *err)
{
    size_t taken = 0;
    for (; taken < g->n_waiting; taken++) {
        struct member *m = g->waiting[taken];
        struct as_err why;
        as_status st = AS_OK;
        if (g->n_locksteps == 0 &&
            (st = lockstep_create(&g->setup, m, g->job->slots, &g->lockstep[0], &why)) == AS_OK)
            g->n_locksteps = 1;
        struct lockstep *ls = g->lockstep[0];
        if (st == AS_OK && !(lockstep_is_open(ls) && lockstep_takes(ls, m)))
            break;
        if (st == AS_OK)
            st = join_lockstep(ls, m, &why);
        if (st == AS_OK)
            continue;
        /* The error may have come after m got its slot, for example from its checkpoint. */
        if (g->n_locksteps > 0 && ls->n > 0 && ls->member[ls->n - 1] == m &&
            lockstep_leave(ls, ls->n - 1, err) != AS_OK)
            return err ? err->code : AS_E_INTERNAL;
        dismiss_member(g, m, EXIT_FAILED, &why);
        if (g->n_locksteps > 0 && ls->n == 0)
            drop_lockstep(g, 0);
    }
    forget_waiting(g, taken);
    return AS_OK;
}

/* On the host: each member gets a lockstep of its own. They are created side by side in lanes,
 * because drawing the start values of a small member takes as long as an epoch. */
struct seating {
    struct group *g;
    struct lockstep *lockstep[CONTROL_MAX_SLOTS];
    struct as_err why[CONTROL_MAX_SLOTS]; /* set where lockstep is NULL */
};

static as_status seat_task(struct backend *lane, size_t i, void *arg, struct as_err *err)
{
    struct seating *s = arg;
    struct member *m = s->g->waiting[i];
    AS_AUTO(lockstep_freep) struct lockstep *ls = NULL;
    (void)lane, (void)err; /* an error here ends this member alone, so it goes into s->why */
    if (lockstep_create(&s->g->setup, m, 1, &ls, &s->why[i]) != AS_OK)
        return AS_OK;
    if (join_lockstep(ls, m, &s->why[i]) != AS_OK)
        return AS_OK;
    s->lockstep[i] = as_steal(ls);
    return AS_OK;
}

/* Returns the least time that any lockstep has run. A new lockstep starts with it: with 0 it would
 * go first in every round until it has caught up, and keep a lane to itself. */
static int64_t least_used(const struct group *g)
{
    int64_t least = g->n_locksteps > 0 ? g->lockstep[0]->used_ns : 0;
    for (size_t i = 1; i < g->n_locksteps; i++)
        least = g->lockstep[i]->used_ns < least ? g->lockstep[i]->used_ns : least;
    return least;
}

static as_status seat_apart(struct group *g, struct as_err *err)
{
    size_t n = g->job->slots - g->n_locksteps;
    n = n < g->n_waiting ? n : g->n_waiting;
    AS_AUTO(as_freep) struct seating *s = n > 0 ? as_calloc(1, sizeof *s) : NULL;
    if (n == 0)
        return AS_OK;
    if (!s)
        return as_fail_nomem(err);
    s->g = g;
    as_status st =
        n > 1 ? backend_for_each(g->be, n, seat_task, s, err) : seat_task(g->be, 0, s, err);
    int64_t used_ns = least_used(g);
    for (size_t i = 0; i < n; i++) {
        if (s->lockstep[i]) {
            s->lockstep[i]->used_ns = used_ns;
            g->lockstep[g->n_locksteps++] = s->lockstep[i];
        } else {
            dismiss_member(g, g->waiting[i], EXIT_FAILED, &s->why[i]);
        }
    }
    forget_waiting(g, n);
    return st;
}

/* Give free slots to waiting members. */
static as_status seat_waiting(struct group *g, struct as_err *err)
{
    dismiss_other_shapes(g);
    return g->fused ? seat_together(g, err) : seat_apart(g, err);
}

static void finish_member(struct group *g, struct member *m)
{
    char text[80];
    if (m->exit == EXIT_TRY_AGAIN && m->error.code == AS_OK) {
        (void)snprintf(text, sizeof text, "stopped at epoch %lld, micro-step %zu",
                       (long long)m->epoch, m->at);
        log_line(stdout, m->id, text);
    } else if (m->last_report.len > 0) {
        (void)printf("%s%s%s", m->id, *m->id ? ": " : "", str_cstr(&m->last_report));
    }
    dismiss_member(g, m, m->exit, m->error.code == AS_OK ? NULL : &m->error);
}

/* Take the members that have ended out of their slots. */
static as_status collect_ended(struct group *g, struct as_err *err)
{
    for (size_t i = g->n_locksteps; i-- > 0;) {
        struct lockstep *ls = g->lockstep[i];
        for (size_t k = ls->n; k-- > 0;) {
            struct member *m = ls->member[k];
            if (!m->ended)
                continue;
            as_status st = lockstep_leave(ls, k, err);
            if (st != AS_OK)
                return st;
            finish_member(g, m);
        }
        if (ls->n == 0)
            drop_lockstep(g, i);
    }
    return AS_OK;
}

/* ---- requests of the runner ---- */

static bool has_id(const struct group *g, const char *id)
{
    for (size_t i = 0; i < g->n_waiting; i++)
        if (as_streq(g->waiting[i]->id, id))
            return true;
    for (size_t i = 0; i < g->n_locksteps; i++)
        for (size_t k = 0; k < g->lockstep[i]->n; k++)
            if (as_streq(g->lockstep[i]->member[k]->id, id))
                return true;
    return false;
}

/* Ask a member to stop or cancel. A member that waits ends here. A member that is not found has
 * already ended, so there is nothing to do. */
static void ask_member(struct group *g, const char *id, member_ask what)
{
    for (size_t i = 0; i < g->n_locksteps; i++)
        for (size_t k = 0; k < g->lockstep[i]->n; k++)
            if (as_streq(g->lockstep[i]->member[k]->id, id))
                g->lockstep[i]->member[k]->ask = what;
    for (size_t i = 0; i < g->n_waiting; i++) {
        if (!as_streq(g->waiting[i]->id, id))
            continue;
        dismiss_member(g, g->waiting[i], EXIT_TRY_AGAIN, NULL);
        for (g->n_waiting--; i < g->n_waiting; i++)
            g->waiting[i] = g->waiting[i + 1];
    }
}

static void obey_request(struct group *g, const struct control_request *r)
{
    switch (r->op) {
    case CONTROL_ADD:
        if (has_id(g, r->id))
            log_line(stderr, r->id, "warning: it was added twice");
        else
            receive_member(g, &r->member);
        return;
    case CONTROL_STOP:
        ask_member(g, r->id, ASK_STOP);
        return;
    case CONTROL_CANCEL:
        ask_member(g, r->id, ASK_CANCEL);
        return;
    case CONTROL_CLOSE:
        g->closed = true;
        return;
    }
}

static void listen_to_runner(struct group *g, int timeout_ms)
{
    struct as_err err;
    struct control_request r;
    if (channel_read(g->channel, timeout_ms, &err) != AS_OK)
        log_line(stderr, "", err.msg);
    for (;;) {
        as_status st = channel_next(g->channel, &r, &err);
        if (st == AS_E_NOT_FOUND)
            break;
        if (st != AS_OK) {
            log_line(stderr, "a line from the runner", err.msg);
            continue;
        }
        obey_request(g, &r);
        control_request_done(&r);
    }
    if (g->channel->gone) /* like SIGTERM: save what can be saved */
        atomic_store(g->opts->stop, true);
}

/* ---- a rank of a large trial ---- */

/* The member has its slot: from now on it steps together with the other ranks. */
static as_status join_team(struct group *g, struct as_err *err)
{
    if (!g->team || g->shared || g->n_locksteps == 0)
        return AS_OK;
    as_status st = shared_step_create(g->team, g->lockstep[0], &g->shared, err);
    g->watch.shared = g->shared;
    return st;
}

/* ---- running ---- */

/* Run one lockstep for a turn. If every lockstep has begun its turn when this one is over, no
 * lockstep is left for this lane. Then all locksteps end the round instead of letting the lane
 * idle. Those that are cut short have run least and go first in the next round. */
static as_status run_task(struct backend *lane, size_t i, void *arg, struct as_err *err)
{
    struct group *g = arg;
    atomic_fetch_add(&g->begun, 1);
    as_status st = run_lockstep(g->lockstep[i], lane, &g->watch, err);
    if (atomic_load(&g->begun) == g->n_locksteps)
        atomic_store(&g->watch.meet, true);
    return st;
}

/* Order the locksteps by the time that they have run. A stable sort, so the order of members with
 * equal times does not change. */
static void sort_locksteps(struct group *g)
{
    for (size_t i = 1; i < g->n_locksteps; i++) {
        struct lockstep *ls = g->lockstep[i];
        size_t at = i;
        for (; at > 0 && g->lockstep[at - 1]->used_ns > ls->used_ns; at--)
            g->lockstep[at] = g->lockstep[at - 1];
        g->lockstep[at] = ls;
    }
}

/* Run the locksteps in lanes if there are enough of them. Else run one after another, so that each
 * operation can use all threads. */
static as_status run_round(struct group *g, struct as_err *err)
{
    as_status st = AS_OK;
    sort_locksteps(g);
    atomic_store(&g->begun, 0);
    if (g->n_locksteps >= (backend_lanes(g->be) + 1) / 2 && g->n_locksteps > 1)
        return backend_for_each(g->be, g->n_locksteps, run_task, g, err);
    for (size_t i = 0; i < g->n_locksteps; i++) {
        st = run_task(g->be, i, g, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status run_group(struct group *g, struct as_err *err)
{
    as_status st = AS_OK;
    while (st == AS_OK) {
        /* With members to train only look at the socket; without any, wait for a line. */
        listen_to_runner(g, g->n_locksteps || g->n_waiting ? 0 : WAIT_MS);
        if (atomic_load(g->opts->stop) && g->n_locksteps == 0)
            return AS_OK;
        if (!g->be && g->n_waiting > 0)
            st = open_group(g, g->waiting[0], err);
        if (st == AS_OK && g->be && !atomic_load(g->opts->stop))
            st = seat_waiting(g, err);
        if (g->n_locksteps == 0 && g->n_waiting == 0 && (g->closed || g->channel->fd < 0))
            return st;
        if (st == AS_OK)
            st = join_team(g, err);
        if (st != AS_OK || g->n_locksteps == 0)
            continue;
        size_t now = n_members(g);
        g->throughput.most = now > g->throughput.most ? now : g->throughput.most;
        atomic_store(&g->watch.meet, false);
        st = run_round(g, err);
        if (st == AS_OK)
            st = collect_ended(g, err);
        send_throughput(g, false);
    }
    return st;
}

/* Print how convolutions are computed, unless our own kernels compute them: what was asked for, and
 * what the back end uses. */
static void log_conv_path(const struct group *g)
{
    const char *path = g->be != NULL ? backend_conv_path(g->be) : "own";
    if (!as_streq(path, "own"))
        (void)printf("convolutions: %s\n", path);
}

/* End all members that are left with the same exit code, and free everything. */
static void end_all_members(struct group *g, int exit, const struct as_err *why)
{
    for (size_t i = 0; i < g->n_locksteps; i++)
        for (size_t k = 0; k < g->lockstep[i]->n; k++)
            dismiss_member(g, g->lockstep[i]->member[k], exit, why);
    for (size_t i = 0; i < g->n_waiting; i++)
        dismiss_member(g, g->waiting[i], exit, why);
    shared_step_free(g->shared);
    team_free(g->team);
    for (size_t i = 0; i < g->n_locksteps; i++)
        lockstep_free(g->lockstep[i]);
    device_data_free(g->device);
    log_conv_path(g);
    backend_free(g->be);
    train_data_done(&g->data);
    free(g->signature);
}

int group_run(const struct job *job, struct channel *channel, const struct group_opts *opts)
{
    struct as_err err = {0};
    struct group g = {.job = job, .channel = channel, .opts = opts, .closed = channel->fd < 0};
    g.throughput.since_ns = clock_mono_ns();
    g.watch.stop = job->listen ? &g.never : opts->stop;
    g.watch.fd = channel->fd;
    g.watch.checkpoint_ns = opts->checkpoint_ns;
    g.watch.started = send_started;
    g.watch.arg = &g;
    for (size_t i = 0; i < job->n_members; i++)
        receive_member(&g, &job->members[i]);
    as_status st = job->listen ? team_create(0, job->listen, opts->stop, &g.team, &err) : AS_OK;
    if (st == AS_OK)
        st = run_group(&g, &err);
    send_throughput(&g, true);
    end_all_members(&g, st == AS_OK ? EXIT_TRY_AGAIN : EXIT_FAILED, st == AS_OK ? NULL : &err);
    if (st != AS_OK)
        return EXIT_FAILED;
    if (!job->group)
        return g.exit;
    return atomic_load(opts->stop) ? EXIT_TRY_AGAIN : EXIT_DONE;
}
