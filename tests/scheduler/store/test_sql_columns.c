/* Columns that are listed once: the SELECT list and the reader of a row follow from the list. */
#include <string.h>

#include "scheduler/store/sql_columns_priv.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err why;

static void open_service(void)
{
    service_begin(&s, 0);
}

static void close_service(void)
{
    service_end(&s);
}

struct part {
    int64_t pieces[2];
};

struct thing {
    const char *name;
    struct part part;
    double value;
    bool is_new;
    trial_state state;
    sweep_state sweep;
};

#define THING_FIELDS(FIRST, NEXT)                                                                  \
    FIRST(text, name, "$1::text")                                                                  \
    NEXT(i64, part.pieces[0], "i")                                                                 \
    NEXT(i64, part.pieces[1], "nullif(i, 2) * 10")                                                 \
    NEXT(f64, value, "'NaN'::float8")                                                              \
    NEXT(bool, is_new, "i = 1")                                                                    \
    NEXT(trial_state, state, "$2::text")                                                           \
    NEXT(sweep_state, sweep, "'paused'")
COLUMNS_WHOLE_ROW(struct thing, THING_FIELDS)
COLUMNS_READER(thing, struct thing, THING_FIELDS)
#define THING_COLUMNS COLUMNS_SQL(THING_FIELDS)

static const struct stmt things = {"test_things",
                                   "select " THING_COLUMNS
                                   ", i + 100 from generate_series(1, 3) as g(i) order by i"};

static as_status read_things(struct tx *t, const char *state, struct thing **ret, int64_t *ret_more,
                             struct as_err *e)
{
    RESULT_AUTO r = {0};
    as_status st = tx_query(t, &things, ARGS(arg_str("a \"name\""), arg_str(state)), &r, e);
    if (st != AS_OK)
        return st;
    ck_assert_int_eq(r.rows, 3);
    *ret_more = result_i64(&r, 2, COLUMNS_COUNT(THING_FIELDS));
    return read_thing_rows(&r, 2, &s.a, ret, e);
}

static as_status run(const char *state, struct thing **ret, int64_t *ret_more)
{
    struct tx_run r = tx_run_start(s.db, TX_READ, &why);
    while (tx_run_again(&r))
        r.status = read_things(r.tx, state, ret, ret_more, &why);
    return r.status;
}

START_TEST(the_list_is_the_select_list)
{
    ck_assert_str_eq(THING_COLUMNS, "$1::text, i, nullif(i, 2) * 10, 'NaN'::float8, i = 1, "
                                    "$2::text, 'paused'");
    ck_assert_int_eq(COLUMNS_COUNT(THING_FIELDS), 7);
}
END_TEST

START_TEST(each_column_fills_its_field)
{
    struct thing *rows = NULL;
    int64_t more = 0;
    ck_ok(run("running", &rows, &more), why);
    ck_assert_int_eq(more, 103);
    ck_assert_str_eq(rows[1].name, "a \"name\"");
    ck_assert_int_eq(rows[0].part.pieces[0], 1);
    ck_assert_int_eq(rows[0].part.pieces[1], 10);
    ck_assert_int_eq(rows[1].part.pieces[0], 2);
    ck_assert_int_eq(rows[1].part.pieces[1], 0); /* null */
    ck_assert(rows[0].value != rows[0].value);
    ck_assert(rows[0].is_new);
    ck_assert(!rows[1].is_new);
    ck_assert_int_eq(rows[1].state, TRIAL_RUNNING);
    ck_assert_int_eq(rows[1].sweep, SWEEP_PAUSED);
}
END_TEST

START_TEST(an_unknown_word_is_an_error)
{
    struct thing *rows = NULL;
    int64_t more = 0;
    ck_fails(run("asleep", &rows, &more), AS_E_INTERNAL, why, "asleep");
    ck_assert_ptr_null(rows);
}
END_TEST

TEST_SUITE()
{
    pg_fixture_start();
    Suite *suite = suite_create("columns");
    TCase *t = tcase_create("columns");
    tcase_add_checked_fixture(t, open_service, close_service);
    tcase_add_test(t, the_list_is_the_select_list);
    tcase_add_test(t, each_column_fills_its_field);
    tcase_add_test(t, an_unknown_word_is_an_error);
    suite_add_tcase(suite, t);
    return suite;
}
