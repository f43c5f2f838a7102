#include "cli/commands/verbs.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "tests/support/check_main.h"

START_TEST(suggestions)
{
    ck_assert_str_eq(verbs_suggest("sweps"), "sweeps");
    ck_assert_str_eq(verbs_suggest("bset"), "best"); /* and not `set` */
    ck_assert_str_eq(verbs_suggest("ste"), "set");
    ck_assert_str_eq(verbs_suggest("trails"), "trials");
    ck_assert_str_eq(verbs_suggest("ls"), "sweeps");
    ck_assert_str_eq(verbs_suggest("stop"), "cancel");
    ck_assert_str_eq(verbs_suggest("ensembel"), "ensemble");
    ck_assert_ptr_null(verbs_suggest("xyzzy-plugh"));
    ck_assert_ptr_nonnull(verbs_find("run"));
    ck_assert_ptr_null(verbs_find("Run"));
}
END_TEST

/* A verb is found by its name; its synopsis begins with that; the overview has its summary. */
START_TEST(rows)
{
    static const char *const names[] = {"up", "run", "trials", "tell", "replay", "version", "help"};
    AS_AUTO(as_freep) char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    verbs_print_overview(f);
    ck_assert_int_eq(fclose(f), 0);
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
        const struct verb *v = verbs_find(names[i]);
        ck_assert_ptr_nonnull(v);
        ck_assert_str_eq(v->name, names[i]);
        ck_assert(as_starts_with(v->synopsis, names[i]));
        ck_assert_ptr_nonnull(v->run);
        ck_assert_ptr_nonnull(strstr(text, v->summary));
    }
}
END_TEST

/* The paragraphs of every help text fit into 100 columns. */
START_TEST(paragraphs_fit)
{
    const struct verb *v;
    for (size_t i = 0; (v = verbs_at(i)); i++)
        for (const char *at = v->details, *end; at && *at; at = *end ? end + 1 : end) {
            end = strchrnul(at, '\n');
            ck_assert_msg(end - at <= 100, "assay help %s: %.*s", v->name, (int)(end - at), at);
        }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("verbs");
    TCase *t = tcase_create("verbs");
    tcase_add_test(t, suggestions);
    tcase_add_test(t, rows);
    tcase_add_test(t, paragraphs_fit);
    suite_add_tcase(s, t);
    return s;
}
