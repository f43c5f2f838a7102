/* The list of waiting requests, and the thread that decides which of them to retry.
 *
 * In each round the thread collects the distinct keys of the items (at most WAITING_KEYS_MAX),
 * probes them without the lock, and then unlinks the due items: as many of each key as the probe
 * counted, from the head of the list, and all whose time has ended or whose peer has left. The list
 * is in order of arrival, so the longest waiting come first. A retried item that finds nothing is
 * added at the end again.
 *
 * Two flags wake the thread: is_changed requests a probe, and look_again only a look at deadlines
 * and departures. Thus clients that leave in large numbers cause no queries. */
#include "api/server/waiting.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"

#define LOOK_MS 50

struct waiting_list {
    struct waiting_hooks hooks;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t wake;
    struct waiting_item *head, **tail; /* in order of arrival */
    int64_t next_ns;                   /* the earliest deadline of the items */
    int64_t wake_ns;                   /* when the thread looks by itself; 0: it is awake */
    bool is_changed, look_again, is_draining, is_stopping;
    pthread_t thread;
    bool has_thread;
};

/* The result of a probe: a count for each key. Used by the thread of the list only. */
struct findings {
    int64_t keys[WAITING_KEYS_MAX];
    size_t counts[WAITING_KEYS_MAX];
    size_t n;
    bool was_asked;
};

static void append_item(struct waiting_item ***tail, struct waiting_item *item)
{
    item->next = NULL;
    **tail = item;
    *tail = &item->next;
}

static size_t key_index(const struct findings *f, int64_t key)
{
    size_t i = 0;
    while (i < f->n && f->keys[i] != key)
        i++;
    return i;
}

static void list_keys_locked(const struct waiting_list *w, struct findings *f)
{
    f->n = 0;
    for (const struct waiting_item *item = w->head; item && f->n < WAITING_KEYS_MAX;
         item = item->next)
        if (key_index(f, item->key) == f->n)
            f->keys[f->n++] = item->key;
}

/* Should the next item of this key be retried? Subtracts it from the count of its key. */
static bool take_one(struct findings *f, int64_t key)
{
    size_t i = key_index(f, key);
    if (i == f->n)
        /* The probe had no room for this key: retry. Or the item arrived during the probe: wait. */
        return f->was_asked && f->n == WAITING_KEYS_MAX;
    return f->counts[i] > 0 && f->counts[i]--;
}

/* Unlink the items to retry: those that the probe counted, and those whose time has ended or whose
 * peer has left. */
static struct waiting_item *take_due_locked(struct waiting_list *w, struct findings *f)
{
    int64_t now = clock_mono_ns();
    struct waiting_item *due = NULL, **due_tail = &due, *item = w->head, *next;
    w->head = NULL;
    w->tail = &w->head;
    w->next_ns = INT64_MAX;
    for (; item; item = next) {
        next = item->next;
        bool is_over = w->is_draining || now >= item->until_ns || atomic_load(item->is_gone);
        if (is_over || take_one(f, item->key)) {
            append_item(&due_tail, item);
            continue;
        }
        append_item(&w->tail, item);
        w->next_ns = item->until_ns < w->next_ns ? item->until_ns : w->next_ns;
    }
    return due;
}

/* Wait for the next tick, deadline, change or departure. Deadlines within LOOK_MS share a look,
 * which goes through the whole list. Returns whether to probe. */
static bool wait_locked(struct waiting_list *w, int64_t tick_ns)
{
    const int64_t soonest_ns = clock_mono_ns() + LOOK_MS * NS_PER_MS;
    bool is_early = true;
    while (!w->look_again && !w->is_stopping && is_early) {
        int64_t until_ns = !w->head ? INT64_MAX : w->next_ns < tick_ns ? w->next_ns : tick_ns;
        w->wake_ns = until_ns < soonest_ns ? soonest_ns : until_ns;
        if (until_ns == INT64_MAX)
            (void)pthread_cond_wait(&w->wake, &w->lock);
        else
            is_early = clock_cond_wait(&w->wake, &w->lock, w->wake_ns);
    }
    w->wake_ns = 0;
    bool is_tick = w->is_changed || clock_mono_ns() >= tick_ns;
    w->look_again = false;
    w->is_changed = false;
    return is_tick && w->head;
}

