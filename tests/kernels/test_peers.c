/* Messages between the devices of several processes, on emulated devices and with a library that
 * stands in for NCCL: what arrives, in which order with the device's own operations, and that no
 * wait is for ever. NCCL itself has not run in a test. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kernels/ops.h"
#include "kernels/peers.h"
#include "tests/support/check_main.h"
#include "tests/support/expect.h"

#define N 10007
#define RANKS_MAX 4
#define OPEN_MS 20000

static struct as_err err;

typedef int rank_fn(int32_t rank, int32_t n, const uint8_t *id);

/* One rank asks the library for an id, as in a trial. */
static void make_id(uint8_t ret[PEERS_ID_BYTES])
{
    struct backend *be = NULL;
    ck_ok(backend_open("cuda", NULL, &be, &err), err);
    ck_ok(peers_new_id(be, ret, &err), err);
    backend_free(be);
}

static as_status open_group(struct backend *be, const uint8_t *id, int32_t rank, int32_t n,
                            int64_t timeout_ms, struct peers **ret)
{
    struct peers_group g = {.rank = rank, .n = n, .timeout_ms = timeout_ms};
    memcpy(g.id, id, sizeof g.id);
    return peers_open(be, &g, ret, &err);
}

static void start(int32_t n, rank_fn *f, pid_t pids[RANKS_MAX])
{
    uint8_t id[PEERS_ID_BYTES];
    make_id(id);
    (void)fflush(NULL);
    for (int32_t r = 0; r < n; r++)
        if ((pids[r] = fork()) == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(f(r, n, id));
        }
}

static void expect_well(int32_t n, const pid_t pids[RANKS_MAX])
{
    for (int32_t r = 0; r < n; r++) {
        int status = -1;
        ck_assert_int_eq(waitpid(pids[r], &status, 0), pids[r]);
        ck_assert_msg(status == 0, "rank %d ended with %d", (int)r, status);
    }
}

static float number_of(int32_t rank, size_t i)
{
    return (float)((i * 13 + (size_t)rank * 101) % 997) / 997.0F;
}

/* What a rank sends is what the operation before has computed, and the operation after a receive
 * sees what came: in a ring, each rank doubles what it got and passes it on. */
static int ring_rank(int32_t rank, int32_t n, const uint8_t *id)
{
    struct backend *be = NULL;
    struct peers *p = NULL;
    struct buf *a = NULL, *b = NULL;
    static float host[N];
    EXPECT(backend_open("cuda", NULL, &be, &err) == AS_OK);
    EXPECT(open_group(be, id, rank, n, OPEN_MS, &p) == AS_OK);
    EXPECT(buf_create(be, BUF_F32, N + 5, &a, &err) == AS_OK);
    EXPECT(buf_create(be, BUF_F32, N, &b, &err) == AS_OK);
    for (size_t i = 0; i < N; i++)
        host[i] = number_of(rank, i);
    EXPECT(buf_upload(b, 0, host, N, &err) == AS_OK);
    for (int32_t step = 0; step < n; step++) {
        struct add_args twice = {.members = 1,
                                 .n = N,
                                 .a = tensor_at(b, 0, 0),
                                 .b = tensor_at(b, 0, 0),
                                 .y = tensor_at(a, 5, 0),
                                 .act = ACT_NONE};
        /* In two messages each way, so that their order counts. */
        const struct peers_message messages[] = {
            {.peer = (rank + 1) % n, .sends = true, .buf = a, .at = 5, .n = 7},
            {.peer = (rank + n - 1) % n, .buf = b, .at = 0, .n = 7},
            {.peer = (rank + 1) % n, .sends = true, .buf = a, .at = 12, .n = N - 7},
            {.peer = (rank + n - 1) % n, .buf = b, .at = 7, .n = N - 7}};
        EXPECT(backend_add(be, &twice, &err) == AS_OK);
        EXPECT(peers_exchange(p, messages, 4, &err) == AS_OK);
        EXPECT(step % 2 || peers_wait(p, OPEN_MS, &err) == AS_OK);
    }
    EXPECT(peers_wait(p, OPEN_MS, &err) == AS_OK);
    EXPECT(buf_download(b, 0, host, N, &err) == AS_OK);
    for (size_t i = 0; i < N; i++) /* once round: its own numbers, doubled n times */
        EXPECT(host[i] == number_of(rank, i) * (float)(1 << n));
    peers_free(p);
    buf_free(a);
    buf_free(b);
    backend_free(be);
    return 0;
}

START_TEST(messages_arrive_in_order_with_operations)
{
    pid_t pids[RANKS_MAX];
    for (int32_t n = 2; n <= RANKS_MAX; n++) {
        start(n, ring_rank, pids);
        expect_well(n, pids);
    }
}
END_TEST

