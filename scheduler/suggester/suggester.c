/* The suggester.
 *
 * Each sweep that was asked about has a slot. A slot that is wanted stands in one queue; a search
 * thread takes the first, loads its history, computes, and publishes each suggestion as it is
 * ready. A slot with much to do goes back to the end of the queue after its turn, so that sweeps
 * share. What is prepared is the slot's chain (suggestion_chain_priv.h).
 *
 * Lock: sg->mu guards everything but the history and the cache of a slot that runs: they belong to
 * the thread that runs it. It is never held over a round trip, a computation or on_ready. */
#include "scheduler/suggester/suggester.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/suggester/sweep_history.h"
#include "scheduler/store/tx.h"
#include "scheduler/suggester/prepared.h"
#include "scheduler/suggester/suggestion_chain_priv.h"
#include "search/suggest.h"

#define THREADS_MAX 8
#define SLOTS_MAX 256
#define TICKETS_MAX 64
#define PATIENT_MAX 2 /* request threads that wait at once */
#define PATIENCE_MS 20
#define BYTES_MAX ((size_t)512 << 20)
#define TURN_NS (100 * NS_PER_MS)      /* of a sweep, while others wait */
#define AHEAD_MS 5                     /* what is cheaper is computed when it is asked for */
#define AHEAD_ASKED_NS (60 * NS_PER_S) /* who asked so lately will probably ask again */

/* Somebody waits. The time of arrival names the request when it asks again. */
struct ticket {
    int64_t arrived_ns;
    size_t count;
};

struct slot {
    int64_t key;
    struct slot *next;       /* of all */
    struct slot *next_queue; /* of those queued */
    bool is_queued, is_running;
    bool is_ahead; /* to be prepared though nobody waits */
    struct ticket tickets[TICKETS_MAX];
    size_t n_tickets;
    struct chain chain;
    struct sweep_history *history; /* owned; NULL: none cached */
    struct search_cache *cache;    /* owned */
    size_t bytes;
    int64_t used_ns, asked_ns, cost_ns; /* last use, last request, the last suggestion's time */
};

struct suggester {
    struct store *db;
    struct suggester_opts opts;
    pthread_mutex_t mu;
    pthread_cond_t work;    /* the queue, or the end */
    pthread_cond_t changed; /* a slot published something, or ran to its end */
    struct slot *slots, *queue;
    size_t n_slots, n_patient;
    struct suggester_figures figures;
    bool is_stopping;
    pthread_t threads[THREADS_MAX];
    size_t n_threads;
};

/* Slots. */

static void slot_forget(struct slot *s)
{
    sweep_history_free(as_steal(s->history));
    search_cache_free(as_steal(s->cache));
    s->bytes = 0;
}

static void slot_free(struct slot *s)
{
    chain_cut(&s->chain, 0);
    slot_forget(s);
    free(s);
}

static struct slot *find_locked(const struct suggester *sg, int64_t key)
{
    struct slot *s = sg->slots;
    while (s && s->key != key)
        s = s->next;
    return s;
}

static void unlink_locked(struct suggester *sg, struct slot *s)
{
    struct slot **at = &sg->slots;
    for (; *at != s; at = &(*at)->next)
        assert(*at); /* s is one of them */
    *at = s->next;
    sg->n_slots--;
    slot_free(s);
}

/* The idle slot that was used the longest ago, of those that hold bytes when that is asked for. */
static struct slot *oldest_locked(const struct suggester *sg, bool with_bytes)
{
    struct slot *oldest = NULL;
    for (struct slot *s = sg->slots; s; s = s->next) {
        if (s->is_running || s->is_queued || (with_bytes && s->bytes == 0))
            continue;
        if (!oldest || s->used_ns < oldest->used_ns)
            oldest = s;
    }
    return oldest;
}

static size_t bytes_locked(const struct suggester *sg)
{
    size_t sum = 0;
    for (const struct slot *s = sg->slots; s; s = s->next)
        sum += s->bytes;
    return sum;
}

