/* What `assay tell` says of a value before and after it is sent. */
#include "cli/commands/told_trial.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

START_TEST(absurd_values)
{
    static const struct {
        const char *best, *metrics;
        bool is_absurd;
    } cases[] = {
        {"{'value': 0.4}", "{'loss': 1e300}", true},
        {"{'value': 0.4}", "{'loss': -1e300, 'lr': 1}", true},
        {"{'value': 0.4}", "{'loss': 1e9}", false},
        {"{'value': -5e3}", "{'loss': 4e12}", false},
        {"{'value': -5e3}", "{'loss': 6e12}", true},
        {"{'value': 1e300}", "{'loss': 0.1}", false},
        {"{'value': 0.4}", "{'lr': 1e300}", false},
        {"{'value': 0.4}", "{'loss': 'NaN'}", false},
        {"null", "{'loss': 1e300}", false},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO sweep = json_pack("{s:[{s:s}], s:o}", "metrics", "name", "loss", "best",
                                    json_of(cases[i].best));
        JSON_AUTO metrics = json_of(cases[i].metrics);
        const char *name = NULL;
        double value, best;
        bool is_absurd = told_trial_is_absurd(sweep, metrics, &name, &value, &best);
        ck_assert_msg(is_absurd == cases[i].is_absurd, "case %zu", i);
        ck_assert(!is_absurd || strcmp(name, "loss") == 0);
    }
    const char *name;
    double value, best;
    ck_assert(!told_trial_is_absurd(NULL, NULL, &name, &value, &best));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("cli/told_trial");
    TCase *t = tcase_create("told_trial");
    tcase_add_test(t, absurd_values);
    suite_add_tcase(s, t);
    return s;
}
