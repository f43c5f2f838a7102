/* The pool, and the lanes of the cpu back end over it. Sanitizers (TSan too) run this program. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "kernels/cpu/pool.h"
#include "kernels/ops.h"
#include "tests/support/check_main.h"

#define PIECES 1000

static struct pool *pool_of(size_t threads)
{
    struct as_err err;
    struct pool *p = NULL;
    ck_ok(pool_create(threads, NULL, &p, &err), err);
    ck_assert_uint_eq(pool_threads(p), threads);
    return p;
}

/* Not atomic on purpose: a piece that is done twice, or that the caller does not see, is a race. */
static void count_piece(void *arg, size_t i, size_t who)
{
    int *counts = arg;
    counts[i]++;
    ck_assert_uint_lt(who, 8);
}

START_TEST(each_piece_once)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, 8, 9, PIECES};
    for (size_t threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
        struct pool *p = pool_of(threads);
        for (size_t s = 0; s < AS_ARRAY_LEN(sizes); s++) {
            int counts[PIECES] = {0};
            pool_run(p, sizes[s], count_piece, counts);
            for (size_t i = 0; i < PIECES; i++)
                ck_assert_int_eq(counts[i], i < sizes[s]);
        }
        pool_free(p);
    }
}
END_TEST

static void add_piece(void *arg, size_t i, size_t who)
{
    uint64_t *sums = arg;
    (void)who;
    sums[i] += i;
}

/* Jobs right after one another, so that a thread is often late for the last one. */
START_TEST(many_small_jobs)
{
    struct pool *p = pool_of(4);
    uint64_t sums[5] = {0};
    for (int job = 0; job < 20000; job++)
        pool_run(p, 1 + (size_t)job % 5, add_piece, sums);
    pool_free(p);
    for (size_t i = 0; i < 5; i++)
        ck_assert_uint_eq(sums[i], i * (20000 - 4000 * i));
}
END_TEST

static void sleep_ms(long ms)
{
    struct timespec t = {0, ms * 1000000};
    ck_assert_int_eq(nanosleep(&t, NULL), 0);
}

static void meet(void *arg, size_t i, size_t who)
{
    atomic_int *here = arg;
    (void)i;
    (void)who;
    atomic_fetch_add(here, 1);
    for (int ms = 0; atomic_load(here) < 3 && ms < PATIENCE_MS; ms++)
        sleep_ms(1);
}

/* Three pieces that wait for one another need three threads at once, awake or asleep before. */
START_TEST(sleepers_wake)
{
    struct pool *p = pool_of(3);
    for (int round = 0; round < 10; round++) {
        atomic_int here = 0;
        sleep_ms(2); /* much longer than the spin */
        pool_run(p, 3, meet, &here);
        ck_assert_int_eq(atomic_load(&here), 3);
    }
    pool_free(p);
}
END_TEST

static atomic_int begun;

static void count_begin(void)
{
    atomic_fetch_add(&begun, 1);
}

START_TEST(begins_in_each_thread)
{
    struct as_err err;
    struct pool *p = NULL;
    ck_fails(pool_create(0, NULL, &p, &err), AS_E_INVAL, err, "0 threads");
    ck_ok(pool_create(5, count_begin, &p, &err), err);
    ck_assert_int_eq(atomic_load(&begun), 4); /* the caller has begun long ago */
    pool_free(p);
}
END_TEST

/* ---- lanes ---- */

#define MEMBERS 13
#define WIDTH 9

static struct backend *be;

static void open_two(void)
{
    struct as_err err;
    ck_ok(backend_open("cpu", &(struct backend_opts){.threads = 2}, &be, &err), err);
}

static void close_two(void)
{
    backend_freep(&be);
}

struct act_task {
    struct act_args args;
    int calls[MEMBERS];
};

static as_status run_member(struct backend *lane, size_t i, void *arg, struct as_err *err)
{
    struct act_task *t = arg;
    struct act_args a = t->args;
    t->calls[i]++;
    a.members = 1;
    a.kept = tensor_from(a.kept, i);
    a.dy = tensor_from(a.dy, i);
    a.dx = tensor_from(a.dx, i);
    return backend_act_backward(lane, &a, err);
}

