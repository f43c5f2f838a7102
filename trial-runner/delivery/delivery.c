/* The thread of one attempt: it prepares, accompanies the run, and delivers.
 *
 * Everything slow of an attempt is here (downloads, uploads, waiting for the server), in a thread
 * of its own, so that attempts do not wait for one another and the main loop waits for none of
 * them.
 *
 * The result is written to disk before anything of it is sent. If the runner dies, the next one
 * starts with the result on disk (`recovered`) and sends everything again, which is safe because
 * every request can be repeated. It is made durable too, unless it is small and the server takes it
 * at once (decision 7001): waiting for the disk took longer than sending. Measurements and files go
 * before the result, because the result ends the attempt for the server; a last measurement may go
 * with it (decision 7018). */
#include "trial-runner/delivery/delivery.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "trial-runner/collect/collector.h"
#include "trial-runner/delivery/outbox.h"
#include "trial-runner/delivery/prepare.h"
#include "trial-runner/rank/rank.h"

#define ROUND_MS 100       /* between looks at report files whose writes are not heard */
#define HEARD_MS 20        /* between looks at files that were heard to be written */
#define SETTLE_MS 3        /* after a write: more lines may follow, or the end of the program */
#define LOG_MS 1000        /* between puts of the log */
#define CHECKPOINT_MS 2000 /* between looks at the checkpoint folder */
#define BRIEF_MS 500       /* a result that the server has after so long is durable there */
#define ROUND_PATIENCE_MS 10000 /* of a request while the process runs: its end waits for it */
#define AWAY_MS 2000 /* between requests of a process that runs to a server that is away */
#define IO_TRIES 5   /* CHECKPOINT_MS apart, for files of the attempt that cannot be read */

