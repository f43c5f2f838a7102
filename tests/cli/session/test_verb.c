#include "cli/session/verb.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/support/check_main.h"

static int run(const struct verb *self, int argc, char **argv)
{
    (void)self, (void)argc, (void)argv;
    return 0;
}

/* The output of verb_print_help(); owned by the caller. */
static char *help_of(const struct verb *v, const struct opt *table)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    ck_assert_ptr_nonnull(f);
    verb_print_help(v, table, f);
    ck_assert_int_eq(fclose(f), 0);
    return text;
}

START_TEST(parts_of_help)
{
    struct verb v = {"fly", "fly PLACE", "go there", NULL, run};
    AS_AUTO(as_freep) char *brief = help_of(&v, NULL);
    ck_assert_str_eq(brief, "assay fly PLACE\n\ngo there\n");
    v.details = "By air.";
    AS_AUTO(as_freep) char *detailed = help_of(&v, NULL);
    ck_assert_str_eq(detailed, "assay fly PLACE\n\ngo there\n\nBy air.\n");
}
END_TEST

START_TEST(options_of_help)
{
    const struct verb v = {"fly", "fly PLACE", "go there", NULL, run};
    bool high = false;
    const struct opt table[] = {
        {"high", 0, OPT_FLAG, &high, NULL, NULL, "above the clouds"},
        {.name = NULL},
    };
    AS_AUTO(as_freep) char *text = help_of(&v, table);
    const char *options = strstr(text, "\n\nOptions\n");
    ck_assert_ptr_nonnull(options);
    ck_assert_ptr_nonnull(strstr(options, "--high"));
    ck_assert_ptr_nonnull(strstr(options, "above the clouds"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("verb");
    TCase *t = tcase_create("verb");
    tcase_add_test(t, parts_of_help);
    tcase_add_test(t, options_of_help);
    suite_add_tcase(s, t);
    return s;
}
