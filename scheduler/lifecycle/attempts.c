/* The writes of a running attempt: measurements, output, files, and its end.
 *
 * Every function begins with two questions. Does the writer hold the attempt (find_attempt)? Then
 * the fence: is this attempt the trial's latest, and does it run? So a runner that was declared
 * lost cannot overwrite the attempt that replaced it. An attempt that was declared lost may still
 * write while the trial is in the queue, because its success counts if no other attempt has begun.
 * The end may arrive twice: a repeat gets the answer of the first.
 *
 * Values that reach a rung of early stopping are decided about where they are recorded
 * (rungs.h). */
#include "scheduler/lifecycle/attempts.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/metric_name.h"
#include "base/str.h"
#include "base/utf8.h"
#include "scheduler/lifecycle/attempt_rules.h"
#include "scheduler/lifecycle/attempts_priv.h"
#include "scheduler/lifecycle/feasibility.h"
#include "scheduler/lifecycle/gang_world.h"
#include "scheduler/lifecycle/rungs.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/gang_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/note_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_row_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/usage_store.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/lifecycle/transition.h"

static as_status fail_stale(struct tx *t, const struct attempt_ref *ref, const struct trial_head *x,
                            struct as_err *err)
{
    atomic_fetch_add(&store_counters(tx_store(t))->stale_rejected, 1);
    return attempt_stale(ref, x, err);
}

/* May a late attempt write? It was declared lost, nobody reported its end, and no other attempt has
 * begun. Its success would still count, so what belongs to it is taken as well. */
static as_status check_late(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                            const struct trial_head *x, struct as_err *err)
{
    const char *reported = NULL;
    as_status st =
        store_attempt_reported(t, a, x->sweep_key, x->number, ref->attempt, &reported, err);
    if (st != AS_OK)
        return st;
    return reported ? fail_stale(t, ref, x, err) : AS_OK;
}

/* Does the writer hold the seat of the gang that it says? */
static as_status check_seat(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                            const struct attempt_writer *by, struct attempt_holder *holder,
                            struct as_err *err)
{
    const struct gang_key key = {holder->sweep_key, ref->number, ref->attempt};
    struct gang_seat_row seat;
    if (!by->has_seat)
        return AS_OK; /* the fence refuses it */
    as_status st = store_gang_seat(t, a, &key, by->seat, &seat, err);
    return st == AS_OK ? attempt_check_seat(ref, by, seat.secret, err) : st;
}

/* Find the sweep of the attempt, and check that the writer holds the attempt, or held it. An
 * attempt that does not exist is left to the fence. */
static as_status find_attempt(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                              const struct attempt_writer *by, struct attempt_holder *ret,
                              struct as_err *err)
{
    static const struct attempt_writer nobody;
    by = by ? by : &nobody;
    as_status st = store_attempt_holder(t, a, ref, ret, err);
    if (st != AS_OK || !ret->is_there)
        return st;
    st = attempt_check_holder(ref, by, ret, err);
    return st == AS_OK && ret->gang ? check_seat(t, a, ref, by, ret, err) : st;
}

/* Only the rank that leads the current epoch of a gang may write. The row of the gang is held, so
 * that no other epoch begins before the write is done. */
static as_status check_leads(struct tx *t, const struct attempt_ref *ref, int64_t sweep_key,
                             const struct attempt_writer *by, struct as_err *err)
{
    const struct gang_key key = {sweep_key, ref->number, ref->attempt};
    int64_t epoch = 0, leader = -1;
    as_status st = attempt_check_says_seat(ref, by, err);
    if (st == AS_OK)
        st = store_gang_fence(t, &key, &epoch, &leader, err);
    if (st == AS_OK)
        st = attempt_check_leader(by, epoch, leader, err);
    if (st == AS_E_STALE)
        atomic_fetch_add(&store_counters(tx_store(t))->stale_rejected, 1);
    return st;
}

