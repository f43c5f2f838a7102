/* What the registry says a model takes and gives. */
#include "base/json.h"
#include "scheduler/services/model_schema.h"
#include "tests/support/check_main.h"

static char *values[] = {(char *)"blue", (char *)"red"};
static char *classes[] = {(char *)"late", (char *)"early"};

/* A date of three features, a text of two, a category and a number. */
static struct dataset_column columns[] = {
    {.name = (char *)"when", .part = DATASET_DAYS, .n_parts = 3, .n_missing = 2},
    {.name = (char *)"when", .part = DATASET_WEEK_SIN, .index = 1, .n_parts = 3},
    {.name = (char *)"when", .part = DATASET_WEEK_COS, .index = 2, .n_parts = 3},
    {.name = (char *)"note", .part = DATASET_HASHED, .n_parts = 2, .n_empty = 1},
    {.name = (char *)"note", .part = DATASET_HASHED, .index = 1, .n_parts = 2},
    {.name = (char *)"colour", .categorical = true, .n_values = 2, .values = values},
    {.name = (char *)"amount"},
};

static const struct dataset_info info = {.task = DATASET_CLASSIFICATION,
                                         .target = (char *)"y",
                                         .n_features = 7,
                                         .n_outputs = 2,
                                         .n_classes = 2,
                                         .classes = classes,
                                         .columns = columns};

static void says(json_t *got, const char *expected)
{
    AS_AUTO(as_freep) char *text = json_format(got);
    ck_assert_str_eq(text, expected);
    json_decref(got);
}

START_TEST(columns_of_the_file)
{
    says(model_inputs_json(&info),
         "[{\"kind\":\"date\",\"missing\":true,\"name\":\"when\"},"
         "{\"kind\":\"text\",\"missing\":true,\"name\":\"note\"},"
         "{\"kind\":\"category\",\"missing\":false,\"name\":\"colour\",\"values\":[\"blue\","
         "\"red\"]},{\"kind\":\"number\",\"missing\":false,\"name\":\"amount\"}]");
}
END_TEST

START_TEST(positive_class)
{
    says(model_outputs_json(&info),
         "{\"classes\":[\"late\",\"early\"],\"positive\":\"early\",\"target\":\"y\"}");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("model_schema");
    TCase *t = tcase_create("model_schema");
    tcase_add_test(t, columns_of_the_file);
    tcase_add_test(t, positive_class);
    suite_add_tcase(s, t);
    return s;
}
