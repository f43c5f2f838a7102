/* A connection is resumed by whoever releases it where few wait, else by a thread that takes all
 * that were released since its last turn. The rest of a turn is what their I/O thread needs to go
 * through its list. */
#include "api/http/http_resume_priv.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/mem.h"

#define EACH_NS 500                        /* of the pause, for each connection that waits */
#define PAUSE_MIN_NS (500 * INT64_C(1000)) /* a shorter one is none */

struct http_resumer {
    struct http_table *table;
    void (*resume)(void *conn);
    atomic_int n_waiting;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t wake;
    struct http_resumed *first;
    bool is_stopping;
    pthread_t thread;
    bool has_thread;
};

static int64_t pause_of(struct http_resumer *r)
{
    int64_t pause_ns = (int64_t)atomic_load(&r->n_waiting) * EACH_NS;
    return pause_ns < PAUSE_MIN_NS ? 0 : pause_ns;
}

static struct http_resumed *take_all_locked(struct http_resumer *r)
{
    struct http_resumed *all = r->first;
    r->first = NULL;
    return all;
}

static void resume_all(struct http_resumer *r, struct http_resumed *item)
{
    while (item) {
        struct http_resumed *next = item->next; /* the item may be gone afterwards */
        http_table_release(r->table, r->resume, item->conn);
        item = next;
    }
}

static void *resume_paced(void *arg)
{
    struct http_resumer *r = arg;
    int64_t begin_ns = 0;
    pthread_mutex_lock(&r->lock);
    while (!r->is_stopping || r->first) {
        if (!r->first) {
            (void)pthread_cond_wait(&r->wake, &r->lock);
            continue;
        }
        if (!r->is_stopping && clock_mono_ns() < begin_ns) {
            (void)clock_cond_wait(&r->wake, &r->lock, begin_ns);
            continue;
        }
        struct http_resumed *all = take_all_locked(r);
        pthread_mutex_unlock(&r->lock);
        begin_ns = clock_mono_ns() + pause_of(r);
        resume_all(r, all);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

as_status http_resumer_create(struct http_table *table, void (*resume)(void *conn),
                              struct http_resumer **ret, struct as_err *err)
{
    struct http_resumer *r = as_calloc(1, sizeof *r);
    if (!r)
        return as_fail(err, AS_E_NOMEM, "out of memory for the connections");
    r->table = table;
    r->resume = resume;
    (void)pthread_mutex_init(&r->lock, NULL); /* none of these can fail on Linux */
    clock_cond_init(&r->wake);
    r->has_thread = pthread_create(&r->thread, NULL, resume_paced, r) == 0;
    if (!r->has_thread) {
        http_resumer_free(r);
        return as_fail(err, AS_E_NOMEM, "cannot start the thread that resumes connections");
    }
    *ret = r;
    return AS_OK;
}

void http_resumer_waits(struct http_resumer *r)
{
    (void)atomic_fetch_add(&r->n_waiting, 1);
}

void http_resumer_add(struct http_resumer *r, struct http_resumed *item)
{
    bool is_at_once = pause_of(r) == 0;
    (void)atomic_fetch_sub(&r->n_waiting, 1);
    if (is_at_once) {
        http_table_release(r->table, r->resume, item->conn);
        return;
    }
    pthread_mutex_lock(&r->lock);
    bool was_empty = !r->first;
    item->next = r->first;
    r->first = item;
    if (was_empty)
        pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
}

void http_resumer_free(struct http_resumer *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->is_stopping = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    if (r->has_thread)
        (void)pthread_join(r->thread, NULL);
    (void)pthread_cond_destroy(&r->wake);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}