/* Lock the trial of the attempt, and check that it may write. */
static as_status lock_trial(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                            const struct attempt_writer *by, int64_t key, struct trial_head *ret,
                            struct as_err *err)
{
    as_status st = store_trial_lock(t, a, key, ref->number, ret, err);
    if (st != AS_OK)
        return st;
    if (attempt_is_late(ret, ref))
        return check_late(t, a, ref, ret, err);
    if (ret->attempt != ref->attempt || ret->state != TRIAL_RUNNING)
        return fail_stale(t, ref, ret, err);
    return ret->gang ? check_leads(t, ref, key, by, err) : AS_OK;
}

as_status attempt_lock_fenced(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                              const struct attempt_writer *by, struct trial_head *ret,
                              struct as_err *err)
{
    struct attempt_holder holder;
    as_status st = find_attempt(t, a, ref, by, &holder, err);
    return st == AS_OK ? lock_trial(t, a, ref, by, holder.sweep_key, ret, err) : st;
}

/* Measurements. */

static as_status add_points(struct tx *t, const struct attempt_ref *ref, const struct trial_head *x,
                            const struct attempt_report *report, struct measured *ret,
                            struct as_err *err)
{
    as_status st = store_measurement_add(t, x->sweep_key, x->number, x->attempt, report->points,
                                         report->n_points, ret, err);
    if (st < 0 || ret->recorded == 0)
        return st;
    struct event_new e = {.type = "trial.measured",
                          .sweep_key = x->sweep_key,
                          .sweep = ref->sweep,
                          .has_number = true,
                          .number = x->number,
                          .state = trial_state_format(x->state),
                          .attempt = x->attempt,
                          .has_value = ret->has_value,
                          .value = ret->value};
    return store_event_add(t, &e, err);
}

/* A report that may reach a rung holds the row of its sweep before that of its trial. */
static as_status add_report(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                            const struct attempt_writer *by, const struct attempt_report *report,
                            struct attempt_recorded *ret, struct as_err *err)
{
    struct attempt_holder holder;
    struct measured measured = {0};
    struct sweep_head s = {0};
    struct trial_head x;
    as_status st = find_attempt(t, a, ref, by, &holder, err);
    if (st != AS_OK)
        return st;
    bool is_near = rung_is_near(&holder.near, report->points, report->n_points);
    if (is_near && (st = store_sweep_lock(t, a, holder.sweep_key, &s, err)) != AS_OK)
        return st;
    st = lock_trial(t, a, ref, by, holder.sweep_key, &x, err);
    if (st == AS_OK && report->n_notes > 0)
        st = store_note_put(t, x.sweep_key, x.number, report->notes, report->n_notes, err);
    if (st == AS_OK)
        st = add_points(t, ref, &x, report, &measured, err);
    if (st == AS_OK && is_near && x.state == TRIAL_RUNNING && x.at.decision == DECIDED_NOTHING)
        st = rungs_reach(t, a, &s, &x, &holder.near, report->points, report->n_points, false, err);
    ret->points = measured.recorded;
    return st == AS_OK ? rungs_directive(a, ref, &x.at, &ret->directive, err) : st;
}

as_status attempt_record(struct store *db, struct arena *a, const struct attempt_ref *ref,
                         const struct attempt_writer *by, const struct attempt_report *report,
                         struct attempt_recorded *ret, struct as_err *err)
{
    struct attempt_recorded got = {0};
    as_status st = attempt_check_report(report, err);
    if (st < 0)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = add_report(run.tx, a, ref, by, report, &got, err);
    if (run.status != AS_OK)
        return run.status;
    atomic_fetch_add(&store_counters(db)->measurements, got.points);
    *ret = got;
    return AS_OK;
}

/* Log. */

static as_status put_log(struct tx *t, const struct attempt_ref *ref,
                         const struct attempt_writer *by, const char *text, bool truncated,
                         struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct trial_head x;
    as_status st = attempt_lock_fenced(t, &a, ref, by, &x, err);
    if (st != AS_OK)
        return st;
    return store_attempt_log_put(t, x.sweep_key, x.number, x.attempt, text, truncated, err);
}

