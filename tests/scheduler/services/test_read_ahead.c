/* Parts that are put while the next one is read: their order, their places, and failures. */
#include "scheduler/services/read_ahead.h"

#include "base/mem.h"
#include "tests/support/check_main.h"

#define NEVER 99

static struct as_err err;

/* Parts 0 to n - 1. Each place holds the number of its part, from its reading to its putting. */
struct parts {
    int n, n_read, n_put;
    int bad_read, bad_put; /* the part of which that fails */
    int places[READ_AHEAD_PLACES];
};

static as_status read_one(void *arg, size_t place, struct arena *a, bool *ret_is_left,
                          struct as_err *e)
{
    struct parts *x = arg;
    ck_assert_ptr_nonnull(arena_strdup(a, "a part"));
    ck_assert_int_eq(x->places[place], -1); /* nobody else has it */
    if (x->n_read == x->bad_read)
        return as_fail(e, AS_E_UNAVAILABLE, "cannot read part %d", x->n_read);
    x->places[place] = x->n_read++;
    *ret_is_left = x->n_read < x->n;
    return AS_OK;
}

static as_status put_one(void *arg, size_t place, struct as_err *e)
{
    struct parts *x = arg;
    ck_assert_int_eq(x->places[place], x->n_put);
    if (x->n_put == x->bad_put)
        return as_fail(e, AS_E_INTERNAL, "cannot put part %d", x->n_put);
    x->places[place] = -1;
    x->n_put++;
    return AS_OK;
}

static as_status run(struct parts *x)
{
    const struct read_ahead parts = {.arg = x, .read = read_one, .put = put_one};
    return read_ahead(&parts, &err);
}

static struct parts parts_of(int n)
{
    return (struct parts){.n = n, .bad_read = NEVER, .bad_put = NEVER, .places = {-1, -1}};
}

START_TEST(every_part_is_put_in_order)
{
    for (int n = 1; n < 8; n++) {
        struct parts x = parts_of(n);
        ck_ok(run(&x), err);
        ck_assert_int_eq(x.n_put, n);
    }
}
END_TEST

START_TEST(a_failure_ends_it)
{
    for (int bad = 0; bad < 4; bad++) {
        struct parts x = parts_of(4), y = parts_of(4);
        x.bad_read = bad;
        ck_fails(run(&x), AS_E_UNAVAILABLE, err, "cannot read part");
        ck_assert_int_eq(x.n_put, bad); /* all that were read before */
        y.bad_put = bad;
        ck_fails(run(&y), AS_E_INTERNAL, err, "cannot put part");
        ck_assert_int_eq(y.n_put, bad);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("read_ahead");
    TCase *t = tcase_create("read_ahead");
    tcase_add_test(t, every_part_is_put_in_order);
    tcase_add_test(t, a_failure_ends_it);
    suite_add_tcase(suite, t);
    return suite;
}
