/* The plan of `assay fit` and its sweep, for tables from two rows to a hundred million: whatever
 * the figures are, the document is one, its ranges are ranges, and the first trials lie in them.
 * What the scheduler says of such documents is in tests/e2e/test_fit.py. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "cli/fit/fit_defaults.h"
#include "cli/fit/fit_first.h"
#include "cli/fit/fit_learned.h"
#include "cli/fit/fit_plan.h"
#include "cli/fit/fit_similar.h"
#include "cli/fit/fit_sweep.h"
#include "tests/support/check_main.h"

static struct as_err err;

static const struct fit_facts small = {
    .rows = 300, .columns = 8, .inputs = 20, .targets = 1, .classes = 2, .rarest = 6};
static const struct fit_wishes usual = {.time_ms = 540000, .size_bytes = 50000000, .cores = 2};

static struct fit_plan plan_of(const struct fit_facts *f, const struct fit_wishes *w)
{
    struct fit_plan p;
    ck_ok(fit_plan_make(f, w, &p, &err), err);
    return p;
}

/* ---- documents ---- */

/* Is the parameter active where the kind is this one? */
static bool is_active(const json_t *space, const char *kind)
{
    const json_t *when = json_object_get(json_object_get(space, "when"), "kind");
    size_t i;
    json_t *item;
    if (!when || as_streq(json_string_value(when), kind))
        return true;
    json_array_foreach((json_t *)when, i,
                       item) if (as_streq(json_string_value(item), kind)) return true;
    return false;
}

static bool is_value_of(const json_t *space, const json_t *value)
{
    const char *type = json_string_value(json_object_get(space, "type"));
    size_t i;
    json_t *item;
    if (as_streq(type, "constant"))
        return json_equal(json_object_get(space, "value"), value);
    json_array_foreach(json_object_get(space, "values"), i,
                       item) if (json_equal(item, value)) return true;
    return json_is_number(value) &&
           json_number_value(value) >= json_number_value(json_object_get(space, "min")) &&
           json_number_value(value) <= json_number_value(json_object_get(space, "max"));
}

static void check_ranges(const json_t *spaces)
{
    const char *name;
    json_t *space;
    json_object_foreach((json_t *)spaces, name, space)
    {
        const json_t *min = json_object_get(space, "min");
        double least = json_number_value(min);
        ck_assert(!min || least < json_number_value(json_object_get(space, "max")));
        ck_assert(!as_streq(json_string_value(json_object_get(space, "scale")), "log") ||
                  least > 0);
    }
}

/* Each trial has every parameter that is active, within its space. */
static void check_trials(const json_t *trials, const json_t *spaces)
{
    size_t i;
    json_t *trial, *space;
    const char *name;
    json_array_foreach((json_t *)trials, i, trial)
    {
        const json_t *params = json_object_get(trial, "params");
        const char *kind = json_string_value(json_object_get(params, "kind"));
        size_t active = 0;
        json_object_foreach((json_t *)spaces, name, space)
        {
            if (!is_active(space, kind))
                continue;
            active++;
            ck_assert_msg(is_value_of(space, json_object_get(params, name)), "%s of %s", name,
                          kind);
        }
        ck_assert_uint_eq(active, json_object_size(params));
    }
}

static void check_first_trials(const struct fit_plan *p, const struct fit_facts *f,
                               const json_t *spaces)
{
    JSON_AUTO trials = fit_first_trials(p, f);
    fit_first_trials_limit(p, trials);
    ck_assert_uint_ge(json_array_size(trials), 3);
    check_trials(trials, spaces);
}

static void check_document(const struct fit_plan *p, const struct fit_facts *f)
{
    AS_AUTO(str_done) struct str b = {0};
    JSON_AUTO tree = NULL;
    fit_sweep_write(p, f, "x-fit", "x", "assay fit\nx.csv", &b);
    ck_ok(yaml_parse(str_cstr(&b), b.len, &tree, &err), err);
    check_ranges(json_object_get(tree, "parameters"));
    check_first_trials(p, f, json_object_get(tree, "parameters"));
}