/* What does not fit goes, the least recently used first. */
static void evict_locked(struct suggester *sg)
{
    struct slot *s = NULL;
    while (bytes_locked(sg) > sg->opts.max_bytes && (s = oldest_locked(sg, true)))
        slot_forget(s);
    while (sg->n_slots >= SLOTS_MAX && (s = oldest_locked(sg, false)))
        unlink_locked(sg, s);
}

/* NULL when memory is out. */
static struct slot *slot_locked(struct suggester *sg, int64_t key)
{
    struct slot *s = find_locked(sg, key);
    if (s)
        return s;
    evict_locked(sg); /* before there is the new one: where all others are busy it would be it */
    s = as_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->key = key;
    s->used_ns = clock_mono_ns();
    s->next = sg->slots;
    sg->slots = s;
    sg->n_slots++;
    return s;
}

static void enqueue_locked(struct suggester *sg, struct slot *s)
{
    struct slot **end = &sg->queue;
    if (s->is_queued || s->is_running)
        return;
    while (*end)
        end = &(*end)->next_queue;
    s->next_queue = NULL;
    s->is_queued = true;
    *end = s;
    pthread_cond_signal(&sg->work);
}

static bool is_busy(const struct slot *s)
{
    return s->is_queued || s->is_running;
}

/* What is prepared of a sweep. */

static const struct chain *chain_of(const struct slot *s)
{
    return s ? &s->chain : NULL;
}

size_t suggester_ready(struct suggester *sg, const struct search_place *place, size_t max)
{
    pthread_mutex_lock(&sg->mu);
    size_t n = chain_ready(chain_of(find_locked(sg, place->key)), place, max);
    pthread_mutex_unlock(&sg->mu);
    return n;
}

int64_t suggester_since(struct suggester *sg, const struct search_place *place)
{
    pthread_mutex_lock(&sg->mu);
    int64_t since = chain_since(chain_of(find_locked(sg, place->key)), place);
    pthread_mutex_unlock(&sg->mu);
    return since ? since : clock_mono_ns();
}

as_status suggester_peek(struct suggester *sg, struct arena *a, const struct search_place *place,
                         bool *ret_ready, struct prepared *ret, struct as_err *err)
{
    pthread_mutex_lock(&sg->mu);
    const struct chain *c = chain_of(find_locked(sg, place->key));
    as_status st = chain_peek(c, a, place, ret_ready, ret, err);
    pthread_mutex_unlock(&sg->mu);
    return st;
}

int64_t suggester_room(struct suggester *sg, int64_t key, int64_t queued, int64_t room)
{
    pthread_mutex_lock(&sg->mu);
    const struct slot *s = find_locked(sg, key);
    int64_t now = s && is_busy(s) ? queued + (int64_t)s->chain.n : room;
    pthread_mutex_unlock(&sg->mu);
    return now < room ? now : room;
}

/* Computing. */

static void notify(struct suggester *sg)
{
    if (sg->opts.on_ready)
        sg->opts.on_ready(sg->opts.ctx);
}

static void fail_locked(struct suggester *sg, struct slot *s, const struct chain_failure *f)
{
    s->chain.failure = *f;
    sg->figures.failed += f->st != AS_E_EXHAUSTED;
}

/* Compute the next link; the lock is let go meanwhile. The chain of a slot that runs is changed by
 * its thread alone, so views of it stay. */
