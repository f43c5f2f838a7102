/* Requests between ranks, each a process of its own, beside the lock-step operations. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/collective/ranks.h"
#include "trial-runner/collective/mail_head.h"
#include "trial-runner/collective/mailbox.h"

enum { ECHO = 1, LATER, HELD, REFUSED };
#define MOST ((size_t)300000)
#define VICTIM 1

struct board {
    _Atomic int32_t received[RANKS_MAX], ready, done, lost_seen, early;
};

struct case_of {
    bool tcp_only;
    struct board *board;
};

/* What a rank does with requests: of kind LATER it answers one when the next has come. */
struct service {
    const struct case_of *k;
    int32_t rank;
    struct mail *waits[RANKS_MAX];
};

/* The bytes come back with every one raised by the answering rank + 1. */
static void answer(struct service *s, struct mailbox *b, struct mail *m)
{
    AS_AUTO(as_freep) uint8_t *bytes = calloc(m->n + 1, 1);
    for (size_t i = 0; bytes && i < m->n; i++)
        bytes[i] = (uint8_t)(m->bytes[i] + s->rank + 1);
    struct mail_part parts[2] = {{bytes, m->n / 2}, {bytes + m->n / 2, m->n - m->n / 2}};
    mailbox_answer(b, m, AS_OK, parts, 2);
}

static void on_request(void *arg, struct mailbox *b, struct mail *m)
{
    struct service *s = arg;
    s->k->board->received[s->rank]++;
    if (m->kind == ECHO) {
        answer(s, b, m);
    } else if (m->kind == REFUSED) {
        mailbox_answer(b, m, AS_E_STALE, NULL, 0);
    } else if (m->kind == LATER) {
        struct mail *before = s->waits[m->from];
        s->waits[m->from] = m;
        if (before)
            answer(s, b, before);
    } /* HELD: never */
}

static void on_lost(void *arg, struct mailbox *b, int32_t rank)
{
    struct service *s = arg;
    (void)b;
    if (rank == VICTIM)
        s->k->board->lost_seen++;
}

static struct mailbox *open_box(struct coll *c, struct service *s)
{
    struct as_err err = {0};
    struct mailbox_opts opts = {
        .max_bytes = MOST, .on_request = on_request, .on_lost = on_lost, .arg = s};
    struct mailbox *b = NULL;
    if (mailbox_create(c, &opts, &b, &err) < 0)
        (void)fprintf(stderr, "rank %d: %s\n", (int)s->rank, err.msg);
    return b;
}

static bool is_right(const struct mail_call *call, const uint8_t *sent, size_t n)
{
    for (size_t i = 0; call->answer_n == n && i < n; i++)
        if (call->answer[i] != (uint8_t)(sent[i] + call->to + 1))
            return false;
    return call->answer_n == n;
}

#define AT_ONCE 6

/* Random requests to all ranks, this one too, while another thread's barriers run. */
static int chatting_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct service s = {.k = arg, .rank = rank};
    struct as_err err = {0};
    struct mesh_opts opts = {.tcp_only = s.k->tcp_only};
    struct rng g;
    static uint8_t bytes[AT_ONCE][MOST];
    rng_init(&g, 5, (uint64_t)rank);
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, &opts);
    EXPECT(c);
    AS_AUTO(mailbox_freep) struct mailbox *b = open_box(c, &s);
    EXPECT(b);
    uint64_t sent = 0;
    for (uint64_t round = 0; round < 40; round++) {
        struct mail_call calls[AT_ONCE] = {0};
        size_t n[AT_ONCE];
        for (size_t i = 0; i < AT_ONCE; i++) {
            n[i] = rng_below(&g, 4) == 0 ? rng_below(&g, MOST + 1) : rng_below(&g, 50);
            for (size_t k = 0; k < n[i]; k++)
                bytes[i][k] = (uint8_t)(k * 7 + i + round);
            calls[i] = (struct mail_call){
                .to = (int32_t)rng_below(&g, (uint64_t)r->n),
                .kind = ECHO,
                .step = round,
                .parts = {{bytes[i], n[i] / 3}, {bytes[i] + n[i] / 3, n[i] - n[i] / 3}}};
            sent += calls[i].to == rank ? 0 : n[i];
            mailbox_begin(b, &calls[i]);
        }
        EXPECT(round % 5 || coll_barrier(c, (struct coll_id){.step = round}, &err) == AS_OK);
        for (size_t i = 0; i < AT_ONCE; i++) {
            EXPECT(mailbox_finish(b, &calls[i], &err) == AS_OK);
            EXPECT(is_right(&calls[i], bytes[i], n[i]));
            free(calls[i].answer);
        }
    }
    EXPECT(mailbox_bytes_sent(b) >= sent);
    EXPECT(coll_barrier(c, (struct coll_id){.step = 99}, &err) == AS_OK);
    return 0;
}

