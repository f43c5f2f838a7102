/* Encrypted links: between the two stands a relay, which reads and changes what passes. */
#include "trial-runner/collective/cipher.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/check_main.h"
#include "tests/trial-runner/collective/ranks.h"
#include "trial-runner/collective/link.h"

/* Test case 14 of McGrew and Viega, "The Galois/Counter Mode of Operation": key, nonce and text are
 * zeros. */
START_TEST(the_cipher_is_aes_256_gcm)
{
    static const uint8_t expected[] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e,
                                       0x07, 0x4e, 0xc5, 0xd3, 0xba, 0xf3, 0x9d, 0x18,
                                       0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0,
                                       0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19};
    const uint8_t key[CIPHER_KEY_BYTES] = {0}, text[16] = {0};
    uint8_t out[sizeof text + CIPHER_TAG_BYTES];
    struct as_err err;
    AS_AUTO(cipher_freep) struct cipher *c = NULL;
    ck_ok(cipher_create(key, &c, &err), err);
    ck_ok(cipher_encrypt(c, text, 0, text, sizeof text, out, &err), err);
    ck_assert_mem_eq(out, expected, sizeof out);
}
END_TEST

/* ---- two links and a relay ---- */

#define LENGTH (2 * FRAME_PAYLOAD_MAX + 1000)
#define LAST_FRAME (FRAME_HEAD_BYTES + 1000 + CIPHER_TAG_BYTES)
#define FULL_FRAME (FRAME_HEAD_BYTES + FRAME_PAYLOAD_MAX + CIPHER_TAG_BYTES)
#define ON_THE_WIRE (2 * FULL_FRAME + LAST_FRAME)

static uint8_t message[LENGTH], destination[LENGTH], wire[2 * ON_THE_WIRE];

struct ends {
    struct link *from, *to;
    int from_fd, to_fd; /* the relay's */
    struct transfer sent, received;
};

static struct link *link_of(const struct cipher_keys *keys, int *ret_peer)
{
    struct as_err err;
    struct link *l = NULL;
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_ok(tcp_link_create(ends[0], keys, &l, &err), err);
    l->attempt = 5;
    l->epoch = 3;
    *ret_peer = ends[1];
    return l;
}

/* Lets `message` leave; what is on its way is in `wire`. */
static void open_ends(struct ends *e)
{
    struct cipher_keys a, b;
    struct as_err err;
    size_t have = 0;
    memset(&a.send, 7, sizeof a.send);
    memset(&a.receive, 8, sizeof a.receive);
    memcpy(b.send, a.receive, sizeof b.send);
    memcpy(b.receive, a.send, sizeof b.receive);
    memset(destination, 0, sizeof destination);
    for (size_t i = 0; i < LENGTH; i++)
        message[i] = (uint8_t)(i % 251);
    e->from = link_of(&a, &e->from_fd);
    e->to = link_of(&b, &e->to_fd);
    e->sent = (struct transfer){
        .sends = true, .step = 7, .tag = 9, .from = message, .length = LENGTH, .what = "w"};
    e->received =
        (struct transfer){.step = 7, .tag = 9, .to = destination, .length = LENGTH, .what = "w"};
    link_post(e->from, &e->sent);
    link_post(e->to, &e->received);
    while (have < ON_THE_WIRE) {
        bool moved = false;
        ck_ok(e->from->ops->progress(e->from, &moved, &err), err);
        ssize_t got = recv(e->from_fd, wire + have, sizeof wire - have, MSG_DONTWAIT);
        have += got > 0 ? (size_t)got : 0;
    }
    ck_assert_uint_eq(have, ON_THE_WIRE);
}

static void close_ends(struct ends *e)
{
    (void)close(e->from_fd);
    (void)close(e->to_fd);
    e->from->ops->free(e->from);
    e->to->ops->free(e->to);
}

/* Passes bytes on; what the receiving link says. */
static as_status pass(struct ends *e, const uint8_t *bytes, size_t n, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t at = 0; at < n && st == AS_OK;) {
        bool moved = false;
        size_t piece = n - at < 50021 ? n - at : 50021;
        ssize_t took = send(e->to_fd, bytes + at, piece, MSG_DONTWAIT);
        at += took > 0 ? (size_t)took : 0;
        e->to->readable = true; /* as epoll says */
        st = e->to->ops->progress(e->to, &moved, err);
    }
    return st;
}

START_TEST(what_arrives_is_what_was_sent_and_nobody_could_read_it)
{
    struct ends e;
    struct as_err err;
    open_ends(&e);
    for (size_t i = 0; i + 16 < ON_THE_WIRE; i++)
        ck_assert_ptr_null(memmem(message, 251 + 16, wire + i, 16));
    ck_ok(pass(&e, wire, ON_THE_WIRE, &err), err);
    ck_assert(transfer_is_done(&e.received));
    ck_assert_mem_eq(destination, message, LENGTH);
    close_ends(&e);
}
END_TEST

/* Heads, payloads and tags, in the first frame and in later ones. */
START_TEST(a_changed_bit_is_noticed_before_it_counts)
{
    static const size_t places[] = {FRAME_HEAD_BYTES,
                                    FRAME_HEAD_BYTES + 40000,
                                    FULL_FRAME - 1,
                                    FULL_FRAME + FRAME_HEAD_BYTES,
                                    ON_THE_WIRE - CIPHER_TAG_BYTES,
                                    ON_THE_WIRE - 1};
    struct ends e;
    struct as_err err = {0};
    size_t frame = places[_i] / FULL_FRAME;
    open_ends(&e);
    wire[places[_i]] ^= 4;
    ck_assert_int_eq(pass(&e, wire, ON_THE_WIRE, &err), AS_E_IO);
    ck_assert_ptr_nonnull(strstr(err.msg, "is not what the peer sent"));
    ck_assert_uint_eq(e.received.done, frame * FRAME_PAYLOAD_MAX);
    for (size_t i = frame * FRAME_PAYLOAD_MAX; i < LENGTH; i++)
        ck_assert_uint_eq(destination[i], 0);
    close_ends(&e);
}
END_TEST