static as_status add_link_locked(struct suggester *sg, struct slot *s, int64_t loaded_ns)
{
    struct chain_failure f = {.loaded_ns = loaded_ns};
    struct chain_link l = {0};
    struct chain_step x = chain_next(&s->chain, s->history, s->cache, loaded_ns);
    pthread_mutex_unlock(&sg->mu);
    int64_t begun = clock_mono_ns();
    f.st = chain_compute(&x, &l, &f.why);
    int64_t took = clock_mono_ns() - begun;
    pthread_mutex_lock(&sg->mu);
    s->cost_ns = took;
    sg->figures.seconds += (double)took / NS_PER_S;
    if (f.st != AS_OK) {
        f.number = x.number;
        f.before = x.before;
        f.seen = sweep_history_place(s->history)->finish_seq;
        fail_locked(sg, s, &f);
        return f.st;
    }
    s->chain.links[s->chain.n++] = l;
    sg->figures.computed++;
    pthread_cond_broadcast(&sg->changed);
    pthread_mutex_unlock(&sg->mu);
    notify(sg);
    pthread_mutex_lock(&sg->mu);
    return AS_OK;
}

static size_t goal_locked(const struct slot *s)
{
    size_t goal = 0;
    for (size_t i = 0; i < s->n_tickets; i++)
        goal += s->tickets[i].count;
    goal = goal == 0 && s->is_ahead ? 1 : goal;
    return goal < SUGGESTER_AHEAD_MAX ? goal : SUGGESTER_AHEAD_MAX;
}

/* Extend the chain to the goal, for one turn. True: there is more to do. */
static bool extend_locked(struct suggester *sg, struct slot *s, int64_t loaded_ns, size_t goal)
{
    const struct history_place *place = sweep_history_place(s->history);
    int64_t room = place->state == SWEEP_RUNNING ? place->planned - place->total : 0;
    goal = (int64_t)goal < room ? goal : (size_t)room;
    while (s->chain.n < goal) {
        if (add_link_locked(sg, s, loaded_ns) != AS_OK)
            return false;
        if (s->chain.n < goal && sg->queue && sg->n_threads > 0 &&
            clock_mono_ns() - loaded_ns > TURN_NS)
            return true;
    }
    return false;
}

static as_status load(struct suggester *sg, struct slot *s, struct as_err *err)
{
    if (!s->history)
        s->history = sweep_history_create(s->key);
    if (!s->cache)
        s->cache = search_cache_create();
    if (!s->history || !s->cache)
        return as_fail(err, AS_E_NOMEM, "out of memory for the history of a sweep");
    return sweep_history_load(sg->db, s->history, err);
}

/* Those who waited when the look at the history began have what there is. */
static void drop_tickets_locked(struct slot *s, int64_t loaded_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_tickets; i++)
        if (s->tickets[i].arrived_ns > loaded_ns)
            s->tickets[n++] = s->tickets[i];
    s->n_tickets = n;
}

/* One that is paused goes on, and is loaded again for each trial that still runs. */
static bool has_ended(sweep_state state)
{
    return state != SWEEP_RUNNING && state != SWEEP_PAUSED;
}

static void end_turn_locked(struct suggester *sg, struct slot *s, int64_t loaded_ns, bool has_more)
{
    if (!has_more)
        drop_tickets_locked(s, loaded_ns);
    s->is_running = false;
    s->used_ns = clock_mono_ns();
    s->bytes = (s->history ? sweep_history_bytes(s->history) : 0) +
               (s->cache ? search_cache_bytes(s->cache) : 0);
    if (s->n_tickets > 0 || s->is_ahead)
        enqueue_locked(sg, s);
    else if (s->history && has_ended(sweep_history_place(s->history)->state))
        slot_forget(s);
    evict_locked(sg);
    pthread_cond_broadcast(&sg->changed);
}

