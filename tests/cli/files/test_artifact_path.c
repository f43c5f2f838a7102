#include "cli/files/artifact_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

START_TEST(names)
{
    static const char *const good[] = {"a", "a/b", "...", ".hidden", "a..b/c", "..."};
    static const char *const bad[] = {"",     "/",    "/etc/passwd", ".",    "..", "a/../b",
                                      "../a", "a//b", "a/",          "a/..", "./a"};
    for (size_t i = 0; i < AS_ARRAY_LEN(good); i++)
        ck_assert_msg(artifact_path_valid(good[i]), "%s", good[i]);
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++)
        ck_assert_msg(!artifact_path_valid(bad[i]), "%s", bad[i]);
}
END_TEST

START_TEST(matches)
{
    ck_assert(artifact_path_matches("plots/a.png", "plots/a.png"));
    ck_assert(artifact_path_matches("plots/a.png", "plots"));
    ck_assert(artifact_path_matches("plots/a.png", "plots/"));
    ck_assert(!artifact_path_matches("plots/a.png", "plots/a"));
    ck_assert(!artifact_path_matches("plots", "plots/"));
    ck_assert(!artifact_path_matches("plot", "plots"));
    ck_assert_str_eq(artifact_path_name("plots/a.png"), "a.png");
    ck_assert_str_eq(artifact_path_name("a.png"), "a.png");
}
END_TEST

START_TEST(folders)
{
    struct as_err err;
    struct stat sb;
    char dir[TEMP_FOLDER_SIZE], parent[200];
    AS_AUTO(as_freep) char *path = NULL;
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *out = file_join(dir, "out");
    ck_fails(artifact_path_prepare(out, "../x", &path, &err), AS_E_INVAL, err, "../x");
    ck_assert_int_ne(stat(out, &sb), 0);
    ck_ok(artifact_path_prepare(out, "a/b/c", &path, &err), err);
    (void)snprintf(parent, sizeof parent, "%s/a/b", out);
    ck_assert(stat(parent, &sb) == 0 && S_ISDIR(sb.st_mode));
    temp_folder_remove(dir);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("artifact_path");
    TCase *t = tcase_create("artifact_path");
    tcase_add_test(t, names);
    tcase_add_test(t, matches);
    tcase_add_test(t, folders);
    suite_add_tcase(s, t);
    return s;
}
