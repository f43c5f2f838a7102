/* The names by which a server is reached, and the file that says where it listens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/http/listen.h"
#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;

static void expect_names(const char *host, const char *more, const char *const *want, size_t n)
{
    AS_AUTO(host_names_done) struct host_names h = {0};
    struct listener_address at = {.url = "http://x:1"};
    (void)snprintf(at.host, sizeof at.host, "%s", host);
    ck_ok(host_names_init(&at, more, &h, &err), err);
    for (size_t i = 0; i < n; i++)
        ck_assert_str_eq(h.names[i], want[i]);
    ck_assert_ptr_null(h.names[n]);
}

START_TEST(names_are_the_address_and_those_that_are_given)
{
    expect_names("10.0.0.1", NULL, (const char *const[]){"10.0.0.1"}, 1);
    expect_names("fe80::1", "", (const char *const[]){"[fe80::1]"}, 1);
    expect_names("h", "a.example,,b,", (const char *const[]){"h", "a.example", "b"}, 3);
}
END_TEST

START_TEST(too_many_names_are_refused)
{
    const struct listener_address at = {.host = "h"};
    struct host_names h = {0};
    char more[2 * (HOST_NAMES_MAX + 1) + 1];
    for (size_t i = 0; i < sizeof more - 1; i++)
        more[i] = i % 2 ? ',' : 'a';
    more[sizeof more - 1] = '\0';
    ck_fails(host_names_init(&at, more, &h, &err), AS_E_INVAL, err, "at most");
    ck_assert_ptr_null(h.text);
    more[2 * HOST_NAMES_MAX] = '\0';
    ck_ok(host_names_init(&at, more, &h, &err), err);
    ck_assert_str_eq(h.names[HOST_NAMES_MAX], "a");
    ck_assert_ptr_null(h.names[HOST_NAMES_MAX + 1]);
    host_names_done(&h);
}
END_TEST

START_TEST(the_address_is_written_as_a_line)
{
    const struct listener_address at = {.host = "127.0.0.1", .url = "http://127.0.0.1:40123"};
    AS_AUTO(as_freep) char *text = NULL;
    char dir[TEMP_FOLDER_SIZE], path[TEMP_FOLDER_SIZE + 8];
    size_t len = 0;
    temp_folder_make(dir);
    (void)snprintf(path, sizeof path, "%s/url", dir);
    ck_ok(listener_address_write(&at, NULL, &err), err);
    ck_ok(listener_address_write(&at, path, &err), err);
    ck_ok(file_read(path, 100, &text, &len, &err), err);
    ck_assert_str_eq(text, "http://127.0.0.1:40123\n");
    temp_folder_remove(dir);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("listen");
    TCase *t = tcase_create("listen");
    tcase_add_test(t, names_are_the_address_and_those_that_are_given);
    tcase_add_test(t, too_many_names_are_refused);
    tcase_add_test(t, the_address_is_written_as_a_line);
    suite_add_tcase(s, t);
    return s;
}
