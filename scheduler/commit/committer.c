/* The queue of the committer, and its threads.
 *
 * All members that have no decision yet are in one list, in the order of submission. In each round
 * the batch thread goes through it twice, and takes those that may be decided: first results, the
 * first one of each trial, then claims, the first one of each runner. A member that must run alone,
 * or wait for a row, stays in the list meanwhile, so later members of its trial wait for it. A
 * decided member leaves the list, and goes to the thread that waits for the disk.
 *
 * Rows that others hold: such a member comes to a later round, after a pause. After
 * POSTPONED_MAX rounds the members of its sweep go to a helper thread together, whose batch waits
 * in the queue of the row; the batch thread never does.
 *
 * Lock: committer.mu guards everything below it. It is never held over a round trip or a call of
 * `done`. */
#include "scheduler/commit/committer.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/fnv.h"
#include "base/log.h"
#include "base/str.h"
#include "scheduler/commit/claim_batch.h"
#include "scheduler/store/batch_store.h"

#define QUEUE_MAX 4096
#define BATCH_MAX 256
#define HELPERS 4
#define POSTPONED_MAX 3
#define CLAIM_ROUNDS_MAX 6 /* of a claim: the later ones wait for sweeps, and skip runners */
#define POSTPONED_MS 1     /* the first pause; the next ones are longer */

/* Where a member is (commit_member.place). */
enum {
    PLACE_QUEUED,
    PLACE_TAKEN,   /* in the batch of the batch thread */
    PLACE_HELPED,  /* with a helper */
    PLACE_PATIENT, /* waits for a helper that waits for its sweep */
    PLACE_ALONE    /* waits for a helper */
};

struct members {
    struct commit_member *head, *tail;
};

struct committer {
    struct store *db;
    struct suggester *sg;
    const struct batch_ops *ops;
    void *ops_ctx;
    size_t queue_max, batch_max, seen_size;
    bool is_single;
    struct claim_docs patient_docs; /* of the helper that set helps_claims */
    /* of the batch thread alone */
    struct claim_docs docs;
    struct commit_member **batch;      /* batch_max places */
    const struct commit_member **seen; /* trials in the list so far; seen_size places */

    pthread_mutex_t mu;
    pthread_cond_t wake;                 /* of the batch thread */
    pthread_cond_t has_job, has_decided; /* of the helpers; of the thread that waits for the disk */
    pthread_cond_t is_idle;
    struct members list;                     /* without a decision */
    struct commit_member *jobs, **jobs_tail; /* to run alone; by next_job */
    size_t n_patient;                        /* members at PLACE_PATIENT */
    bool helps_claims;                       /* a helper runs patient claims */
    struct members decided;                  /* wait for the disk */
    int64_t decided_ns;                      /* batch_result.sent_ns of the oldest of them */
    bool is_changed;                         /* the batch thread has something to look at */
    int64_t n_calls;                         /* of `done` that run now */
    bool is_draining, is_stopping;
    struct committer_figures figures;

    pthread_t batch_thread, disk_thread;
    pthread_t *helpers;
    size_t n_helpers;
    bool has_batch_thread, has_disk_thread;
};

/* ---- lists ---- */

static void list_append(struct members *l, struct commit_member *m)
{
    m->next = NULL;
    m->prev = l->tail;
    if (l->tail)
        l->tail->next = m;
    else
        l->head = m;
    l->tail = m;
}

static void list_remove(struct members *l, struct commit_member *m)
{
    if (m->prev)
        m->prev->next = m->next;
    else
        l->head = m->next;
    if (m->next)
        m->next->prev = m->prev;
    else
        l->tail = m->prev;
}

/* ---- ends of members ---- */

static bool is_of_trial(const struct commit_member *m)
{
    return m->kind == COMMIT_RECORD || m->kind == COMMIT_END;
}

static as_status unavailable(struct commit_member *m, const char *why)
{
    m->status = as_fail(&m->err, AS_E_UNAVAILABLE, "%s", why);
    return m->status;
}

