/* The sweep document: what is accepted, the canonical form, and what is refused with which pointer.
 *
 * Most tests edit one field of a valid document ("train" or "command") and compare the status, the
 * pointer and the message. So a table row is one rule of the document. The blocks of YAML in the
 * documentation are parsed here too, so that the documentation cannot show a document that the
 * service refuses. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/yaml_reader.h"
#include "scheduler/sweep/sweep_doc.h"
#include "search/suggest.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"

static const char *const train_yaml =
    "name: digits-mlp\n"
    "metric: {name: val_error, goal: minimize}\n"
    "parameters:\n"
    "  lr: {type: float, min: 1e-4, max: 0.3, scale: log}\n"
    "  width: {type: int, min: 16, max: 128, scale: log}\n"
    "  opt: {type: categorical, values: [sgd, adamw]}\n"
    "  momentum: {type: float, min: 0.0, max: 0.98, when: {opt: sgd}}\n"
    "limits: {max_trials: 40, max_concurrent_trials: 8, trial_timeout: 5m, wall_time: 1.5}\n"
    "trial:\n"
    "  train:\n"
    "    dataset: digits\n"
    "    model: {kind: mlp, layers: ['${width}', 32]}\n"
    "    optimizer: {kind: '${opt}', lr: '${lr}', momentum: '${momentum}'}\n"
    "    epochs: 20\n";

/* A batch has 4,096 shards. */
static const char *const shards_yaml =
    "name: any\n"
    "metric: {name: val_error, goal: minimize}\n"
    "parameters: {lr: {type: float, min: 0.001, max: 0.1}}\n"
    "limits: {max_trials: 3}\n"
    "trial: {train: {dataset: digits, epochs: 2, batch_size: 8192, micro_batch: 2, "
    "optimizer: {kind: sgd, lr: '${lr}'}}}\n";

static const char *const command_yaml =
    "name: any\n"
    "description: a program\n"
    "tags: [a, b]\n"
    "metric: {name: score, goal: maximize}\n"
    "parameters:\n"
    "  x: {type: int, min: 1, max: 3}\n"
    "  y: {type: bool}\n"
    "  z: {type: float, min: 0, max: 1, step: 0.5, when: {y: true}}\n"
    "search: {method: grid, seed: 9}\n"
    "trial: {command: [python3, train.py, '--x=${x}', '${y}', 3, 0.5, '$${HOME} ${z:-none}'], "
    "env: {N: '${x}', M: 4}, directory: /tmp}\n"
    "resources: {gpus: 2, ranks: 1}\n"
    "ensemble: false\n";

static const char *const program_yaml = "name: program\n"
                                        "metric: {name: score, goal: maximize}\n"
                                        "parameters: {x: {type: int, min: 1, max: 3}}\n"
                                        "limits: {max_trials: 5}\n";

static const char *const objectives_yaml =
    "name: pair\n"
    "metrics: [{name: error, goal: minimize}, {name: speed, goal: maximize}]\n"
    "constraints: [{metric: ms, max: 20}, {metric: acc, min: 0.9}]\n"
    "parameters:\n"
    "  batch: {type: int, min: 1, max: 1024, scale: log}\n"
    "  accumulate: {type: int, min: 1, max: 64}\n"
    "  size: {type: ordinal, values: [s, m, l]}\n"
    "parameter_constraints: ['batch * accumulate <= 4096']\n"
    "forbidden: [{size: l, batch: {min: 512}}]\n"
    "search: {seed: 3, initial_trials: 12}\n"
    "limits: {max_trials: 50}\n";

static as_status parse_text(const char *yaml, struct sweep_doc **ret, struct as_err *err)
{
    JSON_AUTO j = NULL;
    as_status st = yaml_parse(yaml, strlen(yaml), &j, err);
    return st < 0 ? st : sweep_doc_parse(j, 12345, ret, err);
}

START_TEST(reads_a_train_document)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    struct as_err err = {0};
    ck_ok(parse_text(train_yaml, &d, &err), err);
    ck_assert_str_eq(d->name, "digits-mlp");
    ck_assert_str_eq(d->metric, "val_error");
    ck_assert(!d->maximize && as_streq(d->method->name, "gp") && d->seed == 12345);
    ck_assert_int_eq(d->limits.max_trials, 40);
    ck_assert_int_eq(d->limits.max_concurrent_trials, 8);
    ck_assert_int_eq(d->limits.max_failed_trials, -1);
    ck_assert_int_eq(d->limits.max_restarts, 3);
    ck_assert_int_eq(d->limits.trial_timeout_ms, 300000);
    ck_assert_int_eq(d->limits.wall_time_ms, 1500);
    ck_assert_int_eq(d->limits.grace_ms, 30000);
    ck_assert_uint_eq(d->ensemble.size, 16);
    ck_assert_uint_eq(d->n_datasets, 1);
    ck_assert_str_eq(d->datasets[0], "digits");
    ck_assert_uint_eq(d->n_listed, 0);
}
END_TEST

START_TEST(reads_a_command_document)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    struct as_err err = {0};
    ck_ok(parse_text(command_yaml, &d, &err), err);
    ck_assert(d->maximize && d->seed == 9 && d->gpus == 2 && d->ensemble.size == 0);
    ck_assert_uint_eq(d->n_listed, 3 * (1 + 3));
    ck_assert_int_eq(d->limits.max_trials, 12); /* the number of cells of the grid */
    ck_assert_uint_eq(d->n_datasets, 0);
    ck_assert_uint_eq(json_array_size(d->tags), 2);
    AS_AUTO(config_freep) struct config *c = NULL;
    struct search_spec spec;
    sweep_doc_search_spec(d, &spec);
    ck_ok(search_sample(&spec, &c, &err), err);
    JSON_AUTO trial = NULL;
    ck_ok(sweep_doc_trial(d, c, &trial, &err), err);
    AS_AUTO(as_freep) char *text = json_format(trial);
    ck_assert_str_eq(text,
                     "{\"command\":[\"python3\",\"train.py\",\"--x=1\",\"false\",\"3\",\"0.5\","
                     "\"${HOME} none\"],\"directory\":\"/tmp\",\"env\":{\"M\":\"4\",\"N\":\"1\"}}");
}
END_TEST

