/* What a suggestion saw of a trial that was retried, at every place of the order. */
#include "search/trial_past.h"

#include <stdlib.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

static struct as_err err;

/* It failed at 3, was retried at 5, was cancelled at 8, was retried at 9, and completed at 12. The
 * picture has a letter for each `seen` from 0: Pending, Failed, Cancelled, Ended. */
static void check_picture(const char *picture, size_t n, int64_t finish_seq)
{
    static const struct past_end ends[] = {{3, 5, false}, {8, 9, true}};
    static const char letters[] = {[TRIAL_SEEN_PENDING] = 'P',
                                   [TRIAL_SEEN_ENDED] = 'E',
                                   [TRIAL_SEEN_FAILED] = 'F',
                                   [TRIAL_SEEN_CANCELLED] = 'C'};
    for (int64_t seen = 0; picture[seen]; seen++)
        ck_assert_msg(letters[trial_past_view(ends, n, finish_seq, seen)] == picture[seen],
                      "at %lld", (long long)seen);
}

START_TEST(every_place)
{
    check_picture("PPPFFPPPCPPPEEEE", 2, 12);
    check_picture("PPPFFPPPCPPPPPPP", 2, 0); /* it runs again */
    check_picture("PPPFFPPPEEEE", 1, 8);
    check_picture("PPPEEEE", 0, 3);
    check_picture("PPPPPPP", 0, 0);
}
END_TEST

START_TEST(the_field_is_read)
{
    struct past_end *ends = NULL;
    size_t n = 7;
    json_t *j = json_of("[{'state': 'failed', 'finish_seq': 3, 'retry_seq': 5, 'reason': 'x'}, "
                        "{'state': 'cancelled', 'finish_seq': 8, 'retry_seq': 9}]");
    ck_ok(trial_past_read(j, "/r", &ends, &n, &err), err);
    ck_assert_uint_eq(n, 2);
    ck_assert(ends[0].finish_seq == 3 && ends[0].retry_seq == 5 && !ends[0].is_cancelled);
    ck_assert(ends[1].finish_seq == 8 && ends[1].retry_seq == 9 && ends[1].is_cancelled);
    free(ends);
    json_decref(j);
    j = json_null();
    ck_ok(trial_past_read(j, "/r", &ends, &n, &err), err);
    ck_assert(!ends && n == 0);
    ck_ok(trial_past_read(NULL, "/r", &ends, &n, &err), err);
    ck_assert(!ends && n == 0);
}
END_TEST

START_TEST(what_is_wrong_is_named)
{
    static const struct {
        const char *text, *pointer;
    } wrong[] = {
        {"{}", "/r"},
        {"[7]", "/r/0"},
        {"[{'state': 'completed', 'finish_seq': 3, 'retry_seq': 5}]", "/r/0"},
        {"[{'state': 'failed', 'finish_seq': 0, 'retry_seq': 5}]", "/r/0"},
        {"[{'state': 'failed', 'finish_seq': 5, 'retry_seq': 5}]", "/r/0"},
        {"[{'state': 'failed', 'finish_seq': 3}]", "/r/0"},
        {"[{'state': 'failed', 'finish_seq': 3, 'retry_seq': 5}, {'state': 'failed', "
         "'finish_seq': 5, 'retry_seq': 6}]",
         "/r/1"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(wrong); i++) {
        struct past_end *ends = NULL;
        size_t n = 0;
        json_t *j = json_of(wrong[i].text);
        ck_fails(trial_past_read(j, "/r", &ends, &n, &err), AS_E_INVAL, err, "expected");
        ck_assert_str_eq(err.pointer, wrong[i].pointer);
        ck_assert_ptr_null(ends);
        json_decref(j);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/trial_past");
    TCase *t = tcase_create("past");
    tcase_add_test(t, every_place);
    tcase_add_test(t, the_field_is_read);
    tcase_add_test(t, what_is_wrong_is_named);
    suite_add_tcase(s, t);
    return s;
}