as_status attempt_log(struct store *db, const struct attempt_ref *ref,
                      const struct attempt_writer *by, const char *text, bool truncated,
                      struct as_err *err)
{
    size_t len = strlen(text);
    if (len > LOG_TAIL_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/text", "%zu bytes, at most %d", len, LOG_TAIL_MAX);
    if (!as_utf8_valid(text, len))
        return as_fail_at(err, AS_E_INVAL, "/text", "not UTF-8");
    struct tx_run run = tx_run_start(db, TX_SOFT, err);
    while (tx_run_again(&run))
        run.status = put_log(run.tx, ref, by, text, truncated, err);
    return run.status;
}

/* Use of the machine. */

/* Find the attempt for what each of its ranks writes of itself, whether the attempt is current or
 * lost. *ret_seat: of the rank; USAGE_NO_SEAT: it has no ranks. */
static as_status find_for_rank(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                               const struct attempt_writer *by, struct attempt_holder *ret,
                               int64_t *ret_seat, struct as_err *err)
{
    as_status st = find_attempt(t, a, ref, by, ret, err);
    if (st != AS_OK)
        return st;
    if (!ret->is_there)
        return as_fail(err, AS_E_NOT_FOUND, "trial %lld has no attempt %lld",
                       (long long)ref->number, (long long)ref->attempt);
    if (ret->gang && !(by && by->has_seat))
        return as_fail(err, AS_E_UNSUPPORTED,
                       "the attempt has several ranks: the header Assay-Seat is missing");
    *ret_seat = ret->gang ? by->seat : USAGE_NO_SEAT;
    return AS_OK;
}

static as_status put_usage(struct tx *t, const struct attempt_ref *ref,
                           const struct attempt_writer *by, const char *usage, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct attempt_holder holder;
    int64_t seat = USAGE_NO_SEAT;
    as_status st = find_for_rank(t, &a, ref, by, &holder, &seat, err);
    return st == AS_OK
               ? store_usage_put(t, holder.sweep_key, ref->number, ref->attempt, seat, usage, err)
               : st;
}

as_status attempt_usage(struct store *db, const struct attempt_ref *ref,
                        const struct attempt_writer *by, const char *usage, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_SOFT, err);
    while (tx_run_again(&run))
        run.status = put_usage(run.tx, ref, by, usage, err);
    return run.status;
}

/* Files. */

/* The files that an attempt has of a kind. */
struct file_set {
    file_kind kind;
    int64_t step; /* of FILE_KEPT */
    const struct file_row *files;
    size_t n;
};

static as_status put_set(struct tx *t, const struct trial_head *x, const struct file_set *s,
                         int64_t *ret_missing, struct as_err *err)
{
    static const char *const kinds[] = {"artifact", "checkpoint"};
    return s->kind == FILE_KEPT ? store_file_keep(t, x->sweep_key, x->number, s->step, s->files,
                                                  s->n, ret_missing, err)
                                : store_file_replace(t, x->sweep_key, x->number, kinds[s->kind],
                                                     s->files, s->n, ret_missing, err);
}

/* Content that was there when it was looked for may be removed before a row refers to it. */
static as_status removed_meanwhile(as_status st, int64_t missing, struct as_err *err)
{
    return st == AS_E_NOT_FOUND && missing < 0
               ? as_fail_at(err, AS_E_UNSUPPORTED, "/files", "content was removed meanwhile")
               : st;
}

static as_status put_fenced(struct tx *t, const struct attempt_ref *ref,
                            const struct attempt_writer *by, const struct file_set *s,
                            int64_t *ret_missing, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct trial_head x;
    as_status st = attempt_lock_fenced(t, &a, ref, by, &x, err);
    return st == AS_OK ? removed_meanwhile(put_set(t, &x, s, ret_missing, err), *ret_missing, err)
                       : st;
}

