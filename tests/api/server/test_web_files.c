/* The dashboard's files without a server: only listed files are served. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/server/web_files.h"
#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static bool get_file(const struct web_files *w, const char *path, const char *accept,
                     struct http_exchange *x)
{
    *x = (struct http_exchange){.head = {.path = path, .accept = accept, .method = "GET"}};
    return web_files_answer(w, x);
}

START_TEST(test_absent)
{
    struct as_err err;
    struct http_exchange x;
    static const char *const dirs[] = {NULL, "/nonexistent/assay/web"};
    for (size_t i = 0; i < AS_ARRAY_LEN(dirs); i++) {
        AS_AUTO(web_files_freep) struct web_files *w = NULL;
        ck_ok(web_files_load(dirs[i], &w, &err), err);
        ck_assert_uint_eq(web_files_count(w), 0);
        ck_assert(get_file(w, "/", NULL, &x));
        ck_assert_int_eq(x.answer.status, 200);
        ck_assert_ptr_nonnull(strstr(x.answer.bytes, "not installed"));
        ck_assert(!get_file(w, "/sweeps", "text/html", &x));
        ck_assert_int_eq(x.answer.status, 0);
    }
}
END_TEST

START_TEST(test_unreadable)
{
    struct as_err err;
    struct web_files *w = NULL;
    ck_fails(web_files_load("/dev/null", &w, &err), AS_E_IO, err, "/dev/null");
}
END_TEST

START_TEST(test_listed)
{
    char dir[TEMP_FOLDER_SIZE], path[128];
    struct as_err err;
    struct http_exchange x;
    AS_AUTO(web_files_freep) struct web_files *w = NULL;
    temp_folder_make(dir);
    (void)snprintf(path, sizeof path, "%s/index.html", dir);
    ck_ok(file_replace(path, "<p>", 3, 0644, &err), err);
    (void)snprintf(path, sizeof path, "%s/.hidden", dir);
    ck_ok(file_replace(path, "x", 1, 0644, &err), err);
    (void)snprintf(path, sizeof path, "%s/link", dir);
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
    ck_ok(web_files_load(dir, &w, &err), err);
    ck_assert_uint_eq(web_files_count(w), 1);
    ck_assert(get_file(w, "/", NULL, &x));
    ck_assert_uint_eq(x.answer.len, 3);
    ck_assert(!get_file(w, "/link", "*/*", &x));
    ck_assert(!get_file(w, "/.hidden", "*/*", &x));
    ck_assert(get_file(w, "/any/page", "text/html", &x));
    temp_folder_remove(dir);
    ck_assert(get_file(w, "/index.html", NULL, &x)); /* from memory */
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_web_files");
    TCase *tc = tcase_create("files");
    tcase_add_test(tc, test_absent);
    tcase_add_test(tc, test_unreadable);
    tcase_add_test(tc, test_listed);
    suite_add_tcase(s, tc);
    return s;
}
