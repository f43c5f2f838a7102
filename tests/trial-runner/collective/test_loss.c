/* Ranks that die, stop, stall, disagree or leave, and strangers at the door. */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/collective/ranks.h"
#include "trial-runner/collective/handshake.h"
#include "trial-runner/collective/socket_address.h"

#define FLOATS 20000
#define VICTIM 1

/* What the processes of a test tell each other. */
struct board {
    _Atomic int32_t rounds[RANKS_MAX]; /* operations that each rank has done */
    _Atomic int32_t survivors;         /* that have noticed the loss */
    _Atomic int32_t stalled_peer, stalls;
    _Atomic bool go;
};

struct case_of {
    bool tcp_only;
    int64_t silence_ms;
    int64_t slowness; /* times are this many times as long; 0: as 1 */
    struct board *board;
};

static struct mesh_opts opts_of(const struct case_of *k)
{
    return (struct mesh_opts){.tcp_only = k->tcp_only, .silence_ms = k->silence_ms};
}

/* Silence is the subject of some tests. On a busy machine a process may get no processor for as
 * long, and is lost although nothing is wrong: then once more, with longer times. */
#define SLOWEST 16

static bool run_in_time(int32_t n, rank_fn *f, struct case_of *k)
{
    for (k->slowness = 1; k->slowness <= SLOWEST; k->slowness *= 2) {
        memset(k->board, 0, sizeof *k->board);
        if (ranks_run(n, f, k))
            return true;
    }
    return false;
}

static as_status add_up(struct coll *c, uint64_t step, float *in, float *out, struct as_err *err)
{
    struct coll_id id = {.step = step, .tag = 1, .what = "w"};
    return coll_allreduce(c, id, COLL_RING, &reduce_f32_sum, in, out, FLOATS, err);
}

/* The next epoch's world, without the victim. */
static struct world world_without_victim(const struct ranks *r, int32_t rank,
                                         struct endpoint *peers)
{
    struct world w = ranks_world(r, rank, 2);
    w.n = 0;
    for (int32_t i = 0; i < r->n; i++) {
        if (i == rank)
            w.rank = w.n;
        if (i != VICTIM)
            peers[w.n++] = r->peers[i];
    }
    w.peers = peers;
    return w;
}

/* Adds until a peer is lost; then goes on with those who are left. */
static int survivor_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct case_of *k = arg;
    struct as_err err = {0};
    struct mesh_opts opts = opts_of(k);
    AS_AUTO(as_freep) float *in = calloc(FLOATS, sizeof *in);
    AS_AUTO(as_freep) float *out = calloc(FLOATS, sizeof *out);
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, &opts);
    EXPECT(c);
    for (size_t i = 0; i < FLOATS; i++)
        in[i] = 1;
    as_status st = AS_OK;
    for (uint64_t step = 0; st == AS_OK; step++) {
        st = add_up(c, step, in, out, &err);
        if (st == AS_OK)
            EXPECT(out[0] == (float)r->n && out[FLOATS - 1] == (float)r->n);
        k->board->rounds[rank]++;
    }
    EXPECT(st == AS_E_UNAVAILABLE);
    if (rank == VICTIM) /* it was stopped, and its peers went on without it */
        return 0;
    EXPECT(coll_lost(c) == VICTIM);
    EXPECT(strstr(err.msg, "rank 1 is lost"));
    k->board->survivors++; /* nobody leaves before all have seen who was lost */
    ranks_await(&k->board->survivors, r->n - 1);

    struct endpoint peers[RANKS_MAX];
    struct world w = world_without_victim(r, rank, peers);
    AS_AUTO(coll_freep) struct coll *next = NULL;
    EXPECT(coll_create(r->listeners[rank], &w, &opts, &next, NULL, &err) == AS_OK);
    EXPECT(add_up(next, 7, in, out, &err) == AS_OK);
    EXPECT(out[0] == (float)(r->n - 1) && out[FLOATS - 1] == (float)(r->n - 1));
    EXPECT(coll_barrier(next, (struct coll_id){.step = 8}, &err) == AS_OK);
    return 0;
}

