/* Every allocation of base/, search/ and the pure rooms of scheduler/ fails in turn, in what reads
 * texts and computes: one row of `rows` for each entry, over the corpora of tests/fuzz. Encoders
 * and decoders of the API: tests/api/codec. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/command_line.h"
#include "base/env_file.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pattern.h"
#include "base/template.h"
#include "base/trial_template.h"
#include "base/yaml_reader.h"
#include "scheduler/lifecycle/ensemble_data.h"
#include "scheduler/services/addition_priv.h"
#include "scheduler/services/sweep_change.h"
#include "scheduler/sweep/buckets_rule.h"
#include "scheduler/sweep/split_rule.h"
#include "scheduler/sweep/stored_doc.h"
#include "scheduler/sweep/sweep_doc.h"
#include "search/replay.h"
#include "search/sampling/grid.h"
#include "search/sampling/sampler.h"
#include "search/search_cache.h"
#include "search/space/encoding.h"
#include "search/space/expr.h"
#include "search/suggest.h"
#include "tests/support/check_main.h"
#include "tests/support/nth.h"
#include "tests/support/roots.h"

/* What an operation works on: a file of a corpus. */
struct input {
    char *text;
    size_t len;
    json_t *tree; /* NULL: it is no JSON */
};

static void put_json(struct str *out, const json_t *j)
{
    AS_AUTO(as_freep) char *text = json_format(j);
    if (text)
        str_puts(out, text);
    else
        out->failed = true;
}

/* After the last step: a result that could not be written down is no success. */
static as_status written(const struct str *out, struct as_err *err)
{
    return str_check(out, err);
}

/* ---- base ---- */

static as_status json_both_ways(const void *arg, struct str *out, struct as_err *err)
{
    const struct input *in = arg;
    JSON_AUTO tree = NULL;
    as_status st = json_parse(in->text, in->len, &tree, err);
    if (st == AS_OK)
        put_json(out, tree);
    return st == AS_OK ? written(out, err) : st;
}

static as_status json_as_reals(const void *arg, struct str *out, struct as_err *err)
{
    static const char text[] = "{\"a\": [1, 123456789012345678901234567890, \"x\\u00e9\"]}";
    JSON_AUTO tree = NULL;
    JSON_AUTO wide = NULL;
    (void)arg;
    as_status st = json_parse_reals(text, strlen(text), &tree, err);
    if (st == AS_OK)
        st = json_parse(text, strlen(text), &wide, err);
    if (st != AS_OK)
        return st;
    put_json(out, tree);
    put_json(out, wide);
    return written(out, err);
}

static as_status yaml_both(const void *arg, struct str *out, struct as_err *err)
{
    const struct input *in = arg;
    JSON_AUTO tree = NULL;
    size_t line = 0, column = 0;
    as_status st = yaml_parse(in->text, in->len, &tree, err);
    if (st == AS_OK)
        st = yaml_locate(in->text, in->len, "/name", &line, &column, err);
    if (st != AS_OK)
        return st;
    put_json(out, tree);
    str_printf(out, " %zu:%zu", line, column);
    return written(out, err);
}

static bool any_name(const void *arg, const char *name)
{
    (void)arg;
    return name[0] != 0;
}

/* Not counted: the arguments of an operation are its caller's. */
static json_t *params_of_templates(void)
{
    static json_t *params; /* one for the process */
    if (!params)
        params = json_pack("{s:f, s:i, s:s, s:b}", "lr", 0.1, "n", 3, "s", "${lr}", "on", 1);
    return params;
}

static as_status templates(const void *arg, struct str *out, struct as_err *err)
{
    const struct input *in = arg;
    const json_t *params = params_of_templates();
    JSON_AUTO names = NULL;
    JSON_AUTO made = NULL;
    as_status st = template_check(in->tree, "", any_name, NULL, err);
    if (st == AS_OK)
        st = template_names(in->tree, &names, err);
    if (st == AS_OK)
        st = template_apply(in->tree, params, &made, err);
    if (st != AS_OK)
        return st;
    put_json(out, names);
    put_json(out, made);
    return written(out, err);
}

static as_status a_trial_template(const void *arg, struct str *out, struct as_err *err)
{
    const struct trial_values v = {
        .params = params_of_templates(), .files = "/files", .trial_dir = "/trial"};
    JSON_AUTO made = NULL;
    as_status st = trial_template_apply(((const struct input *)arg)->tree, &v, &made, err);
    if (st != AS_OK)
        return st;
    put_json(out, made);
    return written(out, err);
}

