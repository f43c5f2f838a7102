/* Members get slots.
 *
 * On the host each member has a lockstep of its own (seat_apart); on a device one lockstep holds
 * all members (seat_together). Decision 8001 has the reasons.
 *
 * A device holds as many slots as its free memory has room for. The figure for a slot is computed,
 * but a library may want more, or another process may take memory meanwhile. So when memory is out,
 * the lockstep is created again with half the slots, down to one. Members without a slot wait, and
 * the runner learns the number from `ready`. */
#include "base/clock.h"
#include "trial-runner/train/checkpoint.h"
#include "trial-runner/train/evaluate.h"
#include "trial-runner/train/fault.h"
#include "trial-runner/train/group_priv.h"
#include "trial-runner/train/report_file.h"

/* Restore the checkpoint if there is one that is not damaged. The last report is written again,
 * because the attempt that wrote it may have died before the runner sent that line. */
static as_status resume_member(struct lockstep *ls, struct member *m, struct as_err *err)
{
    bool found = false;
    char text[80];
    m->saved_ns = clock_mono_ns();
    if (!m->checkpoint)
        return AS_OK;
    struct as_err why;
    as_status st = checkpoint_read(ls, ls->n - 1, &found, &why);
    if (st == AS_E_INVAL)
        return checkpoint_give_up(m, &why, err);
    if (st != AS_OK)
        return as_fail(err, st, "%s", why.msg);
    if (!found)
        return AS_OK;
    (void)snprintf(text, sizeof text, "resumed at epoch %lld, micro-step %zu", (long long)m->epoch,
                   m->at);
    channel_log(m->channel, m->id, false, text);
    return m->last_report.len > 0 ? report_file_append(&m->report, &m->last_report, err) : AS_OK;
}

/* Fail if the sweep's metric has no value on the held-out rows: every trial would end with NaN,
 * which does not show why. For another metric it is a warning. */
static as_status check_metrics(const struct group *g, const struct member *m, struct as_err *err)
{
    struct as_err why;
    as_status st = evaluate_check(&g->setup, m, &why);
    if (st == AS_OK)
        return AS_OK;
    if (st != AS_E_INVAL || as_streq(g->job->metric, "val_auc"))
        return as_fail(err, st, "%s", why.msg);
    channel_log(g->channel, m->id, true, why.msg);
    return AS_OK;
}

/* A rank of a large trial: from now on its member steps together with the other ranks. */
static as_status join_team(struct group *g, struct lockstep *ls, struct as_err *err)
{
    if (!g->team || g->shared)
        return AS_OK;
    as_status st = shared_step_create(g->team, ls, &g->shared, err);
    if (st == AS_OK)
        ls->strategy = shared_step_strategy(g->shared);
    g->watch.shared = g->shared;
    return st;
}

/* Put m into a slot of ls, at the beginning or at the position of its checkpoint. */
static as_status join_lockstep(struct group *g, struct lockstep *ls, struct member *m,
                               struct as_err *err)
{
    as_status st = check_metrics(g, m, err);
    if (st != AS_OK)
        return st;
    st = lockstep_join(ls, m, err);
    if (st != AS_OK)
        return st;
    st = join_team(g, ls, err);
    if (st != AS_OK)
        return st;
    st = resume_member(ls, m, err);
    if (st != AS_OK)
        return st;
    lockstep_settle(ls);
    return AS_OK;
}

void group_drop_lockstep(struct group *g, size_t i)
{
    lockstep_free(g->lockstep[i]);
    for (g->n_locksteps--; i < g->n_locksteps; i++)
        g->lockstep[i] = g->lockstep[i + 1];
}

/* End the waiting members whose shape differs from the group's: no slot will ever fit them. */
void group_dismiss_other_shapes(struct group *g)
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
        group_dismiss(g, m, EXIT_FAILED, &why);
    }
    g->n_waiting = kept;
}