START_TEST(any_figures)
{
    static const size_t rows[] = {2, 3, 19, 300, 5404, 100000, 1000000, 100000000};
    static const size_t columns[] = {1, 2, 14, 784, 65536};
    static const size_t classes[] = {0, 2, 3, 26, 4096};
    static const int64_t times[] = {7000, 540000, 86400000},
                         sizes[] = {1000, 50000000, INT64_C(1) << 40};
    for (size_t r = 0; r < AS_ARRAY_LEN(rows); r++)
        for (size_t i = 0; i < 5 * 5 * 3 * 3 * 2 * 2; i++) {
            size_t c = classes[i / 5 % 5];
            const struct fit_facts f = {.rows = rows[r],
                                        .columns = columns[i % 5],
                                        .inputs = columns[i % 5] * (i % 2 ? 1 : 40),
                                        .targets = 1,
                                        .texts = i % 3 == 2,
                                        .categories = columns[i % 5] / 2,
                                        .category_inputs = columns[i % 5] / 2 * (i % 2 ? 1 : 40),
                                        .most_values = i % 4 > 1 ? 30 : 3,
                                        .transform = c || i % 2 ? TARGET_AS_IS : TARGET_LOG1P,
                                        .classes = c,
                                        .rarest = !c      ? 0
                                                  : i % 3 ? 1
                                                          : rows[r] / c};
            const struct fit_wishes w = {.time_ms = times[i / 25 % 3],
                                         .size_bytes = sizes[i / 75 % 3],
                                         .cores = i / 225 % 2 ? 1 : 128,
                                         .groups = i / 450 % 2 ? "a \"b\": #c" : NULL};
            struct fit_plan p = plan_of(&f, &w);
            ck_assert(p.folds == 0 || (p.folds >= 2 && p.folds <= f.rows && p.folds <= 20));
            ck_assert(p.held_out > 0 && p.held_out < 1 && p.row_share > 0 && p.row_share <= 1);
            ck_assert(p.cpus >= 1 && p.cpus <= w.cores);
            check_document(&p, &f);
        }
}
END_TEST

/* ---- decisions ---- */

START_TEST(metrics)
{
    struct fit_facts f = small;
    struct fit_wishes w = usual;
    ck_assert_str_eq(plan_of(&f, &w).metric, "val_auc");
    ck_assert(plan_of(&f, &w).maximize);
    w.metric = "val_log_loss";
    ck_assert_str_eq(plan_of(&f, &w).metric, "val_log_loss");
    ck_assert(!plan_of(&f, &w).maximize);
    w.metric = NULL;
    f.classes = 26;
    ck_assert_str_eq(plan_of(&f, &w).metric, "val_log_loss");
    f.classes = 0;
    ck_assert_str_eq(plan_of(&f, &w).metric, "val_rmse");
    w.metric = "auc";
    struct fit_plan p;
    ck_assert_int_eq(fit_plan_make(&f, &w, &p, &err), AS_E_INVAL);
    ck_assert_str_eq(err.msg,
                     "--metric: found 'auc', expected one of rmse, mae, r2, mape: the target "
                     "is numbers");
}
END_TEST

START_TEST(folds_by_rows_and_time)
{
    struct fit_facts f = small;
    struct fit_wishes w = usual;
    ck_assert_uint_eq(plan_of(&f, &w).folds, 6); /* the rarest class is in each */
    f.rarest = 120;
    ck_assert_uint_eq(plan_of(&f, &w).folds, 10);
    f.rows = 32561;
    f.columns = 14;
    f.rarest = 7841;
    ck_assert_uint_eq(plan_of(&f, &w).folds, 5);
    w.time_ms = 40000;
    ck_assert_uint_eq(plan_of(&f, &w).folds, 0);
    f.rarest = 300; /* a fifth of them says little */
    ck_assert_uint_eq(plan_of(&f, &w).folds, 5);
    w.time_ms = 8000;
    ck_assert_uint_eq(plan_of(&f, &w).folds, 0);
    f.rarest = 7841;
    f.rows = 1000000;
    f.columns = f.inputs = 20;
    w = usual;
    struct fit_plan million = plan_of(&f, &w);
    ck_assert_uint_eq(million.folds, 0);
    ck_assert_double_eq(million.held_out, 0.1);
    ck_assert_uint_eq(million.cpus, 2);
    ck_assert_double_lt(million.row_share, 1);
    w.time_ms *= 100;
    ck_assert_uint_eq(plan_of(&f, &w).folds, 5);
    ck_assert_double_eq(plan_of(&f, &w).row_share, 1);
}
END_TEST

START_TEST(folds_that_are_asked_for)
{
    struct fit_wishes w = usual;
    struct fit_plan p;
    w.folds = 20;
    ck_assert_uint_eq(plan_of(&small, &w).folds, 20);
    w.folds = 1;
    ck_assert_uint_eq(plan_of(&small, &w).folds, 0);
    w.folds = 21;
    ck_assert_int_eq(fit_plan_make(&small, &w, &p, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "--folds: found 21, expected 1 "));
    w.folds = 5;
    w.groups = "who";
    ck_assert_int_eq(fit_plan_make(&small, &w, &p, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "--folds: found 5 beside --groups"));
}
END_TEST

