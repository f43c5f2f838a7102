#include "cli/view/fork_view.h"

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

/* 0 has the forks 2 and 3; 3 has the fork 4; nobody goes on from 1. */
static const char *const family =
    "[{'number': 0, 'parent': null, 'params': {'lr': 0.1, 'k': 'a'}, 'value': 0.5, 'state': "
    "'completed'}, {'number': 1, 'parent': null, 'params': {'lr': 0.2, 'k': 'a'}, 'value': null, "
    "'state': 'failed'}, {'number': 2, 'parent': 0, 'fork_step': 4, 'params': {'lr': 0.08, 'k': "
    "'a'}, 'value': 0.25, 'state': 'completed'}, {'number': 3, 'parent': 0, 'fork_step': 8, "
    "'params': {'lr': 0.1, 'k': 'a'}, 'value': null, 'state': 'running'}, {'number': 4, 'parent': "
    "3, 'fork_step': 12, 'params': {'lr': 0.3, 'k': 'b'}, 'value': 2, 'state': 'completed'}]";

static void draw(const char *trials, const struct terminal *terminal, const char *expected)
{
    struct pairs p = {.name_width = 20};
    struct as_err err = {0};
    json_t *list = json_of(trials);
    if (terminal)
        p.terminal = *terminal;
    ck_assert_int_eq(fork_view_tree(&p, list, &err), AS_OK);
    ck_assert_str_eq(str_cstr(&p.text), expected);
    str_done(&p.text);
    json_decref(list);
}

START_TEST(a_tree_for_scripts)
{
    draw(family, NULL,
         "forks\t0: lr=0.1 k=a, 0.5, completed\n"
         "forks\t|- 2 from step 4: lr=0.08, 0.25, completed\n"
         "forks\t`- 3 from step 8, running\n"
         "forks\t   `- 4 from step 12: lr=0.3 k=b, 2, completed\n");
}
END_TEST

START_TEST(nothing_was_forked)
{
    draw("[]", NULL, "");
    draw("[{'number': 0, 'parent': null, 'params': {}, 'state': 'queued'}]", NULL, "");
}
END_TEST

/* A list that begins late, or is damaged, names parents that are not before their forks. */
START_TEST(parents_that_are_not_there)
{
    draw("[{'number': 7, 'parent': 3, 'params': {}, 'state': 'queued'},"
         " {'number': 8, 'parent': 8, 'params': {}, 'state': 'queued'},"
         " {'number': 9, 'parent': -1, 'params': {}, 'state': 'queued'}]",
         NULL, "");
}
END_TEST

START_TEST(long_trees_are_cut)
{
    AS_AUTO(str_done) struct str b = {0};
    struct pairs p = {.name_width = 20};
    struct as_err err = {0};
    str_puts(&b, "[{'number': 0, 'parent': null, 'params': {}, 'state': 'completed'}");
    for (int i = 1; i < FORK_ROWS_MAX + 5; i++)
        str_printf(&b,
                   ", {'number': %d, 'parent': 0, 'fork_step': 1, 'params': {}, 'state': 'queued'}",
                   i);
    str_puts(&b, "]");
    json_t *list = json_of(str_cstr(&b));
    ck_assert_int_eq(fork_view_tree(&p, list, &err), AS_OK);
    const char *last = strstr(str_cstr(&p.text), "and ");
    ck_assert_ptr_nonnull(last);
    ck_assert_str_eq(last, "and 5 more\n");
    str_done(&p.text);
    json_decref(list);
}
END_TEST

START_TEST(parent_and_forks_of_a_trial)
{
    struct pairs p = {.name_width = 20};
    json_t *trial = json_of("{'number': 3, 'parent': 0, 'fork_step': 8, 'forks': [{'number': 4, "
                            "'step': 12}, {'number': 9, 'step': 16}]}");
    fork_view_trial(&p, trial);
    ck_assert_str_eq(str_cstr(&p.text), "parent\tgoes on from trial 0 at step 8\n"
                                        "forks\t4 from step 12, 9 from step 16\n");
    str_done(&p.text);
    json_decref(trial);
}
END_TEST

START_TEST(only_pbt_forks)
{
    json_t *pbt = json_of("{'document': {'early_stopping': {'method': 'pbt'}}}");
    json_t *asha = json_of("{'document': {'early_stopping': {'method': 'asha'}}}");
    json_t *none = json_of("{'document': {}}");
    ck_assert(fork_view_forks(pbt));
    ck_assert(!fork_view_forks(asha));
    ck_assert(!fork_view_forks(none));
    json_decref(pbt);
    json_decref(asha);
    json_decref(none);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("cli/view/fork_view");
    TCase *t = tcase_create("fork_view");
    tcase_add_test(t, a_tree_for_scripts);
    tcase_add_test(t, nothing_was_forked);
    tcase_add_test(t, parents_that_are_not_there);
    tcase_add_test(t, long_trees_are_cut);
    tcase_add_test(t, parent_and_forks_of_a_trial);
    tcase_add_test(t, only_pbt_forks);
    suite_add_tcase(suite, t);
    return suite;
}
