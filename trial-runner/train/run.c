/* One turn of a lockstep: micro-steps, ends of epochs, ends of members.
 *
 * More locksteps than lanes take turns. A turn is long enough to keep a member's weights in the
 * cache of its core, and short enough that the members of a group advance evenly (ROUND_NS,
 * SHARE_NS).
 *
 * A step of a small network takes microseconds, so looking at the clock or the socket after each
 * step would cost more than the step. struct pace adapts the number of steps between two looks to
 * about LOOK_NS. One of the locksteps polls the socket for all of them; when a line has come it
 * sets watch.meet, every lockstep returns, and the main thread reads.
 *
 * A member can be saved between two batches only: inside a batch the sum of gradients over
 * micro-batches is part of the state, and no checkpoint has it. `cancel` may end a member
 * anywhere. */
#include "trial-runner/train/run.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "trial-runner/train/artifacts.h"
#include "trial-runner/train/best.h"
#include "trial-runner/train/channel.h"
#include "trial-runner/train/checkpoint.h"
#include "trial-runner/train/evaluate.h"
#include "trial-runner/train/fault.h"
#include "trial-runner/train/report_file.h"
#include "trial-runner/train/snapshots.h"
#include "model/network/privacy_account.h"
#include "model/network/schedule.h"

/* Inside an epoch a checkpoint is due after 15 times the wait at epoch ends (30 s and 2 s, decision
 * 8002: a write inside an epoch is only worth it for long ones), and saving takes at
 * most one part in 20 of the time. */
#define INSIDE_EPOCH_FACTOR 15
#define SAVE_COST_FACTOR 20
#define ROUND_NS (4 * NS_PER_MS)   /* least time of a turn, which ends with an epoch */
#define SHARE_NS (500 * NS_PER_MS) /* most time of a turn, which then ends inside an epoch */
#define LOOK_NS (1 * NS_PER_MS)    /* about how often a lockstep looks at the clock */
#define POLL_NS (5 * NS_PER_MS)    /* how often one of the locksteps polls the socket */

/* ---- checkpoints ---- */

as_status run_save(struct lockstep *ls, size_t slot, struct as_err *err)
{
    struct member *m = ls->member[slot];
    if (!m->checkpoint)
        return AS_OK;
    int64_t start = clock_mono_ns();
    struct as_err own;
    as_status st = checkpoint_write(ls, slot, &own);
    m->saved_ns = clock_mono_ns();
    m->save_cost_ns = m->saved_ns - start;
    if (st == AS_E_IO || st == AS_E_NOMEM) {
        char text[AS_ERR_MSG_MAX + 60];
        (void)snprintf(text, sizeof text, "warning: going on without a checkpoint: %s", own.msg);
        channel_log(m->channel, m->id, true, text);
        return AS_OK;
    }
    if (st != AS_OK && err)
        *err = own;
    return st;
}

/* One of the ranks of a large trial writes the files. */
static bool writes_files(const struct watch *w)
{
    return !w->shared || shared_step_leads(w->shared);
}

static bool save_is_due(const struct member *m, const struct watch *w, int64_t now)
{
    int64_t wait = w->checkpoint_ns * (m->at ? INSIDE_EPOCH_FACTOR : 1);
    if (wait < SAVE_COST_FACTOR * m->save_cost_ns)
        wait = SAVE_COST_FACTOR * m->save_cost_ns;
    return m->checkpoint && now - m->saved_ns >= wait && writes_files(w);
}

static as_status save_if_due(struct lockstep *ls, size_t slot, struct watch *w, int64_t now,
                             struct as_err *err)
{
    if (!save_is_due(ls->member[slot], w, now) || (w->shared && shared_step_ask_save(w->shared)))
        return AS_OK;
    return run_save(ls, slot, err);
}

/* ---- ends ---- */

static as_status end_member(struct lockstep *ls, size_t slot, struct watch *w, int exit,
                            const struct as_err *why, struct as_err *err)
{
    member_end(ls->member[slot], exit, why);
    atomic_store(&w->meet, true);
    return lockstep_freeze(ls, slot, err);
}

/* End a member after an error with its files. A failed write (a full disk) is the machine's fault:
 * another attempt, perhaps on another machine, may succeed. */
