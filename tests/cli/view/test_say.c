#include "cli/view/say.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/check_main.h"

/* The output of say() while stderr is a pipe. */
static void capture(const char *text, char *buf, size_t size)
{
    int ends[2], saved = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(dup2(ends[1], STDERR_FILENO), 0);
    say("%s", text);
    (void)fflush(stderr);
    ck_assert_int_ge(dup2(saved, STDERR_FILENO), 0);
    (void)close(saved);
    (void)close(ends[1]);
    ssize_t n = read(ends[0], buf, size - 1);
    ck_assert_int_ge(n, 0);
    buf[n] = 0;
    (void)close(ends[0]);
}

START_TEST(lines_and_escapes)
{
    char buf[2000], text[1500];
    capture("two\nlines", buf, sizeof buf);
    ck_assert_str_eq(buf, "two\nlines\n");
    capture("red \x1b[31m", buf, sizeof buf);
    ck_assert_str_eq(buf, "red \\x1b[31m\n");
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    capture(text, buf, sizeof buf);
    ck_assert_uint_eq(strlen(buf), 1000); /* cut to 999 bytes, plus the new line */
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("say");
    TCase *t = tcase_create("say");
    tcase_add_test(t, lines_and_escapes);
    suite_add_tcase(s, t);
    return s;
}