/* True if all ended as they should. */
static bool strike_once(struct case_of *k, int signal)
{
    struct ranks r;
    bool well = true;
    memset(k->board, 0, sizeof *k->board);
    ranks_init(&r, 4);
    ranks_start(&r, survivor_rank, k);
    ranks_await(&k->board->rounds[VICTIM], 20);
    ck_assert_int_eq(kill(r.pids[VICTIM], signal), 0);
    for (int32_t i = 0; i < r.n; i++)
        if (i != VICTIM)
            well = ranks_wait(&r, i) == 0 && well;
    if (signal == SIGSTOP)
        ck_assert_int_eq(kill(r.pids[VICTIM], SIGCONT), 0);
    well = ranks_wait(&r, VICTIM) == (signal == SIGSTOP ? 0 : 128 + signal) && well;
    ranks_done(&r);
    return well;
}

static void strike(bool tcp_only, int signal)
{
    struct case_of k = {.tcp_only = tcp_only,
                        .silence_ms = PATIENCE_MS,
                        .board = ranks_share(sizeof(struct board))};
    bool well = signal != SIGSTOP && strike_once(&k, signal);
    for (int64_t i = 1; signal == SIGSTOP && i <= SLOWEST && !well; i *= 2) {
        k.silence_ms = 1000 * i;
        well = strike_once(&k, signal);
    }
    ck_assert(well);
}

START_TEST(killed_rank_is_noticed_and_the_others_go_on)
{
    strike(_i == 1, SIGKILL);
}
END_TEST

START_TEST(stopped_rank_is_lost_by_its_silence)
{
    strike(_i == 1, SIGSTOP);
}
END_TEST

/* --- ranks that disagree --- */

static int skipping_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct as_err err = {0};
    float in = 1, out;
    as_status st;
    (void)arg;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    EXPECT(c);
    if (rank != VICTIM) {
        struct coll_id bias = {.step = 3, .tag = 4, .what = "layer1.bias"};
        st = coll_allreduce(c, bias, COLL_RING, &reduce_f32_sum, &in, &out, 1, &err);
    } else {
        struct coll_id weight = {.step = 3, .tag = 5, .what = "layer1.weight"};
        st = coll_allreduce(c, weight, COLL_RING, &reduce_f32_sum, &in, &out, 1, &err);
    }
    /* One of them sees it first; the other sees that the first has left. */
    EXPECT(st == AS_E_CONFLICT || st == AS_E_UNAVAILABLE);
    if (st == AS_E_CONFLICT)
        EXPECT(strstr(err.msg, rank == VICTIM ? "'layer1.weight', tensor 5 of step 3"
                                              : "'layer1.bias', tensor 4 of step 3") &&
               strstr(err.msg, rank == VICTIM ? "sends tensor 4" : "sends tensor 5"));
    return st == AS_E_CONFLICT ? 42 : 43;
}

START_TEST(skipped_tensor_is_named)
{
    struct ranks r;
    ranks_init(&r, 2);
    ranks_start(&r, skipping_rank, NULL);
    int a = ranks_wait(&r, 0), b = ranks_wait(&r, 1);
    ck_assert(a == 42 || b == 42);
    ck_assert(a >= 42 && b >= 42);
    ranks_done(&r);
}
END_TEST

/* --- a rank that is late --- */

static void note_stall(void *arg, const struct transfer *t, int64_t waited_ms)
{
    struct board *b = arg;
    if (strcmp(t->what, "w") == 0 && t->step == 9 && waited_ms >= 200) {
        b->stalled_peer = t->peer;
        b->stalls++;
    }
}

static int late_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct case_of *k = arg;
    struct as_err err = {0};
    struct mesh_opts opts = {
        .stall_ms = 200, .silence_ms = 1000 * k->slowness, .tcp_only = k->tcp_only};
    AS_AUTO(as_freep) float *in = calloc(FLOATS, sizeof *in);
    AS_AUTO(as_freep) float *out = calloc(FLOATS, sizeof *out);
    opts.on_stall = rank == VICTIM ? NULL : note_stall;
    opts.arg = k->board;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, &opts);
    EXPECT(c);
    if (rank == VICTIM) /* computes for longer than the silence that is allowed */
        clock_sleep_ms(3000 * k->slowness);
    EXPECT(add_up(c, 9, in, out, &err) == AS_OK);
    EXPECT(coll_barrier(c, (struct coll_id){.step = 10}, &err) == AS_OK);
    return 0;
}

START_TEST(late_rank_is_reported_and_waited_for)
{
    struct case_of k = {.tcp_only = _i == 1, .board = ranks_share(sizeof(struct board))};
    ck_assert(run_in_time(2, late_rank, &k));
    ck_assert_int_ge(k.board->stalls, 1);
    ck_assert_int_eq(k.board->stalled_peer, VICTIM);
}
END_TEST

