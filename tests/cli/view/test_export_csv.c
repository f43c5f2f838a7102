#include "cli/view/export_csv.h"

#include <string.h>

#include "base/json.h"
#include "tests/cli/view/whole_csv.h"
#include "tests/support/check_main.h"

START_TEST(rows)
{
    static const char text[] =
        "[{\"number\":0,\"state\":\"completed\",\"value\":-0.1,\"attempt\":1,\"restarts\":0,"
        "\"params\":{\"lr\":1e-05,\"opt\":\"=cmd\"},\"metrics\":{\"loss\":0.25,\"big\":"
        "\"Infinity\"},"
        "\"runner\":\"local-1\",\"reason\":null,\"created_at\":\"t0\",\"shape\":\"mlp 4-2, adam\","
        "\"group\":\"s.g0.1\"},"
        "{\"number\":1,\"state\":\"failed\",\"value\":\"NaN\",\"attempt\":2,\"restarts\":1,"
        "\"params\":{\"lr\":-2,\"width\":64},\"metrics\":{},\"reason\":\"exit 3, \\\"bad\\\"\"}]";
    struct as_err err = {0};
    struct str b = {0};
    JSON_AUTO items = NULL;
    JSON_AUTO sweep =
        json_pack("{s:{s:{s:{}, s:{}, s:{}}}}", "document", "parameters", "width", "lr", "opt");
    ck_ok(json_parse(text, strlen(text), &items, &err), err);
    ck_ok(whole_csv(sweep, items, &b, &err), err);
    ck_assert_str_eq(
        str_cstr(&b),
        "number,state,value,attempt,restarts,param.width,param.lr,param.opt,metric.loss,metric.big,"
        "runner,reason,created_at,started_at,finished_at,client,origin,feasible,index,seen,"
        "finish_seq,shape,group\n"
        "0,completed,-0.1,1,0,,1e-05,'=cmd,0.25,Infinity,local-1,,t0,,,,,,,,,\"mlp 4-2, "
        "adam\",s.g0.1\n"
        "1,failed,NaN,2,1,64,-2,,,,,\"exit 3, \"\"bad\"\"\",,,,,,,,,,,\n");
    str_done(&b);
}
END_TEST

START_TEST(nothing)
{
    struct as_err err = {0};
    struct str b = {0};
    JSON_AUTO items = json_array();
    ck_ok(whole_csv(NULL, items, &b, &err), err);
    ck_assert_str_eq(
        str_cstr(&b),
        "number,state,value,attempt,restarts,runner,reason,created_at,"
        "started_at,finished_at,client,origin,feasible,index,seen,finish_seq,shape,group\n");
    str_done(&b);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("export_csv");
    TCase *t = tcase_create("export_csv");
    tcase_add_test(t, rows);
    tcase_add_test(t, nothing);
    suite_add_tcase(s, t);
    return s;
}