/* Remove the first n waiting members from the list. */
void group_forget_waiting(struct group *g, size_t n)
{
    g->n_waiting -= n;
    for (size_t i = 0; i < g->n_waiting; i++)
        g->waiting[i] = g->waiting[i + n];
}

/* An eighth of the free memory is left for graphs, workspaces of libraries, and what allocations
 * are rounded up by. */
#define LEFT_FREE 8

as_status group_fit_device(struct group *g, struct as_err *err)
{
    size_t free_bytes = 0, total = 0, shared = device_data_bytes(&g->data);
    as_status st = backend_memory(g->be, &free_bytes, &total, err);
    if (st != AS_OK || total == 0)
        return st;
    if (shared > total || g->bytes > total - shared) {
        g->exit_on_error = EXIT_FAILED; /* no other attempt on such a device would end better */
        return as_fail(err, AS_E_NOMEM,
                       "%zu bytes are needed (%zu for the data), but the device has only %zu",
                       shared + g->bytes, shared, total);
    }
    if (g->bytes == 0)
        return AS_OK;
    size_t places = (free_bytes - free_bytes / LEFT_FREE) / g->bytes;
    g->slots = places < g->slots ? places : g->slots;
    g->slots = g->slots > 0 ? g->slots : 1; /* it is tried */
    return AS_OK;
}

/* Create the lockstep of a device. When memory is out, try with half the slots. */
static as_status create_fitting(struct group *g, const struct member *m, struct as_err *err)
{
    as_status st = lockstep_create(&g->setup, m, g->slots, &g->lockstep[0], err);
    size_t before = g->slots;
    while (st == AS_E_NOMEM && g->slots > 1) {
        g->slots /= 2;
        st = lockstep_create(&g->setup, m, g->slots, &g->lockstep[0], err);
    }
    if (st == AS_OK && g->slots < before) {
        channel_log(g->channel, "", false,
                    "the device is full: the group is smaller than asked for");
        group_send_ready(g, m);
    }
    return st;
}

/* On a device: waiting members join the one lockstep, as long as it has room for them. */
static as_status seat_together(struct group *g, struct as_err *err)
{
    size_t taken = 0;
    for (; taken < g->n_waiting; taken++) {
        struct member *m = g->waiting[taken];
        struct as_err why;
        as_status st = AS_OK;
        if (g->n_locksteps == 0 && (st = create_fitting(g, m, &why)) == AS_OK)
            g->n_locksteps = 1;
        struct lockstep *ls = g->lockstep[0];
        if (st == AS_OK && !(lockstep_is_open(ls) && lockstep_takes(ls, m)))
            break;
        if (st == AS_OK)
            st = join_lockstep(g, ls, m, &why);
        if (st == AS_OK)
            continue;
        /* The error may have come after m got its slot, for example from its checkpoint. */
        bool seated = g->n_locksteps > 0 && ls->n > 0 && ls->member[ls->n - 1] == m;
        struct as_err fault = why;
        if (!fault_ends_all(g->be, st))
            st = seated ? lockstep_leave(ls, ls->n - 1, &fault) : AS_OK;
        if (st != AS_OK) {
            group_forget_waiting(
                g, taken + seated); /* the lockstep has them, and the caller ends all */
            return as_fail(err, st, "%s", fault.msg);
        }
        group_dismiss(g, m, EXIT_FAILED, &why);
        if (g->n_locksteps > 0 && ls->n == 0)
            group_drop_lockstep(g, 0);
    }
    group_forget_waiting(g, taken);
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
    if (join_lockstep(s->g, ls, m, &s->why[i]) != AS_OK)
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
            bool faulty = fault_ends_all(g->be, s->why[i].code);
            group_dismiss(g, g->waiting[i],
                          faulty ? fault_of_training(g->be, &s->why[i]) : EXIT_FAILED, &s->why[i]);
        }
    }
    group_forget_waiting(g, n);
    return st;
}

as_status group_seat_waiting(struct group *g, struct as_err *err)
{
    group_dismiss_other_shapes(g);
    return g->fused ? seat_together(g, err) : seat_apart(g, err);
}
