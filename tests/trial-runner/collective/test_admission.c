/* Who makes room at the door of a rank. */
#include "trial-runner/collective/admission.h"

#include <arpa/inet.h>
#include <check.h>
#include <string.h>
#include <sys/un.h>

#include "base/mem.h"
#include "tests/support/check_main.h"

static uint64_t origin_of(const char *text)
{
    struct sockaddr_storage at = {0};
    struct sockaddr_in *four = (struct sockaddr_in *)&at;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&at;
    at.ss_family = AF_UNIX;
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
        at.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1)
        at.ss_family = AF_INET6;
    return admission_origin(&at);
}

START_TEST(an_origin_is_what_one_sender_has)
{
    ck_assert_uint_eq(origin_of("10.0.0.3"), origin_of("10.0.0.3"));
    ck_assert_uint_ne(origin_of("10.0.0.3"), origin_of("10.0.0.4"));
    ck_assert_uint_eq(origin_of("2001:db8:1:2::1"), origin_of("2001:db8:1:2:ffff::2"));
    ck_assert_uint_ne(origin_of("2001:db8:1:2::1"), origin_of("2001:db8:1:3::1"));
    ck_assert_uint_ne(origin_of("unix"), origin_of("0.0.0.0"));
}
END_TEST

#define C(from, ns, at)                                                                            \
    {                                                                                              \
        .origin = (from), .since_ns = (ns), .place = (at)                                          \
    }
#define RANK(from)                                                                                 \
    {                                                                                              \
        .origin = (from), .is_expected = 1                                                         \
    }

START_TEST(of_one_origin_the_first_goes)
{
    struct admission_entry e[] = {C(5, 30, 1), C(5, 10, 2), C(5, 20, 3)};
    ck_assert_uint_eq(admission_victim(e, AS_ARRAY_LEN(e)), 2);
}
END_TEST

START_TEST(who_holds_most_loses_one)
{
    /* The connection that came first is the only one of its origin. */
    struct admission_entry e[] = {C(5, 1, 1), C(7, 30, 2), C(7, 20, 3), C(6, 2, 4)};
    ck_assert_uint_eq(admission_victim(e, AS_ARRAY_LEN(e)), 3);
}
END_TEST

START_TEST(ranks_of_one_host_are_no_crowd)
{
    struct admission_entry e[] = {C(5, 1, 1), C(5, 2, 2), C(5, 3, 3), C(7, 4, 4),
                                  C(7, 5, 5), RANK(5),    RANK(5),    RANK(5)};
    ck_assert_uint_eq(admission_victim(e, AS_ARRAY_LEN(e)), 4);
}
END_TEST

/* More ranks are expected of each origin than have come: still one must go. */
START_TEST(somebody_goes)
{
    struct admission_entry e[] = {RANK(5), RANK(5), C(5, 1, 1), RANK(4), RANK(9), RANK(9)};
    ck_assert_uint_eq(admission_victim(e, AS_ARRAY_LEN(e)), 1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("admission");
    TCase *t = tcase_create("admission");
    tcase_add_test(t, an_origin_is_what_one_sender_has);
    tcase_add_test(t, of_one_origin_the_first_goes);
    tcase_add_test(t, who_holds_most_loses_one);
    tcase_add_test(t, ranks_of_one_host_are_no_crowd);
    tcase_add_test(t, somebody_goes);
    suite_add_tcase(s, t);
    return s;
}
