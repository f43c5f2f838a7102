/* Connections are resumed once each, by whoever releases them while few wait, else by a thread. */
#include <pthread.h>
#include <stdatomic.h>

#include "api/http/http_resume_priv.h"
#include "base/clock.h"
#include "tests/support/check_main.h"

#define FEW 100
#define MANY 8000 /* wait, so that the pause is some milliseconds */
#define THREADS 4

static struct http_table *table;
static struct http_resumer *resumer;
static struct http_resumed items[MANY];
static atomic_int times[MANY], n_resumed, n_elsewhere;
static pthread_t own;

/* Under the table's lock. */
static void resume(void *conn)
{
    atomic_fetch_add((atomic_int *)conn, 1);
    atomic_fetch_add(&n_elsewhere, !pthread_equal(pthread_self(), own));
    atomic_fetch_add(&n_resumed, 1);
}

static void setup(void)
{
    struct as_err err;
    const struct http_options opts = http_options_default();
    const struct http_app app = {0};
    own = pthread_self();
    ck_ok(http_table_create(&opts, &app, &table, &err), err);
    ck_ok(http_resumer_create(table, resume, &resumer, &err), err);
    atomic_store(&n_resumed, 0);
    atomic_store(&n_elsewhere, 0);
    for (size_t i = 0; i < MANY; i++) {
        atomic_store(&times[i], 0);
        items[i].conn = &times[i];
    }
}

static void teardown(void)
{
    http_resumer_free(resumer);
    http_table_free(table);
}

static void await_resumed(int n)
{
    int64_t until_ns = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (atomic_load(&n_resumed) < n && clock_mono_ns() < until_ns)
        clock_sleep_ms(1);
    ck_assert_int_eq(atomic_load(&n_resumed), n);
}

START_TEST(few_are_resumed_at_once)
{
    for (size_t i = 0; i < FEW; i++)
        http_resumer_waits(resumer);
    for (int i = 0; i < FEW; i++) {
        http_resumer_add(resumer, &items[i]);
        ck_assert_int_eq(atomic_load(&n_resumed), i + 1);
    }
    ck_assert_int_eq(atomic_load(&n_elsewhere), 0);
}
END_TEST

static void *add_a_share(void *arg)
{
    for (size_t i = (size_t)(uintptr_t)arg; i < MANY; i += THREADS)
        http_resumer_add(resumer, &items[i]);
    return NULL;
}

START_TEST(each_of_many_is_resumed_once)
{
    pthread_t t[THREADS];
    for (size_t i = 0; i < MANY; i++)
        http_resumer_waits(resumer);
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, add_a_share, (void *)(uintptr_t)i), 0);
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(t[i], NULL), 0);
    await_resumed(MANY);
    for (size_t i = 0; i < MANY; i++)
        ck_assert_int_eq(atomic_load(&times[i]), 1);
}
END_TEST

/* One that is released while thousands wait is resumed by the thread. */
START_TEST(one_among_many_is_resumed)
{
    for (size_t i = 0; i < MANY; i++)
        http_resumer_waits(resumer);
    http_resumer_add(resumer, &items[0]);
    await_resumed(1);
    ck_assert_int_eq(atomic_load(&n_elsewhere), 1);
    http_resumer_add(resumer, &items[1]);
    await_resumed(2);
}
END_TEST

START_TEST(the_end_resumes_what_is_left)
{
    for (size_t i = 0; i < MANY; i++)
        http_resumer_waits(resumer);
    for (size_t i = 0; i < FEW; i++)
        http_resumer_add(resumer, &items[i]);
    http_resumer_free(resumer);
    resumer = NULL;
    ck_assert_int_eq(atomic_load(&n_resumed), FEW);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api/http/http_resume");
    TCase *t = tcase_create("resume");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, few_are_resumed_at_once);
    tcase_add_test(t, each_of_many_is_resumed_once);
    tcase_add_test(t, one_among_many_is_resumed);
    tcase_add_test(t, the_end_resumes_what_is_left);
    suite_add_tcase(s, t);
    return s;
}