static as_status a_command_line(const void *arg, struct str *out, struct as_err *err)
{
    const json_t *params = params_of_templates();
    JSON_AUTO made = NULL;
    as_status st =
        command_line_expand(((const struct input *)arg)->tree, params, NULL, params, &made, err);
    if (st != AS_OK)
        return st;
    put_json(out, made);
    return written(out, err);
}

static as_status a_pattern(const void *arg, struct str *out, struct as_err *err)
{
    static const char text[] = "epoch 3 loss=0.25";
    AS_AUTO(pattern_freep) struct pattern *p = NULL;
    bool found = false;
    const char *group = NULL;
    size_t len = 0;
    (void)arg;
    as_status st = pattern_compile("epoch (?<step>\\d+) .*=(?<loss>[\\d.]+)", &p, NULL, err);
    if (st == AS_OK)
        st = pattern_match(p, text, strlen(text), &found, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < pattern_n_names(p); i++)
        if (pattern_group(p, i, &group, &len))
            str_printf(out, "%s=%.*s ", pattern_name(p, i), (int)len, group);
    return written(out, err);
}

static as_status add_variable(void *arg, const char *name, const char *value, struct as_err *err)
{
    struct str *out = arg;
    str_printf(out, "%s=%s\n", name, value);
    return str_check(out, err);
}

static as_status variables(const void *arg, struct str *out, struct as_err *err)
{
    const struct input *in = arg;
    return env_file_parse(in->text, in->len, add_variable, out, err);
}

static as_status a_file(const void *arg, struct str *out, struct as_err *err)
{
    const char *path = arg;
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    as_status st = file_read(path, 1 << 20, &text, &len, err);
    if (st == AS_OK)
        str_add(out, text, len);
    return st == AS_OK ? written(out, err) : st;
}

/* ---- search ---- */

static as_status parse_space(const json_t *tree, struct space **ret, struct as_err *err)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    const json_t *parameters = json_object_get(tree, "parameters");
    bool is_whole = json_is_object(parameters) && !json_object_get(parameters, "type");
    as_status st = space_parse(is_whole ? parameters : tree, "", &s, err);
    if (st == AS_OK && is_whole)
        st = space_parse_constraints(s, json_object_get(tree, "parameter_constraints"), "", err);
    if (st == AS_OK && is_whole)
        st = space_parse_forbidden(s, json_object_get(tree, "forbidden"), "", err);
    if (st == AS_OK)
        *ret = as_steal(s);
    return st;
}

static as_status put_config(struct str *out, const struct space *s, const struct config *c,
                            struct as_err *err)
{
    AS_AUTO(config_freep) struct config *back = NULL;
    JSON_AUTO j = config_to_json(s, c);
    if (!j)
        return as_fail_nomem(err);
    as_status st = config_from_json(s, j, "", &back, err);
    if (st == AS_OK)
        put_json(out, j);
    return st;
}

static as_status spaces(const void *arg, struct str *out, struct as_err *err)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    AS_AUTO(grid_freep) struct grid *g = NULL;
    as_status st = parse_space(((const struct input *)arg)->tree, &s, err);
    if (st == AS_OK)
        st = encoding_create(s, &e, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO parameters = space_to_json(s);
    JSON_AUTO constraints = space_constraints_to_json(s);
    JSON_AUTO forbidden = space_forbidden_to_json(s);
    if (!parameters || !constraints || !forbidden)
        return as_fail_nomem(err);
    put_json(out, parameters);
    put_json(out, constraints);
    put_json(out, forbidden);
    for (uint64_t t = 0; t < 2 && st == AS_OK; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        st = sampler_draw(s, t ? SAMPLER_SOBOL : SAMPLER_RANDOM, 1, t, &c, NULL, err);
        if (st == AS_OK)
            st = put_config(out, s, c, err);
    }
    as_status has_grid = st == AS_OK ? grid_create(s, "", &g, err) : st;
    if (has_grid == AS_E_NOMEM)
        return has_grid;
    if (st == AS_OK && has_grid == AS_OK) {
        AS_AUTO(config_freep) struct config *c = NULL;
        st = grid_cell(g, grid_cells(g) / 2, &c, err);
        if (st == AS_OK)
            st = put_config(out, s, c, err);
    }
    return st == AS_OK ? written(out, err) : st;
}