START_TEST(requests_are_answered_in_any_order_of_ranks)
{
    struct case_of k = {.tcp_only = _i % 2, .board = ranks_share(sizeof(struct board))};
    ck_assert(ranks_run(_i < 2 ? 4 : 1, chatting_rank, &k));
}
END_TEST

/* --- beside the operations --- */

/* Rank 1 waits in a barrier that rank 0 begins only when rank 1 has answered. */
static int crossing_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct service s = {.k = arg, .rank = rank};
    struct as_err err = {0};
    struct mesh_opts opts = {.tcp_only = s.k->tcp_only};
    struct mail_call call = {.to = 1, .kind = ECHO, .parts = {{"abc", 3}}};
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, &opts);
    EXPECT(c);
    AS_AUTO(mailbox_freep) struct mailbox *b = open_box(c, &s);
    EXPECT(b);
    if (rank == 0) {
        ranks_await(&s.k->board->ready, 1);
        clock_sleep_ms(100);
        mailbox_begin(b, &call);
        EXPECT(mailbox_finish(b, &call, &err) == AS_OK);
        EXPECT(is_right(&call, (const uint8_t *)"abc", 3));
        free(call.answer);
    }
    s.k->board->ready += rank == 1;
    EXPECT(coll_barrier(c, (struct coll_id){.step = 1}, &err) == AS_OK);
    EXPECT(coll_barrier(c, (struct coll_id){.step = 2}, &err) == AS_OK);
    return 0;
}

START_TEST(rank_in_an_operation_answers)
{
    struct case_of k = {.tcp_only = _i == 1, .board = ranks_share(sizeof(struct board))};
    ck_assert(ranks_run(2, crossing_rank, &k));
}
END_TEST

/* --- limits, late answers --- */

static int bounded_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct service s = {.k = arg, .rank = rank};
    struct as_err err = {0};
    struct mail_call calls[MAIL_OPEN_MAX + 40] = {0};
    static uint8_t much[MOST + 1];
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    EXPECT(c);
    AS_AUTO(mailbox_freep) struct mailbox *b = open_box(c, &s);
    EXPECT(b);
    if (rank == 0) {
        struct mail_call large = {.to = 1, .kind = ECHO, .parts = {{much, sizeof much}}};
        struct mail_call refused = {.to = 1, .kind = REFUSED};
        struct mail_call first = {.to = 1, .kind = LATER, .parts = {{"x", 1}}};
        struct mail_call second = {.to = 1, .kind = LATER};
        mailbox_begin(b, &large);
        mailbox_begin(b, &refused);
        EXPECT(mailbox_finish(b, &large, &err) == AS_E_TOO_LARGE);
        EXPECT(mailbox_finish(b, &refused, &err) == AS_E_STALE);
        mailbox_begin(b, &first);
        clock_sleep_ms(50);
        EXPECT(!mailbox_is_done(b, &first));
        mailbox_begin(b, &second); /* for ever unanswered */
        EXPECT(mailbox_finish(b, &first, &err) == AS_OK);
        EXPECT(is_right(&first, (const uint8_t *)"x", 1));
        free(first.answer);
        for (size_t i = 0; i < AS_ARRAY_LEN(calls); i++) {
            calls[i] = (struct mail_call){.to = 1, .kind = HELD, .parts = {{much, 1000}}};
            mailbox_begin(b, &calls[i]);
        }
        /* Refused, first and second; then rank 1 reads until so many are unanswered. */
        ranks_await(&s.k->board->received[1], 2 + MAIL_OPEN_MAX);
        clock_sleep_ms(100);
        EXPECT(s.k->board->received[1] == 2 + MAIL_OPEN_MAX);
        mailbox_free(as_steal(b));
        EXPECT(second.status == AS_E_UNAVAILABLE && calls[3].status == AS_E_UNAVAILABLE);
    }
    EXPECT(coll_barrier(c, (struct coll_id){.step = 9}, &err) == AS_OK);
    return 0;
}

