/* Texts as numbers. The expected values were computed by a few lines of Python from the definition
 * in text_hash.h, so a change of any step of it fails here. */
#include "data/text_hash.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tests/support/check_main.h"

static void check_counts(const char *text, size_t n, const int *counts)
{
    float v[32];
    double squares = 0;
    text_hash(text, strlen(text), n, v);
    for (size_t i = 0; i < n; i++)
        squares += counts[i] * counts[i];
    for (size_t i = 0; i < n; i++)
        ck_assert_float_eq(v[i], (float)(squares > 0 ? counts[i] / sqrt(squares) : 0));
}

START_TEST(words_and_pairs)
{
    check_counts("The quick, brown Fox -- the größte fox2!", 16,
                 (int[]){-1, -2, 1, 0, 0, 0, 0, 0, -1, -1, 1, -1, 0, 0, 2, 1});
    check_counts("great", 8, (int[]){0, 0, 0, 0, -1, 0, 0, 0});
    check_counts(" \t GREAT.", 8, (int[]){0, 0, 0, 0, -1, 0, 0, 0});
    check_counts("", 8, (int[8]){0});
    check_counts(" .,-", 8, (int[8]){0});
}
END_TEST

START_TEST(order_matters)
{
    float a[64], b[64];
    text_hash("not good", 8, 64, a);
    text_hash("good not", 8, 64, b);
    ck_assert(memcmp(a, b, sizeof a) != 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("text_hash");
    TCase *t = tcase_create("text_hash");
    tcase_add_test(t, words_and_pairs);
    tcase_add_test(t, order_matters);
    suite_add_tcase(s, t);
    return s;
}