/* One turn of a slot. Whoever waits hears of its end, also when nothing came of it. */
static void run_slot_locked(struct suggester *sg, struct slot *s)
{
    struct chain_failure f = {.loaded_ns = clock_mono_ns(), .number = -1};
    int64_t loaded_ns = f.loaded_ns;
    size_t goal = goal_locked(s);
    bool has_more = false;
    s->is_running = true;
    s->is_ahead = false;
    pthread_mutex_unlock(&sg->mu);
    f.st = load(sg, s, &f.why);
    pthread_mutex_lock(&sg->mu);
    s->chain.failure = (struct chain_failure){0};
    if (f.st != AS_OK) {
        chain_cut(&s->chain, 0);
        fail_locked(sg, s, &f);
    } else {
        chain_trim(&s->chain, s->history, loaded_ns);
        has_more = extend_locked(sg, s, loaded_ns, goal);
    }
    if (s->chain.failure.st < 0 && s->chain.failure.st != AS_E_EXHAUSTED &&
        s->chain.failure.st != AS_E_NOT_FOUND)
        log_write(LOG_WARN, "no suggestion", "sweep_key=%lld status=%s detail=\"%s\"",
                  (long long)s->key, as_status_name(s->chain.failure.st), s->chain.failure.why.msg);
    end_turn_locked(sg, s, loaded_ns, has_more);
    pthread_mutex_unlock(&sg->mu);
    notify(sg);
    pthread_mutex_lock(&sg->mu);
}

static void *search_thread(void *p)
{
    struct suggester *sg = p;
    pthread_mutex_lock(&sg->mu);
    while (!sg->is_stopping) {
        struct slot *s = sg->queue;
        if (!s) {
            pthread_cond_wait(&sg->work, &sg->mu);
            continue;
        }
        sg->queue = s->next_queue;
        s->is_queued = false;
        run_slot_locked(sg, s);
    }
    pthread_mutex_unlock(&sg->mu);
    return NULL;
}

/* Wanting. */

static void add_ticket_locked(struct slot *s, int64_t arrived_ns, size_t count)
{
    size_t i = 0;
    while (i < s->n_tickets && s->tickets[i].arrived_ns != arrived_ns)
        i++;
    if (i == TICKETS_MAX)
        return; /* it asks again when the others were served */
    s->tickets[i] = (struct ticket){arrived_ns, count};
    s->n_tickets += i == s->n_tickets;
}

/* Wait until enough is ready, the slot rests, or patience is over. */
static bool wait_locked(struct suggester *sg, const struct search_place *p, size_t count,
                        bool may_wait)
{
    int64_t until = clock_mono_ns() + sg->opts.patience_ms * NS_PER_MS;
    const struct timespec at = {.tv_sec = until / NS_PER_S, .tv_nsec = until % NS_PER_S};
    bool waits = may_wait && sg->n_patient < PATIENT_MAX && sg->opts.patience_ms > 0;
    int rc = waits ? 0 : ETIMEDOUT;
    sg->n_patient += waits;
    for (;;) {
        const struct slot *s = find_locked(sg, p->key);
        if (!s || !is_busy(s) || chain_ready(&s->chain, p, count) >= count || rc == ETIMEDOUT) {
            sg->n_patient -= waits;
            return s && (!is_busy(s) || chain_ready(&s->chain, p, count) >= count);
        }
        rc = pthread_cond_timedwait(&sg->changed, &sg->mu, &at);
    }
}

/* Without search threads: whoever comes computes, one at a time for each sweep. */
static void run_here_locked(struct suggester *sg, int64_t key)
{
    struct slot *s = find_locked(sg, key);
    while (s && s->is_running) {
        pthread_cond_wait(&sg->changed, &sg->mu);
        s = find_locked(sg, key);
    }
    if (!s || !s->is_queued)
        return; /* another one did it */
    struct slot **at = &sg->queue;
    while (*at != s)
        at = &(*at)->next_queue;
    *at = s->next_queue;
    s->is_queued = false;
    run_slot_locked(sg, s);
}

bool suggester_want(struct suggester *sg, const struct search_place *place, size_t count,
                    bool may_wait)
{
    bool worth = false;
    pthread_mutex_lock(&sg->mu);
    struct slot *s = slot_locked(sg, place->key);
    if (s) {
        s->asked_ns = clock_mono_ns();
        s->used_ns = s->asked_ns;
        add_ticket_locked(s, place->arrived_ns, count);
        enqueue_locked(sg, s);
        if (sg->n_threads == 0)
            run_here_locked(sg, place->key);
        worth = wait_locked(sg, place, count, may_wait);
    }
    pthread_mutex_unlock(&sg->mu);
    return worth;
}

