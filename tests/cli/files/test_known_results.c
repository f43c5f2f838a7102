/* Files with known results: hand-written tables, what `assay export` writes as CSV and JSON, rows
 * without a result (they are enqueued), and errors with the place in the file. */
#include "cli/files/known_results.h"

#include <string.h>

#include "base/json.h"
#include "cli/view/export_csv.h"
#include "tests/cli/view/whole_csv.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

static json_t *sweep(void)
{
    return json_plain("{\"metrics\":[{\"name\":\"loss\",\"goal\":\"minimize\"}],\"constraints\":[{"
                      "\"metric\":\"ms\",\"max\":20}],\"document\":{\"parameters\":{"
                      "\"lr\":{\"type\":\"float\",\"min\":0.0001,\"max\":1,\"scale\":\"log\"},"
                      "\"width\":{\"type\":\"int\",\"min\":16,\"max\":512},"
                      "\"opt\":{\"type\":\"categorical\",\"values\":[\"sgd\",\"adamw\",2]},"
                      "\"mom\":{\"type\":\"float\",\"min\":0,\"max\":1,\"when\":{\"opt\":\"sgd\"}},"
                      "\"nest\":{\"type\":\"bool\"},"
                      "\"epochs\":{\"type\":\"constant\",\"value\":27}},"
                      "\"parameter_constraints\":[\"width * lr <= 400\"],\"forbidden\":[{\"opt\":2,"
                      "\"nest\":true}]}}");
}

static as_status read_text(const char *name, const char *text, struct known_results *f,
                           struct as_err *err)
{
    JSON_AUTO s = sweep();
    return known_results_parse(name, text, strlen(text), s, f, err);
}

static void check_body(const struct known_results *f, size_t i, const char *want)
{
    AS_AUTO(as_freep) char *text = json_format_ordered(f->trials[i].body);
    ck_assert_str_eq(text, want);
}

START_TEST(a_table)
{
    struct as_err err = {0};
    struct known_results f = {0};
    ck_ok(read_text("a.csv",
                    "number,lr,width,opt,param.mom,nest,loss,ms,metric.acc,state,reason\n"
                    "7,0.1,64,sgd,0.9,true,0.25,10,0.9,,\n"
                    "8,1e-2,32.0,2,,false,nan,10,,,\n"
                    "9,0.1,64,adamw,,true,,,,failed,\"out, of memory\"\n"
                    "10,0.1,64,adamw,,true,,,,queued,\n"
                    "11,0.1,64,adamw,,true,0.7,10,,pruned,\n",
                    &f, &err),
          err);
    ck_assert_uint_eq(f.n, 3);
    ck_assert_uint_eq(f.n_skipped, 2); /* a pruned one did not fail */
    check_body(&f, 0,
               "{\"params\":{\"lr\":0.1,\"width\":64,\"opt\":\"sgd\",\"mom\":0.9,\"nest\":true,"
               "\"epochs\":27},\"metrics\":{\"loss\":0.25,\"ms\":10.0,\"acc\":0.9}}");
    check_body(&f, 1,
               "{\"params\":{\"lr\":0.01,\"width\":32.0,\"opt\":2,\"nest\":false,\"epochs\":27},"
               "\"state\":\"failed\"}");
    check_body(&f, 2,
               "{\"params\":{\"lr\":0.1,\"width\":64,\"opt\":\"adamw\",\"nest\":true,\"epochs\":27"
               "},\"state\":\"failed\",\"reason\":\"out, of memory\"}");
    known_results_done(&f);
}
END_TEST

/* What `export --csv` writes is read back: each of its columns is used or ignored. */
START_TEST(an_export_comes_back)
{
    struct as_err err = {0};
    struct known_results f = {0};
    AS_AUTO(str_done) struct str table = {0};
    JSON_AUTO s = sweep();
    JSON_AUTO items =
        json_pack("[{s:i, s:s, s:{s:f, s:i, s:s, s:b}, s:{s:f, s:f}, s:s, s:s}]", "number", 3,
                  "state", "completed", "params", "lr", 0.5, "width", 20, "opt", "adamw", "nest", 0,
                  "metrics", "ms", 3.0, "loss", 0.25, "shape", "mlp 4-2", "group", "s.g0.1");
    ck_assert_ptr_nonnull(items);
    ck_ok(whole_csv(s, items, &table, &err), err);
    ck_ok(read_text("e.csv", str_cstr(&table), &f, &err), err);
    ck_assert_uint_eq(f.n, 1);
    known_results_done(&f);
}
END_TEST

START_TEST(configurations_alone_are_enqueued)
{
    struct as_err err = {0};
    struct known_results f = {0};
    ck_ok(read_text("q.csv", "lr,width,opt,nest\n0.5,20,adamw,false\n", &f, &err), err);
    ck_assert_uint_eq(f.n, 1);
    check_body(&f, 0,
               "{\"params\":{\"lr\":0.5,\"width\":20,\"opt\":\"adamw\",\"nest\":false,"
               "\"epochs\":27}}");
    known_results_done(&f);
}
END_TEST