/* Lists, switches, all arguments, and files; the canonical document is read as the same one. */
START_TEST(reads_flags_and_files)
{
    static const char *const yaml =
        "name: flags\n"
        "metric: {name: score, goal: maximize}\n"
        "parameters:\n"
        "  x: {type: int, min: 1, max: 3}\n"
        "  y: {type: bool}\n"
        "  z: {type: float, min: 0, max: 1, step: 0.5, when: {y: true}}\n"
        "search: {method: grid, seed: 9}\n"
        "trial: {command: [run, [--z, '${z}'], '${y?--y}', '${args:hydra}', '${file:c/d.yaml}'], "
        "files: {c/d.yaml: \"x: ${x}\\nz: ${z:-0}\\n\"}}\n";
    AS_AUTO(sweep_doc_freep) struct sweep_doc *first = NULL;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    AS_AUTO(config_freep) struct config *c = NULL;
    JSON_AUTO trial = NULL;
    struct as_err err = {0};
    struct search_spec spec;
    ck_ok(parse_text(yaml, &first, &err), err);
    AS_AUTO(as_freep) char *canonical = sweep_doc_format(first);
    ck_ok(parse_text(canonical, &d, &err), err);
    sweep_doc_search_spec(d, &spec);
    ck_ok(search_sample(&spec, &c, &err), err);
    ck_ok(sweep_doc_trial(d, c, &trial, &err), err);
    AS_AUTO(as_freep) char *text = json_format(trial);
    ck_assert_str_eq(text, "{\"command\":[\"run\",\"x=1\",\"y=false\",\"${file:c/d.yaml}\"],"
                           "\"env\":{},\"files\":{\"c/d.yaml\":\"x: 1\\nz: 0\\n\"}}");
}
END_TEST

/* ranks: 1 in a document that is sent, with micro-batches, is a gang of one: its bits are those of
 * more ranks. Documents without it, and canonical ones of before, train as always. */
START_TEST(one_rank_that_was_asked_for)
{
    static const struct {
        const char *fields, *resources;
        bool is_gang;
    } cases[] = {
        {"batch_size: 64, micro_batch: 8", "resources: {ranks: 1}\n", true},
        {"batch_size: 64, micro_batch: 8", "resources: {ranks: 1, min_ranks: 1}\n", true},
        {"batch_size: 64, micro_batch: 8", "resources: {gpus: 0}\n", false},
        {"batch_size: 64, micro_batch: 8", "", false},
        {"batch_size: 64, micro_batch: 8", "resources: {ranks: 1, group: 4}\n", false},
        {"batch_size: 64", "resources: {ranks: 1}\n", false},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char text[600];
        struct as_err err = {0};
        AS_AUTO(faults_done) struct faults faults = {0};
        AS_AUTO(sweep_doc_freep) struct sweep_doc *sent = NULL;
        AS_AUTO(sweep_doc_freep) struct sweep_doc *stored = NULL;
        JSON_AUTO doc = NULL;
        snprintf(text, sizeof text,
                 "name: any\nmetric: {name: val_error, goal: minimize}\n"
                 "parameters: {lr: {type: float, min: 0.001, max: 0.1}}\nlimits: {max_trials: 3}\n"
                 "trial: {train: {dataset: digits, epochs: 2, %s, optimizer: {kind: sgd, lr: "
                 "'${lr}'}}}\n%s",
                 cases[i].fields, cases[i].resources);
        ck_ok(yaml_parse(text, strlen(text), &doc, &err), err);
        ck_ok(sweep_doc_parse_noting(doc, 0, &faults, &sent, &err), err);
        ck_assert_msg(sent->is_gang == cases[i].is_gang, "%s", text);
        AS_AUTO(as_freep) char *canonical = sweep_doc_format(sent);
        ck_ok(parse_text(canonical, &stored, &err), err);
        ck_assert_msg(stored->is_gang == cases[i].is_gang, "%s", canonical);
        AS_AUTO(as_freep) char *again = sweep_doc_format(stored);
        ck_assert_str_eq(again, canonical);
    }
}
END_TEST

/* The number of trials that may share a process, and its place in the canonical document. */
START_TEST(groups_have_defaults)
{
    static const struct {
        const char *yaml, *extra;
        int64_t group;
    } cases[] = {{train_yaml, "", 0},
                 {train_yaml, "search: {method: random}\n", 0},
                 {train_yaml, "search: {method: sobol}\nresources: {gpus: 1}\n", 0},
                 {train_yaml, "resources: {group: 64}\n", 64},
                 {train_yaml, "resources: {group: 1}\n", 1},
                 {command_yaml, "", 0}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char text[2000];
        struct as_err err = {0};
        AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
        snprintf(text, sizeof text, "%s%s", cases[i].yaml, cases[i].extra);
        ck_ok(parse_text(text, &d, &err), err);
        ck_assert_int_eq(d->group, cases[i].group);
        const json_t *kept = json_object_get(json_object_get(d->canonical, "resources"), "group");
        ck_assert_int_eq(json_integer_value(kept), d->group);
        ck_assert_int_eq(kept != NULL, d->group > 0);
    }
}
END_TEST

/* Ranks, with what follows from them: an elastic gang may shrink to one, a command's may not. */
START_TEST(ranks_have_defaults)
{
    static const struct {
        const char *yaml, *extra;
        int64_t ranks, min_ranks;
        const char *resources, *launch; /* in the canonical document */
    } cases[] = {
        {train_yaml, "", 1, 1, "{\"gpus\":0,\"ranks\":1}", NULL},
        {shards_yaml, "resources: {ranks: 4}\n", 4, 1, "{\"gpus\":0,\"min_ranks\":1,\"ranks\":4}",
         NULL},
        {shards_yaml, "resources: {ranks: 4096, min_ranks: 3, gpus: 1}\n", 4096, 3,
         "{\"gpus\":1,\"min_ranks\":3,\"ranks\":4096}", NULL},
        {program_yaml, "trial: {command: [a]}\nresources: {ranks: 3}\n", 3, 3,
         "{\"gpus\":0,\"min_ranks\":3,\"ranks\":3}", "all"},
        {program_yaml,
         "trial: {command: [a], launch: first}\nresources: {ranks: 2, min_ranks: 2}\n", 2, 2,
         "{\"gpus\":0,\"min_ranks\":2,\"ranks\":2}", "first"},
        {program_yaml, "trial: {command: [a], launch: first}\n", 1, 1, "{\"gpus\":0,\"ranks\":1}",
         "first"},
        {program_yaml, "trial: {command: [a]}\n", 1, 1, "{\"gpus\":0,\"ranks\":1}", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char text[2000];
        AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL, *again = NULL;
        struct as_err err = {0};
        snprintf(text, sizeof text, "%s%s", cases[i].yaml, cases[i].extra);
        ck_ok(parse_text(text, &d, &err), err);
        ck_assert_int_eq(d->ranks, cases[i].ranks);
        ck_assert_int_eq(d->min_ranks, cases[i].min_ranks);
        AS_AUTO(as_freep) char *kept = json_format(json_object_get(d->canonical, "resources"));
        ck_assert_str_eq(kept, cases[i].resources);
        const json_t *trial = json_object_get(d->canonical, "trial");
        ck_assert_pstr_eq(json_string_value(json_object_get(trial, "launch")), cases[i].launch);
        ck_ok(sweep_doc_parse(d->canonical, 0, &again, &err), err);
        ck_assert(json_equal(again->canonical, d->canonical));
    }
}
END_TEST

/* One source in each object of the canonical list, whose document is read as the same one. */
START_TEST(reads_sources_of_measurements)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *again = NULL;
    AS_AUTO(config_freep) struct config *c = NULL;
    AS_AUTO(str_done) struct str text = {0};
    struct search_spec spec;
    struct as_err err = {0};
    JSON_AUTO trial = NULL;
    str_printf(&text,
               "%strial: {command: [a], report: [{stdout: 'l=(?P<l>\\d)', csv: './/o/m${x}.csv', "
               "step: epoch, tensorboard: runs/, tags: {a/b: l}}, {tensorboard: ./}]}\n",
               program_yaml);
    ck_ok(parse_text(text.s, &d, &err), err);
    AS_AUTO(as_freep)
    char *kept = json_format(json_object_get(json_object_get(d->canonical, "trial"), "report"));
    ck_assert_str_eq(kept, "[{\"stdout\":[\"l=(?P<l>\\\\d)\"]},{\"csv\":\"o/m${x}.csv\",\"step\":"
                           "\"epoch\"},{\"tags\":{\"a/b\":\"l\"},\"tensorboard\":\"runs\"},{"
                           "\"tensorboard\":\".\"}]");
    ck_ok(sweep_doc_parse(d->canonical, 0, &again, &err), err);
    ck_assert(json_equal(again->canonical, d->canonical));
    sweep_doc_search_spec(d, &spec);
    ck_ok(search_sample(&spec, &c, &err), err);
    ck_ok(sweep_doc_trial(d, c, &trial, &err), err);
    const json_t *csv = json_array_get(json_object_get(trial, "report"), 1);
    const char *path = json_string_value(json_object_get(csv, "csv"));
    ck_assert(as_starts_with(path, "o/m") && as_ends_with(path, ".csv") && !strchr(path, '$'));
}
END_TEST