static as_status replays(const void *arg, struct str *out, struct as_err *err)
{
    const struct input *in = arg;
    AS_AUTO(replay_freep) struct replay *r = NULL;
    struct replay_step step = {0};
    as_status st = replay_create(json_object_get(in->tree, "sweep"),
                                 json_object_get(in->tree, "items"), &r, err);
    while (st == AS_OK && (st = replay_next(r, &step, err)) == AS_OK)
        str_printf(out, "%llu %d %s\n", (unsigned long long)step.number, step.is_same,
                   step.why ? step.why : "");
    return st == AS_E_EXHAUSTED ? written(out, err) : st;
}

/* ---- documents ---- */

static as_status documents(const void *arg, struct str *out, struct as_err *err)
{
    const struct input *in = arg;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    AS_AUTO(config_freep) struct config *c = NULL;
    JSON_AUTO moved = NULL;
    JSON_AUTO split = NULL;
    JSON_AUTO trial = NULL;
    struct search_spec spec;
    as_status st = buckets_rule_apply(in->tree, &moved, err);
    if (st == AS_OK)
        st = split_rule_choose(moved, &split, err);
    if (st == AS_OK)
        st = sweep_doc_parse(split, 1, &d, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) char *text = sweep_doc_format(d);
    if (!text)
        return as_fail_nomem(err);
    str_puts(out, text);
    sweep_doc_search_spec(d, &spec);
    st = search_sample(&spec, &c, err);
    if (st == AS_OK)
        st = sweep_doc_trial(d, c, &trial, err);
    if (st == AS_OK && trial)
        put_json(out, trial);
    return st == AS_OK ? written(out, err) : st;
}

static as_status documents_noting(const void *arg, struct str *out, struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    AS_AUTO(faults_done) struct faults faults = {0};
    as_status st = sweep_doc_parse_noting(((const struct input *)arg)->tree, 1, &faults, &d, err);
    str_printf(out, "%zu", faults.n);
    return st == AS_OK ? written(out, err) : st;
}

static as_status stored_documents(const void *arg, struct str *out, struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    JSON_AUTO tree = NULL;
    as_status st = stored_doc_read(((const struct input *)arg)->text, &tree, &d, err);
    if (st == AS_OK)
        put_json(out, tree);
    return st == AS_OK ? written(out, err) : st;
}

static as_status patches(const void *arg, struct str *out, struct as_err *err)
{
    struct sweep_patch p;
    as_status st = sweep_patch_parse(((const struct input *)arg)->tree, &p, err);
    if (st == AS_OK)
        put_json(out, p.limits);
    return st == AS_OK ? written(out, err) : st;
}

static as_status additions(const void *arg, struct str *out, struct as_err *err)
{
    static const char document[] =
        "{\"name\":\"s\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},\"constraints\":[{"
        "\"metric\":\"ms\",\"max\":20}],\"parameters\":{\"x\":{\"type\":\"float\",\"min\":0,"
        "\"max\":1}},\"search\":{\"method\":\"random\",\"seed\":1},\"limits\":{\"max_trials\":5}}";
    const struct addition_target to = {.id = "s", .document = document};
    AS_AUTO(arena_done) struct arena a = {0};
    struct addition_list list = {0};
    as_status st = additions_read(&a, ((const struct input *)arg)->tree, &to, &list, err);
    for (size_t i = 0; st == AS_OK && i < list.n; i++)
        str_printf(out, "%s %d %g\n", list.rows[i].params, (int)list.rows[i].state,
                   list.rows[i].value);
    return st == AS_OK ? written(out, err) : st;
}

static as_status bucket_files(const void *arg, struct str *out, struct as_err *err)
{
    const struct input *in = arg;
    struct ensemble_data d = {.rows = 3};
    as_status st = ensemble_data_parse_buckets(in->text, in->len, &d, err);
    for (size_t i = 0; st == AS_OK && i < d.rows; i++)
        str_printf(out, "%zu ", (size_t)d.buckets[i]);
    ensemble_data_done(&d);
    return st == AS_OK ? written(out, err) : st;
}

/* ---- the table ---- */

