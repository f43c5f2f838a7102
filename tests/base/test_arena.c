#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "tests/support/check_main.h"

START_TEST(pieces_are_zeroed_aligned_and_apart)
{
    AS_AUTO(arena_done) struct arena a = {0};
    char *last = NULL;
    for (size_t i = 1; i < 3000; i += 7) {
        char *p = arena_alloc(&a, i, 1);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < i; k++)
            ck_assert_int_eq(p[k], 0);
        memset(p, 0xab, i);
        ck_assert_ptr_ne(p, last);
        last = p;
    }
    ck_assert_ptr_null(arena_alloc(&a, SIZE_MAX / 2, 3));
    ck_assert_str_eq(arena_printf(&a, "%s/%d", "x", 7), "x/7");
    ck_assert_str_eq(arena_strndup(&a, "hello", 3), "hel");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("arena");
    TCase *t = tcase_create("arena");
    tcase_add_test(t, pieces_are_zeroed_aligned_and_apart);
    suite_add_tcase(s, t);
    return s;
}