START_TEST(makes_trials_of_a_train_document)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    struct as_err err = {0};
    ck_ok(parse_text(train_yaml, &d, &err), err);
    const char *params = "{\"lr\": 0.01, \"width\": 20, \"opt\": \"adamw\"}";
    JSON_AUTO j = NULL;
    AS_AUTO(config_freep) struct config *c = NULL;
    ck_ok(json_parse(params, strlen(params), &j, &err), err);
    ck_ok(config_from_json(d->space, j, "/params", &c, &err), err);
    JSON_AUTO trial = NULL;
    ck_ok(sweep_doc_trial(d, c, &trial, &err), err);
    AS_AUTO(as_freep) char *text = json_format(trial);
    ck_assert_str_eq(text, "{\"train\":{\"dataset\":\"digits\",\"epochs\":20,\"model\":{\"kind\":"
                           "\"mlp\",\"layers\":[20,32]},\"optimizer\":{\"kind\":\"adamw\",\"lr\":"
                           "0.01}}}");
}
END_TEST

START_TEST(canonical_text_parses_to_the_same)
{
    const char *const yaml = _i == 0 ? train_yaml : _i == 1 ? command_yaml : objectives_yaml;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *a = NULL;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *b = NULL;
    struct as_err err = {0};
    ck_ok(parse_text(yaml, &a, &err), err);
    AS_AUTO(as_freep) char *x = sweep_doc_format(a);
    JSON_AUTO j = NULL;
    ck_ok(json_parse(x, strlen(x), &j, &err), err);
    ck_ok(sweep_doc_parse(j, 0, &b, &err), err);
    AS_AUTO(as_freep) char *y = sweep_doc_format(b);
    ck_assert_str_eq(x, y);
    for (size_t i = 0; i < a->space->n; i++)
        ck_assert_str_eq(a->space->params[i].name, b->space->params[i].name);
    ck_assert_uint_eq(a->seed, b->seed);
}
END_TEST