/* Give the members of a list their answers. */
static void call_done(struct committer *c, struct commit_member *head)
{
    int64_t n = 0;
    for (struct commit_member *m = head; m; m = m->next)
        n++;
    pthread_mutex_lock(&c->mu);
    c->figures.queued -= n;
    c->n_calls += n;
    pthread_mutex_unlock(&c->mu);
    for (struct commit_member *m = head, *next; m; m = next) {
        next = m->next;
        m->done(m); /* it may be gone now */
    }
    pthread_mutex_lock(&c->mu);
    c->n_calls -= n;
    pthread_cond_broadcast(&c->is_idle);
    pthread_mutex_unlock(&c->mu);
}

/* The batch thread looks again: members of a trial may be free. */
static void look_again_locked(struct committer *c)
{
    c->is_changed = true;
    pthread_cond_signal(&c->wake);
}

static void count_result(struct committer *c, const struct batch_result *r)
{
    struct store_counters *n = store_counters(c->db);
    atomic_fetch_add(&n->measurements, r->recorded);
    atomic_fetch_add(&n->trials_completed, r->completed);
    atomic_fetch_add(&n->late_accepted, r->late);
    atomic_fetch_add(&n->stale_rejected, r->stale);
    atomic_fetch_add(&n->trials_claimed, r->claimed);
}

static void run_alone_locked(struct committer *c, struct commit_member *m)
{
    m->place = PLACE_ALONE;
    m->next_job = NULL;
    *c->jobs_tail = m;
    c->jobs_tail = &m->next_job;
    pthread_cond_signal(&c->has_job);
}

static void postpone_locked(struct committer *c, struct commit_member *m)
{
    c->figures.postponed++;
    m->rounds++;
    m->place = PLACE_QUEUED;
    m->not_before_ns = clock_mono_ns() + ((int64_t)POSTPONED_MS << (m->rounds - 1)) * NS_PER_MS;
    if (m->rounds < POSTPONED_MAX)
        return;
    if (!is_of_trial(m) && (m->kind != COMMIT_CLAIM || m->rounds >= CLAIM_ROUNDS_MAX)) {
        run_alone_locked(c, m);
        return;
    }
    m->place = PLACE_PATIENT;
    c->n_patient++;
    pthread_cond_signal(&c->has_job);
}

/* The members of a batch go where it sent them. */
static void sort_out(struct committer *c, struct commit_member *const *members, size_t n,
                     const struct batch_result *r)
{
    pthread_mutex_lock(&c->mu);
    c->figures.batches++;
    for (size_t i = 0; i < n; i++) {
        struct commit_member *m = members[i];
        if (m->fate == COMMIT_LATER) {
            postpone_locked(c, m);
        } else if (m->fate == COMMIT_ALONE) {
            run_alone_locked(c, m);
        } else {
            list_remove(&c->list, m);
            if (!c->decided.head || r->sent_ns < c->decided_ns)
                c->decided_ns = r->sent_ns;
            list_append(&c->decided, m);
            c->figures.members++;
        }
    }
    pthread_cond_signal(&c->has_decided);
    look_again_locked(c);
    pthread_mutex_unlock(&c->mu);
}

/* The batch failed. */
static void give_up(struct committer *c, struct commit_member *const *members, size_t n,
                    bool is_answer, const struct as_err *why)
{
    struct members lost = {0};
    pthread_mutex_lock(&c->mu);
    c->figures.fallbacks += !is_answer;
    for (size_t i = 0; i < n; i++) {
        struct commit_member *m = members[i];
        if (!is_answer) {
            run_alone_locked(c, m);
            continue;
        }
        list_remove(&c->list, m);
        list_append(&lost, m);
        (void)unavailable(m, why->msg);
    }
    look_again_locked(c);
    pthread_mutex_unlock(&c->mu);
    call_done(c, lost.head);
}