static as_status put_output(struct tx *t, const struct attempt_ref *ref,
                            const struct attempt_writer *by, const struct file_set *s,
                            int64_t *ret_missing, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct attempt_holder holder;
    int64_t seat = USAGE_NO_SEAT;
    as_status st = find_for_rank(t, &a, ref, by, &holder, &seat, err);
    if (st != AS_OK)
        return st;
    st = store_file_put_log(t, holder.sweep_key, ref->number, ref->attempt, seat, s->files, s->n,
                            ret_missing, err);
    return removed_meanwhile(st, *ret_missing, err);
}

static as_status replace_files(struct tx *t, const struct attempt_ref *ref,
                               const struct attempt_writer *by, const struct file_set *s,
                               struct as_err *err)
{
    int64_t missing = -1;
    as_status st = s->kind == FILE_LOG ? put_output(t, ref, by, s, &missing, err)
                                       : put_fenced(t, ref, by, s, &missing, err);
    if (st < 0 || missing < 0)
        return st;
    char pointer[40];
    snprintf(pointer, sizeof pointer, "/files/%lld/sha256", (long long)missing);
    return as_fail_at(err, AS_E_UNSUPPORTED, pointer,
                      "no content %.64s of %lld bytes is stored: upload it first",
                      s->files[missing].sha256, (long long)s->files[missing].size);
}

/* Is the path relative, without empty, "." and ".." parts? */
static bool path_valid(const char *path)
{
    size_t len = strlen(path);
    if (len < 1 || !as_utf8_valid(path, len) || as_utf8_length(path) > 255)
        return false;
    for (const char *part = path;; part += strcspn(part, "/") + 1) {
        size_t n = strcspn(part, "/");
        if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && strncmp(part, "..", 2) == 0))
            return false;
        if (!part[n])
            return true;
    }
}

static as_status file_check(const struct file_row *files, size_t i, struct as_err *err)
{
    char pointer[40];

    snprintf(pointer, sizeof pointer, "/files/%zu", i);
    if (!path_valid(files[i].path))
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "'%.80s' is not a relative path without '.' and '..'", files[i].path);
    if (!sha256_hex_valid(files[i].sha256) || files[i].size < 0)
        return as_fail_at(err, AS_E_INVAL, pointer, "the digest or the size is wrong");
    for (size_t k = 0; k < i; k++) {
        if (as_streq(files[k].path, files[i].path))
            return as_fail_at(err, AS_E_INVAL, pointer, "'%.80s' appears twice", files[i].path);
    }
    return AS_OK;
}

static as_status put_files(struct store *db, const struct attempt_ref *ref,
                           const struct attempt_writer *by, const struct file_set *s,
                           struct as_err *err)
{
    if (s->n > 1000)
        return as_fail_at(err, AS_E_TOO_LARGE, "/files", "%zu files, at most 1000", s->n);
    for (size_t i = 0; i < s->n; i++) {
        as_status st = file_check(s->files, i, err);
        if (st != AS_OK)
            return st;
    }
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = replace_files(run.tx, ref, by, s, err);
    return run.status;
}

as_status attempt_files(struct store *db, const struct attempt_ref *ref,
                        const struct attempt_writer *by, file_kind kind,
                        const struct file_row *files, size_t n, struct as_err *err)
{
    const struct file_set s = {.kind = kind, .files = files, .n = n};
    return put_files(db, ref, by, &s, err);
}

as_status attempt_keep(struct store *db, const struct attempt_ref *ref,
                       const struct attempt_writer *by, int64_t step, const struct file_row *files,
                       size_t n, struct as_err *err)
{
    const struct file_set s = {.kind = FILE_KEPT, .step = step, .files = files, .n = n};
    return put_files(db, ref, by, &s, err);
}

static as_status lose_checkpoint(struct tx *t, const struct attempt_ref *ref,
                                 const struct attempt_writer *by, const char *why,
                                 struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct trial_head x;
    int64_t missing = -1;
    as_status st = attempt_lock_fenced(t, &a, ref, by, &x, err);
    if (st == AS_OK)
        st = store_file_replace(t, x.sweep_key, x.number, "checkpoint", NULL, 0, &missing, err);
    if (st != AS_OK)
        return st;
    struct event_new e = {.type = "trial.changed",
                          .sweep_key = x.sweep_key,
                          .sweep = ref->sweep,
                          .has_number = true,
                          .number = x.number,
                          .state = trial_state_format(x.state),
                          .attempt = x.attempt,
                          .reason = why,
                          .runner = x.runner};
    return store_event_add(t, &e, err);
}