/* A further layer takes folds, however little time there is. */
START_TEST(layers_take_folds)
{
    struct fit_facts f = {.rows = 32561, .columns = 14, .targets = 1, .classes = 2, .rarest = 7841};
    struct fit_wishes w = usual;
    struct fit_plan p;
    w.time_ms = 8000;
    ck_assert_uint_eq(plan_of(&f, &w).folds, 0);
    w.layers = 2;
    ck_assert_uint_eq(plan_of(&f, &w).folds, 3);
    w.folds = 1;
    ck_assert_int_eq(fit_plan_make(&f, &w, &p, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "--layers: found 2 beside --folds 1"));
    w.folds = 0;
    w.groups = "who";
    ck_assert_int_eq(fit_plan_make(&f, &w, &p, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "--layers: found 2 beside --groups"));
    w.layers = 1;
    ck_ok(fit_plan_make(&f, &w, &p, &err), err);
}
END_TEST

START_TEST(rare_classes_and_sizes)
{
    struct fit_facts f = small;
    struct fit_wishes w = usual;
    ck_assert(plan_of(&f, &w).class_weights);
    w.metric = "log_loss"; /* weights would make its probabilities wrong */
    ck_assert(!plan_of(&f, &w).class_weights);
    f.rarest = 140;
    w.metric = "auc";
    ck_assert(!plan_of(&f, &w).class_weights);
    f.rows = 20000;
    struct fit_plan large = plan_of(&f, &w);
    w.size_bytes = 2000000;
    struct fit_plan little = plan_of(&f, &w);
    ck_assert_double_gt(little.least_weight, large.least_weight);
    ck_assert_double_lt(little.ranges[FIT_LEAVES].max, large.ranges[FIT_LEAVES].max);
}
END_TEST

/* The size first takes trees, then leaves; one forest on all rows may have those of all folds. */
START_TEST(forests_within_the_size)
{
    struct fit_facts f = {.rows = 20000, .columns = 8, .inputs = 8, .targets = 1};
    struct fit_wishes w = usual;
    struct fit_plan usually = plan_of(&f, &w);
    ck_assert(usually.extra && usually.forest && usually.refit);
    w.size_bytes *= 20;
    struct fit_plan large = plan_of(&f, &w);
    ck_assert_uint_gt(large.trees, usually.trees);
    ck_assert_double_eq(large.least_extra_weight, 1);
    w.size_bytes /= 200;
    struct fit_plan little = plan_of(&f, &w);
    ck_assert_uint_lt(little.trees, large.trees);
    ck_assert_double_gt(little.least_extra_weight, 5);
    double bytes = 20000 / little.least_extra_weight * (double)little.trees * 28;
    ck_assert_double_le(bytes, (double)w.size_bytes);
    w.folds = 1;
    ck_assert(!plan_of(&f, &w).refit);
    f.rows = 10000000; /* a forest would take more than half of a trial's time */
    struct fit_plan huge = plan_of(&f, &usual);
    ck_assert(!huge.extra);
    ck_assert(huge.bins == 0 && usually.bins > 0);
    AS_AUTO(str_done) struct str b = {0};
    fit_sweep_write(&huge, &f, "x-fit", "x", "assay fit", &b);
    ck_assert_ptr_null(strstr(str_cstr(&b), "extra_trees"));
    ck_assert_ptr_null(strstr(str_cstr(&b), "numbers: "));
    str_clear(&b);
    fit_sweep_write(&little, &f, "x-fit", "x", "assay fit", &b);
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "kind != 'extra_trees' or leaf_weight >= "));
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "refit: \"${refit}\"}"));
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "numbers: {encode: \"${numbers}\", bins: 32}"));
    ck_assert(!huge.neighbours && usually.neighbours && plan_of(&small, &usual).neighbours);
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "kind: [random_forest, extra_trees, knn]"));
    w.size_bytes = 2000000; /* the rows would be more than a fifth of it */
    ck_assert(!plan_of(&f, &w).neighbours);
}
END_TEST

/* A forest that would take longer than its trial may has larger leaves: full ones of 20,000 rows
 * take seconds each, and beside busy programs minutes. */
START_TEST(forests_in_time)
{
    struct fit_facts f = {
        .rows = 20000, .columns = 7, .inputs = 22, .targets = 1, .classes = 2, .rarest = 9000};
    struct fit_wishes w = usual;
    w.folds = 1;
    ck_assert_double_eq(plan_of(&f, &w).least_weight, 2); /* by the size */
    w.time_ms = 14000;
    struct fit_plan quick = plan_of(&f, &w);
    w.load = 18;
    struct fit_plan busy = plan_of(&f, &w);
    ck_assert(quick.forest && busy.forest);
    ck_assert_double_gt(quick.least_weight, 10);
    ck_assert_double_gt(busy.least_weight, 4 * quick.least_weight);
    ck_assert_double_eq(quick.least_extra_weight, 1);
    f.columns = 65536; /* the rows alone take longer */
    ck_assert(!plan_of(&f, &w).forest);
}
END_TEST