/* A document with one edit: the path of a field and its new value (NULL: the field is removed). */
static const struct edit {
    const char *base; /* "train", "shards" or "command" */
    const char *path; /* fields by "/"; "-" alone replaces the whole document */
    const char *value;
    as_status want;
    const char *pointer, *part;
} edits[] = {
    {"train", "-", "[]", AS_E_INVAL, "", "expected an object"},
    {"train", "naem", "x", AS_E_INVAL, "/naem", "did you mean 'name'"},
    {"train", "name", NULL, AS_E_INVAL, "/name", "missing"},
    {"train", "name", "'Big Name'", AS_E_INVAL, "/name", "found 'Big Name'"},
    {"train", "name", "3", AS_E_INVAL, "/name", "a string"},
    {"train", "tags", "[1]", AS_E_INVAL, "/tags/0", "a string of 1 to"},
    {"train", "metric", NULL, AS_E_INVAL, "/metric", "missing"},
    {"train", "metric", "val_error", AS_E_INVAL, "/metric", "an object"},
    {"train", "metric/goal", NULL, AS_E_INVAL, "/metric/goal", "missing"},
    {"train", "metric/goal", "down", AS_E_INVAL, "/metric/goal", "one of minimize, maximize"},
    {"train", "metric/name", "val err", AS_E_INVAL, "/metric/name", "found 'val err'"},
    {"command", "metric/name", "step", AS_E_INVAL, "/metric/name", "numbers the measurements"},
    {"train", "metric/name", "accuracy", AS_E_INVAL, "/metric/name", "never reports 'accuracy'"},
    {"train", "metric/name", "test_error", AS_E_INVAL, "/metric/name", "no search sees them"},
    {"train", "metric/max", "3", AS_E_INVAL, "/metric/max", "not a known field"},
    {"train", "metrics", "[]", AS_E_INVAL, "/metrics", "either metric or metrics"},
    {"train", "constraints", "{}", AS_E_INVAL, "/constraints", "a list"},
    {"train", "constraints", "[a <= 3]", AS_E_INVAL, "/constraints/0", "parameter_constraints"},
    {"train", "constraints", "[{metric: val_loss}]", AS_E_INVAL, "/constraints/0", "min, max"},
    {"train", "constraints", "[{max: 3}]", AS_E_INVAL, "/constraints/0/metric", "missing"},
    {"train", "constraints", "[{metric: val_loss, min: 2, max: 1}]", AS_E_INVAL, "/constraints/0",
     "above max"},
    {"train", "constraints", "[{metric: ms, max: 1}]", AS_E_INVAL, "/constraints/0/metric",
     "never reports 'ms'"},
    {"train", "constraints", "[{metric: val_loss, max: 1}, {metric: val_loss, min: 0}]", AS_E_INVAL,
     "/constraints/1", "appears twice"},
    {"command", "constraints", "[{metric: step, max: 1}]", AS_E_INVAL, "/constraints/0/metric",
     "numbers the measurements"},
    {"command", "constraints", "[1, 2, 3, 4, 5, 6, 7, 8, 9]", AS_E_TOO_LARGE, "/constraints",
     "at most 8"},
    {"train", "parameter_constraints", "a < b", AS_E_INVAL, "/parameter_constraints", "a list"},
    {"train", "parameter_constraints", "['lr < 1', 'widht * lr < 3']", AS_E_INVAL,
     "/parameter_constraints/1", "column 1: unknown name 'widht'; did you mean 'width'?"},
    {"train", "parameter_constraints", "['lr < 0']", AS_E_INVAL, "/parameter_constraints/0",
     "no configuration that is allowed was found"},
    {"command", "parameter_constraints", "['x > 3']", AS_E_INVAL, "/parameter_constraints/0",
     "no cell of the grid is allowed"},
    {"train", "forbidden", "[{opt: adam}]", AS_E_INVAL, "/forbidden/0/opt", "never takes"},
    {"train", "forbidden", "[{lr: {min: 0}}]", AS_E_INVAL, "/forbidden/0",
     "no configuration that is allowed was found"},
    {"train", "search", "{initial_trials: 0}", AS_E_INVAL, "/search/initial_trials", "from 1"},
    {"train", "outcome_constraints", "[]", AS_E_INVAL, "/outcome_constraints", "not a known field"},
    {"train", "early_stopping", "{method: asha}", AS_E_UNSUPPORTED, "/early_stopping",
     "not in this version"},
    {"train", "parameters", NULL, AS_E_INVAL, "/parameters", "missing"},
    {"train", "parameters/lr/min", "7", AS_E_INVAL, "/parameters/lr/min", "above max"},
    {"train", "parameters/momentum/when", "{o: sgd}", AS_E_INVAL, "/parameters/momentum/when/o",
     "no parameter 'o'"},
    {"train", "search", "{method: anneal}", AS_E_INVAL, "/search/method", "one of grid"},
    {"train", "search", "{seed: -1}", AS_E_INVAL, "/search/seed", "a whole number from 0"},
    {"train", "search", "{seed: 9007199254740992}", AS_E_INVAL, "/search/seed",
     "to 9007199254740991"},
    {"train", "parameters/lr/prior", "{mean: 9, deviation: 1}", AS_E_INVAL,
     "/parameters/lr/prior/mean", "expected a number from"},
    {"command", "parameters/x/prior", "{mean: 1, deviation: 1}", AS_E_INVAL, "/parameters/x/prior",
     "the method grid tries every cell"},
    {"train", "search", "{method: grid}", AS_E_INVAL, "/parameters/lr", "'step' or 'points'"},
    {"command", "parameters/x/max", "1000001", AS_E_TOO_LARGE, "/parameters", "4000004 cells"},
    {"train", "limits", NULL, AS_E_INVAL, "/limits/max_trials", "missing"},
    {"train", "limits/max_trials", "0", AS_E_INVAL, "/limits/max_trials", "from 1 to 1000000"},
    {"train", "limits/max_trials", "1000001", AS_E_INVAL, "/limits/max_trials", "to 1000000"},
    {"train", "limits/max_trials", "many", AS_E_INVAL, "/limits/max_trials", "found \"many\""},
    {"train", "limits/max_concurrent_trials", "0", AS_E_INVAL, "/limits/max_concurrent_trials",
     "1"},
    {"train", "limits/max_restarts", "-1", AS_E_INVAL, "/limits/max_restarts", "from 0"},
    {"train", "limits/target", "high", AS_E_INVAL, "/limits/target", "found \"high\""},
    {"train", "limits/on_timeout", "wait", AS_E_INVAL, "/limits/on_timeout", "fail, keep"},
    {"train", "limits", "{max_trials: 3, on_timeout: keep}", AS_E_INVAL, "/limits/on_timeout",
     "keep without trial_timeout"},
    {"train", "limits/trial_timeout", "soon", AS_E_INVAL, "/limits/trial_timeout", "a duration"},
    {"train", "limits/max_trails", "3", AS_E_INVAL, "/limits/max_trails", "did you mean"},
    {"train", "resources", "{ranks: 0}", AS_E_INVAL, "/resources/ranks", "from 1"},
    {"train", "resources", "{ranks: 4097}", AS_E_INVAL, "/resources/ranks", "to 4096"},
    {"train", "resources", "{ranks: 2}", AS_E_INVAL, "/resources/ranks", "shards of a batch"},
    {"train", "-",
     "{name: any, metric: {name: val_error, goal: minimize}, parameters: {k: {type: categorical, "
     "values: [mlp, boosted_trees]}}, limits: {max_trials: 3}, trial: {train: {dataset: d, epochs: "
     "1, batch_size: 8, micro_batch: 4, model: {kind: '${k}'}}}, resources: {ranks: 2}}",
     AS_E_INVAL, "/trial/train/model/kind",
     "found boosted_trees, which trains in one process; expected a kind of network, or no "
     "resources.ranks"},
    {"shards", "resources", "{ranks: 2, min_ranks: 3}", AS_E_INVAL, "/resources/min_ranks",
     "at most resources.ranks"},
    {"train", "resources", "{min_ranks: 2}", AS_E_INVAL, "/resources/min_ranks",
     "at most resources.ranks"},
    {"command", "resources", "{ranks: 4, min_ranks: 2}", AS_E_INVAL, "/resources/min_ranks",
     "cannot change"},
    {"shards", "resources", "{ranks: 2, group: 2}", AS_E_INVAL, "/resources/group",
     "shares no process"},
    {"train", "trial", "{train: {dataset: d, model: {kind: linear}, epochs: 1}, launch: all}",
     AS_E_INVAL, "/trial/launch", "of trial.command"},
    {"command", "trial", "{command: [a], launch: some}", AS_E_INVAL, "/trial/launch", "all, first"},
    {"train", "resources", "{group: 0}", AS_E_INVAL, "/resources/group", "from 1"},
    {"train", "resources", "{group: 65}", AS_E_INVAL, "/resources/group", "to 64"},
    {"command", "resources", "{group: 2}", AS_E_INVAL, "/resources/group", "only trials of"},
    {"train", "resources", "{gpus: -1}", AS_E_INVAL, "/resources/gpus", "from 0"},
    {"train", "resources", "{gpu: 1}", AS_E_INVAL, "/resources/gpu", "did you mean 'gpus'"},
    {"train", "resources", "{cpus: 0}", AS_E_INVAL, "/resources/cpus", "from 1"},
    {"command", "resources", "{cpus: 1.5}", AS_E_INVAL, "/resources/cpus", "from 1 to 4096"},
    {"command", "resources", "{memory: 4 gigabytes}", AS_E_INVAL, "/resources/memory", "4GiB"},
    {"command", "resources", "{memory: 0}", AS_E_INVAL, "/resources/memory", "above 0"},
    {"command", "resources", "{memory: true}", AS_E_INVAL, "/resources/memory", "4GiB"},
    {"command", "resources", "{exclusive: 1}", AS_E_INVAL, "/resources/exclusive", "true or false"},
    {"command", "resources", "{exclusive: true, ranks: 2}", AS_E_UNSUPPORTED,
     "/resources/exclusive", "ranks"},
    {"command", "priority", "101", AS_E_INVAL, "/priority", "from -100 to 100"},
    {"command", "priority", "high", AS_E_INVAL, "/priority", "from -100 to 100"},
    {"train", "ensemble", "{method: stack}", AS_E_INVAL, "/ensemble/method", "one of greedy"},
    {"train", "ensemble", "{method: average, non_negative: true}", AS_E_INVAL,
     "/ensemble/non_negative", "only stacking"},
    {"train", "ensemble", "{method: stacking, non_negative: 1}", AS_E_INVAL,
     "/ensemble/non_negative", "true or false"},
    {"train", "ensemble", "{size: 0}", AS_E_INVAL, "/ensemble/size", "from 1 to 100"},
    {"train", "ensemble", "12", AS_E_INVAL, "/ensemble", "an object"},
    {"train", "trial", "{}", AS_E_INVAL, "/trial",
     "exactly one of train and command, found neither"},
    {"train", "trial/command", "[ls]", AS_E_INVAL, "/trial", "found both"},
    {"train", "trial/env", "{A: b}", AS_E_INVAL, "/trial/env", "is a field of trial.command"},
    {"train", "trial/train/dataset", NULL, AS_E_INVAL, "/trial/train/dataset", "missing"},
    {"train", "trial/train/epochs", "'${epochs}'", AS_E_INVAL, "/trial/train/epochs",
     "no parameter 'epochs'"},
    {"train", "trial/train/epochs", "-3", AS_E_INVAL, "/trial/train/epochs", "-3"},
    {"train", "trial/train/colour", "red", AS_E_INVAL, "/trial/train/colour", "not a known field"},
    /* wrong only for one value of a parameter */
    {"train", "parameters/opt/values", "[sgd, adagrad]", AS_E_INVAL, "/trial/train/optimizer/kind",
     "when opt is \"adagrad\""},
    {"train", "parameters/momentum/max", "1.5", AS_E_INVAL, "/trial/train/optimizer/momentum",
     "when momentum is 1.5"},
    {"train", "parameters/width/min", "0", AS_E_INVAL, "/parameters/width/min", "log scale"},
    {"train", "parameters/width", "{type: int, min: 0, max: 3}", AS_E_INVAL,
     "/trial/train/model/layers/0", "found 0"},
    {"command", "trial/command", "[]", AS_E_INVAL, "/trial/command", "empty"},
    {"command", "trial/command", "['']", AS_E_INVAL, "/trial/command/0", "name is empty"},
    {"command", "trial/command", "python3 x.py", AS_E_INVAL, "/trial/command", "a list"},
    {"command", "trial/command", "[ls, true]", AS_E_INVAL, "/trial/command/1", "a boolean"},
    {"command", "trial/command", "[ls, [[a]]]", AS_E_INVAL, "/trial/command/1/0", "found a list"},
    {"command", "trial/command", "[[ls]]", AS_E_INVAL, "/trial/command/0", "the program's name"},
    {"command", "trial/command", "[ls, '${x?--x}']", AS_E_INVAL, "/trial/command/1", "type bool"},
    {"command", "trial/command", "[ls, 'a${args}']", AS_E_INVAL, "/trial/command/1",
     "an element of its own"},
    {"command", "trial/command", "[ls, '${file:a}']", AS_E_INVAL, "/trial/command/1",
     "trial.files has no 'a'"},
    {"command", "trial/files", "{../x: a}", AS_E_INVAL, "/trial/files/..~1x", "a relative path"},
    {"command", "trial/files", "{x: 3}", AS_E_INVAL, "/trial/files/x", "the file's text"},
    {"command", "trial/files", "{x: '${w}'}", AS_E_INVAL, "/trial/files/x", "no parameter 'w'"},
    {"command", "trial/files", "{x: a, x/y: b}", AS_E_INVAL, "/trial/files", "the folder of"},
    {"train", "trial/files", "{A: b}", AS_E_INVAL, "/trial/files", "is a field of trial.command"},
    {"command", "trial/command", "[ls, '${w}']", AS_E_INVAL, "/trial/command/1",
     "no parameter 'w'"},
    {"command", "trial/command", "[ls, '${x']", AS_E_INVAL, "/trial/command/1", "without its }"},
    {"command", "trial/env", "{'A B': c}", AS_E_INVAL, "/trial/env/A B", "no name for a variable"},
    {"command", "trial/env", "{ASSAY_SEED: c}", AS_E_INVAL, "/trial/env/ASSAY_SEED",
     "set by the runner"},
    {"command", "trial/env", "{A: '${w}'}", AS_E_INVAL, "/trial/env/A", "no parameter 'w'"},
    {"command", "trial/env", "{A: [1]}", AS_E_INVAL, "/trial/env/A", "a string or a number"},
    {"command", "trial/directory", "''", AS_E_INVAL, "/trial/directory", "expected a path"},
    {"command", "trial/directory", "'runs/${w}'", AS_E_INVAL, "/trial/directory",
     "no parameter 'w'"},
    {"command", "trial/report", "x", AS_E_INVAL, "/trial/report", "found a string"},
    {"command", "trial/report", "[]", AS_E_INVAL, "/trial/report", "the list is empty"},
    {"command", "trial/report", "{}", AS_E_INVAL, "/trial/report", "found none of them"},
    {"command", "trial/report", "{cvs: a}", AS_E_INVAL, "/trial/report/cvs", "did you mean 'csv'"},
    {"command", "trial/report", "{stdout: 'l (?P<l>['}", AS_E_INVAL, "/trial/report/stdout",
     "at offset 9"},
    {"command", "trial/report", "{stdout: ['(?P<l>.)', 'x']}", AS_E_INVAL, "/trial/report/stdout/1",
     "no named group"},
    {"command", "trial/report", "{stdout: ['(?P<step>.)']}", AS_E_INVAL, "/trial/report/stdout",
     "only named group is step"},
    {"command", "trial/report", "{stdout: [3]}", AS_E_INVAL, "/trial/report/stdout/0",
     "a whole number"},
    {"command", "trial/report", "{stdout: []}", AS_E_INVAL, "/trial/report/stdout", "0 patterns"},
    {"command", "trial/report", "{csv: ../a}", AS_E_INVAL, "/trial/report/csv", "below the folder"},
    {"command", "trial/report", "{json: '/${x}'}", AS_E_INVAL, "/trial/report/json",
     "below the folder"},
    {"command", "trial/report", "{json: '${x}/../b'}", AS_E_INVAL, "/trial/report/json",
     "below the folder"},
    {"command", "trial/report", "{json: .}", AS_E_INVAL, "/trial/report/json", "below the folder"},
    {"command", "trial/report", "{csv: 'a${w}'}", AS_E_INVAL, "/trial/report/csv",
     "no parameter 'w'"},
    {"command", "trial/report", "{csv: a, step: ''}", AS_E_INVAL, "/trial/report/step", "a name"},
    {"command", "trial/report", "{tensorboard: a, step: b}", AS_E_INVAL, "/trial/report/step",
     "a field of csv and json"},
    {"command", "trial/report", "{csv: a, tags: {}}", AS_E_INVAL, "/trial/report/tags",
     "a field of tensorboard"},
    {"command", "trial/report", "[{csv: a}, {tensorboard: b, tags: {a/b: c d}}]", AS_E_INVAL,
     "/trial/report/1/tags/a~1b", "the name of a metric"},
    {"train", "trial/report", "{csv: a}", AS_E_INVAL, "/trial/report", "a field of trial.command"},
    {"command", "trial/shell", "true", AS_E_INVAL, "/trial/shell", "not a known field"},
};