as_status attempt_lost_checkpoint(struct store *db, const struct attempt_ref *ref,
                                  const struct attempt_writer *by, const char *why,
                                  struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = lose_checkpoint(run.tx, ref, by, why, err);
    return run.status;
}

/* The end. */

/* What a reported end did. */
struct acceptance {
    bool accepted; /* it changed the trial */
    bool late;     /* after the attempt was declared lost */
};

/* The meaning of the reported outcome, given what was measured. */
static as_status change_of(struct tx *t, struct arena *a, const struct completion *c,
                           const struct sweep_head *s, const struct trial_head *x,
                           struct trial_change *ret, struct as_err *err)
{
    as_status st = attempt_change_of(a, c, ret, err);
    if (st != AS_OK || x->at.decision != DECIDED_NOTHING)
        return st;
    if (c->outcome == OUTCOME_TIMEOUT)
        return trial_judge_timeout(t, a, s, x, ret, err);
    return c->outcome == OUTCOME_COMPLETED ? trial_judge(t, a, s, x, ret, err) : AS_OK;
}

/* Do the final values differ from what is recorded? A value that would be dropped without a word
 * is refused. */
static as_status check_recorded(struct tx *t, const struct trial_head *x, int64_t attempt,
                                const struct measurement *points, size_t n, struct as_err *err)
{
    struct measured_other other = {.place = -1};
    as_status st =
        store_measurement_other(t, x->sweep_key, x->number, attempt, points, n, &other, err);
    if (st < 0 || other.place < 0)
        return st;
    return attempt_other_value(&points[other.place], &other, x->state, err);
}

/* Record the final values, and read the row again. */
static as_status add_final(struct tx *t, struct arena *a, const struct completion *c,
                           struct sweep_head *s, struct trial_head *x, struct as_err *err)
{
    struct measurement *points = arena_alloc(a, c->n_metrics, sizeof *points);
    struct measured measured;
    int64_t latest = -1;
    if (!points)
        return as_fail_nomem(err);
    as_status st =
        store_measurement_latest_step(t, x->sweep_key, x->number, x->attempt, &latest, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < c->n_metrics; i++) {
        points[i] = c->metrics[i];
        if (points[i].step < 0)
            points[i].step = latest < INT64_MAX ? latest + 1 : latest;
    }
    st = store_measurement_add(t, x->sweep_key, x->number, x->attempt, points, c->n_metrics,
                               &measured, err);
    if (st != AS_OK)
        return st;
    if (measured.recorded < (int64_t)c->n_metrics)
        st = check_recorded(t, x, x->attempt, points, c->n_metrics, err);
    if (st == AS_OK && s->stops && x->state == TRIAL_RUNNING && x->at.decision == DECIDED_NOTHING)
        st = rungs_reach(t, a, s, x, &(struct rung_near){0}, points, c->n_metrics,
                         attempt_is_last(c), err);
    if (st != AS_OK)
        return st;
    return store_trial_lock(t, a, x->sweep_key, x->number, x, err);
}

/* The final values, and with them the time of a step, if the sweep asks for it. *ret: what is
 * recorded; views of c and the arena. */