START_TEST(lanes_take_the_same_buffers)
{
    struct as_err err;
    AS_AUTO(buf_freep) struct buf *b = NULL;
    ck_ok(buf_create(be, BUF_F32, 3 * MEMBERS * WIDTH, &b, &err), err);
    for (size_t i = 0; i < MEMBERS * WIDTH; i++)
        ck_ok(buf_fill_f32(b, i, 1, (float)i, &err), err);
    ck_ok(buf_fill_f32(b, MEMBERS * WIDTH, MEMBERS * WIDTH, -1, &err), err);
    struct act_task t = {.args = {.members = MEMBERS,
                                  .n = WIDTH,
                                  .act = ACT_NONE,
                                  .kept = tensor_at(b, MEMBERS * WIDTH, WIDTH),
                                  .dy = tensor_at(b, 0, WIDTH),
                                  .dx = tensor_at(b, (size_t)2 * MEMBERS * WIDTH, WIDTH)}};
    ck_assert_uint_eq(backend_lanes(be), 2);
    ck_ok(backend_for_each(be, MEMBERS, run_member, &t, &err), err);
    float got[MEMBERS * WIDTH];
    ck_ok(buf_download(b, (size_t)2 * MEMBERS * WIDTH, got, MEMBERS * WIDTH, &err), err);
    for (size_t i = 0; i < MEMBERS * WIDTH; i++)
        ck_assert(got[i] == (float)i);
    for (size_t k = 0; k < MEMBERS; k++)
        ck_assert_int_eq(t.calls[k], 1);
}
END_TEST

static as_status make_buffer(struct backend *lane, size_t i, void *arg, struct as_err *err)
{
    struct buf **made = arg;
    (void)i;
    ck_assert_uint_eq(backend_lanes(lane), 1);
    ck_assert_str_eq(backend_name(lane), "cpu");
    return buf_create(lane, BUF_F32, 4, &made[i], err);
}

/* A buffer made in a lane belongs to the back end: it outlives the call and works with any lane. */
START_TEST(lanes_make_buffers)
{
    struct as_err err;
    struct buf *made[4] = {NULL};
    ck_ok(backend_for_each(be, 4, make_buffer, made, &err), err);
    struct act_args a = {1,
                         4,
                         ACT_NONE,
                         tensor_at(made[0], 0, 4),
                         tensor_at(made[1], 0, 4),
                         tensor_at(made[2], 0, 4)};
    ck_ok(backend_act_backward(be, &a, &err), err);
    ck_ok(buf_copy(made[3], 0, made[2], 0, 4, &err), err);
    for (size_t i = 0; i < 4; i++)
        buf_free(made[i]);
}
END_TEST

static as_status fail_some(struct backend *lane, size_t i, void *arg, struct as_err *err)
{
    atomic_int *calls = arg;
    (void)lane;
    atomic_fetch_add(calls, 1);
    if (i == 5)
        return as_fail(err, AS_E_NUMERIC, "task five");
    return i > 5 && i % 2 == 1 ? as_fail(err, AS_E_INVAL, "task %zu", i) : AS_OK;
}

/* All tasks are run, and the error of the lowest one is returned, with any number of lanes. */
START_TEST(lowest_error_wins)
{
    static const char *const names[] = {"cpu", "cpu", "reference"};
    for (int threads = 1; threads <= 3; threads++) {
        struct as_err err;
        AS_AUTO(backend_freep) struct backend *b = NULL;
        ck_ok(
            backend_open(names[threads - 1], &(struct backend_opts){.threads = threads}, &b, &err),
            err);
        atomic_int calls = 0;
        ck_fails(backend_for_each(b, 40, fail_some, &calls, &err), AS_E_NUMERIC, err, "task five");
        ck_assert_int_eq(atomic_load(&calls), 40);
        ck_assert_int_eq(backend_for_each(b, 40, fail_some, &calls, NULL), AS_E_NUMERIC);
    }
}
END_TEST

START_TEST(other_back_ends_refused)
{
    struct as_err err;
    AS_AUTO(backend_freep) struct backend *other = NULL;
    AS_AUTO(buf_freep) struct buf *b = NULL;
    ck_ok(backend_open("cpu", &(struct backend_opts){.threads = 2}, &other, &err), err);
    ck_ok(buf_create(other, BUF_F32, (size_t)3 * WIDTH, &b, &err), err);
    struct act_task t = {.args = {1, WIDTH, ACT_NONE, tensor_at(b, 0, 0), tensor_at(b, WIDTH, 0),
                                  tensor_at(b, (size_t)2 * WIDTH, 0)}};
    ck_fails(backend_for_each(be, 2, run_member, &t, &err), AS_E_INVAL, err,
             "belongs to another back end");
}
END_TEST