static json_t *edited(const struct edit *e)
{
    const char *base = as_streq(e->base, "train")    ? train_yaml
                       : as_streq(e->base, "shards") ? shards_yaml
                                                     : command_yaml;
    struct as_err err = {0};
    json_t *doc = NULL, *value = NULL;
    if (e->value)
        ck_ok(yaml_parse(e->value, strlen(e->value), &value, &err), err);
    if (strcmp(e->path, "-") == 0)
        return value;
    ck_ok(yaml_parse(base, strlen(base), &doc, &err), err);
    json_t *at = doc;
    const char *p = e->path;
    char name[64];
    for (const char *slash; (slash = strchr(p, '/')); p = slash + 1) {
        (void)snprintf(name, sizeof name, "%.*s", (int)(slash - p), p);
        at = json_object_get(at, name);
        ck_assert_ptr_nonnull(at);
    }
    ck_assert_int_eq(value ? json_object_set_new(at, p, value) : json_object_del(at, p), 0);
    return doc;
}

START_TEST(refuses)
{
    const struct edit *e = &edits[_i];
    struct sweep_doc *d = NULL;
    struct as_err err = {0};
    JSON_AUTO doc = edited(e);
    as_status st = sweep_doc_parse(doc, 0, &d, &err);
    ck_assert_msg(st == e->want, "%s = %s: got %s: %s", e->path, e->value ? e->value : "(gone)",
                  as_status_name(st), err.msg);
    ck_assert_msg(strstr(err.msg, e->part) != NULL, "'%s' is not in: %s", e->part, err.msg);
    ck_assert_str_eq(err.pointer, e->pointer);
    ck_assert_ptr_null(d);
    /* one thing is wrong: the list has it, and nothing that only follows from it */
    AS_AUTO(faults_done) struct faults faults = {0};
    struct as_err first = {0};
    ck_assert_int_eq(sweep_doc_parse_noting(doc, 0, &faults, &d, &first), st);
    for (size_t i = 1; i < faults.n; i++)
        ck_assert_msg(false, "%s brings: %s", e->path, faults.list[i].msg);
    ck_assert_uint_eq(faults.n, 1);
    ck_assert_str_eq(first.pointer, err.pointer);
    ck_assert_str_eq(first.msg, err.msg);
}
END_TEST

