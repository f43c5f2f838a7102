/* Lines of the log, read back as any reader of logfmt would. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "tests/support/check_main.h"

static char line[4096];
static int saved_stderr, pipe_fds[2];

static void catch_stderr(void)
{
    ck_assert_int_eq(pipe(pipe_fds), 0);
    saved_stderr = dup(STDERR_FILENO);
    ck_assert_int_ge(dup2(pipe_fds[1], STDERR_FILENO), 0);
}

/* What was written since catch_stderr(), without its new line: exactly one line. */
static void read_line(void)
{
    (void)dup2(saved_stderr, STDERR_FILENO);
    (void)close(saved_stderr);
    (void)close(pipe_fds[1]);
    ssize_t n = read(pipe_fds[0], line, sizeof line - 1);
    (void)close(pipe_fds[0]);
    ck_assert_int_gt(n, 0);
    line[n] = '\0';
    ck_assert_ptr_eq(strchr(line, '\n'), line + n - 1);
    line[n - 1] = '\0';
}

/* Unescape a quoted value; returns where the line continues. */
static const char *unquote(const char *s, struct str *ret)
{
    for (; *s != '"'; s++) {
        unsigned code = 0;
        ck_assert_msg(*s, "a quote is not closed in %s", line);
        if (*s != '\\') {
            str_putc(ret, *s);
            continue;
        }
        s++;
        if (*s == 'u') {
            ck_assert_int_eq(sscanf(s + 1, "%4x", &code), 1);
            s += 4;
        }
        str_putc(ret, *s == 'n'   ? '\n'
                      : *s == 'r' ? '\r'
                      : *s == 't' ? '\t'
                      : code      ? (char)code
                                  : *s);
        if (code)
            ret->s[ret->len - 1] = (char)code;
    }
    return s + 1;
}

/* The value of the `n`th pair, which must have this key. */
static void ck_pair(size_t n, const char *key, const char *want)
{
    struct str value = {0};
    const char *s = line;
    for (size_t i = 0;; i++) {
        size_t len = strcspn(s, "= ");
        const char *name = s;
        ck_assert_msg(s[len] == '=', "pair %zu of: %s", i, line);
        s += len + 1;
        str_clear(&value);
        if (*s == '"') {
            s = unquote(s + 1, &value);
        } else {
            size_t bare = strcspn(s, " ");
            ck_assert_uint_eq(strcspn(s, "\"=\\"), strlen(s) < bare ? bare : strcspn(s, "\"=\\"));
            str_add(&value, s, bare);
            s += bare;
        }
        if (i == n) {
            ck_assert_uint_eq(strlen(key), len);
            ck_assert_int_eq(strncmp(name, key, len), 0);
            ck_assert_str_eq(str_cstr(&value), want);
            str_done(&value);
            return;
        }
        ck_assert_msg(*s == ' ', "pair %zu is not in: %s", n, line);
        s++;
    }
}

#define FIRST 4 /* after ts, level, program, msg */

START_TEST(values_come_back)
{
    static const char *const values[] = {"plain",
                                         "two words",
                                         "a=b",
                                         "say \"hi\"",
                                         "back\\slash",
                                         "line\nline",
                                         "tab\tcr\r",
                                         "",
                                         "\x01\x1b[31m\x7f",
                                         "x\" level=error msg=\"forged",
                                         "\xc3\xa4\xe2\x82\xac",
                                         "%s%n",
                                         " ",
                                         "\\",
                                         "a\\"};
    for (size_t i = 0; i < AS_ARRAY_LEN(values); i++) {
        catch_stderr();
        log_write(LOG_ERROR, "it \"failed\"", "bare=%s quoted=\"%s\" n=%d last=%s", values[i],
                  values[i], -5, "end");
        read_line();
        ck_pair(3, "msg", "it \"failed\"");
        ck_pair(FIRST, "bare", values[i]);
        ck_pair(FIRST + 1, "quoted", values[i]);
        ck_pair(FIRST + 2, "n", "-5");
        ck_pair(FIRST + 3, "last", "end");
    }
}
END_TEST

START_TEST(numbers_are_formatted)
{
    const char *volatile nothing = NULL;
    catch_stderr();
    log_write(LOG_ERROR, "m", "a=%lld b=%zu c=%x d=%.2f e=%s/%d f=%ld g=100%%", -1234567890123LL,
              (size_t)7, 255U, 1.5, "digits", 3, 9L);
    read_line();
    ck_assert_ptr_nonnull(
        strstr(line, "msg=\"m\" a=-1234567890123 b=7 c=ff d=1.50 e=digits/3 f=9 g=100%"));
    catch_stderr();
    log_write(LOG_ERROR, "m", "path=%s short=%.3s", nothing, "abcdef");
    read_line();
    ck_assert_ptr_nonnull(strstr(line, "path=\"\" short=abc"));
    catch_stderr(); /* pairs that were formatted before, alone and before others */
    log_write(LOG_ERROR, "m", "%s pid=%d why=%s", "trial=a/1 attempt=2", 7, "b c");
    read_line();
    ck_assert_ptr_nonnull(strstr(line, "msg=\"m\" trial=a/1 attempt=2 pid=7 why=\"b c\""));
    catch_stderr();
    log_write(LOG_ERROR, "m", "%s", "trial=a/1 attempt=2");
    read_line();
    ck_assert_ptr_nonnull(strstr(line, "msg=\"m\" trial=a/1 attempt=2"));
}
END_TEST

/* A line that is too long is one line, with its quotes closed. */
START_TEST(long_values_are_cut)
{
    static char value[5000];
    for (size_t len = 1400; len < sizeof value; len += 97) {
        memset(value, '\n', len);
        value[len] = '\0';
        catch_stderr();
        log_write(LOG_ERROR, "m", "a=%s b=%s c=%s", "first", value, value);
        read_line();
        ck_assert_uint_le(strlen(line), 2048);
        ck_assert(as_ends_with(line, "\""));
        ck_pair(FIRST, "a", "first");
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("log");
    TCase *t = tcase_create("log");
    tcase_add_test(t, values_come_back);
    tcase_add_test(t, numbers_are_formatted);
    tcase_add_test(t, long_values_are_cut);
    suite_add_tcase(s, t);
    return s;
}