/* --- a rank that has done its part and leaves --- */

static int leaving_rank(const struct ranks *r, int32_t rank, void *arg)
{
    const struct case_of *k = arg;
    struct as_err err = {0};
    struct mesh_opts opts = opts_of(k);
    struct coll_id id = {.step = 1};
    double value = 4.25, got = 0;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, &opts);
    EXPECT(c);
    if (rank == 0) {
        EXPECT(coll_send(c, id, 1, &value, sizeof value, &err) == AS_OK);
        return 0;
    }
    clock_sleep_ms(400); /* the sender's process has ended */
    if (rank == 1) {
        EXPECT(coll_receive(c, id, 0, &got, sizeof got, &err) == AS_OK);
        EXPECT(got == value);
        EXPECT(coll_send(c, id, 2, &got, sizeof got, &err) == AS_OK);
        return 0;
    }
    EXPECT(coll_receive(c, id, 1, &got, sizeof got, &err) == AS_OK);
    EXPECT(got == value);
    EXPECT(coll_receive(c, id, 0, &got, sizeof got, &err) == AS_E_UNAVAILABLE);
    return 0;
}

START_TEST(what_a_rank_sent_before_it_left_arrives)
{
    struct case_of k = {.tcp_only = _i == 1};
    ck_assert(ranks_run(3, leaving_rank, &k));
}
END_TEST

/* --- strangers --- */

static int dial(const struct endpoint *e)
{
    struct sockaddr_storage at;
    socklen_t len = socket_address(e, false, &at);
    int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&at, len) == 0 ? fd : -1;
}

/* True if the rank closes the connection without having proven anything to us. */
static bool is_refused(int fd)
{
    uint8_t byte[CHALLENGE_BYTES + 1];
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    bool refused = recv(fd, byte, sizeof byte, 0) <= 0;
    (void)close(fd);
    return refused;
}

static int stranger(const struct ranks *r)
{
    uint8_t hello[HELLO_BYTES], garbage[HELLO_BYTES];
    random_bytes(garbage, sizeof garbage);
    int a = dial(&r->peers[0]), b = dial(&r->peers[0]), c = dial(&r->peers[0]);
    struct world old = ranks_world(r, 1, 0); /* knows the secret, but is of another epoch */
    hello_encode(&old, 0, hello);
    bool sent = send(a, garbage, sizeof garbage, 0) == sizeof garbage &&
                send(b, hello, sizeof hello, 0) == sizeof hello;
    struct world now = ranks_world(r, 1, 1); /* the right epoch, but not the secret */
    uint8_t challenge[CHALLENGE_BYTES], proof[PROOF_BYTES] = {0};
    hello_encode(&now, 0, hello);
    sent = sent && send(c, hello, sizeof hello, 0) == sizeof hello &&
           recv(c, challenge, sizeof challenge, MSG_WAITALL) == sizeof challenge &&
           send(c, proof, sizeof proof, 0) == sizeof proof;
    return sent && is_refused(a) && is_refused(b) && is_refused(c) ? 0 : 1;
}

static int besieged_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct case_of *k = arg;
    struct as_err err = {0};
    float in = 1, out = 0;
    if (rank == 2) { /* not of the world */
        int how = stranger(r);
        k->board->go = true;
        return how;
    }
    while (rank == 1 && !k->board->go) /* the strangers come first */
        clock_sleep_ms(1);
    struct world w = ranks_world(r, rank, 1);
    w.n = 2;
    AS_AUTO(coll_freep) struct coll *c = NULL;
    struct mesh_opts opts = {.join_ms = PATIENCE_MS, .silence_ms = PATIENCE_MS};
    EXPECT(coll_create(r->listeners[rank], &w, &opts, &c, NULL, &err) == AS_OK);
    struct coll_id id = {.step = 1};
    EXPECT(coll_allreduce(c, id, COLL_RING, &reduce_f32_sum, &in, &out, 1, &err) == AS_OK);
    EXPECT(out == 2);
    EXPECT(coll_barrier(c, id, &err) == AS_OK);
    return 0;
}

START_TEST(strangers_are_refused)
{
    struct case_of k = {.board = ranks_share(sizeof(struct board))};
    ck_assert(ranks_run(3, besieged_rank, &k));
}
END_TEST

/* A connection to rank 0 from an address of this host, which has said a right hello and got its
 * challenge: as far as who does not know the secret comes. */