/* Documents with several faults, and the pointers of all of them. */
static const struct {
    const char *yaml;
    const char *pointers[24]; /* NULL-terminated, in the order of the list */
} faulty[] = {
    {"name: Bad Name\n"
     "tags: [ok, 3, '']\n"
     "metric: {name: 7x, goal: up, weight: 1}\n"
     "parameters:\n"
     "  lr: {type: float, min: 1, max: 0.1, scal: log}\n"
     "  width: {type: int, min: a, max: b, step: 0}\n"
     "  opt: {type: categorical, values: [a, a, {c: 1}]}\n"
     "  depth: {type: integer, min: 1, max: 2}\n"
     "  drop: {type: float, min: 0, max: 1, when: {opt: sgd, nobody: 1}}\n"
     "parameter_constraints: ['lr < widht', 'drop <', 'drop < nothing']\n"
     "forbidden: [{}, {lr: 3}, {drop: 4}]\n"
     "search: {method: gird, seed: -1}\n"
     "limits: {max_trial: 3, wall_time: soon}\n"
     "resources: {gpus: -1, ranks: 0, min_ranks: 2}\n"
     "ensemble: {size: 0, sort: up}\n"
     "nonsense: 1\n",
     {"/name",
      "/tags/1",
      "/tags/2",
      "/metric/goal",
      "/metric/name",
      "/metric/weight",
      "/parameters/lr/min",
      "/parameters/lr/scal",
      "/parameters/width/min",
      "/parameters/width/max",
      "/parameters/opt/values/1",
      "/parameters/opt/values/2",
      "/parameters/depth/type",
      "/parameters/drop/when/nobody",
      "/parameter_constraints/1",
      "/parameter_constraints/2",
      "/forbidden/0",
      "/forbidden/2/drop",
      "/search/seed",
      "/search/method",
      "/limits/wall_time",
      "/limits/max_trial"}},
    /* a train document beside a parameter at fault: what does not depend on that is checked */
    {"name: a\n"
     "metric: {name: val_error, goal: minimize}\n"
     "parameters:\n"
     "  lr: {type: float, min: 2, max: 1}\n"
     "  width: {type: int, min: 8, max: 16}\n"
     "limits: {max_trials: 3}\n"
     "trial:\n"
     "  train:\n"
     "    dataset: Big Data\n"
     "    epochs: none\n"
     "    model: {kind: mlp, layers: ['${width}', 0, x], dropout: 2}\n"
     "    optimizer: {kind: adamw, lr: '${lr}', momentun: 1}\n"
     "    schedule: {kind: cosine, min_lr: 0.5}\n"
     "    metrics: [val_auc, accuracy]\n",
     {"/parameters/lr/min", "/trial/train/dataset", "/trial/train/epochs",
      "/trial/train/model/layers/1", "/trial/train/model/layers/2", "/trial/train/model/dropout",
      "/trial/train/optimizer/momentun", "/trial/train/metrics/1"}},
    /* of a train document alone, also for single values of parameters */
    {"name: a\n"
     "metric: {name: val_error, goal: minimize}\n"
     "parameters:\n"
     "  kind: {type: categorical, values: [sgd, adagrad]}\n"
     "  rate: {type: float, min: 0, max: 1.5}\n"
     "limits: {max_trials: 3}\n"
     "trial:\n"
     "  train:\n"
     "    dataset: digits\n"
     "    epochs: 3\n"
     "    batch_size: 0\n"
     "    model: {kind: cnn, layers: [{conv: 0, kernel: 99}, {poll: max}, {pool: max, size: 0}], "
     "dropout: '${rate}'}\n"
     "    optimizer: {kind: '${kind}'}\n",
     {"/trial/train/batch_size", "/trial/train/model/layers/0/conv",
      "/trial/train/model/layers/0/kernel", "/trial/train/model/layers/1",
      "/trial/train/model/layers/2/size", "/trial/train/optimizer/kind",
      "/trial/train/model/dropout"}},
    {"name: a\n"
     "metric: {name: score, goal: maximize}\n"
     "parameters: {x: {type: bool}}\n"
     "limits: [1]\n"
     "trial: {command: [run, '${y}', [true], '${x'], env: {ASSAY_A: 1, b c: 2, D: '${z}'}, "
     "directory: '${w}'}\n"
     "resources: {group: 2}\n",
     {"/limits", "/trial/command/1", "/trial/command/2/0", "/trial/command/3", "/trial/env/ASSAY_A",
      "/trial/env/b c", "/trial/env/D", "/trial/directory", "/resources/group"}},
    /* names that may be inactive: refused when sent, read when stored */
    {"name: a\n"
     "metric: {name: score, goal: maximize}\n"
     "parameters: {x: {type: bool}, z: {type: int, min: 1, max: 3, when: {x: true}}}\n"
     "limits: {max_trials: 3}\n"
     "trial: {command: [run, '--z=${z}', ['--z', '${z}'], '${z:-1}', '${args}'], "
     "env: {Z: '${z}', Y: '${z:-}'}, files: {c: 'z: ${z}'}, directory: 'runs/${z}'}\n",
     {"/trial/files/c", "/trial/command/1", "/trial/env/Z", "/trial/directory"}},
    /* the kind of the trial is not known: nothing is said about what depends on it */
    {"name: a\n"
     "metric: {name: score, goal: maximize}\n"
     "parameters: 3\n"
     "limits: {max_trials: 3}\n"
     "trial: {}\n"
     "resources: {group: 2}\n"
     "ensemble: true\n",
     {"/parameters", "/trial"}},
};

