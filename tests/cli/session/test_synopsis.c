#include "cli/session/synopsis.h"

#include <string.h>

#include "base/str.h"
#include "tests/support/check_main.h"

/* The words that may follow the arguments ("" ends them), with commas between. */
static void check_next(const char *synopsis, const char *const *args, const char *want)
{
    struct synopsis_words next;
    AS_AUTO(str_done) struct str b = {0};
    size_t n = 0;
    while (*args[n])
        n++;
    synopsis_next(synopsis, args, n, &next);
    for (size_t i = 0; i < next.n; i++) {
        str_puts(&b, i ? "," : "");
        str_add(&b, next.words[i].s, next.words[i].len);
    }
    ck_assert_msg(as_streq(str_cstr(&b), want), "%s: found %s, expected %s", synopsis, str_cstr(&b),
                  want);
}

#define NEXT(synopsis, want, ...) check_next(synopsis, (const char *const[]){__VA_ARGS__}, want)

START_TEST(words)
{
    static const char data[] =
        "data add NAME FILE [--target COLUMN] | data list | data delete NAME";
    NEXT(data, "add,list,delete", "");
    NEXT(data, "NAME", "add", "");
    NEXT(data, "FILE", "add", "x", "");
    NEXT(data, "", "add", "x", "y", "");
    NEXT(data, "", "list", "");
    NEXT(data, "", "ad", "");
    NEXT("cancel SWEEP | SWEEP/NUMBER", "SWEEP,SWEEP/NUMBER", "");
    NEXT("trial [show] SWEEP/NUMBER", "SWEEP/NUMBER,show", "");
    NEXT("trial [show] SWEEP/NUMBER", "SWEEP/NUMBER", "show", "");
    NEXT("trial [show] SWEEP/NUMBER", "", "a/1", "");
    NEXT("compare SWEEP/NUMBER SWEEP/NUMBER…", "SWEEP/NUMBER", "a/1", "a/2", "a/3", "");
    NEXT("tell SWEEP NUMBER METRIC=VALUE… | --failed REASON | --release", "METRIC=VALUE", "a", "1",
         "");
    NEXT("report SWEEP NUMBER --step N METRIC=VALUE…", "METRIC=VALUE", "a", "1", "");
    NEXT("trials SWEEP [--state STATE] | trials add SWEEP --param NAME=VALUE…", "SWEEP,add", "");
    NEXT("trials SWEEP [--state STATE] | trials add SWEEP --param NAME=VALUE…", "SWEEP", "add", "");
    NEXT("run FILE [--set FIELD=VALUE]…", "FILE", "");
    NEXT("run FILE [--set FIELD=VALUE]…", "", "f", "");
    NEXT("up [--data DIR] [--port PORT]", "", "");
    NEXT("runners", "", "");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("synopsis");
    TCase *t = tcase_create("synopsis");
    tcase_add_test(t, words);
    suite_add_tcase(s, t);
    return s;
}