/* A skewed target is learned in both ways by each kind of model. */
START_TEST(skewed_targets)
{
    struct fit_facts f = {.rows = 2000, .columns = 8, .inputs = 8, .targets = 1};
    AS_AUTO(str_done) struct str b = {0}, plain = {0};
    struct fit_plan p = plan_of(&f, &usual);
    fit_sweep_write(&p, &f, "x-fit", "x", "assay fit", &plain);
    ck_assert_ptr_null(strstr(str_cstr(&plain), "transform"));
    f.transform = TARGET_LOG;
    p = plan_of(&f, &usual);
    fit_sweep_write(&p, &f, "x-fit", "x", "assay fit", &b);
    ck_assert_ptr_nonnull(
        strstr(str_cstr(&b), "  transform: {type: categorical, values: [none, log]}\n"));
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "    target: {transform: \"${transform}\"}\n"));
    JSON_AUTO trials = fit_first_trials(&p, &f);
    size_t n[2] = {0}, i;
    json_t *trial;
    json_array_foreach(trials, i, trial) n[as_streq(
        json_string_value(json_object_get(json_object_get(trial, "params"), "transform")),
        "log")]++;
    ck_assert(n[0] > 0 && n[1] > 0);
    check_document(&p, &f);
}
END_TEST

/* With many columns a tree sees a part of them, and numbers are in bins only where there are rows
 * for so many inputs. */
START_TEST(wide_tables)
{
    struct fit_facts f = {
        .rows = 400, .columns = 2000, .inputs = 2000, .targets = 1, .classes = 2, .rarest = 190};
    AS_AUTO(str_done) struct str b = {0};
    struct fit_plan p = plan_of(&f, &usual);
    ck_assert_double_eq(p.ranges[FIT_COLUMNS].min, 0.03);
    ck_assert_double_eq(p.ranges[FIT_COLUMNS].max, 0.3);
    ck_assert(p.bins == 0 && p.network);
    check_document(&p, &f);
    fit_sweep_write(&p, &f, "x-fit", "x", "assay fit", &b);
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "each tree sees a part of them"));
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "      max_bin: 32\n"));
    ck_assert_uint_eq(p.folds, 10);
    struct fit_wishes w = usual;
    w.time_ms = 20000; /* ten folds would be one trial or two */
    ck_assert_uint_eq(plan_of(&f, &w).folds, 3);
    f.rows = 40000; /* rows enough, but a network would take too long */
    ck_assert_uint_eq(plan_of(&f, &usual).bins, 0);
    f.columns = f.inputs = 20;
    ck_assert_uint_eq(plan_of(&f, &usual).bins, 32);
    ck_assert_double_eq(plan_of(&f, &usual).ranges[FIT_COLUMNS].max, 1);
    f.rows = 300;
    ck_assert_uint_eq(plan_of(&f, &usual).bins, 32);
}
END_TEST

/* Naive Bayes is for classes: of texts, or of few rows. */
START_TEST(naive_bayes)
{
    struct fit_facts f = small;
    AS_AUTO(str_done) struct str b = {0};
    ck_assert(plan_of(&f, &usual).bayes && !plan_of(&f, &usual).words);
    f.rows = 20000;
    ck_assert(!plan_of(&f, &usual).bayes);
    f.texts = 1;
    struct fit_plan p = plan_of(&f, &usual);
    ck_assert(p.bayes && p.words);
    fit_sweep_write(&p, &f, "x-fit", "x", "assay fit", &b);
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "naive_bayes, "));
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "      words: \"${words}\"\n"));
    f.classes = f.rarest = 0;
    ck_assert(!plan_of(&f, &usual).bayes);
}
END_TEST

/* ---- warm starts ---- */

static struct fit_figures figures(double rows, double columns, double classes, double categories)
{
    return (struct fit_figures){rows, columns, classes, categories};
}

/* What a document's tags say is what was written; other tags are none. */
/* The rows of a fold do not choose the epoch of a training that they judge, where they are few. */
START_TEST(patience_by_rows)
{
    static const size_t rows[] = {300, 1999, 2000, 5000};
    struct fit_facts f = small;
    for (size_t i = 0; i < 2 * AS_ARRAY_LEN(rows); i++) {
        struct fit_wishes w = usual;
        AS_AUTO(str_done) struct str b = {0};
        JSON_AUTO tree = NULL;
        f.rows = rows[i / 2];
        w.folds = i % 2; /* 1: a part of the rows is held out, once */
        struct fit_plan p = plan_of(&f, &w);
        fit_sweep_write(&p, &f, "x-fit", "x", "assay fit x.csv", &b);
        ck_ok(yaml_parse(str_cstr(&b), b.len, &tree, &err), err);
        const json_t *train = json_object_get(json_object_get(tree, "trial"), "train");
        bool few = f.rows < 2000 && i % 2 == 0;
        ck_assert_int_eq(json_integer_value(json_object_get(train, "patience")), few ? 0 : 12);
        ck_assert_int_eq(json_object_get(train, "patience") == NULL, few);
    }
}
END_TEST

