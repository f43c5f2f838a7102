/* Which items are retried, and when: by key, at their deadline, after departures, at the end. */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "api/server/waiting.h"
#include "base/clock.h"
#include "tests/support/check_main.h"

/* An item that waits. When it is retried, it is added to a list. */
struct waiter {
    struct waiting_item item;
    atomic_bool is_gone;
    int64_t tried_ns;
};

/* The state behind the hooks: the counts that the probe returns, and the retried items. */
struct world {
    struct waiting_list *list;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t change;
    struct waiter *tried[600];
    size_t n_tried;
    int64_t keys[8]; /* the probe returns a count for these */
    size_t counts[8];
    int probes;
    size_t n_keys_asked; /* by the latest probe */
};

static void on_retry(void *ctx, struct waiting_item *item)
{
    struct world *w = ctx;
    pthread_mutex_lock(&w->lock);
    struct waiter *one = (struct waiter *)(void *)item;
    one->tried_ns = clock_mono_ns();
    w->tried[w->n_tried++] = one;
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->lock);
}

static void on_probe(void *ctx, const int64_t *keys, size_t n, size_t *ret)
{
    struct world *w = ctx;
    pthread_mutex_lock(&w->lock);
    w->probes++;
    w->n_keys_asked = n;
    for (size_t i = 0; i < n; i++) {
        ret[i] = 0;
        for (size_t k = 0; k < AS_ARRAY_LEN(w->keys); k++)
            if (w->keys[k] == keys[i])
                ret[i] = w->counts[k];
        for (size_t k = 0; k < i; k++)
            ck_assert(keys[k] != keys[i]);
    }
    memset(w->counts, 0, sizeof w->counts);
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->lock);
}

static void begin_world(struct world *w)
{
    struct as_err err;
    *w = (struct world){0};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->change, NULL);
    const struct waiting_hooks hooks = {.retry = on_retry, .probe = on_probe, .ctx = w};
    ck_ok(waiting_create(&hooks, &w->list, &err), err);
}

static void end_world(struct world *w)
{
    waiting_drain(w->list);
    waiting_free(w->list);
    pthread_cond_destroy(&w->change);
    pthread_mutex_destroy(&w->lock);
}

static void add_waiter(struct world *w, struct waiter *one, int64_t key, int64_t wait_ms)
{
    *one = (struct waiter){.item = {.key = key, .is_gone = &one->is_gone}};
    one->item.until_ns = clock_mono_ns() + wait_ms * NS_PER_MS;
    waiting_add(w->list, &one->item);
}

static void wait_tried(struct world *w, size_t n)
{
    pthread_mutex_lock(&w->lock);
    while (w->n_tried < n)
        pthread_cond_wait(&w->change, &w->lock);
    ck_assert_uint_eq(w->n_tried, n);
    pthread_mutex_unlock(&w->lock);
}

/* Wait until two more probes have begun and ended. */
static void wait_probes(struct world *w)
{
    pthread_mutex_lock(&w->lock);
    for (int until = w->probes + 2; w->probes < until;)
        pthread_cond_wait(&w->change, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static void offer_count(struct world *w, size_t place, int64_t key, size_t count)
{
    pthread_mutex_lock(&w->lock);
    w->keys[place] = key;
    w->counts[place] = count;
    pthread_mutex_unlock(&w->lock);
}

static void check_count(struct world *w, size_t any_trial, size_t one_sweep)
{
    struct waiting_counts n = waiting_count(w->list);
    ck_assert_uint_eq(n.any_trial, any_trial);
    ck_assert_uint_eq(n.one_sweep, one_sweep);
}

/* Clients of a sweep and runners are retried for their own keys, the longest waiting first. */
START_TEST(test_keys)
{
    struct world w;
    struct waiter waiters[6];
    static const int64_t keys[] = {7, WAITING_CLAIMS, 9, 7, WAITING_CLAIMS, 9};
    begin_world(&w);
    for (size_t i = 0; i < AS_ARRAY_LEN(waiters); i++)
        add_waiter(&w, &waiters[i], keys[i], 60000);
    wait_probes(&w);
    wait_tried(&w, 0);
    check_count(&w, 2, 4);
    offer_count(&w, 0, WAITING_CLAIMS, 1);
    waiting_wake(w.list);
    wait_tried(&w, 1);
    ck_assert_ptr_eq(w.tried[0], &waiters[1]);
    check_count(&w, 1, 4);
    offer_count(&w, 0, 9, SIZE_MAX);
    waiting_wake(w.list);
    wait_tried(&w, 3);
    ck_assert_ptr_eq(w.tried[1], &waiters[2]);
    ck_assert_ptr_eq(w.tried[2], &waiters[5]);
    offer_count(&w, 0, 7, 1);
    offer_count(&w, 1, WAITING_CLAIMS, 5);
    waiting_wake(w.list);
    wait_tried(&w, 5);
    ck_assert_ptr_eq(w.tried[3], &waiters[0]);
    ck_assert_ptr_eq(w.tried[4], &waiters[4]);
    waiting_drain(w.list);
    wait_tried(&w, 6);
    ck_assert_ptr_eq(w.tried[5], &waiters[3]);
    check_count(&w, 0, 0);
    end_world(&w);
}
END_TEST

/* Deadlines that pass and peers that leave, while the probe finds nothing. */
START_TEST(test_impatient)
{
    struct world w;
    struct waiter brief, gone, patient;
    begin_world(&w);
    add_waiter(&w, &patient, 7, 60000);
    add_waiter(&w, &gone, 7, 60000);
    int64_t start = clock_mono_ns();
    add_waiter(&w, &brief, 8, 40);
    wait_tried(&w, 1);
    ck_assert_ptr_eq(w.tried[0], &brief);
    ck_assert(brief.tried_ns - start >= 40 * NS_PER_MS);
    atomic_store(&gone.is_gone, true);
    waiting_wake_gone(w.list);
    wait_tried(&w, 2);
    ck_assert_ptr_eq(w.tried[1], &gone);
    waiting_drain(w.list);
    wait_tried(&w, 3);
    end_world(&w);
}
END_TEST

/* More keys than one probe has room for: items of the other keys are retried. */
START_TEST(test_many_keys)
{
    struct world w;
    static struct waiter waiters[WAITING_KEYS_MAX + 40];
    begin_world(&w);
    for (size_t i = 0; i < AS_ARRAY_LEN(waiters); i++)
        add_waiter(&w, &waiters[i], (int64_t)i + 1, 60000);
    wait_tried(&w, 40);
    for (size_t i = 0; i < 40; i++)
        ck_assert_ptr_eq(w.tried[i], &waiters[WAITING_KEYS_MAX + i]);
    waiting_drain(w.list);
    wait_tried(&w, AS_ARRAY_LEN(waiters));
    end_world(&w);
}
END_TEST

/* No item waits: no probe is made. */
START_TEST(test_empty)
{
    struct world w;
    struct waiter one;
    begin_world(&w);
    for (int i = 0; i < 100; i++)
        waiting_wake(w.list);
    add_waiter(&w, &one, 7, 0);
    wait_tried(&w, 1);
    ck_assert_int_le(w.probes, 1);
    end_world(&w);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_waiting");
    TCase *tc = tcase_create("waiting");
    tcase_add_test(tc, test_keys);
    tcase_add_test(tc, test_impatient);
    tcase_add_test(tc, test_many_keys);
    tcase_add_test(tc, test_empty);
    suite_add_tcase(s, tc);
    return s;
}