/* Rank 2 dies when all have met. Rank 1, which waits for it, learns that; rank 0 is interrupted. */
static int dying_rank(int32_t rank, int32_t n, const uint8_t *id)
{
    struct backend *be = NULL;
    struct peers *p = NULL;
    struct buf *a = NULL;
    EXPECT(backend_open("cuda", NULL, &be, &err) == AS_OK);
    EXPECT(open_group(be, id, rank, n, OPEN_MS, &p) == AS_OK);
    EXPECT(buf_create(be, BUF_F32, N, &a, &err) == AS_OK);
    if (rank == 2)
        _exit(0);
    const struct peers_message message = {.peer = 2, .buf = a, .n = N};
    as_status st = peers_exchange(p, &message, 1, &err);
    if (st == AS_OK)
        st = peers_wait(p, OPEN_MS, &err);
    EXPECT(st == AS_E_UNAVAILABLE && strstr(err.msg, "remote process exited"));
    EXPECT(peers_exchange(p, &message, 1, &err) == AS_E_UNAVAILABLE); /* of no further use */
    EXPECT(peers_wait(p, OPEN_MS, &err) == AS_E_UNAVAILABLE);
    peers_free(p);
    buf_free(a);
    backend_free(be);
    return 0;
}

START_TEST(a_dead_peer_is_an_error)
{
    pid_t pids[RANKS_MAX];
    start(3, dying_rank, pids);
    expect_well(3, pids);
}
END_TEST

START_TEST(a_rank_that_does_not_come_is_waited_for_until_the_end)
{
    uint8_t id[PEERS_ID_BYTES];
    struct backend *be = NULL;
    struct peers *p = NULL;
    make_id(id);
    ck_ok(backend_open("cuda", NULL, &be, &err), err);
    int64_t start_ns = clock_mono_ns();
    ck_fails(open_group(be, id, 0, 2, 200, &p), AS_E_UNAVAILABLE, err, "a peer does not answer");
    ck_assert_int_ge(clock_mono_ns() - start_ns, 200 * NS_PER_MS);
    ck_assert_ptr_null(p);
    backend_free(be);
}
END_TEST

/* Rank 1 lives but sends nothing: rank 0 waits until its time is up, or until it is
 * notified that the group is over, and can use its device and another group after that. */
static bool is_over(void *arg)
{
    return clock_mono_ns() >= *(const int64_t *)arg;
}

static int silent_rank(int32_t rank, int32_t n, const uint8_t *id)
{
    struct backend *be = NULL;
    struct peers *p = NULL;
    struct buf *a = NULL;
    float out[2] = {0};
    int64_t over_ns = INT64_MAX;
    struct peers_group g = {
        .rank = rank, .n = n, .timeout_ms = OPEN_MS, .is_over = is_over, .arg = &over_ns};
    memcpy(g.id, id, sizeof g.id);
    EXPECT(backend_open("cuda", NULL, &be, &err) == AS_OK);
    EXPECT(buf_create(be, BUF_F32, N, &a, &err) == AS_OK);
    const struct peers_message message = {.peer = 1 - rank, .buf = a, .n = N}; /* both receive */
    for (int told = 0; told < 2; told++) {
        g.id[0] = (uint8_t)told; /* each group has an id of its own */
        over_ns = INT64_MAX;
        EXPECT(peers_open(be, &g, &p, &err) == AS_OK);
        EXPECT(peers_exchange(p, &message, 1, &err) == AS_OK);
        over_ns = told && rank == 0 ? clock_mono_ns() + 100 * NS_PER_MS : INT64_MAX;
        EXPECT(peers_wait(p, told || rank == 1 ? OPEN_MS : 100, &err) == AS_E_UNAVAILABLE);
        EXPECT(strstr(err.msg, rank == 1 ? "remote process exited"
                               : told    ? "the group is over"
                                         : "does not answer"));
        peers_free(p);
    }
    EXPECT(buf_fill_f32(a, 0, 2, 3, &err) == AS_OK);
    EXPECT(buf_download(a, 0, out, 2, &err) == AS_OK && out[1] == 3);
    buf_free(a);
    backend_free(be);
    return 0;
}

START_TEST(a_silent_peer_is_not_waited_for_without_end)
{
    pid_t pids[RANKS_MAX];
    start(2, silent_rank, pids);
    expect_well(2, pids);
}
END_TEST

/* The peer is lost, and the abort hangs as well. */
static int stuck_rank(int32_t rank, int32_t n, const uint8_t *id)
{
    struct backend *be = NULL;
    struct peers *p = NULL;
    struct buf *a = NULL;
    EXPECT(backend_open("cuda", NULL, &be, &err) == AS_OK);
    EXPECT(open_group(be, id, rank, n, OPEN_MS, &p) == AS_OK);
    EXPECT(buf_create(be, BUF_F32, N, &a, &err) == AS_OK);
    if (rank == 1)
        _exit(0);
    EXPECT(setenv("EMU_NCCL_ABORT", "hangs", 1) == 0);
    const struct peers_message message = {.peer = 1, .buf = a, .n = N};
    as_status st = peers_exchange(p, &message, 1, &err);
    if (st == AS_OK)
        st = peers_wait(p, OPEN_MS, &err);
    EXPECT(st == AS_E_INTERNAL && strstr(err.msg, "NCCL does not end"));
    EXPECT(peers_wait(p, OPEN_MS, &err) < 0);
    _exit(0); /* as who gets that must */
}