static as_status with_step_seconds(struct arena *a, const struct completion *c,
                                   const struct sweep_head *s, const struct trial_head *x,
                                   struct completion *ret, struct as_err *err)
{
    struct required_metrics w;
    bool asked = false;
    *ret = *c;
    if (!x->gang || c->rank_step_seconds <= 0 || c->outcome != OUTCOME_COMPLETED)
        return AS_OK;
    as_status st = required_metrics_of(a, s, &w, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < w.n; i++)
        asked = asked || as_streq(w.names[i], SWEEP_STEP_SECONDS);
    for (size_t i = 0; i < c->n_metrics; i++)
        asked = asked && !as_streq(c->metrics[i].metric, SWEEP_STEP_SECONDS);
    if (!asked)
        return AS_OK;
    struct measurement *all = arena_alloc(a, c->n_metrics + 1, sizeof *all);
    if (!all)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n_metrics; i++)
        all[i] = c->metrics[i];
    all[c->n_metrics] = (struct measurement){
        .step = -1, .metric = SWEEP_STEP_SECONDS, .value = c->rank_step_seconds};
    ret->metrics = all;
    ret->n_metrics = c->n_metrics + 1;
    return AS_OK;
}

/* Is this a repeat of an end that was accepted before? Then there is nothing to do. */
static as_status said_before(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                             const struct completion *c, const struct trial_head *x, bool *ret,
                             struct as_err *err)
{
    const char *reported = NULL;
    as_status st =
        store_attempt_reported(t, a, x->sweep_key, x->number, ref->attempt, &reported, err);
    *ret = false;
    if (st < 0 || !reported)
        return st;
    if (!as_streq(reported, attempt_outcome_words[c->outcome]))
        return fail_stale(t, ref, x, err);
    *ret = true;
    return check_recorded(t, x, ref->attempt, c->metrics, c->n_metrics, err);
}

/* The rank that leads a gang ends the attempt for all. In a gang that is not elastic its success
 * waits for the others, if they run the command too, and its failure may be an echo (gang_world.h).
 * *ret_held: the seat keeps the end. */
static as_status end_gang(struct tx *t, struct arena *a, const struct attempt_writer *by,
                          const struct completion *c, const struct trial_head *x,
                          struct trial_change *ch, bool *ret_held, struct as_err *err)
{
    const struct gang_key key = {x->sweep_key, x->number, x->attempt};
    struct gang_world w;
    as_status st = gang_world_open(t, a, &key, &w, err);
    *ret_held = false;
    if (st == AS_OK && c->outcome == OUTCOME_TIMEOUT)
        st = gang_world_check_timeout(&w, err);
    if (st != AS_OK || w.gang.elastic)
        return st;
    bool is_echo = false;
    if (c->outcome == OUTCOME_FAILED && (st = gang_world_may_echo(&w, &is_echo, err)) != AS_OK)
        return st;
    if (is_echo || (c->outcome == OUTCOME_FAILED && w.sweep.shrinks)) {
        ch->event = TRIAL_EV_LOSE;
        ch->outcome = "retry";
    }
    if (is_echo || (c->outcome == OUTCOME_RETRY && c->has_exit_code && c->exit_code < 0))
        gang_world_spare(&w, ch);
    if (ch->event != TRIAL_EV_COMPLETE)
        return AS_OK;
    if (as_streq(w.gang.launch, "first"))
        return AS_OK; /* the others have no process */
    *ret_held = true;
    return gang_world_complete(&w, by->seat, ch, err);
}

/* Has the rank that leads said its success, and the others have not yet? */
static as_status is_held(struct tx *t, struct arena *a, const struct attempt_writer *by,
                         const struct completion *c, const struct trial_head *x, bool *ret,
                         struct as_err *err)
{
    const struct gang_key key = {x->sweep_key, x->number, x->attempt};
    struct gang_seat_row seat;
    as_status st = store_gang_seat(t, a, &key, by->seat, &seat, err);
    *ret = st == AS_OK && seat.state == SEAT_ENDED && c->outcome == OUTCOME_COMPLETED;
    return st;
}

/* A trial that was paused may have reported past its next rung before it ended. When it completes
 * without another report, those values are the results of its rungs. */
static as_status reach_passed(struct tx *t, struct arena *a, const struct rung_near *near,
                              const struct trial_change *ch, struct sweep_head *s,
                              struct trial_head *x, struct as_err *err)
{
    if (!s->stops || ch->event != TRIAL_EV_COMPLETE || x->state != TRIAL_RUNNING ||
        x->at.decision != DECIDED_NOTHING || !rung_is_past(near))
        return AS_OK;
    return rungs_reach(t, a, s, x, near, NULL, 0, true, err);
}

