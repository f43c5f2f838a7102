#include <string.h>

#include "base/json.h"
#include "trial-runner/protocol/control.h"
#include "tests/support/check_main.h"

static struct as_err err;

static as_status request(const char *text, struct control_request *ret)
{
    return control_request_parse(text, strlen(text), ret, &err);
}

static as_status event(const char *text, struct control_event *ret)
{
    return control_event_parse(text, strlen(text), ret, &err);
}

START_TEST(add_and_back)
{
    struct control_request r;
    struct str out = {0};
    ck_ok(request("{\"op\":\"add\",\"member\":{\"id\":\"digits/12.1\",\"train\":{\"epochs\":3},"
                  "\"seed\":\"18446744073709551615\",\"report\":\"/r\"}}",
                  &r),
          err);
    ck_assert_int_eq(r.op, CONTROL_ADD);
    ck_assert_str_eq(r.id, "digits/12.1");
    ck_assert_uint_eq(r.member.seed, UINT64_MAX);
    ck_assert_int_eq(json_integer_value(json_object_get(r.member.train, "epochs")), 3);
    ck_assert_str_eq(r.member.report, "/r");
    ck_assert_ptr_null(r.member.checkpoints);
    ck_ok(control_request_format(&r, &out, &err), err);
    ck_assert_str_eq(out.s,
                     "{\"op\":\"add\",\"member\":{\"id\":\"digits/12.1\",\"train\":"
                     "{\"epochs\":3},\"seed\":\"18446744073709551615\",\"report\":\"/r\"}}\n");
    str_done(&out);
    control_request_done(&r);
}
END_TEST

START_TEST(short_requests)
{
    static const struct {
        const char *text;
        control_op op;
        const char *id;
    } cases[] = {{"{\"op\":\"stop\",\"id\":\"a\"}", CONTROL_STOP, "a"},
                 {"{\"op\":\"cancel\",\"id\":\"b\"}", CONTROL_CANCEL, "b"},
                 {"{\"op\":\"close\"}", CONTROL_CLOSE, NULL}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct control_request r;
        struct str out = {0};
        ck_ok(request(cases[i].text, &r), err);
        ck_assert_int_eq(r.op, cases[i].op);
        ck_assert(as_streq(r.id, cases[i].id));
        ck_ok(control_request_format(&r, &out, &err), err);
        ck_assert_int_eq(strncmp(out.s, cases[i].text, strlen(cases[i].text)), 0);
        str_done(&out);
        control_request_done(&r);
    }
}
END_TEST

START_TEST(refused_requests)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"{\"op\":\"jump\"}", "add, stop, cancel"},
        {"{\"op\":\"stop\"}", "/id"},
        {"{\"op\":\"stop\",\"id\":\"\"}", "/id"},
        {"{\"op\":\"close\",\"id\":\"a\"}", "/id"},
        {"{\"op\":\"add\",\"member\":{\"id\":\"a\",\"train\":{},\"seed\":5}}", "/member/seed"},
        {"{\"op\":\"add\",\"member\":{\"id\":\"a\",\"train\":{},\"seed\":\"-1\"}}", "/member/seed"},
        {"{\"op\":\"add\",\"member\":{\"id\":\"a\",\"train\":{},\"seed\":\"18446744073709551616\"}"
         "}",
         "/member/seed"},
        {"{\"op\":\"add\",\"member\":{\"id\":\"a\",\"seed\":\"1\"}}", "/member/train"},
        {"[]", "object"},
        {"{", "line 1"}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct control_request r;
        ck_assert_int_eq(request(cases[i].text, &r), AS_E_INVAL);
        ck_assert_msg(strstr(err.msg, cases[i].part) != NULL, "%s: %s", cases[i].text, err.msg);
    }
}
END_TEST

START_TEST(events_and_back)
{
    static const char *const cases[] = {
        "{\"event\":\"ready\",\"bytes_per_member\":5,\"bytes_shared\":6,\"flops_per_step\":7,"
        "\"threads\":2}\n",
        "{\"event\":\"ready\",\"bytes_per_member\":5,\"bytes_shared\":6,\"flops_per_step\":7,"
        "\"threads\":2,\"members\":9}\n",
        "{\"event\":\"started\",\"id\":\"a/1.1\",\"step\":12}\n",
        "{\"event\":\"ended\",\"id\":\"a/1.1\",\"exit\":1,\"error\":\"why\"}\n",
        "{\"event\":\"ended\",\"id\":\"a/1.1\",\"exit\":75}\n",
        "{\"event\":\"log\",\"id\":\"a/1.1\",\"text\":\"one\\ntwo\"}\n",
        "{\"event\":\"throughput\",\"members\":3,\"rows_per_second\":1.5}\n"};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        struct control_event e;
        struct str out = {0};
        ck_ok(control_event_parse(cases[i], strlen(cases[i]) - 1, &e, &err), err);
        ck_ok(control_event_format(&e, &out, &err), err);
        ck_assert_str_eq(out.s, cases[i]);
        str_done(&out);
        control_event_done(&e);
    }
    struct control_event e;
    ck_assert_int_eq(event("{\"event\":\"ended\",\"id\":\"a\"}", &e), AS_E_INVAL);
    ck_assert_int_eq(event("{\"event\":\"started\",\"id\":\"a\",\"step\":-1}", &e), AS_E_INVAL);
    ck_assert_int_eq(event("{\"event\":\"log\",\"id\":\"a\"}", &e), AS_E_INVAL);
    ck_assert_int_eq(event("{\"event\":\"log\",\"text\":\"a\"}", &e), AS_E_INVAL);
}
END_TEST

START_TEST(lines_in_pieces)
{
    struct control_lines l = {0};
    size_t len = 0;
    ck_ok(control_lines_feed(&l, "ab", 2, &err), err);
    ck_assert_ptr_null(control_lines_next(&l, &len));
    ck_ok(control_lines_feed(&l, "c\n\nde", 5, &err), err);
    ck_assert_str_eq(control_lines_next(&l, &len), "abc");
    ck_assert_uint_eq(len, 3);
    ck_assert_str_eq(control_lines_next(&l, &len), "");
    ck_assert_ptr_null(control_lines_next(&l, &len));
    ck_ok(control_lines_feed(&l, "\n", 1, &err), err);
    ck_assert_str_eq(control_lines_next(&l, &len), "de");
    AS_AUTO(as_freep) char *big = as_calloc(CONTROL_MAX_LINE + 1, 1);
    memset(big, 'x', CONTROL_MAX_LINE + 1);
    ck_ok(control_lines_feed(&l, big, CONTROL_MAX_LINE, &err), err);
    ck_assert_int_eq(control_lines_feed(&l, big, 1, &err), AS_E_TOO_LARGE);
    control_lines_done(&l);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("control");
    TCase *t = tcase_create("control");
    tcase_add_test(t, add_and_back);
    tcase_add_test(t, short_requests);
    tcase_add_test(t, refused_requests);
    tcase_add_test(t, events_and_back);
    tcase_add_test(t, lines_in_pieces);
    suite_add_tcase(s, t);
    return s;
}
