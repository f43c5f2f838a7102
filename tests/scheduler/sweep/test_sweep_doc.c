/* The sweep document: what is accepted, and its canonical form. The blocks of YAML in the
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
#include "tests/scheduler/sweep/documents.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"

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

/* The search is asked at the last step, and knows that trials may stop before. */
START_TEST(the_search_knows_the_last_step)
{
    static const char *const yaml = "name: early\n"
                                    "metric: {name: loss, goal: minimize}\n"
                                    "parameters:\n"
                                    "  x: {type: float, min: 0, max: 1}\n"
                                    "limits: {max_trials: 9}\n%s";
    static const char *const sections[] = {
        "", "early_stopping: {method: asha, min_steps: 3, max_steps: 81}\n"};
    for (size_t i = 0; i < AS_ARRAY_LEN(sections); i++) {
        AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
        struct as_err err = {0};
        struct search_spec spec;
        char text[400];
        (void)snprintf(text, sizeof text, yaml, sections[i]);
        ck_ok(parse_text(text, &d, &err), err);
        sweep_doc_search_spec(d, &spec);
        ck_assert_double_eq(spec.max_step, i ? 81 : 0);
    }
}
END_TEST

/* Lists, switches, all arguments, and files; the canonical document is read as the same one. */
START_TEST(reads_flags_and_files)
{
    static const char *const yaml =
        "name: flags\n"
        "metric: {name: score, goal: maximize, noise: none}\n"
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
    ck_assert(spec.is_exact); /* noise: none */
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
        {program_yaml, "trial: {command: [a]}\nresources: {ranks: '${x}'}\n", 3, 1,
         "{\"gpus\":0,\"min_ranks\":1,\"ranks\":\"${x}\"}", "all"},
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
        ck_assert(!json_object_get(trial, "folder")); /* a stored document runs where it ran */
        ck_ok(sweep_doc_parse(d->canonical, 0, &again, &err), err);
        ck_assert(json_equal(again->canonical, d->canonical));
    }
}
END_TEST

