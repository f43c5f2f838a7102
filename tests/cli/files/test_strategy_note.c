#include "cli/files/strategy_note.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

#define SGD "'optimizer': {'kind': 'sgd'}, "

START_TEST(notes)
{
    static const struct {
        const char *ranks, *train, *part; /* NULL: nothing is said */
    } cases[] = {
        {"4", "'distributed': {'gossip': {}}", "gossip lags"},
        {"1", "'distributed': {'gossip': {}}", NULL},
        {"'${ranks}'", "'distributed': {'gossip': {}}", "gossip lags"}, /* some trials have more */
        {"{'min': 1, 'max': 4}", "'distributed': {'gossip': {}}", "gossip lags"},
        {"4", "'distributed': {'strategy': 'allreduce', 'gossip': {}}", NULL},
        {"4", "'distributed': {'strategy': '${s}', 'gossip': {}}", NULL},
        {"4", "'distributed': {'gossip': null}", NULL},
        {"4", "'distributed': {'allreduce': 'ring'}", NULL},
        {"4", "'model': {}", NULL},
        {"4", "'distributed': {'local_sgd': {'steps': 16}}", "adaptive optimizer"},
        {"4", "'optimizer': {'kind': '${o}'}, 'distributed': {'local_sgd': {'steps': 16}}", NULL},
        {"4", SGD "'distributed': {'local_sgd': {'steps': 16}}", NULL},
        {"4", SGD "'distributed': {'local_sgd': {'outer': {}}}", NULL},
        {"4", SGD "'distributed': {'local_sgd': {'block_momentum': 0.9}}", NULL},
        {"4", SGD "'distributed': {'local_sgd': {'outer': {'lr': 0.7}}}", NULL},
        {"4", SGD "'distributed': {'local_sgd': {'outer': {'lr': 0.7, 'momentum': 0.9}}}",
         "move the weights 7 times as far"},
        {"4", SGD "'distributed': {'local_sgd': {'block_momentum': {'lr': 1, 'momentum': 0.5}}}",
         "move the weights 2 times as far"},
        {"4", SGD "'distributed': {'local_sgd': {'outer': {'lr': '${lr}', 'momentum': 0.9}}}",
         NULL},
        {"4", "'distributed': {'server': {'mode': 'async'}}", "older weights"},
        {"4", "'distributed': {'server': {'mode': 'ssp'}}", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(str_done) struct str note = {0};
        char text[300];
        (void)snprintf(text, sizeof text, "{'resources': {'ranks': %s}, 'trial': {'train': {%s}}}",
                       cases[i].ranks, cases[i].train);
        JSON_AUTO doc = json_of(text);
        strategy_note(doc, &note);
        if (cases[i].part)
            ck_assert_msg(strstr(str_cstr(&note), cases[i].part) != NULL, "%s: %s", text,
                          str_cstr(&note));
        else
            ck_assert_msg(note.len == 0, "%s: %s", text, str_cstr(&note));
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("strategy_note");
    TCase *t = tcase_create("strategy_note");
    tcase_add_test(t, notes);
    suite_add_tcase(s, t);
    return s;
}
