/* Which connection is closed for a new one, at the limit of an address and at that of all. */
#include "api/http/http_shares.h"

#include <arpa/inet.h>
#include <stdbool.h>

#include "base/rng.h"
#include "tests/support/check_main.h"

#define FDS 64

static struct http_shares *shares;

static void start(unsigned all, unsigned per_address)
{
    struct as_err err;
    const struct http_share_limits limits = {all, per_address};
    ck_ok(http_shares_create(FDS, &limits, &shares, &err), err);
}

static int add(int fd, unsigned host)
{
    const struct sockaddr_in sa = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(0x0a000000u + host)};
    return http_shares_add(shares, fd, (const struct sockaddr *)&sa);
}

START_TEST(test_oldest_silent_of_the_address)
{
    start(10, 3);
    ck_assert_int_eq(add(5, 1), HTTP_SHARE_ROOM);
    ck_assert_int_eq(add(6, 1), HTTP_SHARE_ROOM);
    ck_assert_int_eq(add(7, 2), HTTP_SHARE_ROOM);
    ck_assert_int_eq(add(8, 1), HTTP_SHARE_ROOM);
    http_shares_use(shares, 5, HTTP_SHARE_BUSY);
    http_shares_use(shares, 5, HTTP_SHARE_IDLE); /* it has sent a request: older, and not silent */
    ck_assert_int_eq(add(9, 1), 6);
    ck_assert_int_eq(add(10, 1), 8);
    http_shares_remove(shares, 6); /* both end later: nothing is counted twice */
    http_shares_remove(shares, 8);
    ck_assert_int_eq(add(11, 1), 9);
    http_shares_use(shares, 10, HTTP_SHARE_BUSY);
    http_shares_use(shares, 11, HTTP_SHARE_BUSY);
    ck_assert_int_eq(add(12, 1), 5); /* none is silent: the idle one */
    http_shares_use(shares, 12, HTTP_SHARE_BUSY);
    ck_assert_int_eq(add(13, 1), HTTP_SHARE_REFUSED);
    ck_assert_int_eq(add(13, 2), HTTP_SHARE_ROOM); /* another address has its own share */
    http_shares_use(shares, 10, HTTP_SHARE_IDLE);
    http_shares_use(shares, 12, HTTP_SHARE_IDLE);
    ck_assert_int_eq(add(14, 1), 10); /* idle for longer */
    http_shares_free(shares);
}
END_TEST

/* At the limit of all, the address that has the most of them pays. */
START_TEST(test_all)
{
    start(6, 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(add(i, 1), HTTP_SHARE_ROOM);
    ck_assert_int_eq(add(4, 2), HTTP_SHARE_ROOM);
    ck_assert_int_eq(add(5, 3), HTTP_SHARE_ROOM);
    ck_assert_int_eq(add(6, 4), 0);
    ck_assert_int_eq(add(7, 5), 1);
    http_shares_use(shares, 2, HTTP_SHARE_BUSY);
    http_shares_use(shares, 3, HTTP_SHARE_BUSY);
    http_shares_use(shares, 3, HTTP_SHARE_IDLE);
    int fd = 8;
    for (int i = 0; i < 4; i++, fd++) { /* those that are silent, before the idle one */
        int victim = add(fd, 20 + (unsigned)i);
        ck_assert_msg(victim > 3 && victim < 8, "%d", victim);
        http_shares_use(shares, fd, HTTP_SHARE_BUSY);
    }
    ck_assert_int_eq(add(fd, 30), 3);
    http_shares_use(shares, fd, HTTP_SHARE_BUSY);
    ck_assert_int_eq(add(fd + 1, 31), HTTP_SHARE_REFUSED);
    http_shares_free(shares);
}
END_TEST

/* Where all addresses have as many, the one that has been silent for longest pays, and not the one
 * that came last: its request may be on its way. */
START_TEST(test_all_alike)
{
    start(4, 2);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(add(i, 10 + (unsigned)i), HTTP_SHARE_ROOM);
    for (int i = 0; i < 9; i++)
        ck_assert_int_eq(add(4 + i, 20 + (unsigned)i), i);
    http_shares_free(shares);
}
END_TEST

START_TEST(test_addresses)
{
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
    ck_assert_int_eq(inet_pton(AF_INET6, "::ffff:10.0.0.1", &mapped.sin6_addr), 1);
    start(10, 1);
    ck_assert_int_eq(add(1, 1), HTTP_SHARE_ROOM);
    ck_assert_int_eq(http_shares_add(shares, 2, (const struct sockaddr *)&v6), HTTP_SHARE_ROOM);
    ck_assert_int_eq(http_shares_add(shares, 3, (const struct sockaddr *)&mapped), 1);
    ck_assert_int_eq(http_shares_add(shares, 4, NULL), HTTP_SHARE_ROOM);
    ck_assert_int_eq(http_shares_add(shares, 5, NULL), 4);
    ck_assert_int_eq(http_shares_add(shares, FDS, NULL), HTTP_SHARE_REFUSED);
    http_shares_use(shares, FDS, HTTP_SHARE_BUSY);
    http_shares_remove(shares, -1);
    http_shares_free(shares);
}
END_TEST

/* Any sequence, beside a plain count of what is open. */
START_TEST(test_any_sequence)
{
    enum { ALL = 20, EACH = 5, HOSTS = 9 };
    unsigned n = 0, of[HOSTS] = {0};
    int host[FDS];
    struct rng rng;
    rng_init(&rng, 7, 0);
    for (int i = 0; i < FDS; i++)
        host[i] = -1;
    start(ALL, EACH);
    for (int step = 0; step < 20000; step++) {
        int fd = (int)rng_below(&rng, FDS);
        unsigned what = (unsigned)rng_below(&rng, 4), h = (unsigned)rng_below(&rng, HOSTS);
        if (host[fd] >= 0 && what == 0) {
            http_shares_remove(shares, fd);
            of[host[fd]]--, n--;
            host[fd] = -1;
        } else if (host[fd] >= 0) {
            http_shares_use(shares, fd, rng_below(&rng, 2) ? HTTP_SHARE_IDLE : HTTP_SHARE_BUSY);
        } else {
            bool is_full = of[h] == EACH || n == ALL;
            int victim = add(fd, h);
            ck_assert_msg((victim == HTTP_SHARE_ROOM) == !is_full, "step %d: %d", step, victim);
            if (victim >= 0) {
                ck_assert_int_ge(host[victim], 0);
                ck_assert(of[h] < EACH || host[victim] == (int)h);
                of[host[victim]]--, n--;
                host[victim] = -1;
            }
            if (victim != HTTP_SHARE_REFUSED) {
                host[fd] = (int)h;
                of[h]++, n++;
            }
        }
    }
    http_shares_free(shares);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_http_shares");
    TCase *tc = tcase_create("shares");
    tcase_add_test(tc, test_oldest_silent_of_the_address);
    tcase_add_test(tc, test_all);
    tcase_add_test(tc, test_all_alike);
    tcase_add_test(tc, test_addresses);
    tcase_add_test(tc, test_any_sequence);
    suite_add_tcase(s, tc);
    return s;
}