/* The ranks of a command run in a folder of their trial, in documents that are sent. */
START_TEST(folders_have_defaults)
{
    static const struct {
        const char *trial, *resources, *folder;
    } cases[] = {
        {"{command: [a]}", "{ranks: 1}", NULL},
        {"{command: [a], folder: own}", "{ranks: 1}", "own"},
        {"{command: [a]}", "{ranks: 2}", "auto"},
        {"{command: [a], folder: shared}", "{ranks: 2}", "shared"},
        {"{command: [a], launch: first}", "{ranks: 2}", NULL},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char text[2000];
        AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL, *again = NULL;
        AS_AUTO(faults_done) struct faults faults = {0};
        JSON_AUTO doc = NULL;
        struct as_err err = {0};
        snprintf(text, sizeof text, "%strial: %s\nresources: %s\n", program_yaml, cases[i].trial,
                 cases[i].resources);
        ck_ok(yaml_parse(text, strlen(text), &doc, &err), err);
        ck_ok(sweep_doc_parse_noting(doc, 0, &faults, &d, &err), err);
        const json_t *trial = json_object_get(d->canonical, "trial");
        ck_assert_pstr_eq(json_string_value(json_object_get(trial, "folder")), cases[i].folder);
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
               "%strial: {command: [a], report: [{stdout: 'l=(?P<l>\\d)', groups: {l: val/l}, "
               "csv: './/o/m${x}.csv', step: epoch, tensorboard: runs/, tags: {a/b: l}}, "
               "{tensorboard: ./}]}\n",
               program_yaml);
    ck_ok(parse_text(text.s, &d, &err), err);
    AS_AUTO(as_freep)
    char *kept = json_format(json_object_get(json_object_get(d->canonical, "trial"), "report"));
    ck_assert_str_eq(kept, "[{\"groups\":{\"l\":\"val/l\"},\"stdout\":[\"l=(?P<l>\\\\d)\"]},"
                           "{\"csv\":\"o/m${x}.csv\",\"step\":\"epoch\"},{\"tags\":{\"a/"
                           "b\":\"l\"},\"tensorboard\":\"runs\"},{"
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

/* The trainer would refuse width 0 with opt adamw; the constraint excludes it. */
START_TEST(samples_only_what_is_allowed)
{
    JSON_AUTO doc = edited("train", "parameters/width", "{type: int, min: 0, max: 9}");
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
    JSON_AUTO doc = edited("command", "forbidden", "[{x: 2, y: true}]");
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

/* Exactly one limit, with its default written out; without one the document says nothing. */
START_TEST(when_to_stop_is_read)
{
    static const struct {
        const char *text, *canonical;
        double regret, relative;
        int64_t min_trials;
    } cases[] = {
        {"{regret: 0.01}", "{\"regret\":0.01,\"min_trials\":20}", 0.01, NAN, 20},
        {"{relative: 1, min_trials: 50}", "{\"relative\":1.0,\"min_trials\":50}", NAN, 1, 50},
        {"{regret: 0, relative: null}", "{\"regret\":0.0,\"min_trials\":20}", 0, NAN, 20},
        {"null", NULL, NAN, NAN, 20}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO doc = edited("train", "limits/stop_when", cases[i].text);
        AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
        struct as_err err = {0};
        ck_ok(sweep_doc_parse(doc, 0, &d, &err), err);
        const struct sweep_stop_when *w = &d->limits.stop_when;
        ck_assert(isnan(cases[i].regret) ? isnan(w->regret) : w->regret == cases[i].regret);
        ck_assert(isnan(cases[i].relative) ? isnan(w->relative) : w->relative == cases[i].relative);
        ck_assert_int_eq(w->min_trials, cases[i].min_trials);
        ck_assert_int_eq(sweep_stop_when_is_set(w), cases[i].canonical != NULL);
        const json_t *kept = json_object_get(json_object_get(d->canonical, "limits"), "stop_when");
        AS_AUTO(as_freep) char *text = kept ? json_format_ordered(kept) : NULL;
        ck_assert_pstr_eq(text, cases[i].canonical);
    }
}
END_TEST

START_TEST(a_grid_is_never_longer_than_its_cells)
{
    static const struct {
        const char *limits;
        int64_t want;
    } cases[] = {{"{max_trials: 5}", 5}, {"{max_trials: 999999}", 12}, {"{}", 12}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO doc = edited("command", "limits", cases[i].limits);
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
    JSON_AUTO doc = edited("train", "trial/train/dataset", "'${data}'");
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

/* What a trial can do decides the mode, the trainer's steps decide the rungs. */
START_TEST(settles_early_stopping)
{
    static const struct {
        const char *base, *path, *edit, *early;
        stop_mode mode;
        int64_t first, last;
        uint64_t design;
    } cases[] = {
        {"train", "trial/train/epochs", "20", "{}", STOP_MODE_PAUSE, 1, 20, 10},
        {"train", "limits/max_trials", "39", "{}", STOP_MODE_PAUSE, 1, 20, 0},
        {"train", "limits/max_trials", "500", "{}", STOP_MODE_PAUSE, 1, 20, STOP_DESIGN},
        {"train", "search", "{initial_trials: 7}", "{}", STOP_MODE_PAUSE, 1, 20, 7},
        {"train", "trial/train/report_every", "4", "{max_steps: 16}", STOP_MODE_PAUSE, 4, 16, 10},
        {"train", "trial/train/model", "{kind: boosted_trees}", "{mode: stop}", STOP_MODE_STOP, 5,
         100, 10},
        {"command", "trial/checkpoints", "false", "{max_steps: 9}", STOP_MODE_STOP, 1, 9},
        {"command", "trial/checkpoints", "true", "{max_steps: 9}", STOP_MODE_PAUSE, 1, 9},
        {"command", "trial", NULL, "{max_steps: 9}", STOP_MODE_STOP, 1, 9},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO doc = edited(cases[i].base, cases[i].path, cases[i].edit);
        JSON_AUTO early = NULL;
        AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL, *again = NULL;
        struct as_err err = {0};
        ck_ok(yaml_parse(cases[i].early, strlen(cases[i].early), &early, &err), err);
        json_object_set(doc, "early_stopping", early);
        ck_ok(sweep_doc_parse(doc, 0, &d, &err), err);
        ck_assert_int_eq(d->stopping.method, STOP_ASHA);
        ck_assert_int_eq(d->stopping.mode, cases[i].mode);
        ck_assert_uint_eq(d->initial_trials, cases[i].design);
        ck_assert_int_eq(d->stopping.steps[0], cases[i].first);
        ck_assert_int_eq(d->stopping.steps[d->stopping.n_rungs - 1], cases[i].last);
        ck_ok(sweep_doc_parse(d->canonical, 0, &again, &err), err);
        ck_assert(json_equal(d->canonical, again->canonical));
    }
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

TEST_SUITE()
{
    Suite *s = suite_create("scheduler/sweep/sweep_doc");
    TCase *t = tcase_create("document");
    tcase_add_test(t, reads_a_train_document);
    tcase_add_test(t, reads_a_command_document);
    tcase_add_test(t, the_search_knows_the_last_step);
    tcase_add_test(t, reads_flags_and_files);
    tcase_add_test(t, one_rank_that_was_asked_for);
    tcase_add_test(t, groups_have_defaults);
    tcase_add_test(t, ranks_have_defaults);
    tcase_add_test(t, folders_have_defaults);
    tcase_add_test(t, reads_sources_of_measurements);
    tcase_add_test(t, makes_trials_of_a_train_document);
    tcase_add_loop_test(t, canonical_text_parses_to_the_same, 0, 3);
    tcase_add_test(t, reads_objectives_constraints_and_no_trial);
    tcase_add_test(t, samples_only_what_is_allowed);
    tcase_add_test(t, a_constrained_grid_counts_what_is_allowed);
    tcase_add_test(t, when_to_stop_is_read);
    tcase_add_test(t, a_grid_is_never_longer_than_its_cells);
    tcase_add_test(t, lists_every_data_set);
    tcase_add_test(t, settles_early_stopping);
    tcase_add_test(t, reads_the_shipped_example);
    tcase_add_test(t, reads_the_documentation);
    tcase_add_loop_test(t, runs_out_of_memory_cleanly, 0, 3);
    suite_add_tcase(s, t);
    return s;
}
