/* Previews of sweep documents: all faults, the size of a grid, the first trials; and nothing is
 * created. */
#include "scheduler/services/sweep_preview.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

static struct preview_row preview(const char *text, size_t n, struct faults *faults)
{
    JSON_AUTO doc = json_of(text);
    struct preview_row row;
    ck_ok(sweep_preview(s.db, &s.a, doc, n, faults, &row, &err), err);
    return row;
}

#define DOCUMENT(search)                                                                           \
    "{'name': 'a', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'search': " search              \
    ", 'limits': {'max_trials': 9}, 'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1, "    \
    "'step': 0.125}, 'k': {'type': 'categorical', 'values': ['a', 'b']}}, 'trial': {'command': "   \
    "['true']}}"

/* A runner gets what the preview showed, by every method. */
START_TEST(shows_the_first_trials)
{
    static const char *const documents[] = {
        DOCUMENT("{'method': 'random', 'seed': 7}"), DOCUMENT("{'method': 'sobol', 'seed': 7}"),
        DOCUMENT("{'method': 'grid', 'seed': 7}"),   DOCUMENT("{'method': 'gp', 'seed': 7}"),
        DOCUMENT("{'method': 'tpe', 'seed': 7}"),    DOCUMENT("{'method': 'cmaes', 'seed': 7}")};
    int64_t epoch = make_runner(&s, "r", 4);
    for (size_t i = 0; i < AS_ARRAY_LEN(documents); i++) {
        AS_AUTO(faults_done) struct faults faults = {0};
        struct preview_row row = preview(documents[i], 4, &faults);
        struct sweep_row made;
        ck_assert(row.is_valid);
        ck_assert_uint_eq(faults.n, 0);
        ck_assert_uint_eq(row.n, 4);
        ck_assert_str_eq(row.name, "a");
        ck_assert_int_eq(row.seed, 7);
        ck_assert_int_eq(row.planned, 9);
        JSON_AUTO doc = json_of(documents[i]);
        ck_ok(sweep_create(s.db, &s.a, doc, NULL, &made, &err), err);
        struct claim_list list = claim(&s, "r", epoch, 4);
        ck_assert_uint_eq(list.n, 4);
        for (size_t k = 0; k < 4; k++) {
            JSON_AUTO shown = json_of(row.suggestions[k].params);
            JSON_AUTO given = json_of(list.rows[k].params);
            ck_assert_msg(json_equal(shown, given), "%s: %s, got %s", row.method,
                          row.suggestions[k].params, list.rows[k].params);
            finish(&s, ref_of(&list.rows[k]), (double)k);
        }
        const struct sweep_patch patch = {.state = &(sweep_state){SWEEP_CANCELLED}};
        struct sweep_changed changed;
        ck_ok(sweep_change(s.db, &s.a, made.id, &patch, NULL, &changed, &err), err);
    }
}
END_TEST

START_TEST(says_the_size_of_a_grid)
{
    AS_AUTO(faults_done) struct faults faults = {0};
    struct preview_row row = preview(DOCUMENT("{'method': 'grid'}"), 32, &faults);
    ck_assert_int_eq(row.n_cells, 18);
    ck_assert_uint_eq(row.n, 9); /* max_trials */
    row = preview(DOCUMENT("{'method': 'random'}"), 0, &faults);
    ck_assert_int_eq(row.n_cells, 0);
    ck_assert_uint_eq(row.n, 0);
    row = preview("{'name': 'a', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'search': "
                  "{'method': 'grid'}, 'parameters': {'k': {'type': 'categorical', 'values': [1, "
                  "2, 3]}}}",
                  32, &faults);
    ck_assert_uint_eq(row.n, 3); /* there are no more */
    ck_assert(row.is_valid);
}
END_TEST

static void check_pointers(const struct faults *f, const char *const *pointers, size_t n)
{
    ck_assert_uint_eq(f->n, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(faults_find(f, pointers[i]) < f->n, "no fault at %s", pointers[i]);
}

START_TEST(lists_every_fault)
{
    AS_AUTO(faults_done) struct faults faults = {0};
    static const char *const pointers[] = {"/name", "/search/prior/0", "/parameters/x/min",
                                           "/limits/max_trial", "/resources/gpus"};
    struct preview_row row = preview(
        "{'name': 'A b', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'search': {'method': "
        "'gp', 'prior': ['nobody']}, 'limits': {'max_trials': 4, 'max_trial': 4}, 'parameters': "
        "{'x': {'type': "
        "'float', 'min': 1, 'max': 0}}, 'resources': {'gpus': -1}}",
        8, &faults);
    ck_assert(!row.is_valid);
    ck_assert_uint_eq(row.n, 0);
    check_pointers(&faults, pointers, AS_ARRAY_LEN(pointers));
}
END_TEST

START_TEST(looks_for_data_sets)
{
    AS_AUTO(faults_done) struct faults faults = {0};
    static const char *const pointers[] = {"/trial/train/dataset"};
    struct preview_row row = preview(
        "{'name': 'a', 'metric': {'name': 'val_loss', 'goal': 'minimize'}, 'limits': "
        "{'max_trials': 4}, 'parameters': {'x': {'type': 'float', 'min': 0.1, 'max': 1}}, 'trial': "
        "{'train': {'dataset': 'nowhere', 'model': {'kind': 'mlp', 'layers': [4]}, 'optimizer': "
        "{'kind': 'sgd', 'lr': '${x}'}, 'epochs': 1}}}",
        8, &faults);
    ck_assert(!row.is_valid);
    check_pointers(&faults, pointers, AS_ARRAY_LEN(pointers));
}
END_TEST

START_TEST(creates_nothing)
{
    AS_AUTO(faults_done) struct faults faults = {0};
    (void)preview(DOCUMENT("{'method': 'gp'}"), 8, &faults);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from sweep"), 0);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from event_each"), 0);
    JSON_AUTO list = json_array();
    struct preview_row row;
    ck_fails(sweep_preview(s.db, &s.a, list, 8, &faults, &row, &err), AS_E_INVAL, err, "a list");
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("sweep_preview");
    TCase *t = service_case(suite, "sweep_preview", &s, 0);
    tcase_add_test(t, shows_the_first_trials);
    tcase_add_test(t, says_the_size_of_a_grid);
    tcase_add_test(t, lists_every_fault);
    tcase_add_test(t, looks_for_data_sets);
    tcase_add_test(t, creates_nothing);
    return suite;
}
