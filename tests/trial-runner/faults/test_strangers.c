/* Peers that must not be believed: strangers who call ranks that meet, and a member of the world
 * that sends bytes which are no frames, damaged frames, or frames of another world. The training
 * goes on without them and ends with the same bits. */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/checksum.h"
#include "base/hash.h"
#include "tests/support/check_main.h"
#include "tests/trial-runner/faults/trials.h"
#include "trial-runner/collective/frame.h"
#include "trial-runner/collective/handshake.h"
#include "trial-runner/collective/listener.h"
#include "trial-runner/collective/socket_address.h"
#include "trial-runner/protocol/ranks.h"

#define RANKS 3
/* What ranks that have just met send to each other first (shared_step.c). If it were believed, this
 * member would be ahead of all others. */
#define TAG_POSITIONS (1 << 16)

static const struct trial lasting = {"a", FAULT_CNN(32, 400), "3"};
static const struct gang_opts opts = {.no_checkpoints = true, .silence = "2s", .join = "1h"};

static struct rig rig;

static void setup(void)
{
    rig_open(&rig);
    gang_pictures(&rig);
}

static void teardown(void)
{
    rig_close(&rig);
}

static int dial(const struct endpoint *e, bool local)
{
    struct sockaddr_storage at;
    socklen_t len = socket_address(e, local, &at);
    int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&at, len) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static void say(int fd, const void *bytes, size_t n)
{
    ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
    (void)sent; /* it may have hung up */
}

static void end_and_compare(struct gang *g)
{
    gang_run(g);
    gang_ended_well(g, SIGKILL);
    ck_assert_uint_eq(g->steps_back, 0);
    gang_same_reports("calm", g);
    gang_same_results(&rig, "calm", g->tag);
    gang_done(g);
}

/* --- strangers --- */

/* Calls a rank in all the wrong ways. The connections stay open, to be in the way. */
static size_t call(const struct gang *g, size_t place, int *fds)
{
    enum { SILENT = 300 }; /* a rank keeps 64 beside its peers, and each for 5 s */
    struct endpoint e;
    uint8_t hello[HELLO_BYTES];
    size_t n = 0;
    ck_ok(endpoint_parse(g->ranks[place].endpoint, &e, &rig.err), rig.err);
    for (int i = 0; i < SILENT; i++)
        fds[n++] = dial(&e, i % 2 == 0);
    for (int how = 0; how < 4; how++) {
        struct world w = {.attempt = 7, .epoch = (uint32_t)g->epoch + 1, .rank = 1, .n = RANKS};
        memcpy(w.secret, g->secret, sizeof w.secret);
        w.epoch -= how == 1 ? 1 : 0; /* the epoch that is just over */
        w.attempt += how == 2 ? 1 : 0;
        w.secret[0] ^= how == 3 ? 1 : 0;
        hello_encode(&w, 0, hello);
        if (how == 0)
            random_bytes(hello, sizeof hello);
        fds[n] = dial(&e, how % 2 == 0);
        say(fds[n++], hello, sizeof hello);
        uint8_t proof[PROOF_BYTES] = {0}; /* it never saw a challenge that it could answer */
        say(fds[n - 1], proof, sizeof proof);
    }
    return n;
}

START_TEST(strangers_do_not_hold_up_a_meeting)
{
    static struct gang g;
    static int fds[1000];
    gang_run_calm(&rig, "calm", &lasting, 1);
    gang_start_with(&g, &rig, "calls", &lasting, RANKS, &opts);
    int slow = 0; /* meetings: strangers would hold up each of them */
    for (int round = 0; round < 3; round++) {
        size_t n = 0;
        ck_assert(gang_gather(&g, RANKS));
        for (int64_t r = 0; r < RANKS; r++)
            n += call(&g, gang_place(&g, r), fds + n);
        int64_t start_ns = clock_mono_ns();
        gang_kill(&g, gang_place(&g, round % RANKS), SIGKILL);
        ck_assert(gang_gather(&g, RANKS - 1));
        int64_t took_ns = clock_mono_ns() - start_ns;
        (void)fprintf(stderr, "they met after %.1f s\n", (double)took_ns / (double)NS_PER_S);
        slow += took_ns >= 15 * NS_PER_S;
        gang_add(&g);
        ck_assert(gang_gather(&g, RANKS));
        for (size_t i = 0; i < n; i++)
            (void)close(fds[i]);
    }
    ck_assert_int_lt(slow, 3);
    end_and_compare(&g);
}
END_TEST

/* --- a member --- */

typedef enum attack {
    GARBAGE,      /* bytes that are no frames */
    HALF_A_FRAME, /* and then the end */
    DAMAGED_HEAD,
    DAMAGED_BYTES, /* a right head and other bytes than its checksum says */
    TOO_LONG,
    OTHER_EPOCH, /* whole frames of the epoch before, with a position that nobody has */
    OTHER_ATTEMPT,
    N_ATTACKS
} attack;

/* If the frame were believed: with damaged bytes it is a standing of another job; of another world
 * it is longer than what is expected. Both end the training. */