/* Who knows how a head is made can write another one with a right checksum. */
START_TEST(a_head_that_was_made_anew_is_noticed)
{
    struct ends e;
    struct as_err err = {0};
    struct frame f;
    open_ends(&e);
    ck_ok(frame_decode(wire, &f, &err), err);
    f.step++;
    frame_encode(&f, wire);
    ck_assert_int_eq(pass(&e, wire, ON_THE_WIRE, &err), AS_E_IO);
    ck_assert_ptr_nonnull(strstr(err.msg, "frame 0 is not what the peer sent"));
    close_ends(&e);
}
END_TEST

START_TEST(frames_that_are_left_out_or_repeated_are_noticed)
{
    struct ends e;
    struct as_err err = {0};
    open_ends(&e);
    ck_assert_int_eq(pass(&e, wire + FULL_FRAME, ON_THE_WIRE - FULL_FRAME, &err), AS_E_IO);
    close_ends(&e);
    open_ends(&e);
    ck_ok(pass(&e, wire, FULL_FRAME, &err), err);
    ck_assert_int_eq(pass(&e, wire, FULL_FRAME, &err), AS_E_IO);
    ck_assert_ptr_nonnull(strstr(err.msg, "frame 1 is not what the peer sent"));
    close_ends(&e);
}
END_TEST

/* Life and goodbye are frames too, without bytes. */
START_TEST(nobody_else_can_say_goodbye)
{
    struct ends e;
    struct as_err err = {0};
    uint8_t control[FRAME_HEAD_BYTES + CIPHER_TAG_BYTES + 1];
    const struct frame forged = {.kind = FRAME_GOODBYE, .epoch = 3, .attempt = 5};
    open_ends(&e);
    ck_ok(pass(&e, wire, ON_THE_WIRE, &err), err);
    ck_ok(e.from->ops->heartbeat(e.from, INT64_MAX, &err), err);
    ck_assert_int_eq(recv(e.from_fd, control, sizeof control, MSG_DONTWAIT), sizeof control - 1);
    ck_ok(pass(&e, control, sizeof control - 1, &err), err);
    e.from->ops->goodbye(e.from);
    ck_assert_int_eq(recv(e.from_fd, control, sizeof control, MSG_DONTWAIT), sizeof control - 1);
    ck_ok(pass(&e, control, sizeof control - 1, &err), err);
    ck_assert(e.to->left);
    close_ends(&e);

    open_ends(&e);
    frame_encode(&forged, control);
    ck_assert_int_eq(pass(&e, control, sizeof control - 1, &err), AS_E_IO);
    ck_assert(!e.to->left);
    close_ends(&e);
}
END_TEST

/* ---- operations ---- */

static int sum_rank(const struct ranks *r, int32_t rank, void *arg)
{
    static const size_t sizes[] = {1, 1000, 300001};
    struct as_err err = {0};
    (void)arg;
    AS_AUTO(coll_freep) struct coll *c = ranks_open(r, rank, &(struct mesh_opts){.tcp_only = true});
    EXPECT(c);
    for (size_t s = 0; s < AS_ARRAY_LEN(sizes); s++) {
        size_t n = sizes[s];
        AS_AUTO(as_freep) float *in = calloc(n, sizeof *in);
        AS_AUTO(as_freep) float *out = calloc(n, sizeof *out);
        EXPECT(in && out);
        for (size_t i = 0; i < n; i++)
            in[i] = (float)(rank + 1) * (float)(i % 1000);
        for (coll_algorithm a = COLL_RING; a <= COLL_HALVING; a++) {
            struct coll_id id = {.step = s, .tag = (uint32_t)a, .what = "w"};
            EXPECT(coll_allreduce(c, id, a, &reduce_f32_sum, in, out, n, &err) == AS_OK);
            for (size_t i = 0; i < n; i++)
                EXPECT(out[i] == (float)(r->n * (r->n + 1) / 2) * (float)(i % 1000));
        }
    }
    return 0;
}

START_TEST(ranks_sum_over_encrypted_links)
{
    struct ranks r;
    ranks_init(&r, 3);
    r.encrypt = true;
    ranks_start(&r, sum_rank, NULL);
    for (int32_t k = 0; k < r.n; k++)
        ck_assert_int_eq(ranks_wait(&r, k), 0);
    ranks_done(&r);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("cipher");
    TCase *t = tcase_create("cipher");
    tcase_add_test(t, the_cipher_is_aes_256_gcm);
    tcase_add_test(t, what_arrives_is_what_was_sent_and_nobody_could_read_it);
    tcase_add_loop_test(t, a_changed_bit_is_noticed_before_it_counts, 0, 6);
    tcase_add_test(t, a_head_that_was_made_anew_is_noticed);
    tcase_add_test(t, frames_that_are_left_out_or_repeated_are_noticed);
    tcase_add_test(t, nobody_else_can_say_goodbye);
    tcase_add_test(t, ranks_sum_over_encrypted_links);
    suite_add_tcase(s, t);
    return s;
}
