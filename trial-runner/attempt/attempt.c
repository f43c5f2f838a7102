/* One attempt as two threads share it: its state behind a mutex, and the wake-ups between the
 * threads.
 *
 * The delivery thread waits on a condition variable. The main thread cannot, because it waits in
 * poll() for pipes and signals; it is woken through the eventfd wake_fd. Every change of `phase`
 * and every stop wakes both.
 *
 * A stop can come in any phase. It interrupts the client that prepares (fetch), but not the one
 * that delivers (send): what a trial has measured is still sent. */
#include "trial-runner/attempt/attempt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/clock.h"
#include "trial-runner/collect/collector.h"
#include "trial-runner/attempt/identity.h"

#define CLAIM_FIRST_MS 2 /* where there is no claim, because the runner leaves or waits for one */

static as_status fill_attempt(struct attempt *a, const struct attempt_id *id, const char *gpus,
                              struct as_err *err)
{
    AS_AUTO(str_done) struct str label = {0};
    a->sweep = as_strdup(id->sweep);
    a->gpus = as_strdup(gpus);
    a->dir = result_journal_dir(a->options->work, id);
    attempt_id_label(id, &label);
    if (!a->sweep || !a->gpus || !a->dir || label.failed)
        return as_fail_nomem(err);
    a->id = *id;
    a->id.sweep = a->sweep;
    (void)snprintf(a->label, sizeof a->label, "%s", str_cstr(&label));
    as_status st = identity_client(a->options, &a->fetch, err);
    if (st < 0)
        return st;
    return identity_client(a->options, &a->send, err);
}

as_status attempt_create(const struct options *o, const struct attempt_id *id,
                         struct claimed *claimed, struct trial_end *found, const char *gpus,
                         int wake_fd, struct attempt **ret, struct as_err *err)
{
    struct attempt *a = as_calloc(1, sizeof *a);
    if (!a)
        return as_fail_nomem(err);
    pthread_mutex_init(&a->lock, NULL);
    clock_cond_init(&a->changed);
    a->options = o;
    a->wake_fd = wake_fd;
    a->process.out_fd = -1;
    a->process.guard_fd = -1;
    as_status st = fill_attempt(a, id, gpus, err);
    if (st < 0) {
        attempt_free(a);
        return st;
    }
    if (claimed && o->log_max_bytes > 0 &&
        (st = whole_log_create(a->dir, o->log_max_bytes, &a->whole, err)) < 0) {
        attempt_free(a);
        return st;
    }
    if (claimed) {
        a->claimed = *claimed;
        *claimed = (struct claimed){0};
    }
    if (found) {
        a->recovered = true;
        a->phase = ATTEMPT_ENDED;
        a->end = *found;
        *found = (struct trial_end){0};
        if (a->end.log)
            tail_add(&a->tail, a->end.log, strlen(a->end.log));
        a->tail.truncated |= a->end.truncated;
    }
    *ret = a;
    return AS_OK;
}

void attempt_free(struct attempt *a)
{
    if (!a)
        return;
    collector_free(a->launch.collector);
    if (a->rank)
        a->rank_fns->free(a->rank);
    if (a->process.out_fd >= 0)
        close(a->process.out_fd);
    client_free(a->fetch);
    client_free(a->send);
    whole_log_free(a->whole);
    claimed_done(&a->claimed);
    child_spec_done(&a->launch.spec);
    file_closep(&a->process.guard_fd);
    json_decref(a->launch.job);
    json_decref(a->launch.container);
    free(a->launch.folder);
    trial_end_done(&a->end);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    free(a->sweep);
    free(a->directed);
    free(a->lost);
    free(a->tmp);
    core_hold_done(&a->hold.cores);
    free(a->gpus);
    free(a->dir);
    free(a);
}

bool attempt_is(const struct attempt *a, const struct attempt_id *id)
{
    return attempt_id_same(&a->id, id);
}

static void wake_main(struct attempt *a)
{
    uint64_t one = 1;
    ssize_t n = write(a->wake_fd, &one, sizeof one); /* EAGAIN: it is readable already */
    (void)n;
}

attempt_phase attempt_phase_get(struct attempt *a)
{
    pthread_mutex_lock(&a->lock);
    attempt_phase p = a->phase;
    pthread_mutex_unlock(&a->lock);
    return p;
}

