/* The calls through the table of operations, with methods that leave operations out. */
#include "search/problem/method.h"

#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static int n_freed;

/* A preparation of 7 configurations. */
static as_status prepare(const struct space *space, const char *pointer,
                         struct search_prepared **ret, uint64_t *ret_total, struct as_err *err)
{
    if (space->n != 1)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: expected one parameter", pointer);
    *ret = (struct search_prepared *)&n_freed;
    *ret_total = 7;
    return AS_OK;
}

static void prepared_free(struct search_prepared *p)
{
    ck_assert_ptr_eq((void *)p, (void *)&n_freed);
    n_freed++;
}

static as_status check(const struct search_spec *spec, struct as_err *err)
{
    return spec->seed == 1 ? AS_OK : as_fail(err, AS_E_UNSUPPORTED, "seed");
}

static as_status sample(const struct search_spec *spec, struct config **ret, struct as_err *err)
{
    *ret = config_create(spec->space);
    return *ret ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

static const struct search_method full = {.name = "full",
                                          .prepare = prepare,
                                          .prepared_free = prepared_free,
                                          .check = check,
                                          .sample = sample};
static const struct search_method bare = {.name = "bare", .sample = sample};

START_TEST(prepares)
{
    AS_AUTO(space_freep) struct space *one = NULL;
    AS_AUTO(space_freep) struct space *two = NULL;
    struct as_err err = {0};
    struct search_prepared *p = NULL;
    uint64_t total = 0;
    ck_ok(space_from_yaml("a: {type: bool}", &one, &err), err);
    ck_ok(space_from_yaml("a: {type: bool}\nb: {type: bool}", &two, &err), err);
    ck_ok(search_prepare(&full, one, "/here", &p, &total, &err), err);
    ck_assert(p && total == 7);
    search_prepared_free(&full, p);
    ck_assert_int_eq(n_freed, 1);
    ck_fails(search_prepare(&full, two, "/here", &p, &total, &err), AS_E_INVAL, err, "one");
    ck_assert_str_eq(err.pointer, "/here");
}
END_TEST

START_TEST(methods_may_prepare_nothing)
{
    struct as_err err = {0};
    struct search_prepared *p = (struct search_prepared *)&n_freed;
    uint64_t total = 3;
    ck_ok(search_prepare(&bare, NULL, "", &p, &total, &err), err);
    ck_assert(!p && total == 0);
    search_prepared_free(&bare, p);
    search_prepared_free(NULL, NULL); /* a document without a method yet */
}
END_TEST

START_TEST(checks)
{
    struct as_err err = {0};
    struct search_spec spec = {.method = &full, .seed = 1};
    ck_ok(search_check(&spec, &err), err);
    spec.seed = 2;
    ck_fails(search_check(&spec, &err), AS_E_UNSUPPORTED, err, "seed");
    spec.method = &bare;
    ck_ok(search_check(&spec, &err), err);
}
END_TEST

START_TEST(samples)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(config_freep) struct config *c = NULL;
    struct as_err err = {0};
    ck_ok(space_from_yaml("a: {type: bool}", &s, &err), err);
    ck_ok(search_sample(&(struct search_spec){.space = s, .method = &bare}, &c, &err), err);
    ck_assert_ptr_nonnull(c);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/method");
    TCase *t = tcase_create("method");
    tcase_add_test(t, prepares);
    tcase_add_test(t, methods_may_prepare_nothing);
    tcase_add_test(t, checks);
    tcase_add_test(t, samples);
    suite_add_tcase(s, t);
    return s;
}
