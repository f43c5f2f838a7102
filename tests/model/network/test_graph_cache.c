/* A repeated step: called, then recorded, then launched from its record; reference always calls.
 * ASSAY_TEST_BACKEND names the back end ("cpu" when absent). */
#include <stdlib.h>
#include <string.h>

#include "kernels/ops.h"
#include "tests/support/check_main.h"
#include "model/network/graph_cache.h"

/* The step moves a clock by one. */
struct steps {
    struct backend *be;
    struct buf *at, *table, *out;
    size_t calls;
    bool fails;
};

static struct as_err err;
static struct steps s;
static struct graph_cache graphs;

static as_status move_clock(void *arg, struct as_err *e)
{
    struct steps *t = arg;
    struct tick_args a = {
        1, 4, 1, tensor_at(t->table, 0, 4), tensor_at(t->at, 0, 1), tensor_at(t->out, 0, 1)};
    t->calls++;
    as_status st = backend_tick(t->be, &a, e);
    return st == AS_OK && t->fails ? as_fail(e, AS_E_INVAL, "made to fail") : st;
}

static void setup(void)
{
    const char *name = getenv("ASSAY_TEST_BACKEND");
    s = (struct steps){0};
    graphs = (struct graph_cache){0};
    ck_ok(backend_open(name != NULL ? name : "cpu", NULL, &s.be, &err), err);
    ck_ok(buf_create(s.be, BUF_I32, 1, &s.at, &err), err);
    ck_ok(buf_create(s.be, BUF_F32, 4, &s.table, &err), err);
    ck_ok(buf_create(s.be, BUF_F32, 1, &s.out, &err), err);
}

static void teardown(void)
{
    graph_cache_done(&graphs);
    buf_free(s.at);
    buf_free(s.table);
    buf_free(s.out);
    backend_free(s.be);
}

static bool records(void)
{
    return strcmp(backend_name(s.be), "reference") != 0;
}

static void step(size_t rows)
{
    struct graph_cache_key key = {0, 1, rows, 0};
    ck_ok(graph_cache_step(&graphs, s.be, key, move_clock, &s, &err), err);
}

static int32_t clock_now(void)
{
    int32_t at = -1;
    ck_ok(buf_download(s.at, 0, &at, 1, &err), err);
    return at;
}

START_TEST(called_recorded_launched)
{
    for (int i = 0; i < 5; i++)
        step(7);
    ck_assert_int_eq(clock_now(), 5);
    ck_assert_uint_eq(s.calls, records() ? 2 : 5);
    step(3); /* another key: called anew */
    ck_assert_uint_eq(s.calls, records() ? 3 : 6);
    step(7);
    ck_assert_uint_eq(s.calls, records() ? 3 : 7);
    ck_assert_int_eq(clock_now(), 7);
}
END_TEST

/* More keys than places: the oldest goes, and comes back as a new one. */
START_TEST(oldest_makes_room)
{
    for (size_t rows = 0; rows <= GRAPH_CACHE_ENTRIES; rows++)
        for (int i = 0; i < 3; i++)
            step(rows);
    size_t before = s.calls;
    step(0);
    ck_assert_uint_eq(s.calls, before + 1);
    ck_assert_int_eq(clock_now(), 3 * (GRAPH_CACHE_ENTRIES + 1) + 1);
}
END_TEST

/* A step that fails while it is recorded leaves no record, and the device takes the next. */
START_TEST(failure_leaves_no_record)
{
    struct graph_cache_key key = {0, 1, 7, 0};
    step(7);
    s.fails = true;
    ck_fails(graph_cache_step(&graphs, s.be, key, move_clock, &s, &err), AS_E_INVAL, err,
             "made to");
    s.fails = false;
    int32_t at = clock_now();
    ck_assert_int_eq(at, records() ? 1 : 2);
    step(7);
    step(7);
    ck_assert_int_eq(clock_now(), at + 2);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("train_replay");
    TCase *c = tcase_create("graph_cache");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, called_recorded_launched);
    tcase_add_test(c, oldest_makes_room);
    tcase_add_test(c, failure_leaves_no_record);
    suite_add_tcase(suite, c);
    return suite;
}