START_TEST(an_abort_that_hangs_is_not_waited_for_without_end)
{
    pid_t pids[RANKS_MAX];
    start(2, stuck_rank, pids);
    expect_well(2, pids);
}
END_TEST

static int refusing_rank(int32_t rank, int32_t n, const uint8_t *id)
{
    struct backend *be = NULL;
    struct peers *p = NULL;
    struct buf *a = NULL, *i = NULL;
    EXPECT(backend_open("cuda", NULL, &be, &err) == AS_OK);
    EXPECT(open_group(be, id, rank, n, OPEN_MS, &p) == AS_OK);
    EXPECT(buf_create(be, BUF_F32, 10, &a, &err) == AS_OK);
    EXPECT(buf_create(be, BUF_I32, 10, &i, &err) == AS_OK);
    const struct peers_message wrong[] = {{.peer = rank, .buf = a, .n = 1},
                                          {.peer = -1, .buf = a, .n = 1},
                                          {.peer = n, .buf = a, .n = 1},
                                          {.peer = 1 - rank, .buf = i, .n = 1},
                                          {.peer = 1 - rank, .buf = a, .at = 5, .n = 6},
                                          {.peer = 1 - rank, .buf = a, .at = 11, .n = 0},
                                          {.peer = 1 - rank, .buf = NULL, .n = 0}};
    for (size_t k = 0; k < AS_ARRAY_LEN(wrong); k++)
        EXPECT(peers_exchange(p, &wrong[k], 1, &err) == AS_E_INVAL);
    peers_free(p);
    buf_free(a);
    buf_free(i);
    backend_free(be);
    return 0;
}

START_TEST(wrong_messages_are_refused)
{
    pid_t pids[RANKS_MAX];
    start(2, refusing_rank, pids);
    expect_well(2, pids);
}
END_TEST

START_TEST(what_is_missing_is_named)
{
    struct backend *host = NULL, *be = NULL;
    uint8_t id[PEERS_ID_BYTES] = {0};
    struct peers *p = NULL;
    ck_ok(backend_open("cpu", NULL, &host, &err), err);
    ck_fails(peers_new_id(host, id, &err), AS_E_UNSUPPORTED, err, "expected cuda");
    struct peers_card card = {0}, other = {0};
    ck_fails(peers_card(host, &card, &err), AS_E_UNSUPPORTED, err, "expected cuda");
    backend_free(host);
    ck_ok(backend_open("cuda", NULL, &be, &err), err);
    ck_ok(peers_card(be, &card, &err), err);
    ck_assert_int_eq(card.version, 22809);
    ck_assert_int_eq(strncmp(card.gpu, "GPU-a0a1a2a3-", 13), 0);
    ck_assert_int_eq(setenv("CUDA_VISIBLE_DEVICES", "1", 1), 0);
    ck_ok(peers_card(be, &other, &err), err);
    ck_assert_str_ne(card.gpu, other.gpu);
    ck_fails(open_group(be, id, 2, 2, 1, &p), AS_E_INVAL, err, "rank is 2 of 2");
    ck_assert_int_eq(setenv("EMU_NCCL_VERSION", "21304", 1), 0);
    ck_fails(peers_new_id(be, id, &err), AS_E_UNAVAILABLE, err, "version 21304, expected 21400");
    ck_assert_int_eq(setenv("ASSAY_NCCL", "libc.so.6", 1), 0);
    ck_fails(peers_new_id(be, id, &err), AS_E_UNAVAILABLE, err, "has no ncclGetVersion");
    ck_assert_int_eq(setenv("ASSAY_NCCL", "/nowhere/libnccl.so", 1), 0);
    ck_fails(peers_new_id(be, id, &err), AS_E_UNAVAILABLE, err, "does not open");
    backend_free(be);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("peers");
    TCase *t = tcase_create("peers");
    tcase_add_test(t, messages_arrive_in_order_with_operations);
    tcase_add_test(t, a_dead_peer_is_an_error);
    tcase_add_test(t, a_rank_that_does_not_come_is_waited_for_until_the_end);
    tcase_add_test(t, a_silent_peer_is_not_waited_for_without_end);
    tcase_add_test(t, an_abort_that_hangs_is_not_waited_for_without_end);
    tcase_add_test(t, wrong_messages_are_refused);
    tcase_add_test(t, what_is_missing_is_named);
    suite_add_tcase(s, t);
    return s;
}
