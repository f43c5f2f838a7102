/* The life of a group: members arrive, wait for a slot, train in locksteps, end.
 *
 * The main thread runs in rounds. It reads requests from the runner, gives free slots to waiting
 * members, runs all locksteps (run_round), and takes out the members that ended. Locksteps and the
 * lists here change between rounds only, so they need no lock. During a round the main thread
 * sleeps in backend_for_each; the locksteps look at the socket for it and set watch.meet when a
 * line has come (run.c), which ends the round.
 *
 * How members get slots is in seating.c.
 *
 * The data set is loaded when the first member is there, because its train document says how to
 * preprocess and split the rows. All later members must have the signature of the first. An error
 * of one member ends that member; an error of the device or the data set ends all of them, and
 * fault.c decides with which exit code. */
#include "trial-runner/train/group.h"

#include <stdio.h>

#include "data/dataset_read.h"
#include "data/dataset_view.h"
#include "base/clock.h"
#include "kernels/ops.h"
#include "model/prepare/prepare_rule.h"
#include "trial-runner/train/fault.h"
#include "trial-runner/train/group_priv.h"
#include "trial-runner/train/stack_rows.h"
#include "trial-runner/train/stage_targets.h"

#define WAIT_MS 100                 /* how often to look for a signal while no member trains */
#define THROUGHPUT_NS NS_PER_S      /* how often to send the throughput */
#define SERVED_NS (100 * NS_PER_MS) /* how often at most, if members end sooner than that */

/* ---- events and log lines ---- */

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
        channel_log(g->channel, id, true, why->msg);
    channel_send(g->channel, &e);
    g->exit = exit;
    g->throughput.done += exit == EXIT_DONE;
}

void group_dismiss(struct group *g, struct member *m, int exit, const struct as_err *why)
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
void group_send_throughput(struct group *g, bool is_last)
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
        m->channel = g->channel;
        g->waiting[g->n_waiting++] = m;
        return;
    }
    send_ended(g, from->id, EXIT_FAILED, &err);
    member_free(m);
}

/* A rank that holds some partitions of the rows: the others stay in a file. */
static as_status open_partitions(struct group *g, const struct member *m, struct as_err *err)
{
    const struct dataset_info *info = &g->job->info;
    const struct dataset_paths paths = job_paths(g->job);
    struct preprocess_opts opts = prepare_rule_opts(&m->spec, info->task, info->n_rows);
    struct row_parts parts = {.n = (size_t)(m->spec.batch_size / m->spec.micro_batch),
                              .micro = m->plan->max_rows};
    as_status st = dataset_info_without(info, NULL, 0, &g->roles.info, err);
    if (st == AS_OK)
        st = partitions_open(&paths, &g->roles.info, &opts, parts, &g->data, &g->partitions, err);
    return st == AS_OK ? AS_OK : as_err_prefix(err, st, "data set '%s'", m->spec.dataset);
}

