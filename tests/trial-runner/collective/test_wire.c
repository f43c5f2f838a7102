/* What travels: frame heads, endpoints, proofs. */
#include <check.h>
#include <string.h>

#include "base/checksum.h"
#include "base/hash.h"
#include "tests/support/check_main.h"
#include "trial-runner/collective/frame.h"
#include "trial-runner/collective/handshake.h"
#include "trial-runner/collective/link.h"
#include "trial-runner/collective/shm_segment.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

START_TEST(frame_is_read_back)
{
    struct as_err err;
    struct frame f = {.kind = FRAME_DATA,
                      .epoch = 3,
                      .attempt = UINT64_C(1) << 60,
                      .step = 17,
                      .tag = 5,
                      .offset = UINT64_C(1) << 40,
                      .length = FRAME_PAYLOAD_MAX,
                      .payload_sum = 0xdeadbeef};
    struct frame g;
    uint8_t head[FRAME_HEAD_BYTES];
    frame_encode(&f, head);
    ck_ok(frame_decode(head, &g, &err), err);
    ck_assert(g.kind == f.kind && g.epoch == f.epoch && g.attempt == f.attempt &&
              g.step == f.step && g.tag == f.tag && g.offset == f.offset && g.length == f.length &&
              g.payload_sum == f.payload_sum);
}
END_TEST

