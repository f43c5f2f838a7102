#include "serve/options/serve_options.h"

#include <string.h>

#include "tests/support/check_main.h"

static struct as_err err;

START_TEST(defaults_are_allowed)
{
    struct serve_options o;
    serve_options_init(&o);
    ck_ok(serve_options_check(&o, 1, &err), err);
    ck_fails(serve_options_check(&o, 0, &err), AS_E_INVAL, err, "nothing to serve");
    ck_fails(serve_options_check(&o, SERVE_MODELS_MAX + 1, &err), AS_E_INVAL, err, "use --dir");
    o.dirs = (struct opt_list){1, {"models"}};
    ck_ok(serve_options_check(&o, 0, &err), err);
}
END_TEST

/* Every number has its bounds, and every row of the table sets the field that is checked. */
START_TEST(each_option_is_checked)
{
    static const struct {
        const char *argument, *says;
    } wrong[] = {
        {"--workers=0", "--workers is 0"},
        {"--io-threads=65", "--io-threads is 65"},
        {"--batch-rows=0", "--batch-rows is 0"},
        {"--max-rows=0", "--max-rows is 0"},
        {"--max-bytes=1023", "--max-bytes is 1023"},
        {"--queue=0", "--queue is 0"},
        {"--max-connections=0", "--max-connections is 0"},
        {"--poll=1ms", "--poll"},
        {"--deadline=0s", "--deadline"},
        {"--log-level=loud", "loud"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(wrong); i++) {
        struct serve_options o;
        serve_options_init(&o);
        const struct opt table[] = {SERVE_OPTS(&o), {.name = NULL}};
        char text[40], *argv[] = {text, text, NULL};
        int n;
        (void)snprintf(text, sizeof text, "%s", wrong[i].argument);
        ck_ok(opt_parse(table, 2, argv, &n, &err), err);
        ck_fails(serve_options_check(&o, 1, &err), AS_E_INVAL, err, wrong[i].says);
    }
}
END_TEST

START_TEST(files_and_models)
{
    ck_assert(serve_names_file("a.safetensors"));
    ck_assert(serve_names_file("folder/model"));
    ck_assert(serve_names_file("iris=models/7"));
    ck_assert(!serve_names_file("digits@champion"));
    ck_assert(!serve_names_file("safetensors"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("serve_options");
    TCase *t = tcase_create("serve_options");
    tcase_add_test(t, defaults_are_allowed);
    tcase_add_test(t, each_option_is_checked);
    tcase_add_test(t, files_and_models);
    suite_add_tcase(s, t);
    return s;
}