START_TEST(figures_are_tags)
{
    struct fit_facts f = small;
    struct fit_plan p = plan_of(&f, &usual);
    struct fit_figures found;
    AS_AUTO(str_done) struct str b = {0};
    JSON_AUTO tree = NULL;
    f.categories = 2;
    fit_sweep_write(&p, &f, "x-fit", "x", "assay fit", &b);
    ck_ok(yaml_parse(str_cstr(&b), b.len, &tree, &err), err);
    json_t *tags = json_object_get(tree, "tags");
    ck_assert(fit_figures_read(tags, &found));
    const struct fit_figures own = fit_figures_of(&f, p.row_share);
    ck_assert_double_eq(fit_distance(&own, &found), 0);
    ck_assert_double_eq(found.categories, 0.25);
    for (size_t i = 0; i < json_array_size(tags); i++) {
        JSON_AUTO less = json_deep_copy(tags);
        ck_assert_int_eq(json_array_remove(less, i), 0);
        ck_assert(!fit_figures_read(less, &found));
    }
    JSON_AUTO bad = json_pack("[s, s, s, s, s]", FIT_TAG, "rows=-1", "columns=8", "classes=2",
                              "categories=nan");
    ck_assert(!fit_figures_read(bad, &found) && !fit_figures_read(NULL, &found));
}
END_TEST

START_TEST(distances)
{
    const struct fit_figures a = figures(1000, 10, 2, 0.5), larger = figures(4000, 10, 2, 0.5),
                             wider = figures(1000, 20, 2, 0.25),
                             several = figures(1000, 10, 3, 0.5), more = figures(1000, 10, 6, 0.5),
                             numbers = figures(1000, 10, 0, 0.5);
    ck_assert_double_eq_tol(fit_distance(&a, &larger), 1, 1e-12);
    ck_assert_double_eq_tol(fit_distance(&a, &wider), sqrt(2), 1e-12);
    ck_assert_double_eq_tol(fit_distance(&more, &several), 1, 1e-12);
    ck_assert(isinf(fit_distance(&a, &several)) && isinf(fit_distance(&a, &numbers)));
}
END_TEST

static json_t *sweep_new(const char *id, const char *dataset, int completed, const char *rows)
{
    return json_pack("{s:s, s:{s:i}, s:{s:{s:s}}, s:{s:[s,s,s,s,s], s:{s:{s:s}}}}", "id", id,
                     "counts", "completed", completed, "best", "params", "kind", id, "document",
                     "tags", FIT_TAG, rows, "columns=10", "classes=2", "categories=0.5", "trial",
                     "train", "dataset", dataset);
}

/* The nearest, one of each table, the newest of equals. */
START_TEST(similar_sweeps)
{
    const struct fit_figures own = figures(1000, 10, 2, 0.5);
    struct fit_similar found[2];
    JSON_AUTO layer = sweep_new("same-layer2", "same", 9, "rows=1000");
    json_t *trial = json_object_get(json_object_get(layer, "document"), "trial");
    ck_assert_int_eq(json_object_set_new(json_object_get(trial, "train"), "stack", json_array()),
                     0);
    JSON_AUTO list = json_pack(
        "[O, o, o, o, o, o, o, o]", layer, sweep_new("few", "few", 2, "rows=1000"),
        sweep_new("half", "half", 9, "rows=500"), sweep_new("same-wider", "same", 9, "rows=1001"),
        sweep_new("same", "same", 9, "rows=1000"), sweep_new("twice", "twice", 9, "rows=2000"),
        sweep_new("none", "none", 9, "colour=red"), sweep_new("far", "far", 9, "rows=100000"));
    ck_assert_uint_eq(fit_similar_find(&own, list, 2, found), 2);
    ck_assert_str_eq(found[0].sweep, "same-wider");
    ck_assert_str_eq(found[1].sweep, "half");
    ck_assert_str_eq(json_string_value(json_object_get(found[1].best, "kind")), "half");
    ck_assert_uint_eq(fit_similar_find(&own, NULL, 2, found), 0);
}
END_TEST

