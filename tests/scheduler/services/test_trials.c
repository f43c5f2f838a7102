/* Lists of trials in every order, page by page. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/check_main.h"
#include "tests/support/service.h"

#define TRIALS 23

static struct service s;
static struct as_err err;
static int64_t epoch;

/* Values fall and repeat; some trials have none, one has NaN. */
static void make_trials(void)
{
    make_sweep(&s, "a", "'max_trials': 100", "");
    epoch = make_runner(&s, "r", TRIALS);
    struct claim_list list = claim(&s, "r", epoch, TRIALS);
    ck_assert_uint_eq(list.n, TRIALS);
    for (int i = 0; i < TRIALS; i++) {
        struct attempt_ref ref = ref_of(&list.rows[i]);
        if (i % 5 == 4)
            continue;
        if (i == 7)
            measure(&s, ref, "loss", 1, NAN);
        else if (i == 8 || i == 10)
            measure(&s, ref, "loss", 1, INFINITY);
        else if (i == 11 || i == 12)
            measure(&s, ref, "loss", 1, -INFINITY);
        else if (i % 3 == 0)
            measure(&s, ref, "loss", 1, (TRIALS - i) / 4);
        else
            finish(&s, ref, (TRIALS - i) / 4);
    }
}

/* Read the whole list in pages of `size`. Returns their number, and the trial numbers in ret. */
static int walk(struct trial_query q, int size, int64_t *ret, struct trial_row *rows)
{
    struct trial_page page;
    int n = 0;
    q.page.size = size;
    do {
        ck_ok(trial_list(s.db, s.orders, &s.a, "a", &q, &page, &err), err);
        ck_assert_uint_le(page.n, (size_t)size);
        for (size_t i = 0; i < page.n; i++, n++) {
            ret[n] = page.rows[i].number;
            rows[n] = page.rows[i];
        }
        q.page.cursor = page.next_cursor;
    } while (q.page.cursor);
    return n;
}

START_TEST(pages_join_to_the_whole)
{
    static const trial_sort sorts[] = {TRIAL_BY_NUMBER, TRIAL_BY_VALUE, TRIAL_BY_STARTED,
                                       TRIAL_BY_FINISHED, TRIAL_BY_DURATION};
    for (size_t k = 0; k < AS_ARRAY_LEN(sorts); k++) {
        for (int d = 0; d < 2; d++) {
            int64_t whole[TRIALS], part[TRIALS];
            struct trial_row rows[TRIALS];
            struct trial_query q = {.sort = sorts[k], .descending = d};
            ck_assert_int_eq(walk(q, 100, whole, rows), TRIALS);
            for (int size = 1; size < 9; size += 3) {
                ck_assert_int_eq(walk(q, size, part, rows), TRIALS);
                ck_assert_mem_eq(whole, part, sizeof whole);
            }
        }
    }
}
END_TEST

START_TEST(trials_without_a_value_come_last)
{
    int64_t numbers[TRIALS];
    struct trial_row rows[TRIALS];
    for (int d = 0; d < 2; d++) {
        struct trial_query q = {.sort = TRIAL_BY_VALUE, .descending = d};
        walk(q, 5, numbers, rows);
        double last = d ? INFINITY : -INFINITY;
        bool ended = false;
        for (int i = 0; i < TRIALS; i++) {
            bool has = rows[i].has_value && !isnan(rows[i].value);
            ck_assert(!(has && ended));
            ended = !has;
            if (has)
                ck_assert(d ? rows[i].value <= last : rows[i].value >= last);
            last = has ? rows[i].value : last;
        }
        ck_assert(ended);
    }
}
END_TEST

START_TEST(states_filter)
{
    int64_t numbers[TRIALS];
    struct trial_row rows[TRIALS];
    trial_state running = TRIAL_RUNNING, completed = TRIAL_COMPLETED;
    struct trial_query q = {.state = &running};
    int a = walk(q, 3, numbers, rows);
    q.state = &completed;
    int b = walk(q, 3, numbers, rows);
    ck_assert_int_eq(a + b, TRIALS);
    ck_assert_int_gt(a, 0);
    ck_assert_int_gt(b, 0);
}
END_TEST