START_TEST(errors_have_a_place)
{
    struct as_err err = {0};
    struct known_results f = {0};
    static const struct {
        const char *name, *text, *says;
    } cases[] = {
        {"e.csv", "lr,widht\n0.1,64\n", ":1: column 'widht' is neither"},
        {"e.csv", "lr,lr\n0.1,0.1\n", ":1: column 'lr' is given twice"},
        {"e.csv", "lr,width,opt,nest,loss,ms\n0.1,64,adamw,true,1,2\n0.1,many,adamw,true,1,2\n",
         ":3: column 'width': expected a number, found 'many'"},
        {"e.csv", "lr,width,opt,nest,loss,ms\n0.1,64,rmsprop,true,1,2\n",
         ":2: column 'opt': expected one of its values, found 'rmsprop'"},
        {"e.csv", "lr,width,opt,nest,loss,ms\n7,64,adamw,true,1,2\n", ":2: column 'lr'"},
        {"e.csv", "lr,width,opt,nest,loss,ms\n0.1,64,sgd,true,1,2\n", ":2: column 'mom'"},
        {"e.csv", "lr,width,opt,nest,loss,ms\n0.1,64,adamw,true,1,\n",
         ":2: column 'ms': expected a value"},
        {"e.csv", "lr,width,opt,nest,loss,ms\n0.1,64,adamw,true,low,2\n",
         ":2: column 'loss': expected a number (or NaN), found 'low'"},
        {"e.csv", "lr,width,opt,nest,state\n0.1,64,adamw,true,done\n",
         ":2: column 'state': expected completed or failed"},
        {"e.csv", "lr,width,opt,nest\n1.0,401,adamw,true\n",
         ":2: the parameters break the constraint width * lr <= 400"},
        {"e.csv", "lr,width,opt,nest\n0.1,64,2,true\n", ":2: the combination is forbidden"},
        {"e.csv", "lr,width\n0.1\n", "line 2"},
        {"e.json",
         "[{\"params\":{\"lr\":0.1,\"width\":64,\"opt\":\"adamw\",\"nest\":true}},\n"
         " {\"params\":{\"lr\":\"x\",\"width\":64,\"opt\":\"adamw\",\"nest\":true}}]",
         ":2:13: item 1: "},
        {"e.json", "{\"items\":[{\"metrics\":{}}]}", "item 0"},
        {"e.json", "{\"trials\":[]}", "expected a list of trials"},
        {"e.json", "[{]", "not JSON"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++)
        ck_fails(read_text(cases[i].name, cases[i].text, &f, &err), AS_E_INVAL, err, cases[i].says);
}
END_TEST

START_TEST(an_export)
{
    struct as_err err = {0};
    struct known_results f = {0};
    ck_ok(read_text("x.json",
                    "{\"sweep\":{\"id\":\"old\"},\"items\":["
                    "{\"number\":0,\"state\":\"completed\",\"params\":{\"lr\":0.1,\"width\":64,"
                    "\"opt\":\"adamw\",\"nest\":true,\"epochs\":27},\"metrics\":{\"loss\":0.5,"
                    "\"ms\":3},\"value\":0.5,\"origin\":\"suggested\"},"
                    "{\"number\":1,\"state\":\"failed\",\"params\":{\"lr\":0.2,\"width\":64,"
                    "\"opt\":\"adamw\",\"nest\":true,\"epochs\":27},\"metrics\":{},"
                    "\"reason\":\"exit 3\"},"
                    "{\"number\":2,\"state\":\"cancelled\",\"params\":{\"lr\":0.2,\"width\":64,"
                    "\"opt\":\"adamw\",\"nest\":true,\"epochs\":27},\"metrics\":{}}]}",
                    &f, &err),
          err);
    ck_assert_uint_eq(f.n, 2);
    ck_assert_uint_eq(f.n_skipped, 1);
    check_body(&f, 0,
               "{\"params\":{\"lr\":0.1,\"width\":64,\"opt\":\"adamw\",\"nest\":true,\"epochs\":27"
               "},\"metrics\":{\"loss\":0.5,\"ms\":3}}");
    known_results_done(&f);
}
END_TEST

START_TEST(a_file_that_is_not_there)
{
    struct as_err err = {0};
    struct known_results f = {0};
    JSON_AUTO s = sweep();
    ck_fails(known_results_read("no/such/file.csv", s, &f, &err), AS_E_NOT_FOUND, err, "no/such");
    known_results_done(&f);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("known_results");
    TCase *t = tcase_create("known_results");
    tcase_add_test(t, a_table);
    tcase_add_test(t, an_export_comes_back);
    tcase_add_test(t, configurations_alone_are_enqueued);
    tcase_add_test(t, errors_have_a_place);
    tcase_add_test(t, an_export);
    tcase_add_test(t, a_file_that_is_not_there);
    suite_add_tcase(s, t);
    return s;
}