/* The configurations of other sweeps come first, as this plan can have them. */
START_TEST(configurations_of_other_sweeps)
{
    struct fit_plan p = plan_of(&small, &usual);
    AS_AUTO(str_done) struct str b = {0};
    JSON_AUTO tree = NULL;
    p.least_extra_weight = 7;
    JSON_AUTO trials = fit_first_trials(&p, &small);
    size_t n = json_array_size(trials);
    JSON_AUTO warm = json_pack(
        "[{s:s, s:f, s:i, s:f}, {s:s, s:f, s:b, s:s}, {s:s}, {s:s, s:f, s:i}, {s:s}]", "kind",
        "boosted_trees", "rate", 0.11, "leaves", 100000, "other", 3.0, "kind", "extra_trees",
        "leaf_weight", 1.0, "refit", 0, "per_split", "x", "kind", "no_such_kind", "kind",
        "boosted_trees", "rate", 0.11, "leaves", 200000, "kind", "logistic");
    fit_sweep_write(&p, &small, "x-fit", "x", "assay fit", &b);
    ck_ok(yaml_parse(str_cstr(&b), b.len, &tree, &err), err);
    const json_t *spaces = json_object_get(tree, "parameters");
    const struct fit_found found = {.warm = warm, .most = 3};
    AS_AUTO(str_done) struct str says = {0};
    ck_assert_int_eq(fit_first_trials_found(&p, spaces, &found, trials, &says), 0);
    ck_assert_uint_eq(says.len, 0);
    /* one kind is not there, two are equal, and two were the first of their kinds */
    ck_assert_uint_eq(json_array_size(trials), n + 1);
    check_trials(trials, spaces);
    const json_t *boosted = json_object_get(json_array_get(trials, 0), "params");
    ck_assert_double_eq(json_number_value(json_object_get(boosted, "rate")), 0.11);
    ck_assert_double_eq(json_number_value(json_object_get(boosted, "leaves")),
                        p.ranges[FIT_LEAVES].max);
    const json_t *extra = json_object_get(json_array_get(trials, 1), "params");
    ck_assert_str_eq(json_string_value(json_object_get(extra, "kind")), "extra_trees");
    ck_assert_double_eq(json_number_value(json_object_get(extra, "leaf_weight")), 7);
    p.max_trials = 2;
    fit_first_trials_limit(&p, trials);
    ck_assert_uint_eq(json_array_size(trials), 2);
}
END_TEST

/* ---- what was learned on public tables ---- */

static json_t *parameters_of(const struct fit_plan *p, const struct fit_facts *f)
{
    AS_AUTO(str_done) struct str b = {0};
    JSON_AUTO tree = NULL;
    fit_sweep_write(p, f, "x-fit", "x", "assay fit", &b);
    ck_ok(yaml_parse(str_cstr(&b), b.len, &tree, &err), err);
    return json_incref(json_object_get(tree, "parameters"));
}

/* Each of them is a configuration that a large table can have, whatever is predicted, and none is
 * there twice. */
START_TEST(shipped_configurations)
{
    const struct fit_wishes hours = {.time_ms = 36000000, .size_bytes = 5000000000, .cores = 8};
    for (size_t classes = 0; classes < 4; classes += 1 + (classes == 0)) {
        const struct fit_facts f = {.rows = 5000,
                                    .columns = 30,
                                    .inputs = 60,
                                    .targets = 1,
                                    .classes = classes,
                                    .rarest = 400};
        struct fit_plan p = plan_of(&f, &hours);
        JSON_AUTO spaces = parameters_of(&p, &f);
        JSON_AUTO trials = fit_first_trials(&p, &f);
        JSON_AUTO all = fit_defaults();
        AS_AUTO(str_done) struct str says = {0};
        const struct fit_found found = {.defaults = all, .most = 100};
        ck_assert_int_eq(fit_first_trials_found(&p, spaces, &found, trials, &says), 0);
        const char *at = str_cstr(&says);
        for (size_t i = 0; i < fit_n_learned; i++) {
            size_t n = strcspn(at, "\n");
            ck_assert_msg(n == strlen(fit_learned[i]) && memcmp(at, fit_learned[i], n) == 0,
                          "%s: found %.*s", fit_learned[i], (int)n, at);
            at += n + 1;
        }
        ck_assert_uint_ge(json_array_size(trials), fit_n_learned);
        check_trials(trials, spaces);
    }
    ck_assert_uint_gt(fit_n_learned, 0);
}
END_TEST

/* What the server itself has found comes first, defaults fill up; the space, the kinds and the
 * limit of a forest's size exclude some. */