/* A batch has ended. is_answer: if it failed, that is what its members are told. */
static void end_batch(struct committer *c, struct commit_member *const *members, size_t n,
                      as_status st, bool is_answer, const struct batch_result *r,
                      const struct as_err *why)
{
    if (st == AS_OK) {
        count_result(c, r);
        sort_out(c, members, n, r);
        return;
    }
    if (!is_answer)
        log_write(LOG_WARN, "batch failed", "members=%zu error=\"%s\"", n, why->msg);
    give_up(c, members, n, is_answer, why);
}

static void run_batch(struct committer *c, struct commit_member *const *members, size_t n,
                      bool is_patient)
{
    struct batch_result r = {0};
    struct as_err err = {0};
    as_status st = batch_commit(c->ops, c->ops_ctx, is_patient, members, n, &r, &err);
    /* A patient batch whose row did not come free in time is as a request that waited for it. */
    bool is_answer = r.is_away || (is_patient && st == AS_E_UNAVAILABLE);
    end_batch(c, members, n, st, is_answer, &r, &err);
}

/* ---- the batch thread ---- */

/* What only one member of a batch may concern: a trial, or the runner of a claim. */
struct subject {
    const char *name;
    int64_t number; /* -1: a runner */
};

static struct subject subject_of(const struct commit_member *m)
{
    return m->kind == COMMIT_CLAIM ? (struct subject){m->in.claim->runner, -1}
                                   : (struct subject){m->ref.sweep, m->ref.number};
}

/* May `m` be in one batch with `before`, the latest member of its trial so far? Reports may, and an
 * end after them. */
static bool may_follow(const struct committer *c, const struct commit_member *before,
                       const struct commit_member *m)
{
    bool has_notes = m->kind == COMMIT_RECORD && m->in.report.n_notes > 0;
    return !c->is_single && before->place == PLACE_TAKEN && before->kind == COMMIT_RECORD &&
           is_of_trial(m) &&
           !(has_notes && (before->follows_notes || before->in.report.n_notes > 0));
}

/* Set what a member follows, if it may be taken now: others belong to a helper, or keep what they
 * had in the batch that postponed them. */
static void follow(struct commit_member *m, const struct commit_member *before)
{
    if (m->place != PLACE_QUEUED)
        return;
    m->follows = before;
    m->follows_notes = before && (before->follows_notes || before->in.report.n_notes > 0);
}

/* Add the subject of a member to those that were seen. False: a member before it must be decided
 * first. */
static bool see_subject(struct committer *c, struct commit_member *m)
{
    const struct subject x = subject_of(m);
    uint64_t h = fnv64((uint64_t)x.number * 0x9e3779b97f4a7c15u, x.name, strlen(x.name));
    for (size_t i = (size_t)(h >> 20);; i++) {
        const struct commit_member **slot = &c->seen[i & (c->seen_size - 1)];
        if (!*slot) {
            *slot = m;
            follow(m, NULL);
            return true;
        }
        const struct subject y = subject_of(*slot);
        if (x.number != y.number || !as_streq(x.name, y.name))
            continue;
        bool may = may_follow(c, *slot, m);
        follow(m, may ? *slot : NULL);
        *slot = m;
        return may;
    }
}

/* A claim knows the results of its own request: do members of the same owner come before it that
 * are not decided? Members of one call stand together in the list. */
static bool waits_for_its_own(const struct commit_member *m)
{
    return m->kind == COMMIT_CLAIM && m->owner && m->prev && m->prev->owner == m->owner;
}

/* Take the results that may be decided now into c->batch, or the claims. What no batch decides runs
 * alone. Returns how many there are; *until_ns becomes earlier if a postponed member may be decided
 * then. */