as_status group_load_data(struct group *g, const struct train_spec *spec, struct as_err *err)
{
    bool numbers = !train_model_is_network(&spec->model); /* others can take bytes */
    struct dataset set = {0};
    struct dataset_paths paths = job_paths(g->job);
    struct job of_files = *g->job;
    if (g->job->boost)
        of_files.info = *g->job->boost->info;
    if (g->job->stacked)
        of_files.info = *g->job->stacked->base;
    as_status st = numbers ? dataset_load(&paths, &of_files.info, &set, err)
                           : dataset_load_bytes(&paths, &of_files.info, &set, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "data set '%s'", spec->dataset);
    st = row_roles_read(&of_files, spec, &set, &g->roles, err);
    if (st == AS_OK && g->job->boost)
        st = stage_targets_put(g->job->boost, &g->roles, &set, err);
    if (st == AS_OK && g->job->stacked)
        st = stack_rows_put(g->job->stacked, &g->roles, &set, err);
    if (st != AS_OK) {
        dataset_done(&set);
        return as_err_prefix(err, st, "data set '%s'", spec->dataset);
    }
    struct preprocess_opts opts = prepare_rule_opts(spec, g->job->info.task, set.n_rows);
    opts.part = g->roles.part;
    opts.weights = g->roles.weights;
    return train_data_prepare(&set, &g->roles.info, &opts, &g->data, err);
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

void group_send_ready(struct group *g, const struct member *m)
{
    const struct net_plan *plan = m->plan;
    struct control_event e = {.kind = CONTROL_READY,
                              .members = (int64_t)g->slots,
                              .bytes_per_member = (int64_t)g->bytes,
                              .bytes_shared = (int64_t)device_data_bytes(&g->data),
                              .flops_per_step =
                                  (int64_t)(plan->flops_train * (double)plan->max_rows),
                              .threads = (int64_t)backend_lanes(g->be)};
    channel_send(g->channel, &e);
    (void)printf(
        "%s: %zu rows to train on, %zu held out, %zu parameters, %zu bytes for each of %zu, "
        "%s\n",
        m->spec.dataset, g->data.n_train, g->data.n_val, plan->n_params, g->bytes, g->slots,
        backend_device(g->be));
}

/* Load the data and open the device, as the first member's document asks. Called once. */
static as_status open_group(struct group *g, const struct member *m, struct as_err *err)
{
    struct backend_opts opts = {.threads = (int)g->opts->threads,
                                .bf16 = m->spec.precision == TRAIN_BFLOAT16};
    as_status st = member_holds_partitions(m, g->job) ? open_partitions(g, m, err)
                                                      : group_load_data(g, &m->spec, err);
    if (st != AS_OK)
        return st;
    struct as_err why;
    st = backend_open(NULL, &opts, &g->be, &why);
    if (st != AS_OK) {
        g->exit_on_error = fault_of_opening(&why);
        return as_fail(err, st, "%s", why.msg);
    }
    train_loss loss = train_spec_loss(&m->spec, g->job->info.task);
    g->fused = g->job->slots > 1 && !as_streq(backend_name(g->be), "cpu");
    st = group_fit_device(g, err);
    if (st != AS_OK)
        return st;
    st = device_data_create(g->be, &g->data, loss == TRAIN_CROSS_ENTROPY, &g->device, err);
    if (st != AS_OK)
        return st;
    if (g->partitions)
        partitions_place(g->partitions, g->device);
    g->setup = (struct lockstep_setup){g->be,     g->job, &g->roles.info,   &g->data,
                                       g->device, loss,   g->opts->threads, g->partitions};
    g->signature = as_strdup(m->signature);
    if (!g->signature)
        return as_fail_nomem(err);
    /* With several slots this is what any member of the signature may need, even where each member
     * has a lockstep of its own: the runner plans with one figure for all. */
    g->bytes = lockstep_slot_bytes(&g->setup, m, g->job->slots);
    st = check_memory(g, err);
    if (st != AS_OK)
        return st;
    st = group_fit_device(g, err);
    if (st != AS_OK)
        return st;
    group_send_ready(g, m);
    return AS_OK;
}

/* ---- members out ---- */

void group_finish(struct group *g, struct member *m)
{
    char text[80];
    if (m->exit == EXIT_TRY_AGAIN && m->error.code == AS_OK) {
        if (m->plan)
            (void)snprintf(text, sizeof text, "stopped at epoch %lld, micro-step %zu",
                           (long long)m->epoch, m->at);
        else
            (void)snprintf(text, sizeof text, "stopped after round %lld", (long long)m->epoch);
        channel_log(g->channel, m->id, false, text);
    } else if (m->last_report.len > 0) {
        channel_log(g->channel, m->id, false, str_cstr(&m->last_report));
    }
    group_dismiss(g, m, m->exit, m->error.code == AS_OK ? NULL : &m->error);
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
            group_finish(g, m);
        }
        if (ls->n == 0)
            group_drop_lockstep(g, i);
    }
    return AS_OK;
}

/* ---- requests of the runner ---- */

static bool has_id(const struct group *g, const char *id)
{
    if (g->growing && as_streq(g->growing->id, id))
        return true;
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
    if (g->growing && as_streq(g->growing->id, id))
        g->growing->ask = what;
    for (size_t i = 0; i < g->n_locksteps; i++)
        for (size_t k = 0; k < g->lockstep[i]->n; k++)
            if (as_streq(g->lockstep[i]->member[k]->id, id))
                g->lockstep[i]->member[k]->ask = what;
    for (size_t i = 0; i < g->n_waiting; i++) {
        if (!as_streq(g->waiting[i]->id, id))
            continue;
        group_dismiss(g, g->waiting[i], EXIT_TRY_AGAIN, NULL);
        for (g->n_waiting--; i < g->n_waiting; i++)
            g->waiting[i] = g->waiting[i + 1];
    }
}