void attempt_phase_set(struct attempt *a, attempt_phase phase)
{
    pthread_mutex_lock(&a->lock);
    a->phase = phase;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    wake_main(a);
}

void attempt_began(struct attempt *a, pid_t session, int64_t now_ns)
{
    pthread_mutex_lock(&a->lock);
    a->session = session;
    a->began_ns = now_ns;
    pthread_mutex_unlock(&a->lock);
    attempt_phase_set(a, ATTEMPT_RUNNING);
}

void attempt_has_waited(struct attempt *a, int64_t ms)
{
    pthread_mutex_lock(&a->lock);
    a->waited_ms = ms;
    pthread_mutex_unlock(&a->lock);
}

/* The phases as the server receives them. */
typedef enum told_phase { TOLD_NOTHING, TOLD_PREPARING, TOLD_RUNNING, TOLD_ENDED } told_phase;

static const char *const told_words[] = {NULL, "preparing", "running", "ended"};

static told_phase told_of(attempt_phase p)
{
    return p < ATTEMPT_RUNNING ? TOLD_PREPARING : p == ATTEMPT_RUNNING ? TOLD_RUNNING : TOLD_ENDED;
}

/* How long the process has run, or did run; -1: unknown. Locked. */
static int64_t ran_ms_locked(const struct attempt *a, int64_t now_ns)
{
    if (a->phase >= ATTEMPT_ENDED)
        return a->end.has_ran ? a->end.ran_ms : -1;
    return (now_ns - a->began_ns) / NS_PER_MS;
}

json_t *attempt_ref_new(struct attempt *a, bool phase, int64_t now_ns)
{
    json_t *j = attempt_id_json(&a->id);
    bool ok = j != NULL;
    pthread_mutex_lock(&a->lock);
    told_phase tell = told_of(a->phase);
    int64_t ran_ms = tell == TOLD_PREPARING ? 0 : ran_ms_locked(a, now_ns);
    bool heard = tell != TOLD_ENDED && a->told == (int)tell;
    if (ok && phase && a->rank)
        ok = a->rank_fns->add_progress_locked(a->rank, false, j);
    pthread_mutex_unlock(&a->lock);
    if (ok && (!phase || heard || ran_ms < 0))
        return j;
    ok = ok && json_object_set_new(j, "phase", json_string(told_words[tell])) == 0;
    if (tell != TOLD_PREPARING)
        ok = ok && json_object_set_new(j, "ran_ms", json_integer(ran_ms)) == 0;
    if (!ok) {
        json_decref(j);
        return NULL;
    }
    return j;
}

void attempt_ref_heard(struct attempt *a, const json_t *ref)
{
    const char *word = json_string_value(json_object_get(ref, "phase"));
    pthread_mutex_lock(&a->lock);
    for (int i = TOLD_PREPARING; i <= TOLD_ENDED; i++)
        if (as_streq(word, told_words[i]))
            a->told = i;
    pthread_mutex_unlock(&a->lock);
}

void attempt_say_again(struct attempt *a)
{
    pthread_mutex_lock(&a->lock);
    a->told = TOLD_NOTHING;
    pthread_mutex_unlock(&a->lock);
}

stop_why attempt_asked(struct attempt *a)
{
    pthread_mutex_lock(&a->lock);
    stop_why w = a->asked;
    pthread_mutex_unlock(&a->lock);
    return w;
}

void attempt_ask_stop(struct attempt *a, stop_why why)
{
    pthread_mutex_lock(&a->lock);
    attempt_ask_stop_locked(a, why);
    pthread_mutex_unlock(&a->lock);
}

void attempt_ask_stop_locked(struct attempt *a, stop_why why)
{
    if (why > a->asked)
        a->asked = why;
    client_interrupt(a->fetch);
    attempt_wake_locked(a);
}

void attempt_end_early(struct attempt *a, stop_why why, const char *reason)
{
    pthread_mutex_lock(&a->lock);
    bool news = why > a->asked;
    if (news) {
        free(a->directed);
        a->directed = as_strdup(reason);
        attempt_ask_stop_locked(a, why);
    }
    pthread_mutex_unlock(&a->lock);
    if (news)
        attempt_note(a, "early stopping %s the trial: %s", why == STOP_PAUSE ? "pauses" : "ends",
                     reason);
}