START_TEST(names_all_faults)
{
    AS_AUTO(faults_done) struct faults faults = {0};
    struct sweep_doc *d = NULL;
    struct as_err err = {0};
    JSON_AUTO doc = NULL;
    ck_ok(yaml_parse(faulty[_i].yaml, strlen(faulty[_i].yaml), &doc, &err), err);
    as_status st = sweep_doc_parse_noting(doc, 0, &faults, &d, &err);
    ck_assert_int_eq(st, faults.list[0].code);
    ck_assert_str_eq(err.msg, faults.list[0].msg);
    ck_assert_ptr_null(d);
    size_t i = 0;
    for (; i < faults.n && i < 22 && faulty[_i].pointers[i]; i++)
        ck_assert_msg(as_streq(faults.list[i].pointer, faulty[_i].pointers[i]),
                      "%zu: expected %s, found: %s", i, faulty[_i].pointers[i], faults.list[i].msg);
    ck_assert_msg(i == 22 || !faulty[_i].pointers[i], "%s is missing", faulty[_i].pointers[i]);
    ck_assert_msg(i == faults.n || i == 22, "too many: %s", i < faults.n ? faults.list[i].msg : "");
}
END_TEST

START_TEST(stops_at_the_most_faults)
{
    AS_AUTO(faults_done) struct faults faults = {0};
    struct sweep_doc *d = NULL;
    struct as_err err = {0};
    JSON_AUTO doc = json_object();
    for (int i = 0; i < 1000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "field%d", i);
        ck_assert_int_eq(json_object_set_new(doc, name, json_null()), 0);
    }
    ck_assert_int_eq(sweep_doc_parse_noting(doc, 0, &faults, &d, &err), AS_E_INVAL);
    ck_assert_uint_eq(faults.n, FAULTS_MAX);
    ck_assert_str_eq(err.pointer, "/name");
}
END_TEST

START_TEST(reads_objectives_constraints_and_no_trial)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    struct as_err err = {0};
    ck_ok(parse_text(objectives_yaml, &d, &err), err);
    ck_assert_uint_eq(d->n_objectives, 2);
    ck_assert_str_eq(d->objectives[1].name, "speed");
    ck_assert(d->objectives[1].maximize && !d->maximize);
    ck_assert_str_eq(d->metric, "error");
    ck_assert_uint_eq(d->n_outcomes, 2);
    ck_assert(isinf(d->outcomes[0].min) && d->outcomes[0].max == 20);
    ck_assert(d->outcomes[1].min == 0.9 && isinf(d->outcomes[1].max));
    ck_assert_int_eq(d->trial.kind, TRIAL_NONE);
    ck_assert_uint_eq(d->ensemble.size, 0); /* nobody uploads predictions */
    struct search_spec spec;
    sweep_doc_search_spec(d, &spec);
    ck_assert(spec.space == d->space && as_streq(spec.method->name, "gp") && spec.seed == 3);
    ck_assert(spec.n_objectives == 2 && !spec.maximize[0] && spec.maximize[1]);
    ck_assert(spec.n_outcomes == 2 && spec.outcomes[1].min == 0.9 && spec.initial_trials == 12);
    for (uint64_t t = 0; t < 20; t++) {
        AS_AUTO(suggestion_done) struct suggestion s = {0};
        ck_ok(suggest(&spec, NULL, NULL, t, t, NULL, &s, &err), err);
        const struct config *c = s.config;
        ck_assert(c->entries[0].value.integer * c->entries[1].value.integer <= 4096);
        ck_assert(c->entries[2].value.choice != 2 || c->entries[0].value.integer < 512);
        JSON_AUTO trial = NULL;
        ck_ok(sweep_doc_trial(d, c, &trial, &err), err);
        ck_assert_uint_eq(json_object_size(trial), 0);
    }
}
END_TEST

static const struct {
    const char *field, *value, *pointer, *part;
} objective_edits[] = {
    {"metrics", "[{name: a, goal: minimize}]", "/metrics", "1 metrics, expected 2 to 4"},
    {"metrics",
     "[{name: a, goal: minimize}, {name: b, goal: minimize}, {name: c, goal: minimize}, {name: d, "
     "goal: minimize}, {name: e, goal: minimize}]",
     "/metrics", "5 metrics"},
    {"metrics", "[{name: a, goal: minimize}, {name: a, goal: maximize}]", "/metrics/1",
     "'a' appears twice"},
    {"metrics", "[{name: a, goal: minimize}, {name: step, goal: maximize}]", "/metrics/1/name",
     "numbers the measurements"},
    {"metrics", "[{name: a, goal: minimize}, {name: b}]", "/metrics/1/goal", "missing"},
    {"ensemble", "{size: 3}", "/ensemble", "without trial"},
    {"trial", "{train: {dataset: digits, epochs: 3}}", "/metrics/0/name", "never reports 'error'"},
};

START_TEST(refuses_objectives)
{
    JSON_AUTO doc = NULL;
    json_t *value = NULL;
    struct as_err err = {0};
    struct sweep_doc *d = NULL;
    const char *text = objective_edits[_i].value;
    ck_ok(yaml_parse(objectives_yaml, strlen(objectives_yaml), &doc, &err), err);
    ck_ok(yaml_parse(text, strlen(text), &value, &err), err);
    json_object_set_new(doc, objective_edits[_i].field, value);
    ck_fails(sweep_doc_parse(doc, 0, &d, &err), AS_E_INVAL, err, objective_edits[_i].part);
    ck_assert_str_eq(err.pointer, objective_edits[_i].pointer);
}
END_TEST