static as_status fail_member(struct lockstep *ls, size_t slot, struct watch *w, as_status st,
                             const struct as_err *why, struct as_err *err)
{
    if (fault_ends_all(ls->setup->be, st)) /* files are made of what the device holds */
        return as_fail(err, st, "%s", why->msg);
    return end_member(ls, slot, w, st == AS_E_IO ? EXIT_TRY_AGAIN : EXIT_FAILED, why, err);
}

static bool is_stopped(const struct member *m, const struct watch *w)
{
    return m->ask == ASK_STOP || atomic_load(w->stop);
}

/* A member's slot, for what the ranks of a large trial finish together. */
struct finishing {
    struct lockstep *ls;
    struct backend *lane;
    size_t slot;
    const float *mean; /* of snapshots; NULL: the slot's weights predict */
};

static as_status finish_save(void *arg, struct as_err *err)
{
    const struct finishing *f = arg;
    return run_save(f->ls, f->slot, err);
}

static as_status finish_artifacts(void *arg, struct as_err *err)
{
    const struct finishing *f = arg;
    return artifacts_write(f->ls, f->lane, f->slot, f->mean, err);
}

/* Is this the end of a rank, after which another attempt goes on (shared_step.h)? */
static bool ends_rank(const struct watch *w, as_status st)
{
    return w->shared && (st == AS_E_UNAVAILABLE || st == AS_E_STALE);
}

static as_status stop_member(struct lockstep *ls, struct backend *lane, size_t slot,
                             struct watch *w, struct as_err *err)
{
    struct finishing f = {.ls = ls, .slot = slot};
    as_status st = w->shared ? shared_step_finish(w->shared, lane, true, finish_save, &f, err)
                             : finish_save(&f, err);
    if (st != AS_OK && !ends_rank(w, st))
        return st;
    return end_member(ls, slot, w, EXIT_TRY_AGAIN, NULL, err);
}

/* ---- steps ---- */

/* After how many steps to look at the clock again, so that the cost of looking is negligible. */
struct pace {
    int64_t last_ns;
    unsigned every, left;
};

/* Is it time to look? Then *now is set. */
static bool pace_due(struct pace *p, int64_t *now)
{
    if (p->left > 1) {
        p->left--;
        return false;
    }
    *now = clock_mono_ns();
    int64_t took = *now - p->last_ns;
    if (took < LOOK_NS / 2 && p->every < 1024)
        p->every *= 2;
    else if (took > LOOK_NS && p->every > 1)
        p->every /= 2;
    p->last_ns = *now;
    p->left = p->every;
    return true;
}

/* Has a line come? Only the lockstep that wins the exchange of looked_ns polls. */
static void watch_poll(struct watch *w, int64_t now)
{
    int64_t last = atomic_load(&w->looked_ns);
    if (w->fd < 0 || now - last < POLL_NS ||
        !atomic_compare_exchange_strong(&w->looked_ns, &last, now))
        return;
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    if (poll(&p, 1, 0) > 0)
        atomic_store(&w->meet, true);
}

/* A member has started when its first step has really run: a device that fails must not have said
 * so. `lane` is waited for once for each member, before its second step. */
static as_status say_started(struct backend *lane, struct member *m, struct watch *w,
                             struct as_err *err)
{
    as_status st = m->started ? AS_OK : backend_sync(lane, err);
    if (st != AS_OK || m->started)
        return st;
    m->started = true;
    w->started(w->arg, m);
    return AS_OK;
}

/* After a micro-step: do what was asked of the member, or write a checkpoint that is due. now is 0
 * if the clock was not read after this step. */
static as_status after_step(struct lockstep *ls, struct backend *lane, size_t slot, struct watch *w,
                            int64_t now, struct as_err *err)
{
    struct member *m = ls->member[slot];
    as_status st = say_started(lane, m, w, err);
    if (st != AS_OK)
        return st;
    if (m->ask == ASK_CANCEL)
        return end_member(ls, slot, w, EXIT_TRY_AGAIN, NULL, err);
    if (m->at == m->layout.micro_steps || !epoch_layout_between_batches(&m->layout, m->at))
        return AS_OK;
    if (is_stopped(m, w))
        return stop_member(ls, lane, slot, w, err);
    return now ? save_if_due(ls, slot, w, now, err) : AS_OK;
}

