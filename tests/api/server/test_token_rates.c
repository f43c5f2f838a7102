/* The buckets of tokens, with a clock of the test's own. */
#include <stdio.h>

#include "api/server/token_rates.h"
#include "base/clock.h"
#include "tests/support/check_main.h"

static struct token_rates *rates;
static struct token_rate rate;

static struct principal named(const char *id, token_role role)
{
    struct principal who = {.role = role};
    (void)snprintf(who.id, sizeof who.id, "%s", id);
    return who;
}

/* Take until there is no room; returns how many had room. */
static int64_t drain(const struct principal *who, int64_t now_ns)
{
    int64_t n = 0;
    while (token_rates_take(rates, who, now_ns, &rate))
        n++;
    return n;
}

START_TEST(a_bucket_empties_and_fills)
{
    const struct principal user = named("abcd", ROLE_USER), other = named("efgh", ROLE_USER);
    int64_t now = NS_PER_S * 1000;
    rates = token_rates_create(20);
    ck_assert(token_rates_take(rates, &user, now, &rate));
    ck_assert_int_eq(rate.limit, 200);
    ck_assert_int_eq(rate.left, 199);
    ck_assert_int_eq(rate.wait_ms, 0);
    ck_assert_int_eq(drain(&user, now), 199);
    ck_assert_int_eq(rate.left, 0);
    ck_assert_int_ge(rate.wait_ms, 50); /* a twentieth of a second */
    ck_assert_int_le(rate.wait_ms, 51);
    ck_assert_int_eq(token_rates_refused(rates), 1);
    ck_assert(token_rates_take(rates, &other, now, &rate)); /* a bucket of its own */
    ck_assert(!token_rates_take(rates, &user, now + 40 * NS_PER_MS, &rate));
    ck_assert(token_rates_take(rates, &user, now + 60 * NS_PER_MS, &rate));
    ck_assert_int_eq(drain(&user, now + NS_PER_S * 3600), 200); /* never fuller than full */
    ck_assert_int_eq(drain(&user, now), 0);                     /* a clock that goes back */
    token_rates_free(rates);
}
END_TEST

START_TEST(each_role_has_its_rate)
{
    struct principal runner = named("abcd", ROLE_RUNNER), trial = named("trial", ROLE_TRIAL), next;
    rates = token_rates_create(100);
    ck_assert_int_eq(drain(&runner, NS_PER_S), 100 * RATE_BURST_S * RATE_RUNNERS);
    (void)snprintf(trial.sweep, sizeof trial.sweep, "s");
    next = trial;
    next.attempt = 2;
    ck_assert_int_eq(drain(&trial, NS_PER_S), 100 * RATE_BURST_S / RATE_TRIALS);
    ck_assert_int_eq(drain(&next, NS_PER_S), 100 * RATE_BURST_S / RATE_TRIALS);
    token_rates_free(rates);
    rates = token_rates_create(1); /* a trial has at least one a second */
    ck_assert_int_eq(drain(&trial, NS_PER_S), RATE_BURST_S);
    token_rates_free(rates);
    rates = token_rates_create(0);
    for (int i = 0; i < 100000; i++)
        ck_assert(token_rates_take(rates, &trial, NS_PER_S, &rate));
    ck_assert_int_eq(rate.limit, 0);
    token_rates_free(rates);
}
END_TEST

/* One token among very many keeps its bucket, as long as it is used. */
START_TEST(many_tokens)
{
    const struct principal busy = named("busy", ROLE_USER);
    int64_t now = NS_PER_S;
    rates = token_rates_create(1);
    ck_assert_int_eq(drain(&busy, now), RATE_BURST_S);
    for (int i = 0; i < 20000; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t%d", i);
        const struct principal who = named(id, ROLE_USER);
        ck_assert(token_rates_take(rates, &who, now += 1000, &rate));
        if (i % 200 == 0)
            ck_assert(!token_rates_take(rates, &busy, now += 1000, &rate));
    }
    token_rates_free(rates);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("token_rates");
    TCase *tc = tcase_create("buckets");
    tcase_add_test(tc, a_bucket_empties_and_fills);
    tcase_add_test(tc, each_role_has_its_rate);
    tcase_add_test(tc, many_tokens);
    suite_add_tcase(s, tc);
    return s;
}