static void retry_all(struct waiting_list *w, struct waiting_item *due)
{
    while (due) {
        struct waiting_item *item = due;
        due = item->next;
        w->hooks.retry(w->hooks.ctx, item);
    }
}

static void *run_waiting_list(void *arg)
{
    struct waiting_list *w = arg;
    struct findings found;
    int64_t tick_ns = clock_mono_ns();
    pthread_mutex_lock(&w->lock);
    while (!w->is_stopping) {
        found.n = 0;
        found.was_asked = wait_locked(w, tick_ns);
        if (found.was_asked) {
            list_keys_locked(w, &found);
            pthread_mutex_unlock(&w->lock);
            w->hooks.probe(w->hooks.ctx, found.keys, found.n, found.counts);
            tick_ns = clock_mono_ns() + WAITING_TICK_MS * NS_PER_MS;
            pthread_mutex_lock(&w->lock);
        }
        struct waiting_item *due = take_due_locked(w, &found);
        pthread_mutex_unlock(&w->lock);
        retry_all(w, due);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

as_status waiting_create(const struct waiting_hooks *hooks, struct waiting_list **ret,
                         struct as_err *err)
{
    AS_AUTO(waiting_freep) struct waiting_list *w = as_calloc(1, sizeof *w);
    if (!w)
        return as_fail(err, AS_E_NOMEM, "out of memory for the long-polls");
    w->hooks = *hooks;
    w->tail = &w->head;
    w->next_ns = INT64_MAX;
    (void)pthread_mutex_init(&w->lock, NULL); /* none of these can fail on Linux */
    clock_cond_init(&w->wake);
    if (pthread_create(&w->thread, NULL, run_waiting_list, w) != 0)
        return as_fail(err, AS_E_NOMEM, "cannot start the thread of the long-polls");
    w->has_thread = true;
    *ret = as_steal(w);
    return AS_OK;
}

static void look_again_locked(struct waiting_list *w)
{
    w->look_again = true;
    pthread_cond_signal(&w->wake);
}

void waiting_add(struct waiting_list *w, struct waiting_item *item)
{
    pthread_mutex_lock(&w->lock);
    append_item(&w->tail, item);
    w->next_ns = item->until_ns < w->next_ns ? item->until_ns : w->next_ns;
    if (item->until_ns < w->wake_ns) /* its deadline is the earliest now */
        pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

void waiting_wake(struct waiting_list *w)
{
    pthread_mutex_lock(&w->lock);
    w->is_changed = true;
    look_again_locked(w);
    pthread_mutex_unlock(&w->lock);
}

void waiting_wake_gone(struct waiting_list *w)
{
    pthread_mutex_lock(&w->lock);
    look_again_locked(w);
    pthread_mutex_unlock(&w->lock);
}

struct waiting_counts waiting_count(struct waiting_list *w)
{
    struct waiting_counts n = {0};
    pthread_mutex_lock(&w->lock);
    for (const struct waiting_item *item = w->head; item; item = item->next)
        (*(item->key == WAITING_CLAIMS  ? &n.any_trial
           : item->key < WAITING_CLAIMS ? &n.one_world
                                        : &n.one_sweep))++;
    pthread_mutex_unlock(&w->lock);
    return n;
}

void waiting_drain(struct waiting_list *w)
{
    pthread_mutex_lock(&w->lock);
    w->is_draining = true;
    look_again_locked(w);
    pthread_mutex_unlock(&w->lock);
}

void waiting_free(struct waiting_list *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_stopping = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    if (w->has_thread)
        (void)pthread_join(w->thread, NULL);
    (void)pthread_mutex_destroy(&w->lock);
    (void)pthread_cond_destroy(&w->wake);
    free(w);
}
