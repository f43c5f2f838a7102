#include "api/server/waiting.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"

struct park {
    struct park_hooks hooks;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t wake;
    struct park_item *head, **tail; /* the longest waiting first */
    bool is_changed, look_again, is_draining, is_stopping;
    pthread_t thread;
    bool has_thread;
};

/* What the probe found, by key. The park's thread only. */
struct findings {
    int64_t keys[PARK_KEYS_MAX];
    size_t counts[PARK_KEYS_MAX];
    size_t n;
    bool was_asked;
};

static void append(struct park_item ***tail, struct park_item *item)
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

static void list_keys_locked(const struct park *p, struct findings *f)
{
    f->n = 0;
    for (const struct park_item *item = p->head; item && f->n < PARK_KEYS_MAX; item = item->next)
        if (key_index(f, item->key) == f->n)
            f->keys[f->n++] = item->key;
}

/* Is the next item of this key worth a try? Counts it. */
static bool take_one(struct findings *f, int64_t key)
{
    size_t i = key_index(f, key);
    if (i == f->n)
        return f->was_asked && f->n == PARK_KEYS_MAX; /* no room to ask; else it came meanwhile */
    return f->counts[i] > 0 && f->counts[i]--;
}

/* Unlink what is to be tried again: what was found to be worth it, and those whose time is over or
 * whose peer left. */
static struct park_item *take_due_locked(struct park *p, struct findings *f)
{
    int64_t now = clock_mono_ns();
    struct park_item *due = NULL, **due_tail = &due, *item = p->head, *next;
    p->head = NULL;
    p->tail = &p->head;
    for (; item; item = next) {
        next = item->next;
        bool is_over = p->is_draining || now >= item->until_ns || atomic_load(item->is_gone);
        append(is_over || take_one(f, item->key) ? &due_tail : &p->tail, item);
    }
    return due;
}

static int64_t next_deadline_locked(const struct park *p, int64_t tick_ns)
{
    int64_t next = p->head ? tick_ns : INT64_MAX;
    for (const struct park_item *item = p->head; item; item = item->next)
        next = item->until_ns < next ? item->until_ns : next;
    return next;
}

/* Wait for the next tick, deadline, change or departure. Says whether to probe. */
static bool wait_locked(struct park *p, int64_t tick_ns)
{
    int rc = 0;
    while (!p->look_again && !p->is_stopping && rc != ETIMEDOUT) {
        int64_t at = next_deadline_locked(p, tick_ns);
        const struct timespec until = {.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S};
        rc = at == INT64_MAX ? pthread_cond_wait(&p->wake, &p->lock)
                             : pthread_cond_timedwait(&p->wake, &p->lock, &until);
    }
    bool is_tick = p->is_changed || clock_mono_ns() >= tick_ns;
    p->look_again = false;
    p->is_changed = false;
    return is_tick && p->head;
}

static void retry_all(struct park *p, struct park_item *due)
{
    while (due) {
        struct park_item *item = due;
        due = item->next;
        p->hooks.retry(p->hooks.ctx, item);
    }
}

static void *run(void *arg)
{
    struct park *p = arg;
    struct findings found;
    int64_t tick_ns = clock_mono_ns();
    pthread_mutex_lock(&p->lock);
    while (!p->is_stopping) {
        found.n = 0;
        found.was_asked = wait_locked(p, tick_ns);
        if (found.was_asked) {
            list_keys_locked(p, &found);
            pthread_mutex_unlock(&p->lock);
            p->hooks.probe(p->hooks.ctx, found.keys, found.n, found.counts);
            tick_ns = clock_mono_ns() + PARK_TICK_MS * NS_PER_MS;
            pthread_mutex_lock(&p->lock);
        }
        struct park_item *due = take_due_locked(p, &found);
        pthread_mutex_unlock(&p->lock);
        retry_all(p, due);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

as_status park_create(const struct park_hooks *hooks, struct park **ret, struct as_err *err)
{
    AS_AUTO(park_freep) struct park *p = as_calloc(1, sizeof *p);
    pthread_condattr_t attr;
    if (!p)
        return as_fail(err, AS_E_NOMEM, "out of memory for the long-polls");
    p->hooks = *hooks;
    p->tail = &p->head;
    (void)pthread_mutex_init(&p->lock, NULL); /* none of these can fail on Linux */
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&p->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
    if (pthread_create(&p->thread, NULL, run, p) != 0)
        return as_fail(err, AS_E_NOMEM, "cannot start the thread of the long-polls");
    p->has_thread = true;
    *ret = as_steal(p);
    return AS_OK;
}

static void look_again_locked(struct park *p)
{
    p->look_again = true;
    pthread_cond_signal(&p->wake);
}

void park_add(struct park *p, struct park_item *item)
{
    pthread_mutex_lock(&p->lock);
    append(&p->tail, item);
    look_again_locked(p); /* its deadline may be before what the thread waits for */
    pthread_mutex_unlock(&p->lock);
}

void park_wake(struct park *p)
{
    pthread_mutex_lock(&p->lock);
    p->is_changed = true;
    look_again_locked(p);
    pthread_mutex_unlock(&p->lock);
}

void park_wake_gone(struct park *p)
{
    pthread_mutex_lock(&p->lock);
    look_again_locked(p);
    pthread_mutex_unlock(&p->lock);
}

void park_drain(struct park *p)
{
    pthread_mutex_lock(&p->lock);
    p->is_draining = true;
    look_again_locked(p);
    pthread_mutex_unlock(&p->lock);
}

void park_free(struct park *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->is_stopping = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    if (p->has_thread)
        (void)pthread_join(p->thread, NULL);
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->wake);
    free(p);
}