START_TEST(defaults_fill_up)
{
    struct fit_plan p = plan_of(&small, &usual);
    p.least_extra_weight = 7;
    JSON_AUTO spaces = parameters_of(&p, &small);
    JSON_AUTO warm = json_pack("[{s:s, s:f}]", "kind", "boosted_trees", "rate", 0.11);
    JSON_AUTO defaults = json_array();
    const struct {
        const char *kind, *name;
        double value;
    } tried[] = {{"boosted_trees", "rate", 0.11},
                 {"boosted_trees", "leaves", 100000},
                 {"extra_trees", "leaf_weight", 1.0},
                 {"extra_trees", "leaf_weight", 8.0},
                 {"no_such_kind", "rate", 0.1},
                 {"boosted_trees", "other", 1},
                 {"mlp", "lr", 0.01},
                 {"mlp", "lr", 0.02}};
    for (size_t i = 0; i < AS_ARRAY_LEN(tried); i++)
        ck_assert_int_eq(
            json_array_append_new(defaults, json_pack("{s:s, s:f}", "kind", tried[i].kind,
                                                      tried[i].name, tried[i].value)),
            0);
    const struct fit_found found = {.warm = warm, .defaults = defaults, .most = 3},
                           full = {.warm = warm, .defaults = defaults, .most = 1};
    AS_AUTO(str_done) struct str says = {0};
    JSON_AUTO trials = fit_first_trials(&p, &small);
    JSON_AUTO others = json_deep_copy(trials);
    size_t n = json_array_size(trials);
    ck_assert_int_eq(fit_first_trials_found(&p, spaces, &found, trials, &says), 0);
    check_trials(trials, spaces);
    ck_assert_str_eq(says.s, "kind=extra_trees leaf_weight=8\nkind=mlp lr=0.01\n");
    ck_assert_uint_eq(json_array_size(trials), n + 3);
    const json_t *own = json_object_get(json_array_get(trials, 0), "params");
    ck_assert_double_eq(json_number_value(json_object_get(own, "rate")), 0.11);
    str_clear(&says);
    ck_assert_int_eq(fit_first_trials_found(&p, spaces, &full, others, &says), 0);
    ck_assert_uint_eq(json_array_size(others), n + 1);
    ck_assert_uint_eq(says.len, 0);
}
END_TEST

/* ---- ranges ---- */

START_TEST(ranges_widen_where_the_best_trial_stands_at_an_end)
{
    struct fit_facts f = small;
    struct fit_wishes w = usual;
    f.rows = 5000;
    w.size_bytes *= 20;
    struct fit_plan p = plan_of(&f, &w), before = p;
    AS_AUTO(str_done) struct str says = {0};
    JSON_AUTO inside = json_pack("{s:s, s:f, s:i, s:f}", "kind", "boosted_trees", "rate", 0.08,
                                 "leaves", 20, "rows", 0.8);
    ck_assert_uint_eq(fit_ranges_widen(p.ranges, inside, &says), 0);
    ck_assert_mem_eq(p.ranges, before.ranges, sizeof p.ranges);
    ck_assert_uint_eq(says.len, 0);
    double most = p.ranges[FIT_LEAVES].max;
    JSON_AUTO at_ends = json_pack("{s:f, s:f, s:f, s:f}", "rate", p.ranges[FIT_RATE].min * 1.02,
                                  "leaves", most - 1, "rows", 1.0, "leaf_weight", 1.0);
    ck_assert_uint_eq(fit_ranges_widen(p.ranges, at_ends, &says),
                      3); /* of the rows all are taken */
    ck_assert_double_lt(p.ranges[FIT_RATE].min, before.ranges[FIT_RATE].min);
    ck_assert_double_eq(p.ranges[FIT_RATE].max, before.ranges[FIT_RATE].max);
    ck_assert_double_eq(p.ranges[FIT_LEAVES].max, 4 * most);
    ck_assert_double_eq(p.ranges[FIT_LEAF_WEIGHT].min, 0.2);
    ck_assert_double_eq(p.ranges[FIT_ROWS].max, 1);
    ck_assert_ptr_nonnull(strstr(str_cstr(&says),
                                 "leaves 127, at the end of the range 4 to 128: now "
                                 "it is searched up to 512\n"));
    AS_AUTO(str_done) struct str second = {0};
    p.priors[p.n_priors++] =
        "x-fit"; /* the second sweep: these ranges, and the results of the first */
    check_document(&p, &f);
    fit_sweep_write(&p, &f, "x-fit-wider", "x", "assay fit", &second);
    ck_assert_ptr_nonnull(strstr(str_cstr(&second), "seed: 1, prior: [x-fit]}"));
    ck_assert_ptr_nonnull(strstr(str_cstr(&second), "leaves: {type: int, min: 4, max: 512, "));
    for (int i = 0; i < 20; i++) { /* not beyond what the size and the rows allow */
        JSON_AUTO end = json_pack("{s:f}", "leaves", p.ranges[FIT_LEAVES].max);
        (void)fit_ranges_widen(p.ranges, end, &says);
    }
    ck_assert_double_eq(p.ranges[FIT_LEAVES].max, p.ranges[FIT_LEAVES].most);
}
END_TEST

/* ---- columns ---- */