START_TEST(memory_is_bounded_and_late_answers_arrive)
{
    struct case_of k = {.board = ranks_share(sizeof(struct board))};
    ck_assert(ranks_run(2, bounded_rank, &k));
}
END_TEST

/* --- losses --- */

/* Until the victim dies everybody asks it; afterwards all others still answer each other. */
static int surviving_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct service s = {.k = arg, .rank = rank};
    struct as_err err = {0};
    struct mesh_opts opts = {.tcp_only = s.k->tcp_only};
    static uint8_t bytes[MOST];
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, &opts);
    EXPECT(c);
    AS_AUTO(mailbox_freep) struct mailbox *b = open_box(c, &s);
    EXPECT(b);
    for (as_status st = AS_OK; st == AS_OK && rank != VICTIM;) {
        struct mail_call call = {.to = VICTIM, .kind = ECHO, .parts = {{bytes, MOST}}};
        mailbox_begin(b, &call);
        st = mailbox_finish(b, &call, &err);
        EXPECT(st == AS_OK || st == AS_E_UNAVAILABLE);
        free(call.answer);
        s.k->board->ready++;
    }
    if (rank == VICTIM)
        clock_sleep_ms(PATIENCE_MS);
    EXPECT(mailbox_has_lost(b, VICTIM) && !mailbox_has_lost(b, 0));
    for (int i = 0; i < 60; i++) {
        struct mail_call call = {.to = i % r->n, .kind = ECHO, .parts = {{bytes, 1000}}};
        mailbox_begin(b, &call);
        as_status st = mailbox_finish(b, &call, &err);
        EXPECT(st == (call.to == VICTIM ? AS_E_UNAVAILABLE : AS_OK));
        free(call.answer);
    }
    s.k->board->done++; /* nobody leaves before all have asked */
    ranks_await(&s.k->board->done, r->n - 1);
    return 0;
}

START_TEST(lost_rank_costs_only_its_own_answers)
{
    struct ranks r;
    struct case_of k = {.tcp_only = _i == 1, .board = ranks_share(sizeof(struct board))};
    ranks_init(&r, 4);
    ranks_start(&r, surviving_rank, &k);
    ranks_await(&k.board->ready, 20);
    ck_assert_int_eq(kill(r.pids[VICTIM], SIGKILL), 0);
    for (int32_t i = 0; i < r.n; i++)
        ck_assert_int_eq(ranks_wait(&r, i), i == VICTIM ? 128 + SIGKILL : 0);
    ck_assert_int_ge(k.board->lost_seen, 3);
    ranks_done(&r);
}
END_TEST

/* When the server announces the next world, nobody waits on in this one. */
static int interrupted_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct service s = {.k = arg, .rank = rank};
    struct as_err err = {0};
    struct mail_call call = {.to = 1 - rank, .kind = HELD}, late = {.to = 1 - rank, .kind = ECHO};
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    EXPECT(c);
    AS_AUTO(mailbox_freep) struct mailbox *b = open_box(c, &s);
    EXPECT(b);
    mailbox_begin(b, &call);
    ranks_await(&s.k->board->received[1 - rank], 1);
    EXPECT(!mailbox_is_done(b, &call));
    s.k->board->ready++; /* nobody interrupts before both have looked */
    ranks_await(&s.k->board->ready, 2);
    coll_interrupt(c);
    EXPECT(mailbox_finish(b, &call, &err) == AS_E_UNAVAILABLE);
    mailbox_begin(b, &late);
    EXPECT(mailbox_finish(b, &late, &err) == AS_E_UNAVAILABLE);
    s.k->board->done++; /* nobody leaves before both have seen this: a lost rank looks the same */
    ranks_await(&s.k->board->done, 2);
    return 0;
}