static const struct row {
    const char *name;
    nth_fn *fn;
    const char *corpus; /* a file of tests/fuzz/corpus; NULL: text */
    const char *text;
} rows[] = {
    {"json_parse, json_format", json_both_ways, "json/sweep.json", NULL},
    {"json_parse_reals", json_as_reals, NULL, ""},
    {"yaml_parse, yaml_locate", yaml_both, "yaml/sweep.yaml", NULL},
    {"template_apply, _names", templates, "template/tree.json", NULL},
    {"trial_template_apply", a_trial_template, NULL,
     "{\"command\": [\"run\", \"--lr=${lr}\", \"${args}\", \"${trial_dir}\"], \"env\": {\"A\": "
     "\"${n}\"}, \"files\": {\"a.txt\": \"${lr} ${s}\"}, \"directory\": \"/x/${n}\", \"report\": "
     "{\"csv\": \"${trial_dir}/a.csv\"}}"},
    {"trial_template_apply, train", a_trial_template, NULL,
     "{\"train\": {\"optimizer\": {\"lr\": \"${lr}\"}, \"layers\": [\"${n}\", 2]}}"},
    {"command_line_expand", a_command_line, NULL,
     "[\"run\", \"--lr\", \"${lr}\", \"${args:short}\", \"${on?x}\", [\"--n\", \"${n}\"]]"},
    {"pattern_compile, _match", a_pattern, NULL, ""},
    {"env_file_parse", variables, "env_file/all.env", NULL},
    {"space_parse, encoding_create", spaces, "space/constrained.json", NULL},
    {"space_parse, lists", spaces, "space/lists.json", NULL},
    {"space_parse, mixed", spaces, "space/mixed.json", NULL},
    {"space_parse, priors", spaces, "space/priors.json", NULL},
    {"space_parse, ranges", spaces, "space/ranges.json", NULL},
    {"replay_next", replays, "replay/after.json", NULL},
    {"replay_next, grid", replays, "replay/grid.json", NULL},
    {"replay_next, gp", replays, "replay/gp.json", NULL},
    {"sweep_doc_parse, command", documents, "sweep_doc/command.json", NULL},
    {"sweep_doc_parse, lists", documents, "sweep_doc/lists.json", NULL},
    {"sweep_doc_parse, objectives", documents, "sweep_doc/objectives.json", NULL},
    {"sweep_doc_parse, prior", documents, "sweep_doc/prior.json", NULL},
    {"sweep_doc_parse, report", documents, "sweep_doc/report.json", NULL},
    {"sweep_doc_parse, train", documents, "sweep_doc/train.json", NULL},
    {"sweep_doc_parse_noting", documents_noting, "sweep_doc/command.json", NULL},
    {"stored_doc_read", stored_documents, "sweep_doc/objectives.json", NULL},
    {"sweep_patch_parse", patches, "sweep_patch/all.json", NULL},
    {"additions_read", additions, "additions/list", NULL},
    {"additions_read, one", additions, "additions/one", NULL},
    {"ensemble_data_parse_buckets", bucket_files, "buckets/regions", NULL},
};

static void open_input(const struct row *r, struct input *ret)
{
    struct as_err err = {0};
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/%s", source_root(), r->corpus);
    *ret = (struct input){0};
    if (r->corpus) {
        ck_ok(file_read(path, 1 << 20, &ret->text, &ret->len, &err), err);
    } else {
        ret->text = as_strdup(r->text);
        ret->len = strlen(r->text);
    }
    if (ret->len == 0 || json_parse(ret->text, ret->len, &ret->tree, NULL) != AS_OK)
        ret->tree = NULL;
}

START_TEST(each_allocation_fails)
{
    const struct row *r = &rows[_i];
    struct input in;
    open_input(r, &in);
    (void)params_of_templates();
    size_t n = nth_each(r->name, r->fn, &in, 0);
    ck_assert_msg(n > 0, "%s allocates nothing", r->name);
    printf("%s: %zu allocations\n", r->name, n);
    json_decref(in.tree);
    free(in.text);
}
END_TEST

START_TEST(files)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/json/sweep.json", source_root());
    ck_assert_uint_gt(nth_each("file_read", a_file, path, 0), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("nth/pure");
    TCase *t = tcase_create("nth");
    json_fail_with_mem();
    tcase_add_loop_test(t, each_allocation_fails, 0, (int)AS_ARRAY_LEN(rows));
    tcase_add_test(t, files);
    suite_add_tcase(s, t);
    return s;
}