START_TEST(columns)
{
    struct look_column all[] = {
        {.name = (char *)"id", .kind = LOOK_NUMBER, .identifier = true, .n_values = 300},
        {.name = (char *)"age", .kind = LOOK_CATEGORY, .stray = true, .n_values = 62},
        {.name = (char *)"town", .kind = LOOK_CATEGORY, .n_values = 2000},
        {.name = (char *)"day", .kind = LOOK_DATE, .n_values = 200},
        {.name = (char *)"a,b", .kind = LOOK_EMPTY},
        {.name = (char *)"who", .kind = LOOK_CATEGORY, .n_values = 40},
        {.name = (char *)"none", .kind = LOOK_EMPTY},
        {.name = (char *)"inf", .kind = LOOK_NUMBER, .bad = (char *)"line 3: found 'inf'"},
        {.name = (char *)"path", .kind = LOOK_CATEGORY, .too_long = true, .n_values = 7},
        {.name = (char *)"pay", .kind = LOOK_CATEGORY, .written = true, .n_values = 5000},
    };
    const struct table_look look = {.n_rows = 300,
                                    .n_columns = AS_ARRAY_LEN(all),
                                    .columns = all,
                                    .target = (char *)"y",
                                    .n_targets = 1,
                                    .n_classes = 2,
                                    .rarest = 9};
    AS_AUTO(fit_columns_done) struct fit_columns c = {0}, none = {0};
    ck_ok(fit_columns_choose(&look, "who", &c, &err), err);
    ck_assert_str_eq(str_cstr(&c.drop), "id,a\\,b,none");
    ck_assert_str_eq(str_cstr(&c.numeric), "age,inf,pay");
    ck_assert_str_eq(str_cstr(&c.text), "town,path");
    struct fit_facts f = fit_facts_of(&look, "who");
    ck_assert_uint_eq(f.columns, 6);
    ck_assert_uint_eq(f.inputs, 1 + 256 + 5 + 1 + 256 + 1);
    ck_assert_int_eq(fit_columns_choose(&look, "when", &none, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "--groups: there is no column 'when'"));
    all[5].constant = true;
    ck_assert_int_eq(fit_columns_choose(&look, "who", &none, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "--groups: column 'who' has one value in all rows"));
    ck_assert_int_eq(fit_columns_choose(&look, "WHO", &none, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "there is no column 'WHO'; did you mean 'who'?"));
    ck_assert_int_eq(fit_columns_choose(&look, "y", &none, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "--groups: found the target, 'y'"));
    const struct table_look empty = {.n_columns = 1, .columns = &all[6], .target = (char *)"y"};
    AS_AUTO(fit_columns_done) struct fit_columns nothing = {0};
    ck_assert_int_eq(fit_columns_choose(&empty, NULL, &nothing, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "no column says anything about 'y'"));
}
END_TEST

START_TEST(a_target_with_one_value)
{
    struct table_look look = {.target = (char *)"y", .one_value = true, .rounding = {.mean = 3.25}};
    ck_assert_int_eq(fit_facts_check(&look, &err), AS_E_INVAL);
    ck_assert_str_eq(err.msg,
                     "column 'y': the value is 3.25 in all rows, so there is nothing to predict");
    look.rounding = (struct look_rounding){.m2 = 2, .least = 1e9F};
    ck_assert_int_eq(fit_facts_check(&look, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "as float32 the values are 1000000000 in all rows"));
}
END_TEST

START_TEST(a_class_with_one_row)
{
    struct table_look look = {.target = (char *)"y", .rarest_name = (char *)"q", .rarest = 1};
    ck_ok(fit_facts_check(&look, &err), err); /* numbers */
    look.n_classes = 3;
    ck_ok(fit_facts_check(&look, &err), err);
    look.n_classes = 2;
    ck_assert_int_eq(fit_facts_check(&look, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "column 'y': the class 'q' has one row, expected 2"));
    look.n_classes = look.n_single = look.n_rows = 40;
    ck_assert_int_eq(fit_facts_check(&look, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(
        strstr(err.msg, "column 'y': each of the 40 rows has a class of its own ('q', …)"));
    look.n_rows = 41;
    ck_ok(fit_facts_check(&look, &err), err);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("fit_plan");
    TCase *t = tcase_create("fit_plan");
    tcase_add_test(t, any_figures);
    tcase_add_test(t, a_target_with_one_value);
    tcase_add_test(t, metrics);
    tcase_add_test(t, folds_by_rows_and_time);
    tcase_add_test(t, folds_that_are_asked_for);
    tcase_add_test(t, layers_take_folds);
    tcase_add_test(t, rare_classes_and_sizes);
    tcase_add_test(t, forests_in_time);
    tcase_add_test(t, skewed_targets);
    tcase_add_test(t, wide_tables);
    tcase_add_test(t, naive_bayes);
    tcase_add_test(t, patience_by_rows);
    tcase_add_test(t, figures_are_tags);
    tcase_add_test(t, distances);
    tcase_add_test(t, similar_sweeps);
    tcase_add_test(t, shipped_configurations);
    tcase_add_test(t, defaults_fill_up);
    tcase_add_test(t, configurations_of_other_sweeps);
    tcase_add_test(t, forests_within_the_size);
    tcase_add_test(t, ranges_widen_where_the_best_trial_stands_at_an_end);
    tcase_add_test(t, columns);
    tcase_add_test(t, a_class_with_one_row);
    suite_add_tcase(s, t);
    return s;
}
