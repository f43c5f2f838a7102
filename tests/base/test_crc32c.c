/* CRC-32C: known values, and the instruction against the tables. */
#include "base/crc32c.h"

#include <string.h>

#include "base/rng.h"
#include "tests/support/check_main.h"

typedef uint32_t crc_fn(uint32_t before, const void *bytes, size_t len);
static crc_fn *const both[] = {crc32c, crc32c_plain};

/* RFC 3720, B.4, and the check value of the catalogues of CRCs. */
START_TEST(known_values)
{
    unsigned char b[32];
    for (size_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(both[i](0, "123456789", 9), 0xe3069283);
        ck_assert_uint_eq(both[i](0, "", 0), 0);
        memset(b, 0, sizeof b);
        ck_assert_uint_eq(both[i](0, b, sizeof b), 0x8a9136aa);
        memset(b, 0xff, sizeof b);
        ck_assert_uint_eq(both[i](0, b, sizeof b), 0x62a8ab43);
        for (unsigned k = 0; k < sizeof b; k++)
            b[k] = (unsigned char)k;
        ck_assert_uint_eq(both[i](0, b, sizeof b), 0x46dd794e);
    }
}
END_TEST

START_TEST(any_length_place_and_cut)
{
    static unsigned char b[10000]; /* streams of 1024 bytes, three at a time, and rests */
    struct rng r;
    rng_init(&r, 1, 2);
    for (size_t i = 0; i < sizeof b; i++)
        b[i] = (unsigned char)rng_below(&r, 256);
    for (size_t at = 0; at < 9; at++)
        for (size_t len = 0; len + at <= sizeof b; len += len < 100 ? 1 : 97) {
            uint32_t whole = crc32c(0, b + at, len);
            size_t cut = len / 3;
            ck_assert_uint_eq(whole, crc32c_plain(0, b + at, len));
            ck_assert_uint_eq(whole, crc32c(crc32c(0, b + at, cut), b + at + cut, len - cut));
        }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("crc32c");
    TCase *t = tcase_create("crc32c");
    tcase_add_test(t, known_values);
    tcase_add_test(t, any_length_place_and_cut);
    suite_add_tcase(s, t);
    return s;
}