START_TEST(no_graphs_of_the_reference)
{
    struct as_err err;
    struct graph *g = NULL;
    AS_AUTO(backend_freep) struct backend *b = NULL;
    ck_ok(backend_open("reference", NULL, &b, &err), err);
    ck_fails(backend_graph_begin(b, &err), AS_E_UNSUPPORTED, err, "reference");
    ck_fails(backend_graph_end(b, &g, &err), AS_E_UNSUPPORTED, err, "reference");
    ck_fails(backend_graph_run(b, g, &err), AS_E_UNSUPPORTED, err, "reference");
    graph_free(g);
}
END_TEST

/* Each task records a member's operation in its lane, runs it there, and leaves it for the back end
 * itself and for whatever lane comes next. */
struct graph_task {
    struct act_task act;
    struct graph *g[MEMBERS];
};

static as_status record_member(struct backend *lane, size_t i, void *arg, struct as_err *err)
{
    struct graph_task *t = arg;
    as_status st = backend_graph_begin(lane, err);
    if (st < 0)
        return st;
    st = run_member(lane, i, &t->act, err);
    as_status end = backend_graph_end(lane, &t->g[i], err);
    return st < 0 ? st : end;
}

static as_status rerun_member(struct backend *lane, size_t i, void *arg, struct as_err *err)
{
    struct graph_task *t = arg;
    return backend_graph_run(lane, t->g[MEMBERS - 1 - i], err);
}

START_TEST(graphs_of_lanes)
{
    struct as_err err;
    AS_AUTO(buf_freep) struct buf *b = NULL;
    AS_AUTO(backend_freep) struct backend *other = NULL;
    size_t n = (size_t)MEMBERS * WIDTH;
    float x[WIDTH], y[WIDTH];
    for (size_t i = 0; i < WIDTH; i++)
        x[i] = (float)i - 3;
    ck_ok(buf_create(be, BUF_F32, 3 * n, &b, &err), err);
    for (size_t k = 0; k < 2 * (size_t)MEMBERS; k++)
        ck_ok(buf_upload(b, k * WIDTH, x, WIDTH, &err), err);
    struct graph_task t = {.act.args = {1, WIDTH, ACT_RELU, tensor_at(b, 0, WIDTH),
                                        tensor_at(b, n, WIDTH), tensor_at(b, 2 * n, WIDTH)}};
    ck_ok(backend_for_each(be, MEMBERS, record_member, &t, &err), err);
    ck_ok(buf_download(b, 2 * n, y, WIDTH, &err), err);
    for (size_t i = 0; i < WIDTH; i++)
        ck_assert(y[i] == 0); /* nothing ran yet */
    ck_ok(backend_for_each(be, MEMBERS, rerun_member, &t, &err), err);
    for (size_t k = 0; k < MEMBERS; k++) {
        ck_ok(buf_download(b, 2 * n + k * WIDTH, y, WIDTH, &err), err);
        for (size_t i = 0; i < WIDTH; i++)
            ck_assert(y[i] == (x[i] > 0 ? x[i] : 0));
    }
    ck_ok(backend_open("cpu", NULL, &other, &err), err);
    ck_fails(backend_graph_run(other, t.g[0], &err), AS_E_INVAL, err, "another back end");
    for (size_t k = 0; k < MEMBERS; k++)
        graph_free(t.g[k]);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("kernels_pool");
    TCase *pool = tcase_create("pool"), *lanes = tcase_create("lanes");
    tcase_add_test(pool, each_piece_once);
    tcase_add_test(pool, many_small_jobs);
    tcase_add_test(pool, sleepers_wake);
    tcase_add_test(pool, begins_in_each_thread);
    suite_add_tcase(s, pool);
    tcase_add_checked_fixture(lanes, open_two, close_two);
    tcase_add_test(lanes, lanes_take_the_same_buffers);
    tcase_add_test(lanes, lanes_make_buffers);
    tcase_add_test(lanes, lowest_error_wins);
    tcase_add_test(lanes, other_back_ends_refused);
    tcase_add_test(lanes, graphs_of_lanes);
    tcase_add_test(lanes, no_graphs_of_the_reference);
    suite_add_tcase(s, lanes);
    return s;
}