static void send_frame(int fd, const struct world *w, attack a, uint64_t tag)
{
    static uint8_t bytes[FRAME_HEAD_BYTES + 4096];
    uint8_t *payload = bytes + FRAME_HEAD_BYTES;
    int64_t standing[3] = {INT64_MAX / 2, 12345, 0};
    size_t n = a >= OTHER_EPOCH ? 4096 : sizeof standing;
    memcpy(payload, standing, sizeof standing);
    struct frame f = {.kind = FRAME_DATA,
                      .epoch = w->epoch - (a == OTHER_EPOCH ? 1 : 0),
                      .attempt = w->attempt + (a == OTHER_ATTEMPT ? 1 : 0),
                      .tag = tag,
                      .length = a == TOO_LONG ? FRAME_PAYLOAD_MAX + 1 : (uint32_t)n,
                      .payload_sum = checksum32(payload, n)};
    f.payload_sum ^= a == DAMAGED_BYTES ? 1 : 0;
    frame_encode(&f, bytes);
    bytes[20] ^= a == DAMAGED_HEAD ? 1 : 0;
    if (a == GARBAGE)
        random_bytes(bytes, FRAME_HEAD_BYTES);
    n += FRAME_HEAD_BYTES;
    say(fd, bytes, a == HALF_A_FRAME ? n / 2 : n);
}

/* Proves itself to a lower rank as a member does. */
static int join(const struct world *w, int32_t to)
{
    uint8_t hello[HELLO_BYTES], challenge[CHALLENGE_BYTES], proof[PROOF_BYTES], answer;
    for (int tries = 0; tries < 200; tries++, clock_sleep_ms(10)) {
        int fd = dial(&w->peers[to], false);
        struct timeval patience = {.tv_sec = 2};
        if (fd < 0)
            continue;
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        hello_encode(w, to, hello);
        say(fd, hello, sizeof hello);
        if (recv(fd, challenge, sizeof challenge, MSG_WAITALL) == sizeof challenge &&
            challenge_answer(w, hello, challenge, proof, NULL) == AS_OK) {
            say(fd, proof, sizeof proof);
            if (recv(fd, &answer, 1, MSG_WAITALL) == 1)
                return fd;
        }
        (void)close(fd);
    }
    return -1;
}

static void attack_world(const struct rank_request *r, attack a)
{
    struct endpoint peers[RANKS + 1];
    int fds[RANKS];
    struct world w = {.attempt = r->attempt,
                      .epoch = (uint32_t)r->epoch,
                      .rank = (int32_t)r->rank,
                      .n = (int32_t)r->n,
                      .peers = peers};
    memcpy(w.secret, r->secret, sizeof w.secret);
    for (size_t i = 0; i < r->n && i < RANKS + 1; i++)
        if (endpoint_parse(rank_request_peer(r, i), &peers[i], NULL) < 0)
            _exit(1);
    for (int32_t i = 0; i < w.rank; i++)
        fds[i] = join(&w, i);
    for (int32_t i = 0; i < w.rank; i++)
        send_frame(fds[i], &w, a, TAG_POSITIONS);
    clock_sleep_ms(200);
    for (int32_t i = 0; i < w.rank; i++)
        (void)close(fds[i]);
}

static void send_line(int fd, const char *endpoint)
{
    AS_AUTO(str_done) struct str line = {0};
    struct rank_event e = {.kind = RANK_LISTENING, .endpoint = endpoint};
    if (rank_event_format(&e, &line, NULL) == AS_OK)
        say(fd, line.s, line.len);
}

/* A rank on "another host": so its peers take TCP. */
static void play(int fd, const void *arg)
{
    struct listener *l = NULL;
    struct control_lines lines = {0};
    char text[ENDPOINT_TEXT_MAX], bytes[4096];
    size_t len;
    if (listener_create("127.0.0.1", &l, NULL) < 0)
        _exit(1);
    memcpy(l->endpoint.host, "0123456789abcdef", sizeof "0123456789abcdef");
    send_line(fd, endpoint_format(&l->endpoint, text));
    for (;;) {
        ssize_t n = recv(fd, bytes, sizeof bytes, 0);
        if (n <= 0 || control_lines_feed(&lines, bytes, (size_t)n, NULL) < 0)
            _exit(1);
        const char *line = control_lines_next(&lines, &len);
        struct rank_request r;
        if (!line || rank_request_parse(line, len, &r, NULL) < 0)
            continue;
        attack_world(&r, *(const attack *)arg);
        (void)pause(); /* until it is killed */
    }
}

START_TEST(garbage_of_a_member_is_a_loss_of_that_member)
{
    static struct gang g;
    gang_run_calm(&rig, "calm", &lasting, 1);
    gang_start_with(&g, &rig, "member", &lasting, RANKS, &opts);
    for (attack a = GARBAGE; a < N_ATTACKS; a++) {
        ck_assert(gang_gather(&g, RANKS));
        int64_t epoch = g.epoch;
        size_t guest = gang_add_guest(&g, play, &a);
        while (!g.ranks[guest].out)
            ck_assert_msg(gang_turn(&g, PATIENCE_MS) && !gang_is_over(&g),
                          "attack %d: the training ended", (int)a);
        ck_assert_msg(gang_gather(&g, RANKS), "attack %d: the others do not go on", (int)a);
        ck_assert_int_gt(g.epoch, epoch + 1);
        gang_kill(&g, guest, SIGKILL);
    }
    end_and_compare(&g);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("strangers");
    TCase *t = tcase_create("strangers");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, strangers_do_not_hold_up_a_meeting);
    tcase_add_test(t, garbage_of_a_member_is_a_loss_of_that_member);
    suite_add_tcase(s, t);
    return s;
}