/* A file of measurements was written. */
static void on_write(void *arg, const char *name)
{
    struct attempt *a = arg;
    if (name && strcmp(name, REPORT_NAME) != 0 && strcmp(name, COLLECTED_NAME) != 0)
        return;
    pthread_mutex_lock(&a->lock);
    if (!a->written_ns) {
        a->written_ns = clock_mono_ns();
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
}

/* Listen to the attempt's folder, which is made now. Without it the files are looked at. */
static void listen_to_folder(struct attempt *a)
{
    struct as_err err = {0};
    a->listener = (struct folder_listener){.on_write = on_write, .arg = a};
    if (a->watch && folder_watch_add(a->watch, a->dir, &a->listener, &err) < 0)
        log_write(LOG_INFO, "report files are looked at, because writes to them are not heard",
                  "%s error=\"%s\"", a->label, err.msg);
}

/* When to look at the files of measurements, which were last looked at then. */
static int64_t look_ns_locked(const struct attempt *a, int64_t looked_ns, int64_t late_ns)
{
    int64_t rested_ns = looked_ns + HEARD_MS * NS_PER_MS;
    int64_t settled_ns = a->written_ns + SETTLE_MS * NS_PER_MS;
    if (!a->written_ns)
        return late_ns;
    return settled_ns > rested_ns ? settled_ns : rested_ns;
}

/* Wait until the phase is not `while_in`, the attempt is dropped, something else is due, or it is
 * time to look at the files of measurements, which were last looked at then. Returns the phase. */
static attempt_phase wait_round(struct attempt *a, attempt_phase while_in, int64_t looked_ns,
                                int64_t due_ns)
{
    bool listens = a->watch && folder_watch_listens(a->watch, &a->listener);
    int64_t late_ns = looked_ns + ROUND_MS * NS_PER_MS;
    if (listens && due_ns > late_ns)
        late_ns = due_ns;
    pthread_mutex_lock(&a->lock);
    for (int64_t until_ns; a->phase == while_in && a->asked != STOP_DROPPED &&
                           clock_mono_ns() < (until_ns = look_ns_locked(a, looked_ns, late_ns));)
        (void)clock_cond_wait(&a->changed, &a->lock, until_ns);
    a->written_ns = 0; /* before they are read: a later write is heard again */
    attempt_phase p = a->phase;
    pthread_mutex_unlock(&a->lock);
    return p;
}

/* Returns what a failed preparation means for the trial. */
static outcome outcome_of_failure(as_status st)
{
    switch (st) {
    case AS_E_INVAL:
    case AS_E_NOT_FOUND:
    case AS_E_UNSUPPORTED:
        return OUTCOME_FAILED;
    default:
        return OUTCOME_RETRY;
    }
}

/* For a rank: the gang too. */
static as_status prepare_all(struct attempt *a, struct outbox *o, struct as_err *err)
{
    as_status st = a->rank ? rank_start(a->rank, err) : AS_OK;
    if (st < 0 || (st = prepare(a, err)) < 0 || !a->rank)
        return st;
    st = outbox_skip_checkpoints(o, err);
    return st < 0 || a->rank->gang.elastic ? st : rank_gather(a->rank, err);
}

/* It is prepared, or cannot be. */
static void conclude_preparing(struct attempt *a, as_status st, const struct as_err *err)
{
    stop_why asked = attempt_asked(a);
    if (asked != STOP_NONE) {
        attempt_end(a, verdict_unstarted(asked), NULL, verdict_stop_reason(asked));
    } else if (st == AS_OK) {
        listen_to_folder(a);
        attempt_phase_set(a, ATTEMPT_READY);
    } else {
        log_write(LOG_WARN, "a trial cannot be prepared", "%s error=\"%s\"", a->label, err->msg);
        attempt_note(a, "%s", err->msg);
        attempt_end(a, outcome_of_failure(st), NULL, err->msg);
    }
}

void delivery_prepare(struct attempt *a)
{
    struct as_err err = {0};
    as_status st = prepare(a, &err);
    conclude_preparing(a, st, &err);
    pthread_mutex_lock(&a->lock);
    a->is_let_go = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

/* For the delivery thread: prepare the attempt, or wait until that is done. The attempt is not
 * freed before this thread ends, so who prepares it may use it so long. */
static void have_prepared(struct attempt *a, struct outbox *o)
{
    struct as_err err = {0};
    if (!a->is_quick) {
        as_status st = prepare_all(a, o, &err);
        conclude_preparing(a, st, &err);
        return;
    }
    pthread_mutex_lock(&a->lock);
    while (!a->is_let_go)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

static void log_round(struct attempt *a, const char *what, as_status st, const struct as_err *err)
{
    if (st == AS_E_STALE || st == AS_E_NOT_FOUND) {
        log_write(LOG_WARN, "an attempt is no longer current", "%s error=\"%s\"", a->label,
                  err->msg);
        attempt_ask_stop(a, STOP_DROPPED);
    } else if (st < 0 && st != AS_E_UNAVAILABLE) {
        log_write(LOG_WARN, "sending to the server failed", "%s what=%s error=\"%s\"", a->label,
                  what, err->msg);
    }
}

/* Is what the attempt writes its to send? Of a gang only the leader's is. */
static bool is_ours(struct attempt *a)
{
    int64_t epoch;
    return !a->rank || rank_leads(a->rank, &epoch);
}

typedef as_status round_fn(struct outbox *o, struct as_err *err);

/* Send a part of a round, once. A server that is away is tried again at *away_until_ns: whoever
 * waited for it in a request would not see that the process has ended, and its result would not be
 * on disk. What a rank measured belongs to its world, which has rules of its own: it is sent with
 * patience. */
static void send_round(struct outbox *o, const char *what, round_fn *send, int64_t *away_until_ns)
{
    struct attempt *a = o->attempt;
    struct as_err err = {0};
    if (!a->rank)
        o->brief_until_ns = clock_mono_ns() + ROUND_PATIENCE_MS * NS_PER_MS;
    as_status st = send(o, &err);
    o->brief_until_ns = 0;
    if (st == AS_E_UNAVAILABLE && !a->rank) {
        outbox_rewind(o);
        *away_until_ns = clock_mono_ns() + AWAY_MS * NS_PER_MS;
    }
    log_round(a, what, st, &err);
}

/* While the process runs: send measurements as they come, log and checkpoints at intervals. */
static void accompany_run(struct outbox *o)
{
    struct attempt *a = o->attempt;
    int64_t looked = clock_mono_ns(), log_due = looked + LOG_MS * NS_PER_MS,
            files_due = looked + CHECKPOINT_MS * NS_PER_MS, away_until_ns = 0;
    attempt_phase p = attempt_phase_get(a);
    while (p < ATTEMPT_ENDED && attempt_asked(a) != STOP_DROPPED) {
        struct as_err err = {0};
        p = wait_round(a, p, looked, log_due < files_due ? log_due : files_due);
        looked = clock_mono_ns();
        if (p == ATTEMPT_RUNNING && attempt_asked(a) != STOP_DROPPED)
            outbox_usage(o, false);
        if (p != ATTEMPT_RUNNING || attempt_asked(a) == STOP_DROPPED || !is_ours(a) ||
            looked < away_until_ns)
            continue;
        send_round(o, "measurements", outbox_measurements, &away_until_ns);
        if (away_until_ns > looked)
            continue;
        if (!o->gone && clock_mono_ns() >= files_due) {
            log_round(a, "checkpoints", outbox_checkpoints(o, &err), &err);
            files_due = clock_mono_ns() + CHECKPOINT_MS * NS_PER_MS;
        }
        if (!o->gone && clock_mono_ns() >= log_due) {
            send_round(o, "log", outbox_log, &away_until_ns);
            log_due = clock_mono_ns() + LOG_MS * NS_PER_MS;
        }
    }
    folder_watch_remove(a->watch, &a->listener);
    pthread_mutex_lock(&a->lock);
    while (a->phase < ATTEMPT_ENDED) /* the attempt is dropped, and main ends the process */
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

/* Take the log again: the last measurements may have added warnings after the result was set. */
static void refresh_log(struct attempt *a)
{
    struct str text = {0};
    pthread_mutex_lock(&a->lock);
    if (a->tail.len) {
        bool truncated = tail_text(&a->tail, &text);
        char *log = str_take(&text);
        if (log) {
            free(a->end.log);
            a->end.log = log;
            a->end.truncated = truncated;
        }
    }
    pthread_mutex_unlock(&a->lock);
}

/* Will another attempt go on from its checkpoint? */
static bool may_go_on(outcome oc)
{
    return oc == OUTCOME_RETRY || oc == OUTCOME_RELEASED || oc == OUTCOME_PAUSED;
}

static as_status deliver_checkpoints(struct outbox *o, struct as_err *err)
{
    struct attempt *a = o->attempt;
    if (!may_go_on(a->end.outcome))
        return AS_OK;
    as_status st = outbox_checkpoints(o, err);
    if (st == AS_OK)
        outbox_keep_checkpoints(o);
    if (st == AS_OK && a->end.outcome == OUTCOME_PAUSED && o->uploaded.n == 0)
        attempt_note(a, "warning: the trial left no checkpoint: if it is resumed, it begins again");
    return st;
}

static as_status deliver_in_order(struct outbox *o, struct as_err *err)
{
    as_status st = outbox_last_measurements(o, err);
    if (st < 0)
        return st;
    attempt_obey(o->attempt);
    if ((st = deliver_checkpoints(o, err)) < 0)
        return st;
    if ((st = outbox_artifacts(o, err)) < 0 || (st = outbox_output(o, true, err)) < 0)
        return st;
    refresh_log(o->attempt);
    return outbox_result(o, err);
}

/* If the answer to an end was lost, the server has it perhaps, and then takes nothing else of the
 * attempt: the end alone gets that answer. */
static as_status deliver_parts(struct outbox *o, struct as_err *err)
{
    bool may_have_ended = o->end_sent;
    as_status st = deliver_in_order(o, err);
    return st == AS_E_STALE && may_have_ended ? outbox_end_again(o, err) : st;
}

/* This machine cannot read the files of the attempt, so the outcome is retry: another attempt may
 * succeed. */
static as_status deliver_trouble(struct outbox *o, const char *why, struct as_err *err)
{
    struct trial_end *r = &o->attempt->end;
    char *reason = as_strdup(why);
    if (r->outcome != OUTCOME_RELEASED && r->outcome != OUTCOME_PAUSED &&
        r->outcome != OUTCOME_PRUNED)
        r->outcome = OUTCOME_RETRY;
    if (reason) {
        free(r->reason);
        r->reason = reason;
    }
    return outbox_result(o, err);
}

/* Write the result to disk, durably, and before it the measurements that belong to it. */
static as_status keep_durably(const struct outbox *o, struct as_err *err)
{
    const struct attempt *a = o->attempt;
    as_status st = outbox_sync_measurements(o, err);
    as_status written = result_journal_write(a->dir, &a->end, true, err);
    return written == AS_OK ? st : written;
}

/* Write the result to disk. It is made durable, and before it what belongs to it, unless the server
 * may have it at once (*ret_brief): there are no files to send. */
static as_status keep_result(const struct outbox *o, bool *ret_brief, struct as_err *err)
{
    const struct attempt *a = o->attempt;
    size_t n = 0;
    as_status st = outbox_sync_artifacts(o, &n, err);
    *ret_brief = st == AS_OK && n == 0 && !a->rank && !outbox_has_output(o) &&
                 (a->end.outcome == OUTCOME_COMPLETED || a->end.outcome == OUTCOME_FAILED ||
                  a->end.outcome == OUTCOME_PRUNED);
    as_status written =
        *ret_brief ? result_journal_write(a->dir, &a->end, false, err) : keep_durably(o, err);
    return written == AS_OK ? st : written;
}

/* Send the result once, in a short time. On failure it is made durable, and is to be sent with
 * patience. */
static bool deliver_at_once(struct outbox *o, struct as_err *err)
{
    struct attempt *a = o->attempt;
    o->brief_until_ns = clock_mono_ns() + BRIEF_MS * NS_PER_MS;
    o->may_ride =
        a->end.outcome == OUTCOME_COMPLETED && !a->claimed.early_stopping && !a->claimed.forks.json;
    as_status st = deliver_parts(o, err);
    o->brief_until_ns = 0;
    o->may_ride = false;
    if (st == AS_OK)
        return true;
    outbox_rewind(o);
    if (keep_durably(o, err) < 0)
        log_write(LOG_WARN, "a result cannot be written to the journal", "%s error=\"%s\"",
                  a->label, err->msg);
    return false;
}

static void log_end(const struct attempt *a)
{
    log_write(LOG_INFO, "trial ended", "%s outcome=%s reason=\"%.200s\"", a->label,
              outcome_name(a->end.outcome), a->end.reason ? a->end.reason : "");
}

/* Is the result of a dropped attempt worth nothing? A process that completed before it could be
 * stopped is sent: if the attempt was only declared lost, and no other has begun, it counts. Else
 * the server refuses it. */
static bool is_given_up(struct attempt *a)
{
    return attempt_asked(a) == STOP_DROPPED && a->end.outcome != OUTCOME_COMPLETED;
}

/* The rank's threads tell the server its end. Returns true: without an answer the seat is lost for
 * the server in any case, when the lease of this runner ends. */
static bool deliver_rank_end(struct rank *r)
{
    const struct attempt *a = r->attempt;
    bool told = rank_await_end(r);
    log_write(LOG_INFO, "rank ended", "%s outcome=%s told=%s reason=\"%.200s\"", a->label,
              outcome_name(a->end.outcome), told ? "yes" : "no",
              a->end.reason ? a->end.reason : "");
    return true;
}

/* Has this attempt a result of its own? Most ranks have none, nor has one that is given up. */
static bool has_result(struct attempt *a)
{
    return a->end.outcome != OUTCOME_NONE && !is_given_up(a) &&
           (!a->rank || a->rank->way == RANK_WAY_COMPLETE);
}

/* Send what belongs to an attempt without a result. Returns as deliver_result(). */
static bool deliver_no_result(struct outbox *o)
{
    struct attempt *a = o->attempt;
    struct as_err err = {0};
    outbox_usage(o, true);
    if (outbox_output(o, false, &err) < 0)
        log_write(LOG_WARN, "the whole output was not sent", "%s error=\"%s\"", a->label, err.msg);
    return a->end.outcome == OUTCOME_NONE || is_given_up(a) || deliver_rank_end(a->rank);
}

/* Write the result to disk, then send everything until the server has it. Returns true if nothing
 * is left to do for this attempt, also for a later runner. */
static bool deliver_result(struct outbox *o)
{
    struct attempt *a = o->attempt;
    struct as_err err = {0};
    if (a->launch.collector)
        collector_finish(a->launch.collector);
    if (!has_result(a))
        return deliver_no_result(o);
    if (a->rank) {
        (void)rank_leads(a->rank, &a->end.world);
        rank_await_echo(a->rank);
    }
    bool brief = false;
    if (!a->recovered && keep_result(o, &brief, &err) < 0)
        log_write(LOG_WARN, "a result cannot be written to the journal", "%s error=\"%s\"",
                  a->label, err.msg);
    outbox_usage(o, true); /* before the end: then the attempt is no longer current */
    attempt_await_claim(a);
    if (brief && deliver_at_once(o, &err)) {
        log_end(a);
        return true;
    }
    for (int unreadable = 0;;) {
        as_status st = deliver_parts(o, &err);
        if (st == AS_E_IO && ++unreadable == IO_TRIES) {
            char why[AS_ERR_MSG_MAX];
            snprintf(why, sizeof why, "%s", err.msg);
            st = deliver_trouble(o, why, &err);
        }
        if (st == AS_OK) {
            log_end(a);
            return true;
        }
        if (client_interrupted(a->send)) {
            log_write(LOG_WARN, "a result is kept for the next start", "%s", a->label);
            return false;
        }
        bool final = st == AS_E_STALE || st == AS_E_NOT_FOUND || st == AS_E_INVAL ||
                     st == AS_E_CONFLICT || st == AS_E_TOO_LARGE || st == AS_E_UNSUPPORTED;
        log_write(LOG_WARN, final ? "the server refuses a result" : "a result was not delivered",
                  "%s outcome=%s error=\"%s\"", a->label, outcome_name(a->end.outcome), err.msg);
        if (final || is_given_up(a))
            return true;
        client_wait(a->send, CHECKPOINT_MS);
        outbox_rewind(o);
    }
}

static void *delivery_main(void *arg)
{
    struct attempt *a = arg;
    struct outbox o;
    struct as_err err = {0};
    outbox_init(&o, a);
    if (!a->recovered)
        have_prepared(a, &o);
    accompany_run(&o);
    if (a->tmp && file_remove_tree(a->tmp, &err) < 0)
        log_write(LOG_WARN, "temporary files are left", "%s error=\"%s\"", a->label, err.msg);
    if (deliver_result(&o))
        result_journal_remove(a->options->work, &a->id);
    outbox_done(&o);
    attempt_phase_set(a, ATTEMPT_DELIVERED);
    return NULL;
}

as_status delivery_start(struct attempt *a, struct as_err *err)
{
    int rc = pthread_create(&a->process.delivery, NULL, delivery_main, a);
    if (rc)
        return as_fail(err, AS_E_NOMEM, "pthread_create: %s", strerror(rc));
    a->process.has_delivery = true;
    return AS_OK;
}