static as_status accept_end(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                            const struct attempt_writer *by, const struct completion *c,
                            const struct rung_near *near, struct sweep_head *s,
                            struct trial_head *x, struct as_err *err)
{
    struct trial_change ch;
    as_status st = AS_OK;
    if (!attempt_end_counts(x, ref, c->outcome == OUTCOME_COMPLETED))
        return fail_stale(t, ref, x, err);
    bool held = false;
    if (x->gang && (st = check_leads(t, ref, s->key, by, err)) == AS_OK)
        st = is_held(t, a, by, c, x, &held, err);
    if (st != AS_OK || held)
        return st;
    const struct gang_key gang = {x->sweep_key, x->number, x->attempt};
    if (x->gang && c->has_rank &&
        (st = store_gang_reached(t, &gang, by->seat, c->rank_step, c->rank_sent_bytes, err)) !=
            AS_OK)
        return st;
    if (!x->gang && (st = attempt_check_timeout(c, s, err)) != AS_OK)
        return st;
    if ((st = attempt_check_told(c, x, err)) != AS_OK)
        return st;
    struct completion final;
    st = with_step_seconds(a, c, s, x, &final, err);
    if (st == AS_OK && final.n_metrics > 0)
        st = add_final(t, a, &final, s, x, err);
    if (st != AS_OK)
        return st;
    st = change_of(t, a, c, s, x, &ch, err);
    if (st != AS_OK)
        return st;
    if (!attempt_end_counts(x, ref, ch.event == TRIAL_EV_COMPLETE))
        return fail_stale(t, ref, x, err);
    if (x->gang && x->at.decision == DECIDED_NOTHING) /* else it is over for all ranks */
        st = end_gang(t, a, by, c, x, &ch, &held, err);
    if (st == AS_OK && !held)
        st = reach_passed(t, a, near, &ch, s, x, err);
    if (st == AS_OK && !held)
        st = trial_transition(t, a, s, x, &ch, NULL, err);
    if (st != AS_OK)
        return st;
    return sweep_settle(t, a, s->key, NULL, err);
}

static as_status complete_trial(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                                const struct attempt_writer *by, const struct completion *c,
                                struct acceptance *ret, struct trial_row *ret_trial,
                                struct as_err *err)
{
    struct sweep_head s;
    struct trial_head x;
    bool repeat = false;
    struct attempt_holder holder;
    as_status st = find_attempt(t, a, ref, by, &holder, err);
    int64_t key = st == AS_OK ? holder.sweep_key : 0;
    if (st < 0 || (st = store_sweep_lock(t, a, key, &s, err)) < 0 ||
        (st = store_trial_lock(t, a, key, ref->number, &x, err)) < 0 ||
        (st = said_before(t, a, ref, c, &x, &repeat, err)) < 0)
        return st;
    if (!repeat)
        st = accept_end(t, a, ref, by, c, &holder.near, &s, &x, err);
    if (st != AS_OK)
        return st;
    *ret = (struct acceptance){.accepted = !repeat, .late = x.state == TRIAL_QUEUED};
    return store_trial_get(t, a, key, ref->number, ret_trial, err);
}

as_status attempt_complete(struct store *db, struct arena *a, const struct attempt_ref *ref,
                           const struct attempt_writer *by, const struct completion *c,
                           struct trial_row *ret, struct as_err *err)
{
    struct acceptance got = {0};
    struct trial_row row;
    as_status st = attempt_check_completion(c, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = complete_trial(run.tx, a, ref, by, c, &got, &row, err);
    if (run.status != AS_OK)
        return run.status;
    if (got.accepted)
        atomic_fetch_add(&store_counters(db)->trials_completed, 1);
    if (got.accepted && got.late)
        atomic_fetch_add(&store_counters(db)->late_accepted, 1);
    *ret = row;
    return AS_OK;
}