/* The trainer would refuse width 0 with opt adamw; the constraint excludes it. */
START_TEST(samples_only_what_is_allowed)
{
    JSON_AUTO doc = edited(
        &(struct edit){"train", "parameters/width", "{type: int, min: 0, max: 9}", 0, NULL, NULL});
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    struct sweep_doc *none = NULL;
    struct as_err err = {0};
    ck_fails(sweep_doc_parse(doc, 0, &none, &err), AS_E_INVAL, err, "found 0");
    json_object_set_new(doc, "parameter_constraints", json_pack("[s]", "width > 0"));
    ck_ok(sweep_doc_parse(doc, 0, &d, &err), err);
    ck_assert_uint_eq(d->n_datasets, 1);
}
END_TEST

START_TEST(a_constrained_grid_counts_what_is_allowed)
{
    JSON_AUTO doc =
        edited(&(struct edit){"command", "forbidden", "[{x: 2, y: true}]", 0, NULL, NULL});
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    struct as_err err = {0};
    ck_ok(sweep_doc_parse(doc, 0, &d, &err), err);
    ck_assert_uint_eq(d->n_listed, 12 - 3);
    ck_assert_int_eq(d->limits.max_trials, 9);
    struct search_spec spec;
    sweep_doc_search_spec(d, &spec);
    ck_assert_ptr_eq(spec.prepared, d->prepared);
    struct suggestion s = {0};
    ck_ok(suggest(&spec, NULL, NULL, 8, 8, NULL, &s, &err), err);
    suggestion_done(&s);
    ck_fails(suggest(&spec, NULL, NULL, 9, 9, NULL, &s, &err), AS_E_EXHAUSTED, err, "9 cells");
}
END_TEST

START_TEST(a_grid_is_never_longer_than_its_cells)
{
    static const struct {
        const char *limits;
        int64_t want;
    } cases[] = {{"{max_trials: 5}", 5}, {"{max_trials: 999999}", 12}, {"{}", 12}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO doc = edited(&(struct edit){"command", "limits", cases[i].limits, 0, NULL, NULL});
        AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
        struct as_err err = {0};
        ck_ok(sweep_doc_parse(doc, 0, &d, &err), err);
        ck_assert_int_eq(d->limits.max_trials, cases[i].want);
    }
}
END_TEST

/* Data sets that a parameter names, one of them only in a branch. */
START_TEST(lists_every_data_set)
{
    JSON_AUTO doc =
        edited(&(struct edit){"train", "trial/train/dataset", "'${data}'", 0, NULL, NULL});
    JSON_AUTO param = json_pack("{s:s, s:[s,s]}", "type", "categorical", "values", "one", "two");
    json_object_set(json_object_get(doc, "parameters"), "data", param);
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    struct as_err err = {0};
    ck_ok(sweep_doc_parse(doc, 0, &d, &err), err);
    ck_assert_uint_eq(d->n_datasets, 2);
    ck_assert_str_eq(d->datasets[0], "one");
    ck_assert_str_eq(d->datasets[1], "two");
}
END_TEST

START_TEST(reads_the_shipped_example)
{
    AS_AUTO(as_freep) char *path = file_join(source_root(), "examples/digits.yaml");
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    JSON_AUTO j = NULL;
    struct as_err err = {0};
    ck_ok(file_read(path, 100000, &text, &len, &err), err);
    ck_ok(yaml_parse(text, len, &j, &err), err);
    ck_ok(sweep_doc_parse(j, 0, &d, &err), err);
    ck_assert_int_ge(d->limits.max_trials, 40);
}
END_TEST

/* One block of YAML from the documentation: a document, or a part that is added to the others. */
static void check_block(const char *yaml)
{
    static const char *const rest =
        "name: part\nmetric: {name: m, goal: minimize}\nlimits: {max_trials: 3}\n";
    AS_AUTO(str_done) struct str text = {0};
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    struct as_err err = {0};
    str_printf(&text, "%s%s", strncmp(yaml, "name:", 5) == 0 ? "" : rest, yaml);
    as_status st = parse_text(str_cstr(&text), &d, &err);
    ck_assert_msg(st == AS_OK, "%s\n%s", err.msg, str_cstr(&text));
}

START_TEST(reads_the_documentation)
{
    AS_AUTO(as_freep) char *path = file_join(source_root(), "docs/sweep.md");
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0, blocks = 0;
    struct as_err err = {0};
    ck_ok(file_read(path, 100000, &text, &len, &err), err);
    for (char *at = text; (at = strstr(at, "```yaml\n")); blocks++) {
        char *end = strstr(at += strlen("```yaml\n"), "```");
        ck_assert_ptr_nonnull(end);
        *end = 0;
        check_block(at);
        at = end + 1;
    }
    ck_assert_uint_ge(blocks, 4);
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    JSON_AUTO doc = NULL;
    struct as_err err = {0};
    const char *yaml = _i == 0 ? train_yaml : _i == 1 ? command_yaml : objectives_yaml;
    ck_ok(yaml_parse(yaml, strlen(yaml), &doc, &err), err);
    int failed = 0;
    for (size_t nth = 1; nth < 300; nth++) {
        struct sweep_doc *d = NULL;
        as_mem_fail_nth(nth);
        as_status st = sweep_doc_parse(doc, 0, &d, &err);
        as_mem_fail_nth(0);
        ck_assert_msg(st == AS_OK || st == AS_E_NOMEM, "%s", err.msg);
        ck_assert_int_eq(st == AS_OK, d != NULL);
        failed += st != AS_OK;
        sweep_doc_free(d);
    }
    ck_assert_int_ge(failed, 15);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("scheduler/sweep/sweep_doc");
    TCase *t = tcase_create("document");
    tcase_add_test(t, reads_a_train_document);
    tcase_add_test(t, reads_a_command_document);
    tcase_add_test(t, reads_flags_and_files);
    tcase_add_test(t, one_rank_that_was_asked_for);
    tcase_add_test(t, groups_have_defaults);
    tcase_add_test(t, ranks_have_defaults);
    tcase_add_test(t, reads_sources_of_measurements);
    tcase_add_test(t, makes_trials_of_a_train_document);
    tcase_add_loop_test(t, canonical_text_parses_to_the_same, 0, 3);
    tcase_add_loop_test(t, refuses, 0, AS_ARRAY_LEN(edits));
    tcase_add_loop_test(t, names_all_faults, 0, (int)AS_ARRAY_LEN(faulty));
    tcase_add_test(t, stops_at_the_most_faults);
    tcase_add_test(t, reads_objectives_constraints_and_no_trial);
    tcase_add_loop_test(t, refuses_objectives, 0, AS_ARRAY_LEN(objective_edits));
    tcase_add_test(t, samples_only_what_is_allowed);
    tcase_add_test(t, a_constrained_grid_counts_what_is_allowed);
    tcase_add_test(t, a_grid_is_never_longer_than_its_cells);
    tcase_add_test(t, lists_every_data_set);
    tcase_add_test(t, reads_the_shipped_example);
    tcase_add_test(t, reads_the_documentation);
    tcase_add_loop_test(t, runs_out_of_memory_cleanly, 0, 3);
    suite_add_tcase(s, t);
    return s;
}