START_TEST(best_first)
{
    struct trial_page page;
    ck_ok(trial_best(s.db, &s.a, "a", 4, NULL, &page, &err), err);
    ck_assert_uint_eq(page.n, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(page.rows[i].state, TRIAL_COMPLETED);
        ck_assert(i == 0 || page.rows[i].value >= page.rows[i - 1].value);
    }
    ck_assert_int_eq(sweep_of_id(&s, "a").best_number, page.rows[0].number);
    ck_fails(trial_best(s.db, &s.a, "a", 0, NULL, &page, &err), AS_E_INVAL, err, "top");
    ck_fails(trial_best(s.db, &s.a, "b", 1, NULL, &page, &err), AS_E_NOT_FOUND, err, "'b'");
}
END_TEST

START_TEST(cursors_are_checked)
{
    struct trial_page page;
    struct trial_query q = {.sort = TRIAL_BY_VALUE, .page = {.size = 2}};
    ck_ok(trial_list(s.db, s.orders, &s.a, "a", &q, &page, &err), err);
    q.page.cursor = page.next_cursor;
    q.sort = TRIAL_BY_NUMBER;
    ck_fails(trial_list(s.db, s.orders, &s.a, "a", &q, &page, &err), AS_E_INVAL, err,
             "another order");
    static const char *const bad[] = {
        "", "zz", "00", "747269616c73", "747269616c733a", "7377656570733a31", "74726961"};
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        q.page.cursor = bad[i];
        ck_fails(trial_list(s.db, s.orders, &s.a, "a", &q, &page, &err), AS_E_INVAL, err, "cursor");
    }
    q.page.cursor = NULL;
    ck_fails(trial_list(s.db, s.orders, &s.a, "b", &q, &page, &err), AS_E_NOT_FOUND, err, "'b'");
}
END_TEST

/* What the service returns of a trial whose artifact test.json has the text; NULL: nothing. */
static const char *test_of(const char *text)
{
    struct claimed_row c = claim_one(&s, "tester", epoch);
    char hex[SHA256_HEX_SIZE];
    struct trial_detail detail;
    put_blob(&s, text, hex);
    struct file_row f[] = {{"test.json", (int64_t)strlen(text), hex}};
    struct attempt_ref ref = ref_of(&c);
    ck_ok(attempt_files(s.db, &ref, NULL, FILE_ARTIFACT, f, 1, &err), err);
    finish(&s, ref, 1);
    ck_assert_str_eq(c.sweep, "tested");
    ck_ok(trial_get(s.db, &s.a, c.sweep, c.number, &detail, &err), err);
    return detail.test;
}

/* It is a file that any program may write: what is not of the form is no figure, and no error. */
START_TEST(figures_of_test_rows)
{
    static const char *const others[] = {"{\"rows\": 3}",
                                         "{\"rows\": 0, \"metrics\": {}}",
                                         "{\"rows\": 3, \"metrics\": {\"a\": \"low\"}}",
                                         "{\"rows\": 3, \"metrics\": {}, \"more\": 1}",
                                         "no JSON",
                                         NULL};
    char *long_text;
    make_sweep(&s, "tested", "'max_trials': 7", "");
    epoch = make_runner(&s, "tester", 7);
    const char *read = test_of("{\"rows\": 3, \"metrics\": {\"error\": 0.5, \"auc\": \"NaN\"}}\n");
    ck_assert_str_eq(read, "{\"metrics\":{\"auc\":\"NaN\",\"error\":0.5},\"rows\":3}");
    for (size_t i = 0; others[i]; i++) {
        const char *none = test_of(others[i]);
        ck_assert_msg(none == NULL, "%s: %s", others[i], none);
    }
    ck_assert_int_ge(asprintf(&long_text, "%70000s", "{\"rows\": 3, \"metrics\": {}}"), 0);
    ck_assert_ptr_null(test_of(long_text));
    free(long_text);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("trials");
    TCase *c = service_case(su, "trials", &s, 0);
    tcase_add_checked_fixture(c, make_trials, NULL);
    tcase_add_test(c, pages_join_to_the_whole);
    tcase_add_test(c, trials_without_a_value_come_last);
    tcase_add_test(c, states_filter);
    tcase_add_test(c, best_first);
    tcase_add_test(c, cursors_are_checked);
    tcase_add_test(c, figures_of_test_rows);
    return su;
}