START_TEST(end_of_the_epoch_ends_all_calls)
{
    struct case_of k = {.board = ranks_share(sizeof(struct board))};
    ck_assert(ranks_run(2, interrupted_rank, &k));
}
END_TEST

/* --- the times that ranks are waited for --- */

/* VICTIM stops, and the others miss it in their mailbox. Whether they do so in the time that was
 * asked for is compared with another world of the same ranks, which allows CLOCK_MS of silence. */
#define CLOCK_MS 4000 /* below every default */
#define ASKED_MS 400
#define JOIN_MS 20000 /* until a try is given up in which a rank was lost too early */
#define TRIES 5       /* a busy machine may stop any rank for as long */

struct stop_case {
    struct case_of k;
    bool connects; /* VICTIM has a mailbox when it stops; else it is missed while all connect */
    int64_t asked_ms;
};

static void note_break(void *arg, struct mesh *m)
{
    (void)m;
    atomic_store((_Atomic bool *)arg, true);
}

static struct coll *open_clock(const struct ranks *r, int32_t rank, _Atomic bool *broken)
{
    struct mesh_opts opts = {.join_ms = PATIENCE_MS,
                             .silence_ms = CLOCK_MS,
                             .on_break = note_break,
                             .arg = (void *)broken};
    struct world w = ranks_world(r, rank, 2);
    struct coll *c = NULL;
    as_status st = coll_create(r->listeners[rank], &w, &opts, &c, NULL, NULL);
    return st == AS_OK ? c : NULL;
}

/* What mailbox_create does before it connects, with an address at which nobody accepts. */
static bool swap_endpoints(const struct ranks *r, int32_t rank, struct coll *c)
{
    char all[RANKS_MAX * ENDPOINT_TEXT_MAX] = {0};
    (void)endpoint_format(&r->peers[rank], all + (size_t)rank * ENDPOINT_TEXT_MAX);
    return coll_allgather(c, (struct coll_id){.what = "mailboxes"}, all, (size_t)r->n,
                          ENDPOINT_TEXT_MAX, NULL) == AS_OK;
}

static int missing_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct stop_case *k = arg;
    struct service s = {.k = &k->k, .rank = rank};
    struct mail_call call = {.to = VICTIM, .kind = HELD};
    struct as_err err = {0};
    _Atomic bool clock_broken = false;
    struct mesh_opts opts = {.tcp_only = k->k.tcp_only,
                             .join_ms = k->connects ? JOIN_MS : k->asked_ms,
                             .silence_ms = k->connects ? k->asked_ms : PATIENCE_MS};
    AS_AUTO(coll_freep) struct coll *clock = open_clock(r, rank, &clock_broken);
    EXPECT(clock);
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, &opts);
    EXPECT(c);
    if (rank == VICTIM && !k->connects)
        EXPECT(swap_endpoints(r, rank, c) && raise(SIGSTOP) == 0);
    AS_AUTO(mailbox_freep) struct mailbox *b = open_box(c, &s);
    EXPECT(!b == !k->connects);
    if (rank == VICTIM)
        EXPECT(raise(SIGSTOP) == 0);
    if (b) {
        mailbox_begin(b, &call);
        EXPECT(mailbox_finish(b, &call, &err) == AS_E_UNAVAILABLE);
        EXPECT(mailbox_has_lost(b, VICTIM));
    }
    EXPECT(!atomic_load(&clock_broken));
    return 0;
}

static bool is_missed_in_time(struct stop_case *k)
{
    struct ranks r;
    bool well = true;
    ranks_init(&r, 3);
    ranks_start(&r, missing_rank, k);
    for (int32_t i = 0; i < r.n; i++)
        well = (i == VICTIM || ranks_wait(&r, i) == 0) && well;
    ck_assert_int_eq(kill(r.pids[VICTIM], SIGKILL), 0);
    (void)ranks_wait(&r, VICTIM);
    ranks_done(&r);
    return well;
}