static void obey_request(struct group *g, const struct control_request *r)
{
    switch (r->op) {
    case CONTROL_ADD:
        if (has_id(g, r->id))
            channel_log(g->channel, r->id, true, "warning: it was added twice");
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

void group_listen(struct group *g, int timeout_ms)
{
    struct as_err err;
    struct control_request r;
    if (channel_read(g->channel, timeout_ms, &err) != AS_OK)
        channel_log(g->channel, "", true, err.msg);
    for (;;) {
        as_status st = channel_next(g->channel, &r, &err);
        if (st == AS_E_NOT_FOUND)
            break;
        if (st != AS_OK) {
            (void)fprintf(stderr, "assay-train: a line from the runner: %s\n", err.msg);
            continue;
        }
        obey_request(g, &r);
        control_request_done(&r);
    }
    if (g->channel->gone) /* like SIGTERM: save what can be saved */
        atomic_store(g->opts->stop, true);
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
        group_listen(g, g->n_locksteps || g->n_waiting ? 0 : WAIT_MS);
        if (atomic_load(g->opts->stop) && g->n_locksteps == 0)
            return AS_OK;
        if (!g->be && g->n_waiting > 0 && train_model_is_kmeans(&g->waiting[0]->spec.model))
            return group_run_kmeans(g, err);
        if (!g->be && g->n_waiting > 0 && !train_model_is_network(&g->waiting[0]->spec.model))
            return group_run_trees(g, err);
        if (!g->be && g->n_waiting > 0)
            st = open_group(g, g->waiting[0], err);
        if (st == AS_OK && g->be && !atomic_load(g->opts->stop))
            st = group_seat_waiting(g, err);
        if (g->n_locksteps == 0 && g->n_waiting == 0 && (g->closed || g->channel->fd < 0))
            return st;
        if (st != AS_OK || g->n_locksteps == 0)
            continue;
        size_t now = n_members(g);
        g->throughput.most = now > g->throughput.most ? now : g->throughput.most;
        atomic_store(&g->watch.meet, false);
        st = run_round(g, err);
        if (st == AS_OK)
            st = collect_ended(g, err);
        group_send_throughput(g, false);
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
            group_dismiss(g, g->lockstep[i]->member[k], exit, why);
    if (g->growing)
        group_dismiss(g, g->growing, exit, why);
    for (size_t i = 0; i < g->n_waiting; i++)
        group_dismiss(g, g->waiting[i], exit, why);
    shared_step_free(g->shared);
    team_free(g->team);
    for (size_t i = 0; i < g->n_locksteps; i++)
        lockstep_free(g->lockstep[i]);
    partitions_free(g->partitions);
    device_data_free(g->device);
    log_conv_path(g);
    backend_free(g->be);
    train_data_done(&g->data);
    row_roles_done(&g->roles);
    free(g->signature);
}

int group_run(const struct job *job, struct channel *channel, const struct group_opts *opts)
{
    struct as_err err = {0};
    struct group g = {.job = job,
                      .channel = channel,
                      .opts = opts,
                      .slots = job->slots,
                      .closed = channel->fd < 0};
    g.throughput.since_ns = clock_mono_ns();
    g.watch.stop = job->listen ? &g.never : opts->stop;
    g.watch.fd = channel->fd;
    g.watch.checkpoint_ns = opts->checkpoint_ns;
    g.watch.started = send_started;
    g.watch.arg = &g;
    for (size_t i = 0; i < job->n_members; i++)
        receive_member(&g, &job->members[i]);
    as_status st =
        job->listen ? team_create(0, job->listen, &opts->ranks, opts->stop, &g.team, &err) : AS_OK;
    if (st == AS_OK)
        st = run_group(&g, &err);
    group_send_throughput(&g, true);
    if (st != AS_OK && g.exit_on_error == 0)
        g.exit_on_error = g.be ? fault_of_training(g.be, &err) : EXIT_FAILED;
    end_all_members(&g, st == AS_OK ? EXIT_TRY_AGAIN : g.exit_on_error, st == AS_OK ? NULL : &err);
    if (st != AS_OK)
        return g.exit_on_error;
    if (!job->group)
        return g.exit;
    return atomic_load(opts->stop) ? EXIT_TRY_AGAIN : EXIT_DONE;
}