static size_t take_batch_locked(struct committer *c, bool results, int64_t *until_ns)
{
    size_t n = 0;
    int64_t now = clock_mono_ns();
    memset(c->seen, 0, c->seen_size * sizeof(struct commit_member *));
    for (struct commit_member *m = c->list.head; m && n < c->batch_max; m = m->next) {
        if (is_of_trial(m) != results)
            continue;
        bool is_first = m->kind == COMMIT_ASK || see_subject(c, m);
        if (!is_first || m->place != PLACE_QUEUED || waits_for_its_own(m))
            continue;
        if (m->not_before_ns > now) {
            *until_ns = m->not_before_ns < *until_ns ? m->not_before_ns : *until_ns;
        } else if (c->is_single || m->kind == COMMIT_ASK) {
            run_alone_locked(c, m);
        } else {
            m->place = PLACE_TAKEN;
            c->batch[n++] = m;
        }
    }
    return n;
}

static void run_claims(struct committer *c, struct commit_member *const *members, size_t n)
{
    struct batch_result r = {0};
    struct as_err err = {0};
    as_status st = batch_claim(c->ops, c->ops_ctx, c->sg, &c->docs, false, members, n, &r, &err);
    end_batch(c, members, n, st, r.is_away, &r, &err);
}

/* A round decides the results that have arrived, then the claims, those among them that came while
 * the results were decided. Returns how many members there were. */
static size_t run_round_locked(struct committer *c, int64_t *until_ns)
{
    size_t of_round = 0;
    *until_ns = INT64_MAX;
    for (int results = 1; results >= 0; results--) {
        size_t n = take_batch_locked(c, results, until_ns);
        of_round += n;
        if (n == 0)
            continue;
        pthread_mutex_unlock(&c->mu);
        if (results)
            run_batch(c, c->batch, n, false);
        else
            run_claims(c, c->batch, n);
        pthread_mutex_lock(&c->mu);
    }
    return of_round;
}

static void *run_batches(void *arg)
{
    struct committer *c = arg;
    int64_t until_ns = INT64_MAX;
    pthread_mutex_lock(&c->mu);
    while (!c->is_stopping) {
        c->is_changed = false;
        if (run_round_locked(c, &until_ns) > 0)
            continue;
        while (!c->is_changed && !c->is_stopping && clock_mono_ns() < until_ns) {
            if (until_ns == INT64_MAX)
                (void)pthread_cond_wait(&c->wake, &c->mu);
            else
                (void)clock_cond_wait(&c->wake, &c->mu, until_ns);
        }
    }
    pthread_mutex_unlock(&c->mu);
    return NULL;
}

/* ---- the disk ---- */

static void *run_disk(void *arg)
{
    struct committer *c = arg;
    pthread_mutex_lock(&c->mu);
    for (;;) {
        if (!c->decided.head && c->is_stopping)
            break;
        if (!c->decided.head) {
            (void)pthread_cond_wait(&c->has_decided, &c->mu);
            continue;
        }
        struct commit_member *head = c->decided.head;
        int64_t since_ns = c->decided_ns;
        c->decided = (struct members){0};
        c->figures.syncs++;
        pthread_mutex_unlock(&c->mu);
        struct as_err err = {0};
        if (c->ops->sync(c->ops_ctx, since_ns, &err) != AS_OK)
            for (struct commit_member *m = head; m; m = m->next)
                (void)unavailable(m, err.msg);
        call_done(c, head);
        pthread_mutex_lock(&c->mu);
    }
    pthread_mutex_unlock(&c->mu);
    return NULL;
}

/* ---- the helpers ---- */

static struct commit_member *take_job_locked(struct committer *c)
{
    struct commit_member *m = c->jobs;
    if (!m)
        return NULL;
    c->jobs = m->next_job;
    if (!c->jobs)
        c->jobs_tail = &c->jobs;
    m->place = PLACE_HELPED;
    return m;
}

/* May a patient member be in one batch with the first one of it (NULL: it is the first)? */
static bool may_join_locked(const struct committer *c, const struct commit_member *first,
                            const struct commit_member *m)
{
    if (m->kind == COMMIT_CLAIM)
        return first ? first->kind == COMMIT_CLAIM : !c->helps_claims;
    return !first || (is_of_trial(first) && as_streq(m->ref.sweep, first->ref.sweep));
}