void attempt_wake_locked(struct attempt *a)
{
    pthread_cond_broadcast(&a->changed);
    wake_main(a);
}

void attempt_give_up(struct attempt *a)
{
    client_interrupt(a->send);
    if (a->rank)
        a->rank_fns->interrupt(a->rank);
}

void attempt_add_output(struct attempt *a, const char *bytes, size_t len)
{
    pthread_mutex_lock(&a->lock);
    tail_add(&a->tail, bytes, len);
    whole_log_add(a->whole, bytes, len);
    pthread_mutex_unlock(&a->lock);
}

void attempt_note(struct attempt *a, const char *fmt, ...)
{
    AS_AUTO(str_done) struct str line = {0};
    char text[700];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    str_printf(&line, "[assay-runner] %s\n", text);
    attempt_add_output(a, str_cstr(&line), line.len);
}

void attempt_note_killed(struct attempt *a)
{
    const struct stopping *s = &a->process.stopping;
    char took[32];
    if (stop_is_early(s->why))
        attempt_note(a,
                     "the trial did not obey: it went on for %s after it was told to stop, and is "
                     "killed",
                     clock_format_duration(s->grace_ns / NS_PER_MS, took));
}

void attempt_precedes(struct attempt *a, bool is)
{
    pthread_mutex_lock(&a->lock);
    bool wakes = a->precedes && !is;
    a->precedes = is;
    if (wakes)
        pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

void attempt_await_claim(struct attempt *a)
{
    int64_t until_ns = clock_mono_ns() + CLAIM_FIRST_MS * NS_PER_MS;
    pthread_mutex_lock(&a->lock);
    while (a->precedes && clock_cond_wait(&a->changed, &a->lock, until_ns))
        continue;
    pthread_mutex_unlock(&a->lock);
}

/* Copy a reason as valid UTF-8 of at most VERDICT_REASON_MAX bytes. Returns NULL for no reason, and
 * if memory is out. A tail replaces the bytes that are not UTF-8. */
static char *clean_reason(const char *reason)
{
    struct tail *t = reason && *reason ? as_calloc(1, sizeof *t) : NULL;
    struct str s = {0};
    if (!t)
        return NULL;
    size_t len = strlen(reason);
    tail_add(t, reason, len < VERDICT_REASON_MAX ? len : VERDICT_REASON_MAX);
    tail_text(t, &s);
    free(t);
    size_t n = s.len < VERDICT_REASON_MAX ? s.len : VERDICT_REASON_MAX;
    while (n && n < s.len && ((unsigned char)s.s[n] & 0xC0) == 0x80)
        n--;
    if (s.s)
        s.s[n] = '\0';
    return str_take(&s);
}

void attempt_end(struct attempt *a, outcome o, const int *exit_code, const char *reason)
{
    struct str log = {0};
    struct trial_end r = {.outcome = o, .has_exit_code = exit_code != NULL};
    if (exit_code)
        r.exit_code = *exit_code;
    int64_t now_ns = clock_mono_ns();
    pthread_mutex_lock(&a->lock);
    bool early = o == OUTCOME_PAUSED || o == OUTCOME_PRUNED;
    r.reason = clean_reason(early && a->directed ? a->directed : reason);
    r.has_ran = true;
    r.ran_ms = a->began_ns ? (now_ns - a->began_ns) / NS_PER_MS : 0;
    r.waited_ms = a->waited_ms;
    r.truncated = tail_text(&a->tail, &log);
    r.log = str_take(&log);
    a->end = r;
    a->phase = ATTEMPT_ENDED;
    if (a->rank)
        a->rank_fns->ended_locked(a->rank);
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
    wake_main(a);
}

void attempt_obey(struct attempt *a)
{
    pthread_mutex_lock(&a->lock);
    stop_why why = a->asked;
    char *reason = stop_is_early(why) && a->end.outcome != verdict_unstarted(why)
                       ? clean_reason(a->directed ? a->directed : verdict_stop_reason(why))
                       : NULL;
    if (stop_is_early(why))
        a->end.outcome = verdict_unstarted(why);
    if (reason) {
        free(a->end.reason);
        a->end.reason = reason;
    }
    pthread_mutex_unlock(&a->lock);
}
