/* The fast checksum: against the plain one, and what it must notice. */
#include "base/checksum.h"

#include <string.h>

#include "base/rng.h"
#include "tests/support/check_main.h"

static unsigned char b[5000];

static void fill(void)
{
    struct rng r;
    rng_init(&r, 3, 4);
    for (size_t i = 0; i < sizeof b; i++)
        b[i] = (unsigned char)rng_below(&r, 256);
}

START_TEST(both_ways_agree)
{
    fill();
    for (size_t at = 0; at < 9; at++)
        for (size_t len = 0; len + at <= sizeof b; len += len < 200 ? 1 : 61)
            ck_assert_uint_eq(checksum32(b + at, len), checksum32_plain(b + at, len));
}
END_TEST

/* Other machines of a trial may run other builds. */
START_TEST(known_values)
{
    ck_assert_uint_eq(checksum32("", 0), 0x6077d0f9);
    ck_assert_uint_eq(checksum32("123456789", 9), 0x9dfb0c9f);
    memset(b, 0, sizeof b);
    ck_assert_uint_eq(checksum32(b, 4096), 0x74c6c895);
}
END_TEST

START_TEST(any_changed_bit_is_noticed)
{
    static const size_t lens[] = {1, 63, 64, 65, 300};
    fill();
    for (size_t l = 0; l < sizeof lens / sizeof *lens; l++) {
        uint32_t whole = checksum32(b, lens[l]);
        for (size_t bit = 0; bit < 8 * lens[l]; bit++) {
            b[bit / 8] ^= (unsigned char)(1U << bit % 8);
            ck_assert_uint_ne(checksum32(b, lens[l]), whole);
            b[bit / 8] ^= (unsigned char)(1U << bit % 8);
        }
    }
}
END_TEST

/* Pieces that arrive in another order, twice or not at all; also in constant bytes. */
START_TEST(moved_pieces_are_noticed)
{
    for (size_t piece = 8; piece <= 512; piece *= 2) {
        unsigned char moved[1024];
        fill();
        memcpy(moved, b + piece, piece);
        memcpy(moved + piece, b, piece);
        memcpy(moved + 2 * piece, b + 2 * piece, sizeof moved - 2 * piece);
        ck_assert_uint_ne(checksum32(moved, sizeof moved), checksum32(b, sizeof moved));
        memset(moved, 0, piece);
        memcpy(moved + piece, b + piece, sizeof moved - piece);
        ck_assert_uint_ne(checksum32(moved, sizeof moved), checksum32(b, sizeof moved));
    }
    memset(b, 0, sizeof b);
    for (size_t len = 1; len < sizeof b; len += 7)
        ck_assert_uint_ne(checksum32(b, len), checksum32(b, len - 1));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("checksum");
    TCase *t = tcase_create("checksum");
    tcase_add_test(t, both_ways_agree);
    tcase_add_test(t, known_values);
    tcase_add_test(t, any_changed_bit_is_noticed);
    tcase_add_test(t, moved_pieces_are_noticed);
    suite_add_tcase(s, t);
    return s;
}
