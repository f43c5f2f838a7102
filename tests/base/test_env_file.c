/* Files of variables: every form of a line, and faults by their line, without the values. */
#include "base/env_file.h"

#include <stdio.h>
#include <string.h>

#include "base/host_id.h"
#include "base/str.h"
#include "tests/support/check_main.h"

static as_status add(void *arg, const char *name, const char *value, struct as_err *err)
{
    if (as_streq(name, "REFUSED"))
        return as_fail(err, AS_E_INVAL, "not this");
    str_printf(arg, "%s=[%s]", name, value);
    return str_check(arg, err);
}

/* What a text means, "A=[1]B=[2]"; or the error. */
static const char *meaning(const char *text, size_t len)
{
    static struct str b;
    struct as_err err = {0};
    str_clear(&b);
    if (env_file_parse(text, len, add, &b, &err) < 0) {
        str_clear(&b);
        str_puts(&b, err.msg);
    }
    return str_cstr(&b);
}

static void expect(const char *text, const char *means)
{
    ck_assert_str_eq(meaning(text, strlen(text)), means);
}

START_TEST(lines)
{
    expect("", "");
    expect("\n  # a comment\n\t\r\n", "");
    expect("A=1\nB = two words \nexport C=3", "A=[1]B=[two words]C=[3]");
    expect("A=\nB=''\nC=\"\"\r\nexport=4\nexported=5", "A=[]B=[]C=[]export=[4]exported=[5]");
    expect("A=x # said\nB=x#y\nC= # none\nD='#' # q\nE=a=b=c", "A=[x]B=[x#y]C=[]D=[#]E=[a=b=c]");
    expect("A='$HOME \\n \"'\nB=\"\\n\\t\\\"\\\\\\$x\\q'\"\nC=$HOME",
           "A=[$HOME \\n \"]B=[\n\t\"\\$x\\q']C=[$HOME]");
    expect("A=\"one\ntwo\"\nB='3\n4'\r\nC=5", "A=[one\ntwo]B=[3\n4]C=[5]");
    expect("\xef\xbb\xbf"
           "A=1\r\n",
           "A=[1]");
    expect("A=1\nA=2", "A=[1]A=[2]");
}
END_TEST

START_TEST(faults)
{
    static const char expected[] = "expected NAME=VALUE; a name has letters, digits and _";
    char want[200];
    (void)snprintf(want, sizeof want, "line 3: %s", expected);
    expect("A=1\n\nsecret\n", want);
    expect("A='\n'\nB-C=secret", want);
    (void)snprintf(want, sizeof want, "line 1: %s", expected);
    expect("1A=x", want);
    expect("=x", want);
    expect("export A", want);
    expect("A", want);
    expect("A='secret\n\n", "line 1: the ' of the value is not closed");
    expect("A=1\nB=\"secret\\\"", "line 2: the \" of the value is not closed");
    expect("A='x' secret", "line 1: expected the end of the line after the '");
    expect("A=1\nREFUSED=2", "line 2: not this");
    ck_assert_str_eq(meaning("A=1\nB=x\0y\n", 10), "line 2: found a byte that is 0");
}
END_TEST

START_TEST(host)
{
    char first[HOST_ID_SIZE], second[HOST_ID_SIZE];
    struct as_err err = {0};
    ck_ok(host_id_read(first, &err), err);
    ck_ok(host_id_read(second, &err), err);
    ck_assert_str_eq(first, second);
    ck_assert_uint_eq(strspn(first, "0123456789abcdef"), HOST_ID_SIZE - 1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("env_file");
    TCase *t = tcase_create("env_file");
    tcase_add_test(t, lines);
    tcase_add_test(t, faults);
    tcase_add_test(t, host);
    suite_add_tcase(s, t);
    return s;
}
