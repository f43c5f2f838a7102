/* Tags of trials: requests, changes in every state, bounds, events. */
#include <stdio.h>
#include <string.h>

#include "scheduler/services/trial_tags.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

static as_status parse(const char *text, struct tags_request *ret)
{
    json_t *body = json_of(text); /* the request has views of it */
    return tags_request_parse(body, &s.a, ret, &err);
}

static int64_t tag(const char *text)
{
    struct tags_request q;
    int64_t changed = -1;
    ck_ok(parse(text, &q), err);
    ck_ok(trials_tag(s.db, "a", &q, &changed, &err), err);
    return changed;
}

static const char *tags_of(int64_t number)
{
    return trial_of(&s, "a", number).tags;
}

START_TEST(tags_come_and_go)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    int64_t epoch = make_runner(&s, "r", 3);
    struct claim_list list = claim(&s, "r", epoch, 3);
    finish(&s, ref_of(&list.rows[0]), 1);
    ck_assert_str_eq(tags_of(0), "[]");
    ck_assert_int_eq(tag("{'numbers': [0, 1, 77], 'add': ['later', 'ä b']}"), 2);
    ck_assert_str_eq(tags_of(0), "[\"later\",\"ä b\"]");
    ck_assert_str_eq(tags_of(2), "[]");
    ck_assert_int_eq(tag("{'numbers': [0, 1], 'add': ['later']}"), 0); /* they have it */
    ck_assert_int_eq(tag("{'numbers': [0, 2], 'add': ['good'], 'remove': ['later']}"), 2);
    ck_assert_str_eq(tags_of(0), "[\"good\",\"ä b\"]");
    ck_assert_str_eq(tags_of(2), "[\"good\"]");
    ck_assert_int_eq(tag("{'numbers': [2], 'remove': ['good', 'nothing']}"), 1);
    ck_assert_str_eq(tags_of(2), "[]");
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from event_each where type = "
                                           "'trial.changed' and reason = 'other tags'"),
                     5);
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_COMPLETED);
    finish(&s, ref_of(&list.rows[1]), 1); /* the attempt is the same */
    ck_assert_str_eq(tags_of(1), "[\"later\",\"ä b\"]");
}
END_TEST

START_TEST(a_trial_has_few_tags)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    (void)claim(&s, "r", make_runner(&s, "r", 2), 2);
    for (int i = 0; i < TRIAL_TAGS_MAX; i++) {
        char text[80];
        (void)snprintf(text, sizeof text, "{'numbers': [0], 'add': ['t%d']}", i);
        ck_assert_int_eq(tag(text), 1);
    }
    struct tags_request q;
    int64_t changed = 0;
    ck_ok(parse("{'numbers': [1, 0], 'add': ['more']}", &q), err);
    ck_fails(trials_tag(s.db, "a", &q, &changed, &err), AS_E_INVAL, err, "trial 0 would have 33");
    ck_assert_str_eq(tags_of(1), "[]"); /* all or nothing */
    ck_assert_int_eq(tag("{'numbers': [0], 'add': ['more'], 'remove': ['t0']}"), 1);
    ck_fails(trials_tag(s.db, "b", &q, &changed, &err), AS_E_NOT_FOUND, err, "'b'");
}
END_TEST

START_TEST(requests_that_are_refused)
{
    static const struct {
        const char *body, *pointer;
    } cases[] = {{"{'add': ['a']}", "/numbers"},
                 {"{'numbers': [0]}", "/add"},
                 {"{'numbers': [-1], 'add': ['a']}", "/numbers/0"},
                 {"{'numbers': ['0'], 'add': ['a']}", "/numbers/0"},
                 {"{'numbers': [0], 'add': ['a', 'b,c']}", "/add/1"},
                 {"{'numbers': [0], 'add': [' a']}", "/add/0"},
                 {"{'numbers': [0], 'remove': ['']}", "/remove/0"},
                 {"{'numbers': [0], 'remove': [7]}", "/remove/0"},
                 {"{'numbers': [0], 'add': ['a'], 'remove': ['a']}", "/remove"},
                 {"{'numbers': [0], 'add': ['a'], 'odd': 1}", "/odd"}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct tags_request q;
        ck_assert_int_lt(parse(cases[i].body, &q), 0);
        ck_assert_str_eq(err.pointer, cases[i].pointer);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("trial_tags");
    TCase *t = service_case(suite, "trial_tags", &s, 0);
    tcase_add_test(t, tags_come_and_go);
    tcase_add_test(t, a_trial_has_few_tags);
    tcase_add_test(t, requests_that_are_refused);
    return suite;
}