static int dial_halfway(const struct ranks *r, const char *from, uint8_t hello[HELLO_BYTES],
                        uint8_t challenge[CHALLENGE_BYTES])
{
    struct world w = ranks_world(r, 1, 1);
    struct sockaddr_storage at;
    struct sockaddr_in own = {.sin_family = AF_INET};
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    socklen_t len = socket_address(&r->peers[0], false, &at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)inet_pton(AF_INET, from, &own.sin_addr);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    hello_encode(&w, 0, hello);
    if (bind(fd, (struct sockaddr *)&own, sizeof own) == 0 &&
        connect(fd, (struct sockaddr *)&at, len) == 0 &&
        send(fd, hello, HELLO_BYTES, MSG_NOSIGNAL) == HELLO_BYTES &&
        recv(fd, challenge, CHALLENGE_BYTES, MSG_WAITALL) == CHALLENGE_BYTES)
        return fd;
    (void)close(fd);
    return -1;
}

/* Rank 1 is slow: after its hello, strangers say more right hellos than there are places, and prove
 * none. Each newcomer gets a place, the first of them loses its own, and rank 1 keeps its place. */
static int slow_rank(const struct ranks *r, int32_t rank)
{
    enum { STRANGERS = 150 };
    struct as_err err = {0};
    uint8_t hello[HELLO_BYTES], challenge[CHALLENGE_BYTES], proof[PROOF_BYTES], answer;
    uint8_t other_hello[HELLO_BYTES], other_challenge[CHALLENGE_BYTES];
    int fds[STRANGERS], slow = dial_halfway(r, "127.0.0.1", hello, challenge);
    EXPECT(slow >= 0);
    for (int i = 0; i < STRANGERS; i++) {
        fds[i] = dial_halfway(r, "127.0.0.2", other_hello, other_challenge);
        EXPECT(fds[i] >= 0);
    }
    EXPECT(recv(fds[0], &answer, 1, 0) == 0);
    struct world w = ranks_world(r, 1, 1);
    EXPECT(challenge_answer(&w, hello, challenge, proof, &err) == AS_OK);
    EXPECT(send(slow, proof, sizeof proof, MSG_NOSIGNAL) == sizeof proof);
    EXPECT(recv(slow, &answer, 1, 0) == 1 && answer == 'A');
    return 0; /* which ends the connections */
}

static int crowded_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct as_err err = {0};
    struct coll *c = NULL;
    struct mesh_opts opts = {
        .join_ms = PATIENCE_MS, .prove_ms = 10 * PATIENCE_MS, .tcp_only = true};
    (void)arg;
    if (rank == 1)
        return slow_rank(r, rank);
    struct world w = ranks_world(r, rank, 1);
    EXPECT(coll_create(r->listeners[rank], &w, &opts, &c, NULL, &err) == AS_OK);
    coll_free(c);
    return 0;
}

START_TEST(who_proves_nothing_makes_room)
{
    ck_assert(ranks_run(2, crowded_rank, NULL));
}
END_TEST

static int lonely_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct as_err err = {0};
    struct mesh_opts opts = {.join_ms = 200 * ((struct case_of *)arg)->slowness};
    struct coll *c = NULL;
    int32_t missing = -1;
    if (rank == 2)
        return 0;
    struct world w = ranks_world(r, rank, 1);
    EXPECT(coll_create(r->listeners[rank], &w, &opts, &c, &missing, &err) == AS_E_UNAVAILABLE);
    EXPECT(missing == 2);
    return 0;
}

START_TEST(missing_rank_is_named)
{
    struct case_of k = {.board = ranks_share(sizeof(struct board))};
    ck_assert(run_in_time(3, lonely_rank, &k));
}
END_TEST

/* --- ranks that wait for others while they connect --- */

static int patient_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct as_err err = {0};
    const struct case_of *k = arg;
    struct mesh_opts opts = {.silence_ms = 400 * k->slowness, .tcp_only = k->tcp_only};
    if (rank == 1) /* the others have connected long before */
        clock_sleep_ms(1200 * k->slowness);
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, &opts);
    EXPECT(c);
    EXPECT(coll_barrier(c, (struct coll_id){.step = 1}, &err) == AS_OK);
    EXPECT(coll_barrier(c, (struct coll_id){.step = 2}, &err) == AS_OK);
    return 0;
}

START_TEST(who_waited_for_a_late_rank_is_not_lost)
{
    struct case_of k = {.tcp_only = _i == 1, .board = ranks_share(sizeof(struct board))};
    ck_assert(run_in_time(3, patient_rank, &k));
}
END_TEST