/* Do micro-steps of slots [first, first + n), which are at the same position. Ends at the end of
 * the epoch, at until_ns, when w->meet is set, or when all of them have ended. */
static as_status run_range(struct lockstep *ls, struct backend *lane, size_t first, size_t n,
                           struct watch *w, int64_t until_ns, struct as_err *err)
{
    struct member **m = ls->member + first;
    struct pace pace = {.last_ns = clock_mono_ns(), .every = 1, .left = 1};
    size_t micro = ls->plan->max_rows, running = 0;
    for (size_t k = 0; k < n; k++)
        running += !m[k]->ended;
    while (running > 0 && m[0]->at < m[0]->layout.micro_steps) {
        int64_t now = 0;
        if (pace_due(&pace, &now))
            watch_poll(w, now);
        if (atomic_load(&w->meet) || now >= until_ns)
            break;
        size_t at = m[0]->at, left = ls->setup->data->n_train - at * micro;
        as_status st = lockstep_step(ls, lane, first, n, at, err);
        atomic_fetch_add_explicit(&w->rows, running * (left < micro ? left : micro),
                                  memory_order_relaxed);
        for (size_t k = 0; k < n; k++)
            m[k]->at = at + 1;
        if (st == AS_OK)
            st = backend_step_end(lane, err);
        running = 0;
        for (size_t k = 0; st == AS_OK && k < n; k++) {
            if (!m[k]->ended)
                st = after_step(ls, lane, first + k, w, now, err);
            running += !m[k]->ended;
        }
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* All ranks have agreed that a checkpoint is due. After the last batch of an epoch it is written by
 * next_epoch(): until then the position is that of no batch. */
static as_status save_together(struct lockstep *ls, struct backend *lane, struct watch *w,
                               struct as_err *err)
{
    bool whole = false;
    as_status st = shared_step_gather(w->shared, lane, &whole, err);
    bool between = ls->member[0]->at < ls->member[0]->layout.micro_steps;
    return st == AS_OK && whole && between && shared_step_leads(w->shared) ? run_save(ls, 0, err)
                                                                           : st;
}

/* A rank of a large trial: batches of the epoch, each together with the other ranks. They stop
 * together too, when one of them is asked to. */
static as_status run_batches(struct lockstep *ls, struct backend *lane, struct watch *w,
                             struct as_err *err)
{
    struct member *m = ls->member[0];
    while (!m->ended && m->at < m->layout.micro_steps) {
        struct shared_outcome done;
        size_t before = m->at;
        struct as_err why;
        as_status st = shared_step_run(w->shared, lane, &done, &why);
        if (ends_rank(w, st))
            return end_member(ls, 0, w, EXIT_TRY_AGAIN, &why, err);
        if (st != AS_OK)
            return as_fail(err, st, "%s", why.msg);
        if (done.moved) /* the tables of its epoch come first */
            return AS_OK;
        atomic_fetch_add(&w->rows, epoch_layout_before(&m->layout, m->at) -
                                       epoch_layout_before(&m->layout, before));
        if (done.save && (st = save_together(ls, lane, w, err)) != AS_OK)
            return st;
        if (done.stop)
            m->ask = ASK_STOP;
        st = after_step(ls, lane, 0, w, clock_mono_ns(), err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- the end of an epoch ---- */

/* After the epoch that is over, or after the last one. */
static double epsilon_of(const struct member *m)
{
    const struct train_spec *s = &m->spec;
    int64_t done = m->epoch < s->epochs ? m->epoch + 1 : s->epochs;
    size_t batch = m->layout.per_batch * m->layout.micro_rows;
    return s->privacy.given ? privacy_epsilon(&s->privacy, m->layout.n_train, batch, done) : 0;
}

as_status run_report(struct member *m, int64_t step, double mean_loss, double lr,
                     const struct evaluation *e, int64_t best_step, struct as_err *err)
{
    const struct report_value always[] = {
        {"train_loss", mean_loss},  {"val_loss", e->loss},
        {"val_error", e->error},    {"val_accuracy", e->accuracy},
        {"val_rmse", e->rmse},      {"val_mae", e->mae},
        {"val_r2", e->r2},          {"lr", lr},
        {"epsilon", epsilon_of(m)}, {"duality_gap", m->duality_gap}};
    struct report_value values[AS_ARRAY_LEN(always) + TRAIN_MAX_EXTRA_METRICS + 1];
    size_t n = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(always); i++)
        if (train_spec_reports(&m->spec, m->task, always[i].name))
            values[n++] = always[i];
    for (size_t i = 0; i < m->spec.n_metrics; i++)
        if (train_spec_on_request(m->task, m->spec.metrics[i]))
            values[n++] = (struct report_value){m->spec.metrics[i], e->asked[i]};
    if (best_step > 0)
        values[n++] = (struct report_value){"best_step", (double)best_step};
    str_clear(&m->last_report);
    as_status st = report_format(step, values, n, &m->last_report, err);
    if (st != AS_OK)
        return st;
    return report_file_append(&m->report, &m->last_report, err);
}

double run_judged(const struct member *m, double mean_loss, const struct evaluation *e)
{
    return as_streq(m->judged_by, "train_loss") ? mean_loss
                                                : evaluation_of(e, &m->spec, m->judged_by);
}

static as_status append_report(struct member *m, double mean_loss, const struct evaluation *e,
                               struct as_err *err)
{
    int64_t steps = m->layout.steps_per_epoch;
    double lr = schedule_lr(&m->spec, (m->epoch + 1) * steps - 1, steps);
    return run_report(m, m->epoch + 1, mean_loss, lr, e, 0, err);
}

static bool keeps_now(const struct member *m)
{
    int64_t done = m->epoch + 1;
    return m->checkpoint && m->keep_every > 0 && done % m->keep_every == 0 && done < m->keep_until;
}

/* At the epochs of rungs the state is kept for forks, before the report that reaches the rung: what
 * the server decides by that report may begin from it. Without room for it the member goes on. */
static as_status keep_for_forks(struct lockstep *ls, size_t slot, struct as_err *err)
{
    const struct member *m = ls->member[slot];
    char text[AS_ERR_MSG_MAX + 60];
    struct as_err own;
    if (!keeps_now(m) || (lockstep_is_cut(ls) && !ls->whole)) /* the leader has it as a whole */
        return AS_OK;
    as_status st = checkpoint_keep(ls, slot, &own);
    if (st == AS_E_IO || st == AS_E_NOMEM) {
        (void)snprintf(text, sizeof text, "warning: nothing is kept for forks: %s", own.msg);
        channel_log(m->channel, m->id, true, text);
        return AS_OK;
    }
    if (st != AS_OK)
        *err = own;
    return st;
}

/* Report a member whose epoch is over, and end it if it diverged. */
static as_status report_member(struct lockstep *ls, size_t slot, struct watch *w, double mean_loss,
                               struct evaluation *e, struct as_err *err)
{
    struct member *m = ls->member[slot];
    struct as_err why;
    bool diverged = !isfinite(mean_loss) || !isfinite(e->loss);
    if (diverged)
        evaluation_clear(e);
    as_status st = diverged ? AS_OK : keep_for_forks(ls, slot, &why);
    if (st == AS_OK)
        st = append_report(m, isfinite(mean_loss) ? mean_loss : NAN, e, &why);
    if (st != AS_OK)
        return fail_member(ls, slot, w, st, &why, err);
    if (!diverged)
        return best_consider(ls, slot, run_judged(m, mean_loss, e), err);
    (void)as_fail(&why, AS_E_NUMERIC, "diverged: the loss is not finite after epoch %lld",
                  (long long)m->epoch + 1);
    return end_member(ls, slot, w, EXIT_FAILED, &why, err);
}

static double last_value(const json_t *line, const char *name)
{
    double v = NAN;
    (void)json_number_get(json_object_get(line, name), &v);
    return v;
}

/* One step after the last: the metrics of the snapshots' mean, with the loss and the rate of the
 * last epoch. */
static as_status report_mean(struct member *m, const struct evaluation *e, struct as_err *err)
{
    JSON_AUTO line = NULL;
    as_status st = json_parse(str_cstr(&m->last_report), m->last_report.len, &line, err);
    if (st != AS_OK)
        return st;
    return run_report(m, m->epoch + 1, last_value(line, "train_loss"), last_value(line, "lr"), e, 0,
                      err);
}

/* The training is over: with `patience` the best weights come back, and the final report says which
 * step they are of; with snapshots it is of their mean. */
static as_status write_end(struct lockstep *ls, struct backend *lane, size_t slot, struct watch *w,
                           struct as_err *err)
{
    struct member *m = ls->member[slot];
    struct evaluation e;
    AS_AUTO(as_freep) float *mean = NULL;
    struct finishing f = {.ls = ls, .lane = lane, .slot = slot};
    as_status st = best_restore(ls, slot, err);
    if (st == AS_OK && m->best.epoch > 0)
        st = report_file_append(&m->report, &m->last_report, err);
    if (st == AS_OK)
        st = snapshots_finish(ls, lane, slot, &mean, &e, err);
    if (st == AS_OK && mean)
        st = report_mean(m, &e, err);
    if (st != AS_OK)
        return st;
    f.mean = mean;
    return w->shared ? shared_step_finish(w->shared, lane, false, finish_artifacts, &f, err)
                     : finish_artifacts(&f, err);
}

/* Go to the next epoch. After the last one write the artifacts and end; else stop if asked to, or
 * write a checkpoint if one is due. */
static as_status next_epoch(struct lockstep *ls, struct backend *lane, size_t slot, struct watch *w,
                            struct as_err *err)
{
    struct member *m = ls->member[slot];
    struct as_err why;
    m->epoch++;
    m->at = 0;
    as_status st = loss_sums_clear(&ls->losses->train, slot, 1, err);
    if (st != AS_OK)
        return st;
    st = snapshots_take(ls, slot, &why);
    if (st != AS_OK)
        return fail_member(ls, slot, w, st, &why, err);
    if (m->epoch == m->spec.epochs || best_is_past(m)) {
        st = write_end(ls, lane, slot, w, &why);
        if (ends_rank(w, st))
            return end_member(ls, slot, w, EXIT_TRY_AGAIN, &why, err);
        return st == AS_OK ? end_member(ls, slot, w, EXIT_DONE, NULL, err)
                           : fail_member(ls, slot, w, st, &why, err);
    }
    if (is_stopped(m, w))
        return stop_member(ls, lane, slot, w, err);
    return save_if_due(ls, slot, w, clock_mono_ns(), err);
}

/* Is a report due? A member that diverged reports too. */
static bool reports_now(const struct member *m, double mean_loss)
{
    int64_t done = m->epoch + 1;
    return !m->ended &&
           (done == m->spec.epochs || done % m->spec.report_every == 0 || !isfinite(mean_loss));
}

/* The mean loss of each slot's epoch. NaN for a member that the optimizer froze because a gradient
 * was not finite (optimizer.c). */
static as_status mean_losses(const struct lockstep *ls, double *ret, struct as_err *err)
{
    double per_row = loss_unit(ls->setup) / (double)ls->setup->data->n_train;
    for (size_t k = 0; k < ls->n; k++) {
        float sum = 0;
        int32_t active = 0;
        as_status st = buf_download(ls->losses->train.loss, k, &sum, 1, err);
        if (st != AS_OK)
            return st;
        st = buf_download(ls->optimizer->active, k, &active, 1, err);
        if (st != AS_OK)
            return st;
        ret[k] = active ? (double)sum * per_row : NAN;
    }
    return AS_OK;
}

/* *ret_moved: this rank is at the place of another one, which has evaluated before. */
static as_status evaluate_all(struct lockstep *ls, struct backend *lane, struct watch *w,
                              struct evaluation *e, bool *ret_moved, struct as_err *err)
{
    return lockstep_is_cut(ls)
               ? shared_step_evaluate(w->shared, lane, keeps_now(ls->member[0]), e, ret_moved, err)
               : evaluate_members(ls, lane, 0, ls->n, e, err);
}

static as_status end_epoch(struct lockstep *ls, struct backend *lane, struct watch *w,
                           struct as_err *err)
{
    AS_AUTO(as_freep) struct evaluation *e = as_calloc(ls->n, sizeof *e);
    AS_AUTO(as_freep) double *loss = as_calloc(ls->n, sizeof *loss);
    if (!e || !loss)
        return as_fail_nomem(err);
    bool any = false, moved = false;
    struct as_err why;
    as_status st = mean_losses(ls, loss, err);
    if (st != AS_OK)
        return st;
    for (size_t k = 0; k < ls->n; k++)
        any = any || reports_now(ls->member[k], loss[k]);
    if (any)
        st = evaluate_all(ls, lane, w, e, &moved, &why);
    if (ends_rank(w, st))
        return end_member(ls, 0, w, EXIT_TRY_AGAIN, &why, err);
    if (st != AS_OK)
        return as_fail(err, st, "%s", why.msg);
    if (moved)
        return AS_OK;
    for (size_t k = 0; k < ls->n; k++) {
        if (reports_now(ls->member[k], loss[k]))
            st = report_member(ls, k, w, loss[k], &e[k], err);
        if (st != AS_OK)
            return st;
        if (!ls->member[k]->ended)
            st = next_epoch(ls, lane, k, w, err);
        if (st != AS_OK)
            return st;
    }
    ls->n_main = ls->n; /* the resumed members have reached the end of their epoch too */
    return AS_OK;
}

/* ---- running ---- */

/* Have all running members done the last step of their epoch? */
static bool epoch_is_over(const struct lockstep *ls, size_t *ret_running)
{
    bool over = true;
    *ret_running = 0;
    for (size_t k = 0; k < ls->n; k++) {
        const struct member *m = ls->member[k];
        *ret_running += !m->ended;
        over = over && (m->ended || m->at == m->layout.micro_steps);
    }
    return over;
}

static as_status prepare_epoch(struct lockstep *ls, struct backend *lane, struct watch *w,
                               struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t k = 0; st == AS_OK && k < ls->n; k++) {
        struct member *m = ls->member[k];
        if (m->ended)
            continue;
        if (m->ask == ASK_CANCEL)
            st = end_member(ls, k, w, EXIT_TRY_AGAIN, NULL, err);
        else if (m->at < m->layout.micro_steps && epoch_layout_between_batches(&m->layout, m->at) &&
                 is_stopped(m, w))
            st = stop_member(ls, lane, k, w, err);
        else if (m->epoch < m->spec.epochs && m->tabled != m->epoch)
            st = lockstep_begin_epoch(ls, k, err);
        else if (m->epoch == m->spec.epochs) { /* resumed when only artifacts were missing */
            m->epoch--;
            st = next_epoch(ls, lane, k, w, err);
        }
    }
    return st;
}

/* Resumed members run alone to the end of their epoch; an epoch ends for all at once. */
static as_status run_ranges(struct lockstep *ls, struct backend *lane, struct watch *w,
                            int64_t until_ns, struct as_err *err)
{
    for (size_t k = ls->n_main; k < ls->n; k++) {
        as_status st = run_range(ls, lane, k, 1, w, until_ns, err);
        if (st != AS_OK)
            return st;
    }
    return ls->n_main > 0 ? run_range(ls, lane, 0, ls->n_main, w, until_ns, err) : AS_OK;
}

/* Run one turn, which began at `start`. */
static as_status run_turn(struct lockstep *ls, struct backend *lane, struct watch *w, int64_t start,
                          struct as_err *err)
{
    int64_t until_ns = start + SHARE_NS;
    for (;;) {
        size_t running = 0;
        as_status st = prepare_epoch(ls, lane, w, err);
        if (st != AS_OK)
            return st;
        st = w->shared ? run_batches(ls, lane, w, err) : run_ranges(ls, lane, w, until_ns, err);
        if (st != AS_OK)
            return st;
        if (!epoch_is_over(ls, &running) || running == 0)
            return AS_OK; /* w->meet, the end of the turn, or no member is left */
        st = end_epoch(ls, lane, w, err);
        if (st != AS_OK || atomic_load(&w->meet) || clock_mono_ns() - start >= ROUND_NS)
            return st;
    }
}

as_status run_lockstep(struct lockstep *ls, struct backend *lane, struct watch *w,
                       struct as_err *err)
{
    int64_t start = clock_mono_ns();
    as_status st = run_turn(ls, lane, w, start, err);
    ls->used_ns += clock_mono_ns() - start;
    return st;
}