void suggester_taken(struct suggester *sg, int64_t n)
{
    pthread_mutex_lock(&sg->mu);
    sg->figures.taken += n;
    pthread_mutex_unlock(&sg->mu);
}

/* A trial ended: what is prepared does not know it. Where that takes long, begin again before
 * somebody asks. */
static void on_finished(void *ctx, int64_t key)
{
    struct suggester *sg = ctx;
    if (sg->n_threads == 0)
        return;
    pthread_mutex_lock(&sg->mu);
    struct slot *s = find_locked(sg, key);
    if (s && s->cost_ns >= sg->opts.ahead_ms * NS_PER_MS &&
        clock_mono_ns() - s->asked_ns < AHEAD_ASKED_NS) {
        s->is_ahead = true;
        enqueue_locked(sg, s);
    }
    pthread_mutex_unlock(&sg->mu);
}

/* Life. */

static size_t default_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    size_t eighth = pages > 0 && size > 0 ? (size_t)pages / 8 * (size_t)size : BYTES_MAX;
    return eighth < BYTES_MAX ? eighth : BYTES_MAX;
}

as_status suggester_create(struct store *db, const struct suggester_opts *opts,
                           struct suggester **ret, struct as_err *err)
{
    AS_AUTO(suggester_freep) struct suggester *sg = as_calloc(1, sizeof *sg);
    pthread_condattr_t attr;
    if (!sg)
        return as_fail(err, AS_E_NOMEM, "out of memory for the search");
    sg->db = db;
    sg->opts = *opts;
    sg->opts.max_bytes = opts->max_bytes ? opts->max_bytes : default_bytes();
    sg->opts.ahead_ms = opts->ahead_ms ? opts->ahead_ms : AHEAD_MS;
    sg->opts.patience_ms = opts->patience_ms ? opts->patience_ms : PATIENCE_MS;
    (void)pthread_mutex_init(&sg->mu, NULL); /* none of these can fail on Linux */
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&sg->work, &attr);
    (void)pthread_cond_init(&sg->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    size_t threads = opts->threads < THREADS_MAX ? opts->threads : THREADS_MAX;
    pthread_mutex_lock(&sg->mu);
    while (sg->n_threads < threads &&
           pthread_create(&sg->threads[sg->n_threads], NULL, search_thread, sg) == 0)
        sg->n_threads++;
    bool all = sg->n_threads == threads;
    pthread_mutex_unlock(&sg->mu);
    if (!all)
        return as_fail(err, AS_E_NOMEM, "cannot start the threads of the search");
    if (threads > 0)
        store_on_finished(db, on_finished, sg);
    *ret = as_steal(sg);
    return AS_OK;
}

void suggester_free(struct suggester *sg)
{
    if (!sg)
        return;
    if (sg->n_threads > 0)
        store_on_finished(sg->db, NULL, NULL);
    pthread_mutex_lock(&sg->mu);
    sg->is_stopping = true;
    pthread_cond_broadcast(&sg->work);
    pthread_mutex_unlock(&sg->mu);
    for (size_t i = 0; i < sg->n_threads; i++)
        (void)pthread_join(sg->threads[i], NULL);
    for (struct slot *s = sg->slots, *next; s; s = next) {
        next = s->next;
        slot_free(s);
    }
    (void)pthread_cond_destroy(&sg->changed);
    (void)pthread_cond_destroy(&sg->work);
    (void)pthread_mutex_destroy(&sg->mu);
    free(sg);
}

void suggester_figures_get(struct suggester *sg, struct suggester_figures *ret)
{
    pthread_mutex_lock(&sg->mu);
    *ret = sg->figures;
    ret->bytes = (int64_t)bytes_locked(sg);
    for (const struct slot *s = sg->slots; s; s = s->next) {
        ret->sweeps += s->bytes > 0;
        ret->waiting += s->is_queued;
    }
    pthread_mutex_unlock(&sg->mu);
}
