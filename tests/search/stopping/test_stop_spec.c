/* The section early_stopping: its defaults, its rungs, and which rung a report reaches. What is
 * refused is in tests/scheduler/sweep/test_sweep_doc_refused.c. */
#include "search/stopping/stop_spec.h"

#include <string.h>

#include "tests/support/check_main.h"

static struct stop_spec spec_of(const char *json, const struct stop_context *c)
{
    struct as_err err;
    struct json_fields f;
    struct stop_spec spec;
    JSON_AUTO j = NULL;
    ck_assert_int_eq(json_parse(json, strlen(json), &j, &err), AS_OK);
    ck_assert_int_eq(json_fields_init(&f, j, "/early_stopping", &err), AS_OK);
    as_status st = stop_spec_parse(&f, c, &spec, &err);
    ck_assert_msg(st == AS_OK, "%s: %s", json, err.msg);
    return spec;
}

/* A document, what else is known, and the canonical section. */
static const struct case_of {
    const char *json;
    int64_t all_steps, first_step;
    bool can_pause;
    const char *want;
    int64_t steps[8];
} cases[] = {
    {"{}",
     81,
     1,
     true,
     "{\"method\":\"asha\",\"metric\":\"loss\",\"min_steps\":\"auto\",\"max_steps\":81,\"eta\":3,"
     "\"mode\":\"pause\",\"late\":false,\"strict\":false}",
     {1, 3, 9, 27, 81}},
    {"{\"method\":\"median\",\"min_steps\":4,\"max_steps\":20,\"late\":true}",
     0,
     1,
     false,
     "{\"method\":\"median\",\"metric\":\"loss\",\"min_steps\":4,\"max_steps\":20,\"eta\":2,"
     "\"mode\":\"stop\",\"late\":true,\"strict\":false}",
     {4, 8, 16, 20}},
    {"{\"method\":\"hyperband\",\"eta\":4,\"mode\":\"stop\",\"strict\":true}",
     100,
     5,
     true,
     "{\"method\":\"hyperband\",\"metric\":\"loss\",\"min_steps\":\"auto\",\"max_steps\":100,"
     "\"eta\":4,\"mode\":\"stop\",\"late\":false,\"strict\":true}",
     {5, 20, 80, 100}},
};

START_TEST(test_defaults)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        const struct case_of *c = &cases[i];
        const struct stop_context context = {.n_objectives = 1,
                                             .metrics = {"loss"},
                                             .can_pause = c->can_pause,
                                             .all_steps = c->all_steps,
                                             .first_step = c->first_step};
        struct stop_spec spec = spec_of(c->json, &context);
        JSON_AUTO j = stop_spec_to_json(&spec, context.metrics, NULL);
        AS_AUTO(as_freep) char *text = json_format_ordered(j);
        ck_assert_str_eq(text, c->want);
        for (size_t k = 0; k < spec.n_rungs; k++)
            ck_assert_int_eq(spec.steps[k], c->steps[k]);
        ck_assert(spec.n_rungs == 8 || c->steps[spec.n_rungs] == 0);
        struct stop_spec again = spec_of(text, &context); /* the canonical form is its own */
        JSON_AUTO second = stop_spec_to_json(&again, context.metrics, NULL);
        ck_assert(json_equal(j, second));
    }
}
END_TEST

START_TEST(test_several_metrics)
{
    const struct stop_context context = {.n_objectives = 2,
                                         .metrics = {"loss", "speed"},
                                         .maximize = {false, true},
                                         .all_steps = 9,
                                         .first_step = 1};
    struct stop_spec spec = spec_of("{}", &context);
    ck_assert(!spec.has_metric);
    spec = spec_of("{\"metric\":\"speed\"}", &context);
    ck_assert(spec.has_metric && spec.metric == 1 && spec.maximize[1]);
}
END_TEST

START_TEST(test_rung_of_a_report)
{
    struct stop_spec spec = {.n_rungs = 3, .steps = {3, 9, 27}};
    uint32_t k = 99;
    ck_assert(!stop_spec_rung(&spec, 0, 2, &k));
    ck_assert(stop_spec_rung(&spec, 0, 3, &k) && k == 0);
    ck_assert(stop_spec_rung(&spec, 20, 9, &k) && k == 1); /* steps out of order */
    ck_assert(!stop_spec_rung(&spec, 3, 10, &k));
    ck_assert(!stop_spec_rung(&spec, 3, 28, &k));
    spec.late = true;
    ck_assert(stop_spec_rung(&spec, 3, 10, &k) && k == 1);
    ck_assert(stop_spec_rung(&spec, 2, 10, &k) && k == 1); /* it has passed two: the higher one */
    ck_assert(!stop_spec_rung(&spec, 10, 11, &k));
    ck_assert(stop_spec_rung(&spec, 10, 99, &k) && k == 2);
    ck_assert(stop_spec_rung(&spec, 30, 27, &k) && k == 2);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_stop_spec");
    TCase *t = tcase_create("stop_spec");
    tcase_add_test(t, test_defaults);
    tcase_add_test(t, test_several_metrics);
    tcase_add_test(t, test_rung_of_a_report);
    suite_add_tcase(s, t);
    return s;
}
