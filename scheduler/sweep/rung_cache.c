/* A list of boards, searched from its front. Lock: rung_cache.mu guards the list; it is never held
 * while a board is read. */
#include "scheduler/sweep/rung_cache.h"

#include <pthread.h>

struct entry {
    int64_t key, stamp;
    struct rung_board *board;
};

struct rung_cache {
    pthread_mutex_t mu;
    struct entry rows[RUNG_CACHE_MAX]; /* the most recently put one is the last */
    size_t n;
};

as_status rung_cache_create(struct rung_cache **ret, struct as_err *err)
{
    struct rung_cache *c = as_calloc(1, sizeof *c);
    if (!c)
        return as_fail_nomem(err);
    pthread_mutex_init(&c->mu, NULL);
    *ret = c;
    return AS_OK;
}

void rung_cache_free(struct rung_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        rung_board_free(c->rows[i].board);
    pthread_mutex_destroy(&c->mu);
    free(c);
}

static struct entry remove_locked(struct rung_cache *c, size_t place)
{
    struct entry e = c->rows[place];
    c->n--;
    for (size_t i = place; i < c->n; i++)
        c->rows[i] = c->rows[i + 1];
    return e;
}

struct rung_board *rung_cache_take(struct rung_cache *c, int64_t key, int64_t stamp)
{
    struct entry e = {0};
    pthread_mutex_lock(&c->mu);
    for (size_t i = 0; i < c->n; i++) {
        if (c->rows[i].key != key)
            continue;
        e = remove_locked(c, i);
        break;
    }
    pthread_mutex_unlock(&c->mu);
    if (e.board && e.stamp == stamp)
        return e.board;
    rung_board_free(e.board);
    return NULL;
}

void rung_cache_put(struct rung_cache *c, int64_t key, int64_t stamp, struct rung_board *b)
{
    struct rung_board *old = NULL;
    size_t place = 0;
    pthread_mutex_lock(&c->mu);
    while (place < c->n && c->rows[place].key != key)
        place++;
    if (place < c->n)
        old = remove_locked(c, place).board;
    else if (c->n == RUNG_CACHE_MAX)
        old = remove_locked(c, 0).board;
    c->rows[c->n++] = (struct entry){key, stamp, b};
    pthread_mutex_unlock(&c->mu);
    rung_board_free(old);
}
