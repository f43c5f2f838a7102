/* The documents, whole and with one edit. */
#include "tests/scheduler/sweep/documents.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "scheduler/sweep/ranks_rule.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

const char train_yaml[] =
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
const char shards_yaml[] =
    "name: any\n"
    "metric: {name: val_error, goal: minimize}\n"
    "parameters: {lr: {type: float, min: 0.001, max: 0.1}}\n"
    "limits: {max_trials: 3}\n"
    "trial: {train: {dataset: digits, epochs: 2, batch_size: 8192, micro_batch: 2, "
    "optimizer: {kind: sgd, lr: '${lr}'}}}\n";

const char command_yaml[] =
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

const char program_yaml[] = "name: program\n"
                            "metric: {name: score, goal: maximize}\n"
                            "parameters: {x: {type: int, min: 1, max: 3}}\n"
                            "limits: {max_trials: 5}\n";

const char objectives_yaml[] =
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

as_status parse_text(const char *yaml, struct sweep_doc **ret, struct as_err *err)
{
    JSON_AUTO j = NULL;
    JSON_AUTO ranked = NULL;
    as_status st = yaml_parse(yaml, strlen(yaml), &j, err);
    if (st == AS_OK)
        st = ranks_rule_apply(j, &ranked, err);
    return st < 0 ? st : sweep_doc_parse(ranked, 12345, ret, err);
}

json_t *edited(const char *whole, const char *path, const char *edit)
{
    const char *base = as_streq(whole, "train")    ? train_yaml
                       : as_streq(whole, "shards") ? shards_yaml
                                                   : command_yaml;
    struct as_err err = {0};
    json_t *doc = NULL, *value = NULL;
    if (edit)
        ck_ok(yaml_parse(edit, strlen(edit), &value, &err), err);
    if (strcmp(path, "-") == 0)
        return value;
    ck_ok(yaml_parse(base, strlen(base), &doc, &err), err);
    json_t *at = doc;
    const char *p = path;
    char name[64];
    for (const char *slash; (slash = strchr(p, '/')); p = slash + 1) {
        (void)snprintf(name, sizeof name, "%.*s", (int)(slash - p), p);
        at = json_object_get(at, name);
        ck_assert_ptr_nonnull(at);
    }
    ck_assert_int_eq(value ? json_object_set_new(at, p, value) : json_object_del(at, p), 0);
    return doc;
}

void document_becomes(document_rule *rule, const char *from, const char *expected)
{
    struct as_err err = {0};
    JSON_AUTO doc = json_plain(from);
    JSON_AUTO before = json_deep_copy(doc);
    JSON_AUTO want = json_plain(expected);
    JSON_AUTO got = NULL;
    ck_ok(rule(doc, &got, &err), err);
    ck_assert(json_equal(got, want));
    ck_assert(json_equal(doc, before));
}

void document_is_refused(document_rule *rule, const char *from, const char *pointer,
                         const char *part)
{
    struct as_err err = {0};
    JSON_AUTO doc = json_plain(from);
    JSON_AUTO got = NULL;
    ck_fails(rule(doc, &got, &err), AS_E_INVAL, err, part);
    ck_assert_str_eq(err.pointer, pointer);
    ck_assert_ptr_null(got);
}