/* Ranks 1 and 2 cannot reach each other. Rank 0 reaches both, and is through long before they give
 * up: neither is lost to it. */
static int torn_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct as_err err = {0};
    const struct case_of *k = arg;
    struct mesh_opts opts = {
        .silence_ms = 400 * k->slowness, .join_ms = 2000 * k->slowness, .tcp_only = k->tcp_only};
    struct ranks seen = *r;
    struct listener *nobody = NULL;
    struct coll *c = NULL;
    int32_t missing = -1;
    EXPECT(listener_create("127.0.0.1", &nobody, &err) == AS_OK);
    if (rank == 2)
        seen.peers[1] = nobody->endpoint;
    listener_free(nobody);
    struct world w = ranks_world(&seen, rank, 1);
    as_status st = coll_create(r->listeners[rank], &w, &opts, &c, &missing, &err);
    if (rank > 0) {
        EXPECT(st == AS_E_UNAVAILABLE && missing == 3 - rank);
        return 0;
    }
    EXPECT(st == AS_OK);
    EXPECT(coll_barrier(c, (struct coll_id){.step = 1}, &err) == AS_E_UNAVAILABLE);
    EXPECT(coll_lost(c) < 0 && strstr(err.msg, "has left the epoch"));
    coll_free(c);
    return 0;
}

START_TEST(who_cannot_reach_another_is_not_lost_to_the_rest)
{
    struct case_of k = {.tcp_only = _i == 1, .board = ranks_share(sizeof(struct board))};
    ck_assert(run_in_time(3, torn_rank, &k));
}
END_TEST

/* Reads exactly n bytes of a blocking socket. */
static bool read_all(int fd, void *to, size_t n)
{
    return recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

/* Rank 0 is played: it reads the proof, and answers after a time in which a dialler that has sent
 * nothing yet would have dialled again. One that has must not: rank 0 may have made its link. */
static int slow_acceptor(const struct ranks *r, int32_t rank, void *arg)
{
    struct as_err err = {0};
    uint8_t hello[HELLO_BYTES], challenge[CHALLENGE_BYTES], proof[PROOF_BYTES];
    struct mesh_opts opts = {.tcp_only = true};
    struct pollfd again = {.fd = r->listeners[rank]->tcp_fd, .events = POLLIN};
    (void)arg;
    if (rank == 1) {
        AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, &opts);
        EXPECT(c);
        return 0;
    }
    struct world w = ranks_world(r, rank, 1);
    EXPECT(poll(&again, 1, PATIENCE_MS) == 1);
    int fd = accept4(again.fd, NULL, NULL, SOCK_CLOEXEC);
    EXPECT(read_all(fd, hello, sizeof hello));
    EXPECT(challenge_encode(&w, hello, challenge, &err) == AS_OK);
    EXPECT(send(fd, challenge, sizeof challenge, 0) == (ssize_t)sizeof challenge);
    EXPECT(read_all(fd, proof, sizeof proof));
    EXPECT(poll(&again, 1, 6000) == 0);
    EXPECT(send(fd, "A", 1, 0) == 1);
    EXPECT(recv(fd, proof, 1, MSG_PEEK) >= 0); /* until rank 1 has its link, and goes */
    (void)close(fd);
    return 0;
}

START_TEST(slow_answer_is_waited_for)
{
    ck_assert(ranks_run(2, slow_acceptor, NULL));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("collective loss");
    TCase *t = tcase_create("loss");
    tcase_add_loop_test(t, killed_rank_is_noticed_and_the_others_go_on, 0, 2);
    tcase_add_loop_test(t, stopped_rank_is_lost_by_its_silence, 0, 2);
    tcase_add_test(t, skipped_tensor_is_named);
    tcase_add_loop_test(t, late_rank_is_reported_and_waited_for, 0, 2);
    tcase_add_loop_test(t, what_a_rank_sent_before_it_left_arrives, 0, 2);
    tcase_add_test(t, strangers_are_refused);
    tcase_add_test(t, who_proves_nothing_makes_room);
    tcase_add_test(t, missing_rank_is_named);
    tcase_add_loop_test(t, who_waited_for_a_late_rank_is_not_lost, 0, 2);
    tcase_add_test(t, slow_answer_is_waited_for);
    tcase_add_loop_test(t, who_cannot_reach_another_is_not_lost_to_the_rest, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