START_TEST(any_changed_bit_of_a_frame_is_noticed)
{
    struct as_err err;
    struct frame f = {.kind = FRAME_DATA, .epoch = 3, .length = 10}, g;
    uint8_t head[FRAME_HEAD_BYTES];
    frame_encode(&f, head);
    for (size_t bit = 0; bit < 8 * sizeof head; bit++) {
        head[bit / 8] ^= (uint8_t)(1U << bit % 8);
        ck_assert_int_eq(frame_decode(head, &g, &err), AS_E_INVAL);
        head[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
}
END_TEST

START_TEST(frame_past_its_limits_is_refused)
{
    struct as_err err;
    struct frame g;
    uint8_t head[FRAME_HEAD_BYTES];
    frame_encode(&(struct frame){.kind = FRAME_DATA, .length = FRAME_PAYLOAD_MAX + 1}, head);
    ck_fails(frame_decode(head, &g, &err), AS_E_INVAL, err, "65281 bytes; at most 65280");
    frame_encode(&(struct frame){.kind = FRAME_HEARTBEAT, .length = 1}, head);
    ck_fails(frame_decode(head, &g, &err), AS_E_INVAL, err, "at most 0");
    frame_encode(&(struct frame){.kind = 9}, head);
    ck_fails(frame_decode(head, &g, &err), AS_E_INVAL, err, "unknown kind 9");
}
END_TEST

/* ---- frames on a connection ---- */

#define PAYLOAD 1000

/* A frame of attempt 5, epoch 3, of `length` bytes from `offset`; returns its bytes on the wire. */
static size_t wire_frame(uint8_t *to, const uint8_t *message, uint64_t offset, uint32_t length)
{
    struct frame f = {.kind = FRAME_DATA,
                      .epoch = 3,
                      .attempt = 5,
                      .step = 7,
                      .tag = 9,
                      .offset = offset,
                      .length = length,
                      .payload_sum = checksum32(message + offset, length)};
    frame_encode(&f, to);
    memcpy(to + FRAME_HEAD_BYTES, message + offset, length);
    return FRAME_HEAD_BYTES + length;
}

/* A link whose peer is `*ret_peer`, with a receive posted. */
static struct link *link_with_receive(int *ret_peer, struct transfer *t, uint8_t *to)
{
    struct as_err err;
    struct link *l = NULL;
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_ok(tcp_link_create(ends[0], NULL, &l, &err), err);
    l->attempt = 5;
    l->epoch = 3;
    *t = (struct transfer){.step = 7, .tag = 9, .to = to, .length = PAYLOAD, .what = "w"};
    link_post(l, t);
    *ret_peer = ends[1];
    return l;
}

/* Three frames follow each other, and arrive cut at any place, also in the middle of heads. */
START_TEST(frames_arrive_in_pieces_of_any_size)
{
    uint8_t message[PAYLOAD], wire[PAYLOAD + 3 * FRAME_HEAD_BYTES], to[PAYLOAD];
    size_t piece = (size_t)_i, n = 0;
    struct transfer t;
    struct as_err err;
    int peer;
    for (size_t i = 0; i < PAYLOAD; i++)
        message[i] = (uint8_t)(i * 37 + i / 256);
    memset(to, 0, sizeof to);
    n += wire_frame(wire, message, 0, 400);
    n += wire_frame(wire + n, message, 400, 1);
    n += wire_frame(wire + n, message, 401, PAYLOAD - 401);
    struct link *l = link_with_receive(&peer, &t, to);
    for (size_t at = 0; at < n; at += piece) {
        bool moved = false;
        size_t now = n - at < piece ? n - at : piece;
        ck_assert_int_eq(write(peer, wire + at, now), (ssize_t)now);
        l->readable = true; /* as epoll says */
        ck_ok(l->ops->progress(l, &moved, &err), err);
        ck_assert(moved);
    }
    ck_assert(transfer_is_done(&t));
    ck_assert_mem_eq(to, message, PAYLOAD);
    (void)close(peer);
    l->ops->free(l);
}
END_TEST

/* A socket that was read empty is not asked again until epoll has said that there is more; one
 * whose peer has ended the connection is, because epoll says that once. */
START_TEST(an_empty_socket_is_left_alone)
{
    uint8_t message[PAYLOAD] = {1, 2, 3}, wire[PAYLOAD + FRAME_HEAD_BYTES], to[PAYLOAD];
    struct transfer t;
    struct as_err err;
    bool moved = false, closing = _i == 1;
    int peer;
    size_t n = wire_frame(wire, message, 0, PAYLOAD);
    struct link *l = link_with_receive(&peer, &t, to);
    l->closing = closing;
    ck_assert_int_eq(write(peer, wire, 10), 10);
    ck_ok(l->ops->progress(l, &moved, &err), err);
    ck_assert(moved && l->readable == closing);
    moved = false;
    ck_assert_int_eq(write(peer, wire + 10, n - 10), (ssize_t)n - 10);
    ck_ok(l->ops->progress(l, &moved, &err), err);
    ck_assert(moved == closing && transfer_is_done(&t) == closing);
    (void)close(peer);
    l->ops->free(l);
}
END_TEST

#define MANY 11
#define EACH 40000

/* The next `n` bytes that a link sends, which gets the chance again and again. */
static void take(struct link *l, int peer, uint8_t *to, size_t n)
{
    struct as_err err;
    for (size_t have = 0; have < n;) {
        bool moved = false;
        ck_ok(l->ops->progress(l, &moved, &err), err);
        ssize_t got = recv(peer, to + have, n - have < 777 ? n - have : 777, MSG_DONTWAIT);
        have += got > 0 ? (size_t)got : 0;
    }
}

/* Frames of several messages leave in one call, which the socket takes in part. They arrive in
 * their order, one of them limited by what is ready. */
START_TEST(frames_leave_whole_and_in_order)
{
    static uint8_t message[MANY * EACH], payload[FRAME_PAYLOAD_MAX];
    struct transfer t[MANY], receive;
    uint8_t head[FRAME_HEAD_BYTES], to[PAYLOAD];
    size_t ready = 1000;
    int peer, small = 4096;
    struct as_err err;
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (uint8_t)(i * 37 + i / 256);
    struct link *l = link_with_receive(&peer, &receive, to);
    ck_assert_int_eq(setsockopt(l->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    for (size_t k = 0; k < MANY; k++) {
        t[k] = (struct transfer){.sends = true, .tag = k, .from = message + k * EACH};
        t[k].length = k == MANY - 1 ? 2 * FRAME_PAYLOAD_MAX : EACH;
        t[k].from = k == MANY - 1 ? message : t[k].from;
        t[k].ready = k == 5 ? &ready : NULL;
        link_post(l, &t[k]);
    }
    for (size_t k = 0, at = 0; k < MANY;) {
        struct frame f;
        take(l, peer, head, sizeof head);
        ck_ok(frame_decode(head, &f, &err), err);
        take(l, peer, payload, f.length);
        ck_assert_uint_eq(f.tag, k);
        ck_assert_uint_eq(f.offset, at);
        ck_assert_uint_eq(f.payload_sum, checksum32(payload, f.length));
        ck_assert_mem_eq(payload, t[k].from + at, f.length);
        at += f.length;
        ck_assert_uint_ge(t[k].framed, at);
        if (k == 5 && at == 1000) {
            ck_assert_uint_eq(t[5].done, 1000);
            ck_assert_uint_eq(t[6].framed, 0); /* does not overtake */
            ready = EACH;
        }
        if (at == t[k].length) {
            ck_assert(transfer_is_done(&t[k]));
            k++, at = 0;
        }
    }
    (void)close(peer);
    l->ops->free(l);
}
END_TEST

START_TEST(a_damaged_payload_is_noticed_before_it_counts)
{
    uint8_t message[PAYLOAD] = {1, 2, 3}, wire[PAYLOAD + FRAME_HEAD_BYTES], to[PAYLOAD] = {0};
    struct transfer t;
    struct as_err err;
    bool moved = false;
    int peer;
    size_t n = wire_frame(wire, message, 0, PAYLOAD);
    wire[FRAME_HEAD_BYTES + (size_t)_i * 111] ^= 0x10;
    struct link *l = link_with_receive(&peer, &t, to);
    ck_assert_int_eq(write(peer, wire, n), (ssize_t)n);
    ck_fails(l->ops->progress(l, &moved, &err), AS_E_IO, err, "was damaged on its way");
    ck_assert_uint_eq(t.done, 0);
    for (size_t i = 0; i < PAYLOAD; i++)
        ck_assert_uint_eq(to[i], 0); /* nor reaches its destination */
    (void)close(peer);
    l->ops->free(l);
}
END_TEST

START_TEST(endpoint_is_read_back)
{
    static const char *const texts[] = {
        "10.0.0.3:40217 host=0123456789abcdef socket=0123456789abcdef0123456789abcdef",
        "[fe80::1]:1 host=0123456789abcdef socket=0123456789abcdef0123456789abcdef",
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
        struct as_err err;
        struct endpoint e;
        char buf[ENDPOINT_TEXT_MAX];
        ck_ok(endpoint_parse(texts[i], &e, &err), err);
        ck_assert_str_eq(endpoint_format(&e, buf), texts[i]);
    }
}
END_TEST

START_TEST(what_is_no_endpoint_is_refused)
{
#define REST " host=0123456789abcdef socket=0123456789abcdef0123456789abcdef"
    static const char *const texts[] = {
        "",
        "10.0.0.3",
        "10.0.0.3:0" REST,
        "10.0.0.3:65536" REST,
        "10.0.0.300:80" REST,
        "10.0.0.3:+80" REST,
        "10.0.0.3: 80" REST,
        "10.0.0.3:080" REST,
        "10.0.0.3:80 " REST,
        "example:80" REST,
        "[10.0.0.3]:x" REST,
        "10.0.0.3:80" REST " ",
        "10.0.0.3:80" REST "00",
        "10.0.0.3:80 host=0123 socket=0123456789abcdef0123456789abcdef",
        "10.0.0.3:80 host=0123456789ABCDEF socket=0123456789abcdef0123456789abcdef",
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(texts); i++) {
        struct as_err err;
        struct endpoint e;
        ck_fails(endpoint_parse(texts[i], &e, &err), AS_E_INVAL, err, "is no endpoint");
    }
}
END_TEST

START_TEST(this_host_is_the_same_host_each_time)
{
    struct as_err err;
    struct endpoint a = {0}, b = {0};
    ck_ok(endpoint_this_host(a.host, &err), err);
    ck_ok(endpoint_this_host(b.host, &err), err);
    ck_assert(endpoint_same_host(&a, &b));
    ck_assert_uint_eq(strlen(a.host), 16);
}
END_TEST

static struct world world_of(int32_t rank)
{
    return (struct world){.attempt = 9, .epoch = 2, .rank = rank, .n = 4};
}

START_TEST(ranks_of_one_world_prove_themselves)
{
    struct as_err err;
    struct world a = world_of(3), b = world_of(1);
    uint8_t hello[HELLO_BYTES], challenge[CHALLENGE_BYTES], proof[PROOF_BYTES];
    int32_t from = -1;
    hello_encode(&a, 1, hello);
    ck_ok(hello_decode(&b, hello, &from, &err), err);
    ck_assert_int_eq(from, 3);
    ck_ok(challenge_encode(&b, hello, challenge, &err), err);
    ck_ok(challenge_answer(&a, hello, challenge, proof, &err), err);
    ck_ok(proof_check(&b, hello, challenge, proof, &err), err);

    /* An acceptor's proof is not a dialler's, and one nonce's is not another's. */
    ck_assert_int_eq(proof_check(&b, hello, challenge, challenge + NONCE_BYTES, &err), AS_E_DENIED);
    uint8_t other[CHALLENGE_BYTES];
    ck_ok(challenge_encode(&b, hello, other, &err), err);
    ck_assert_int_eq(proof_check(&b, hello, other, proof, &err), AS_E_DENIED);
}
END_TEST

START_TEST(both_sides_have_the_keys_of_their_connection)
{
    struct as_err err;
    struct world a = world_of(3), b = world_of(1), stranger = world_of(1);
    uint8_t hello[HELLO_BYTES], challenge[CHALLENGE_BYTES], other[CHALLENGE_BYTES];
    struct cipher_keys dialler, acceptor, again, twin;
    a.encrypt = b.encrypt = stranger.encrypt = true;
    stranger.secret[0] = 1;
    hello_encode(&a, 1, hello);
    ck_ok(challenge_encode(&b, hello, challenge, &err), err);
    ck_ok(challenge_encode(&b, hello, other, &err), err);
    ck_ok(handshake_keys(&a, hello, challenge, true, &dialler, &err), err);
    ck_ok(handshake_keys(&b, hello, challenge, false, &acceptor, &err), err);
    ck_ok(handshake_keys(&b, hello, other, false, &again, &err), err);
    ck_ok(handshake_keys(&stranger, hello, challenge, false, &twin, &err), err);
    ck_assert_mem_eq(dialler.send, acceptor.receive, CIPHER_KEY_BYTES);
    ck_assert_mem_eq(dialler.receive, acceptor.send, CIPHER_KEY_BYTES);
    ck_assert_mem_ne(dialler.send, dialler.receive, CIPHER_KEY_BYTES);
    ck_assert_mem_ne(again.send, acceptor.send, CIPHER_KEY_BYTES);
    ck_assert_mem_ne(twin.send, acceptor.send, CIPHER_KEY_BYTES);
    /* a proof, which everybody sees, is no key */
    ck_assert_mem_ne(challenge + NONCE_BYTES, acceptor.send, CIPHER_KEY_BYTES);
    ck_assert_mem_ne(challenge + NONCE_BYTES, acceptor.receive, CIPHER_KEY_BYTES);
}
END_TEST

START_TEST(who_does_not_encrypt_is_refused)
{
    struct as_err err;
    struct world a = world_of(3), b = world_of(1);
    uint8_t hello[HELLO_BYTES];
    int32_t from;
    b.encrypt = true;
    hello_encode(&a, 1, hello);
    ck_fails(hello_decode(&b, hello, &from, &err), AS_E_INVAL, err, "rank 3 encrypts nothing");
    a.encrypt = true;
    b.encrypt = false;
    hello_encode(&a, 1, hello);
    ck_fails(hello_decode(&b, hello, &from, &err), AS_E_INVAL, err, "this rank does not");
}
END_TEST

START_TEST(ranks_of_other_worlds_are_refused)
{
    struct as_err err;
    struct world a = world_of(3), b = world_of(1), stranger = world_of(3);
    uint8_t hello[HELLO_BYTES], challenge[CHALLENGE_BYTES], proof[PROOF_BYTES];
    int32_t from;
    hello_encode(&a, 2, hello);
    ck_fails(hello_decode(&b, hello, &from, &err), AS_E_INVAL, err, "rank 3 calls rank 2");
    a.epoch = 1;
    hello_encode(&a, 1, hello);
    ck_fails(hello_decode(&b, hello, &from, &err), AS_E_STALE, err, "epoch 1; expected 9, epoch 2");
    a = world_of(3);
    a.attempt = 8;
    hello_encode(&a, 1, hello);
    ck_fails(hello_decode(&b, hello, &from, &err), AS_E_STALE, err, "attempt 8");
    hello[0] = 'x';
    ck_fails(hello_decode(&b, hello, &from, &err), AS_E_INVAL, err, "does not speak");

    stranger.secret[31] = 1;
    hello_encode(&stranger, 1, hello);
    ck_ok(challenge_encode(&b, hello, challenge, &err), err);
    ck_assert_int_eq(challenge_answer(&stranger, hello, challenge, proof, &err), AS_E_DENIED);
    struct world twin = b;
    twin.secret[31] = 1;
    ck_ok(challenge_encode(&twin, hello, challenge, &err), err);
    ck_ok(challenge_answer(&stranger, hello, challenge, proof, &err), err);
    ck_assert_int_eq(proof_check(&b, hello, challenge, proof, &err), AS_E_DENIED);
}
END_TEST

START_TEST(memory_that_a_peer_could_cut_is_refused)
{
    struct as_err err;
    struct shm_segment *s = NULL;
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(fd, sizeof(struct shm_segment)), 0);
    ck_assert_int_eq(shm_segment_map(fd, &s, &err), AS_E_INVAL);
    (void)close(fd);
    ck_ok(shm_segment_create(&fd, &err), err);
    ck_assert_int_ne(ftruncate(fd, 1), 0);
    ck_ok(shm_segment_map(fd, &s, &err), err);
    shm_segment_unmap(s);
    (void)close(fd);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("wire");
    TCase *t = tcase_create("wire");
    tcase_add_test(t, frame_is_read_back);
    tcase_add_test(t, any_changed_bit_of_a_frame_is_noticed);
    tcase_add_test(t, frame_past_its_limits_is_refused);
    tcase_add_loop_test(t, frames_arrive_in_pieces_of_any_size, 1, 120);
    tcase_add_loop_test(t, an_empty_socket_is_left_alone, 0, 2);
    tcase_add_test(t, frames_leave_whole_and_in_order);
    tcase_add_loop_test(t, a_damaged_payload_is_noticed_before_it_counts, 0, 9);
    tcase_add_test(t, endpoint_is_read_back);
    tcase_add_test(t, what_is_no_endpoint_is_refused);
    tcase_add_test(t, this_host_is_the_same_host_each_time);
    tcase_add_test(t, ranks_of_one_world_prove_themselves);
    tcase_add_test(t, both_sides_have_the_keys_of_their_connection);
    tcase_add_test(t, who_does_not_encrypt_is_refused);
    tcase_add_test(t, ranks_of_other_worlds_are_refused);
    tcase_add_test(t, memory_that_a_peer_could_cut_is_refused);
    suite_add_tcase(s, t);
    return s;
}