START_TEST(stopped_rank_is_missed_in_the_time_of_the_collective)
{
    struct stop_case k = {.k = {.tcp_only = _i % 2, .board = ranks_share(sizeof(struct board))},
                          .connects = _i < 2};
    bool well = false;
    for (int i = 1; i <= TRIES && !well; i++) {
        k.asked_ms = ASKED_MS * i;
        well = is_missed_in_time(&k);
    }
    ck_assert(well);
}
END_TEST

static void *interrupt_when_all_connect(void *arg)
{
    struct coll *c = ((void **)arg)[0];
    struct board *board = ((void **)arg)[1];
    ranks_await(&board->ready, 1);
    coll_interrupt(c);
    return NULL;
}

/* One rank never connects, and the next world is announced. A rank that has not got all endpoints
 * by then has nobody to wait for yet, and notes that it came too early. */
static int deserted_rank(const struct ranks *r, int32_t rank, void *arg)
{
    struct service s = {.k = arg, .rank = rank};
    struct mailbox_opts opts = {.max_bytes = MOST, .on_request = on_request, .arg = &s};
    struct as_err err = {0};
    pthread_t thread;
    AS_AUTO(mailbox_freep) struct mailbox *b = NULL;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, NULL);
    EXPECT(c);
    if (rank == VICTIM) {
        EXPECT(swap_endpoints(r, rank, c));
        s.k->board->ready++;
        ranks_await(&s.k->board->done, r->n - 1); /* it lives meanwhile */
        return 0;
    }
    void *shared[] = {c, s.k->board};
    EXPECT(pthread_create(&thread, NULL, interrupt_when_all_connect, shared) == 0);
    EXPECT(mailbox_create(c, &opts, &b, &err) == AS_E_UNAVAILABLE);
    bool early = strcmp(err.msg, "the epoch is over") == 0;
    EXPECT(early || strstr(err.msg, "ended while its ranks connected"));
    s.k->board->early += early;
    EXPECT(pthread_join(thread, NULL) == 0);
    s.k->board->done++;
    return 0;
}

START_TEST(end_of_the_epoch_ends_the_wait_for_ranks)
{
    int32_t early = 1;
    for (int i = 0; i < TRIES && early > 0; i++) {
        struct case_of k = {.board = ranks_share(sizeof(struct board))};
        ck_assert(ranks_run(3, deserted_rank, &k));
        early = k.board->early;
    }
    ck_assert_int_eq(early, 0);
}
END_TEST

/* --- heads --- */

START_TEST(heads_are_checked)
{
    const struct mail_head h = {.type = MAIL_ANSWER, .kind = -3, .id = 1, .step = 2, .n = 100};
    uint8_t bytes[MAIL_HEAD_BYTES];
    struct mail_head got;
    struct as_err err;
    mail_head_encode(&h, bytes);
    ck_assert_int_eq(mail_head_decode(bytes, 100, &got, &err), AS_OK);
    ck_assert(got.type == h.type && got.kind == -3 && got.id == 1 && got.step == 2 && got.n == 100);
    ck_assert_int_eq(mail_head_decode(bytes, 99, &got, &err), AS_E_INVAL);
    bytes[7] = 0; /* the status becomes positive */
    ck_assert_int_eq(mail_head_decode(bytes, 100, &got, &err), AS_E_INVAL);
    mail_head_encode(&h, bytes);
    bytes[0] = 3;
    ck_assert_int_eq(mail_head_decode(bytes, 100, &got, &err), AS_E_INVAL);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("mailbox");
    TCase *t = tcase_create("mailbox");
    tcase_add_loop_test(t, requests_are_answered_in_any_order_of_ranks, 0, 3);
    tcase_add_loop_test(t, rank_in_an_operation_answers, 0, 2);
    tcase_add_test(t, memory_is_bounded_and_late_answers_arrive);
    tcase_add_loop_test(t, lost_rank_costs_only_its_own_answers, 0, 2);
    tcase_add_test(t, end_of_the_epoch_ends_all_calls);
    tcase_add_loop_test(t, stopped_rank_is_missed_in_the_time_of_the_collective, 0, 4);
    tcase_add_test(t, end_of_the_epoch_ends_the_wait_for_ranks);
    tcase_add_test(t, heads_are_checked);
    suite_add_tcase(s, t);
    return s;
}