/* The patient members of the sweep that has waited longest, or the claims. */
static size_t take_patient_locked(struct committer *c, struct commit_member **ret)
{
    size_t n = 0;
    for (struct commit_member *m = c->list.head; m && n < c->batch_max && c->n_patient > 0;
         m = m->next) {
        if (m->place != PLACE_PATIENT || !may_join_locked(c, n > 0 ? ret[0] : NULL, m))
            continue;
        m->place = PLACE_HELPED;
        c->n_patient--;
        ret[n++] = m;
    }
    c->helps_claims |= n > 0 && ret[0]->kind == COMMIT_CLAIM;
    return n;
}

/* Claims that wait in the queue of their sweeps' rows: with two servers each finds the rows held by
 * the other whenever it looks. */
static void run_patient_claims(struct committer *c, struct commit_member *const *members, size_t n)
{
    struct batch_result r = {0};
    struct as_err err = {0};
    as_status st =
        batch_claim(c->ops, c->ops_ctx, c->sg, &c->patient_docs, true, members, n, &r, &err);
    end_batch(c, members, n, st, r.is_away || st == AS_E_UNAVAILABLE, &r, &err);
    pthread_mutex_lock(&c->mu);
    c->helps_claims = false;
    pthread_cond_signal(&c->has_job);
    pthread_mutex_unlock(&c->mu);
}

static void run_patient(struct committer *c, struct commit_member *const *members, size_t n)
{
    if (members[0]->kind == COMMIT_CLAIM)
        run_patient_claims(c, members, n);
    else
        run_batch(c, members, n, true);
}

static void run_job(struct committer *c, struct commit_member *m)
{
    commit_alone(c->db, c->sg, m);
    pthread_mutex_lock(&c->mu);
    list_remove(&c->list, m);
    c->figures.alone++;
    look_again_locked(c);
    pthread_mutex_unlock(&c->mu);
    m->next = NULL;
    call_done(c, m);
}

static void *run_helper(void *arg)
{
    struct committer *c = arg;
    struct commit_member **patient = as_calloc(c->batch_max, sizeof(struct commit_member *));
    pthread_mutex_lock(&c->mu);
    for (;;) {
        struct commit_member *m = take_job_locked(c);
        size_t n = m || !patient ? 0 : take_patient_locked(c, patient);
        if (!m && n == 0 && c->is_stopping)
            break;
        if (!m && n == 0) {
            (void)pthread_cond_wait(&c->has_job, &c->mu);
            continue;
        }
        pthread_mutex_unlock(&c->mu);
        if (m)
            run_job(c, m);
        else
            run_patient(c, patient, n);
        pthread_mutex_lock(&c->mu);
    }
    pthread_mutex_unlock(&c->mu);
    free(patient);
    return NULL;
}

/* ---- begin and end ---- */

static as_status start_threads(struct committer *c, size_t n_helpers, struct as_err *err)
{
    c->helpers = as_calloc(n_helpers, sizeof *c->helpers);
    if (!c->helpers)
        return as_fail_nomem(err);
    if (pthread_create(&c->batch_thread, NULL, run_batches, c) != 0)
        return as_fail(err, AS_E_NOMEM, "cannot start the thread of the committer");
    c->has_batch_thread = true;
    if (pthread_create(&c->disk_thread, NULL, run_disk, c) != 0)
        return as_fail(err, AS_E_NOMEM, "cannot start the thread that waits for the disk");
    c->has_disk_thread = true;
    for (; c->n_helpers < n_helpers; c->n_helpers++)
        if (pthread_create(&c->helpers[c->n_helpers], NULL, run_helper, c) != 0)
            return as_fail(err, AS_E_NOMEM, "cannot start a helper of the committer");
    return AS_OK;
}

as_status committer_create(struct store *db, struct suggester *sg, const struct committer_opts *o,
                           struct committer **ret, struct as_err *err)
{
    AS_AUTO(committer_freep) struct committer *c = as_calloc(1, sizeof *c);
    if (!c)
        return as_fail_nomem(err);
    c->db = db;
    c->sg = sg;
    c->ops = o->ops ? o->ops : &batch_store_ops;
    c->ops_ctx = o->ops ? o->ops_ctx : db;
    c->queue_max = o->queue_max ? o->queue_max : QUEUE_MAX;
    c->batch_max = o->batch_max ? o->batch_max : BATCH_MAX;
    c->is_single = o->is_single;
    c->docs.shared = c->patient_docs.shared = store_docs(db);
    c->jobs_tail = &c->jobs;
    for (c->seen_size = 16; c->seen_size < 2 * c->queue_max; c->seen_size *= 2)
        ;
    (void)pthread_mutex_init(&c->mu, NULL);
    clock_cond_init(&c->wake);
    (void)pthread_cond_init(&c->has_job, NULL);
    (void)pthread_cond_init(&c->has_decided, NULL);
    (void)pthread_cond_init(&c->is_idle, NULL);
    c->batch = as_calloc(c->batch_max, sizeof(struct commit_member *));
    c->seen = as_calloc(c->seen_size, sizeof(struct commit_member *));
    if (!c->batch || !c->seen)
        return as_fail_nomem(err);
    as_status st = start_threads(c, o->threads ? o->threads : HELPERS, err);
    if (st == AS_OK)
        *ret = as_steal(c);
    return st;
}

as_status committer_submit(struct committer *c, struct commit_member *const *members, size_t n,
                           struct as_err *err)
{
    as_status st = AS_OK;
    pthread_mutex_lock(&c->mu);
    if (c->is_draining) {
        st = as_fail(err, AS_E_UNAVAILABLE, "the server is stopping");
    } else if (n > c->queue_max - (size_t)c->figures.queued) {
        c->figures.refused += (int64_t)n;
        st = as_fail(err, AS_E_UNAVAILABLE, "%lld operations wait to be committed already",
                     (long long)c->figures.queued);
    }
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        struct commit_member *m = members[i];
        m->place = PLACE_QUEUED;
        m->rounds = 0;
        m->not_before_ns = 0;
        m->status = AS_OK;
        m->err = (struct as_err){0};
        list_append(&c->list, m);
    }
    if (st == AS_OK) {
        c->figures.queued += (int64_t)n;
        look_again_locked(c);
    }
    pthread_mutex_unlock(&c->mu);
    return st;
}

void committer_figures_get(struct committer *c, struct committer_figures *ret)
{
    pthread_mutex_lock(&c->mu);
    *ret = c->figures;
    pthread_mutex_unlock(&c->mu);
}

void committer_drain(struct committer *c)
{
    pthread_mutex_lock(&c->mu);
    c->is_draining = true;
    while (c->figures.queued + c->n_calls > 0)
        (void)pthread_cond_wait(&c->is_idle, &c->mu);
    pthread_mutex_unlock(&c->mu);
}

void committer_free(struct committer *c)
{
    if (!c)
        return;
    if (c->has_batch_thread)
        committer_drain(c);
    pthread_mutex_lock(&c->mu);
    c->is_stopping = true;
    pthread_cond_broadcast(&c->wake);
    pthread_cond_broadcast(&c->has_job);
    pthread_cond_broadcast(&c->has_decided);
    pthread_mutex_unlock(&c->mu);
    if (c->has_batch_thread)
        (void)pthread_join(c->batch_thread, NULL);
    if (c->has_disk_thread)
        (void)pthread_join(c->disk_thread, NULL);
    for (size_t i = 0; i < c->n_helpers; i++)
        (void)pthread_join(c->helpers[i], NULL);
    (void)pthread_cond_destroy(&c->is_idle);
    (void)pthread_cond_destroy(&c->has_decided);
    (void)pthread_cond_destroy(&c->has_job);
    (void)pthread_cond_destroy(&c->wake);
    (void)pthread_mutex_destroy(&c->mu);
    free(c->helpers);
    free(c->batch);
    claim_docs_done(&c->docs);
    claim_docs_done(&c->patient_docs);
    free(c->seen);
    free(c);
}
