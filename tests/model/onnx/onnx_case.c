/* The graph gets cells as a user has them: texts of categories, numbers, pixels in the layout of
 * the files. The predictor gets the same rows as data sets are read (data/column.h). So a
 * difference in how a cell is read shows as well as one in a layer. */
#include "tests/model/onnx/onnx_case.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/column.h"
#include "data/dataset_json.h"
#include "model/onnx/onnx_write.h"
#include "model/network/network.h"
#include "model/network/outputs.h"
#include "model/plan/plan.h"
#include "model/predict/predictor.h"
#include "model/trees/tree_inputs.h"
#include "model/trees/tree_model.h"
#include "model/trees/xgboost.h"
#include "tests/support/check_main.h"
#include "tests/support/roots.h"

#define TOLERANCE 1e-5

static struct as_err err;

/* ---- programs ---- */

/* A program that answers each line of its input with one. It starts once, before Check forks, and
 * ends when the last process that holds its input has ended. */
struct tool {
    bool was_tried;
    FILE *to, *from; /* NULL: it is not there */
};

static struct tool check, runtime;

static void start_tool(struct tool *t, const char *program, const char *script)
{
    char path[512];
    int to[2], from[2];
    (void)snprintf(path, sizeof path, "%s/tests/model/onnx/%s", source_root(), script);
    ck_assert(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (dup2(to[0], STDIN_FILENO) >= 0 && dup2(from[1], STDOUT_FILENO) >= 0)
            (void)execlp(program, program, path, (char *)NULL);
        _exit(127);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    t->to = fdopen(to[1], "w");
    t->from = fdopen(from[0], "r");
    ck_assert(t->to && t->from);
}

static void ask_tool(struct tool *t, const char *what, const char *a, const char *b)
{
    char answer[2000] = "";
    ck_assert(fprintf(t->to, "%s%s%s\n", a, b ? "\t" : "", b ? b : "") > 0 && fflush(t->to) == 0);
    ck_assert_msg(fgets(answer, sizeof answer, t->from) != NULL, "%s ended with %s", what, a);
    ck_assert_msg(strcmp(answer, "\n") == 0, "%s says of %s: %s", what, a, answer);
}

/* Debian's packages are for Debian's own Python. */
static bool has_package(const char *python)
{
    static const char import[] = "try:\n import onnx\nexcept ImportError:\n raise SystemExit(1)";
    int status = 0;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)execlp(python, python, "-c", import, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool onnx_case_has_checker(void)
{
    static const char *const pythons[] = {"/usr/bin/python3", "python3"};
    for (size_t i = 0; i < AS_ARRAY_LEN(pythons) && !check.was_tried && !check.to; i++)
        if (has_package(pythons[i]))
            start_tool(&check, pythons[i], "check.py");
    check.was_tried = true;
    return check.to != NULL;
}

bool onnx_case_has_runtime(void)
{
    const char *folder = getenv("ASSAY_ONNX_RUNTIME");
    AS_AUTO(as_freep)
    char *path = folder ? file_join(folder, "node_modules/onnxruntime-node") : NULL;
    if (!runtime.was_tried && path && access(path, F_OK) == 0)
        start_tool(&runtime, "node", "run.mjs");
    runtime.was_tried = true;
    return runtime.to != NULL;
}

bool onnx_case_has_trees(void)
{
    const struct xgboost *x;
    return xgboost_open(&x, &err) == AS_OK;
}

/* ---- training ---- */

static void set_path(json_t *places, const char *key, const char *path)
{
    if (path)
        ck_assert_int_eq(json_object_set_new(places, key, json_string(path)), 0);
}

void onnx_case_train(struct child *c, const struct onnx_data *data, const char *fields,
                     const char *seed, const char *name)
{
    struct dataset_info info = {0};
    ck_ok(dataset_inspect(&data->paths, data->format, data->target, data->task, &data->options,
                          &info, &err),
          err);
    JSON_AUTO dataset = dataset_info_to_json(&info);
    JSON_AUTO places = json_object();
    set_path(places, "table", data->paths.table);
    set_path(places, "features", data->paths.features);
    set_path(places, "targets", data->paths.targets);
    ck_assert_int_eq(json_object_set(dataset, "paths", places), 0);
    AS_AUTO(as_freep) char *text = json_format(dataset);
    AS_AUTO(str_done) struct str job = {0};
    AS_AUTO(as_freep) char *checkpoints = child_path(c, "checkpoints");
    AS_AUTO(as_freep) char *from = child_path(c, "artifacts/model.safetensors");
    AS_AUTO(as_freep) char *to = child_path(c, name);
    str_printf(&job, "{\"train\":{\"dataset\":\"d\",%s},\"dataset\":%s", fields, text);
    if (data->base)
        str_printf(&job, ",\"base\":\"%s/%s\"", c->dir, data->base);
    for (int i = 0; data->stack && i < 2; i++)
        str_printf(&job, "%s{\"model\":\"%s/%s\",\"predictions\":\"%s/%s.npy\"}%s",
                   i ? "," : ",\"stack\":[", c->dir, data->stack[i], c->dir, data->stack[i],
                   i ? "]" : "");
    str_puts(&job, "}");
    child_write(c, "job.json", job.s, job.len);
    ck_ok(file_remove_tree(checkpoints, &err), err);
    child_start(c, seed, NULL);
    int status = child_wait(c);
    if (status != 0) {
        AS_AUTO(as_freep) char *why = child_read(c, "err", &(size_t){0});
        ck_abort_msg("assay-train ended with %d: %s", status, why);
    }
    ck_assert_int_eq(rename(from, to), 0);
    dataset_info_done(&info);
}

/* ---- rows ---- */

struct rows {
    const struct child *child;
    const struct dataset_info *info;
    const struct model_combine *combine;
    const struct preprocess *fit; /* of the first member */
    size_t n;
    float *raw;        /* [n, inputs]: what the predictor gets */
    char (*texts)[24]; /* [n, inputs]: cells of category columns */
    json_t *inputs;
    struct predictor *predictor;
};

static void rows_done(struct rows *r)
{
    free(r->raw);
    free(r->texts);
    json_decref(r->inputs);
    predictor_free(r->predictor);
}

static void category_text(const struct dataset_column *c, struct rng *rng, char ret[24])
{
    static const char *const odd[] = {"", "NA", "n/a", "nAn", "Null", "?", "zebra", "Zebra", "-"};
    if (c->n_values > 0 && rng_below(rng, 3) > 0)
        (void)snprintf(ret, 24, "%s", c->values[rng_below(rng, c->n_values)]);
    else
        (void)snprintf(ret, 24, "%s", odd[rng_below(rng, AS_ARRAY_LEN(odd))]);
}

static void draw_cell(struct rows *r, size_t row, size_t column, struct rng *rng)
{
    size_t at = row * r->info->n_features + column;
    const struct dataset_column *c = r->info->columns ? &r->info->columns[column] : NULL;
    char *text = r->texts[at];
    const struct model_combine *k = r->combine;
    const struct dataset_codes *codes = &r->info->options.missing;
    bool by_number = k->kind == MODEL_BY && k->column == column && c && !c->categorical;
    if (by_number && rng_below(rng, 2)) /* a value that has an input */
        (void)snprintf(text, 24, "%s", k->buckets[rng_below(rng, k->n_buckets)].value);
    else if (codes->n > 0 && c->n_missing && rng_below(rng, 3) == 0)
        (void)snprintf(text, 24, "%g", codes->value[rng_below(rng, codes->n)]);
    else if (c && c->categorical)
        category_text(c, rng, text);
    else if (c && c->n_missing && rng_below(rng, 3) == 0)
        (void)snprintf(text, 24, "%s", rng_below(rng, 2) ? "" : "nan");
    else
        (void)snprintf(text, 24, "%.5g", rng_normal(rng) * (rng_below(rng, 2) ? 0.5 : 30));
    struct column_cell value = column_cell_of_text(text, strlen(text));
    if (c && c->categorical) /* a code among numbers stays the number, for both */
        column_cell_code(&value, codes);
    ck_ok(column_value_of(c, &value, &r->raw[at], &err), err);
}

static void draw_rows(struct rows *r)
{
    size_t width = r->info->n_features;
    bool bytes = r->info->format == DATASET_IDX || r->info->format == DATASET_CIFAR;
    struct rng rng;
    rng_init(&rng, 3, 9);
    r->raw = as_calloc(r->n * width, sizeof *r->raw);
    r->texts = as_calloc(r->n * width, sizeof *r->texts);
    ck_assert(r->raw && r->texts);
    for (size_t i = 0; i < r->n * width; i++)
        if (r->info->input == DATASET_TABLE)
            draw_cell(r, i / width, i % width, &rng);
        else
            r->raw[i] = bytes ? (float)rng_below(&rng, 256) : (float)rng_uniform(&rng);
}

/* ---- what the graph gets ---- */

static void write_values(const struct rows *r, json_t *tensor, const void *bytes, size_t n)
{
    char name[32];
    (void)snprintf(name, sizeof name, "values-%zu.bin", json_array_size(r->inputs));
    child_write(r->child, name, bytes, n);
    ck_assert_int_eq(json_object_set_new(tensor, "file", json_string(name)), 0);
}

static void add_tensor(const struct rows *r, json_t *tensor)
{
    ck_assert_ptr_nonnull(tensor);
    ck_assert_int_eq(json_array_append_new(r->inputs, tensor), 0);
}

static void feed_column(const struct rows *r, size_t column)
{
    const struct dataset_column *c = &r->info->columns[column];
    json_t *tensor = json_pack("{s:s, s:s, s:[i, i]}", "name", c->name, "type",
                               c->categorical ? "string" : "float32", "dims", (int)r->n, 1);
    AS_AUTO(as_freep) float *values = as_calloc(r->n, sizeof *values);
    JSON_AUTO texts = json_array();
    ck_assert(tensor && values && texts);
    for (size_t i = 0; i < r->n; i++) {
        values[i] = r->raw[i * r->info->n_features + column];
        ck_assert_int_eq(
            json_array_append_new(texts, json_string(r->texts[i * r->info->n_features + column])),
            0);
    }
    if (c->categorical)
        ck_assert_int_eq(json_object_set(tensor, "texts", texts), 0);
    else
        write_values(r, tensor, values, r->n * sizeof *values);
    add_tensor(r, tensor);
}

/* Pixels in the layout of the data set's files. */
static void feed_images(const struct rows *r)
{
    const struct dataset_info *info = r->info;
    size_t n = r->n * info->n_features, area = info->height * info->width;
    bool first = info->options.channels_first;
    bool bytes = info->format == DATASET_IDX || info->format == DATASET_CIFAR;
    AS_AUTO(as_freep) float *floats = as_calloc(n, sizeof *floats);
    AS_AUTO(as_freep) unsigned char *octets = as_calloc(n, 1);
    ck_assert(floats && octets);
    for (size_t i = 0; i < n; i++) {
        size_t row = i / info->n_features, at = i % info->n_features;
        size_t c = at % info->channels, place = at / info->channels;
        size_t to = row * info->n_features + (first ? c * area + place : at);
        floats[to] = r->raw[i];
        octets[to] = (unsigned char)r->raw[i];
    }
    size_t dims[] = {info->height, info->width, info->channels};
    if (first)
        memcpy(dims, (size_t[]){info->channels, info->height, info->width}, sizeof dims);
    json_t *tensor = json_pack("{s:s, s:s, s:[i, i, i, i]}", "name", "image", "type",
                               bytes ? "uint8" : "float32", "dims", (int)r->n, (int)dims[0],
                               (int)dims[1], (int)dims[2]);
    write_values(r, tensor, bytes ? (void *)octets : (void *)floats, bytes ? n : n * sizeof(float));
    add_tensor(r, tensor);
}

static void feed(struct rows *r)
{
    r->inputs = json_array();
    if (r->info->input == DATASET_IMAGE) {
        feed_images(r);
    } else if (r->info->columns) {
        for (size_t c = 0; c < r->info->n_features; c++)
            feed_column(r, c);
    } else {
        json_t *tensor = json_pack("{s:s, s:s, s:[i, i]}", "name", "x", "type", "float32", "dims",
                                   (int)r->n, (int)r->info->n_features);
        write_values(r, tensor, r->raw, r->n * r->info->n_features * sizeof *r->raw);
        add_tensor(r, tensor);
    }
}

/* ---- what it must give ---- */

/* `name`, or with "_" after it if a column has that name. */
static const char *output_name(const struct rows *r, const char *name, char ret[32])
{
    (void)snprintf(ret, 32, "%s", name);
    for (size_t c = 0; r->info->columns && c < r->info->n_features; c++)
        if (strcmp(r->info->columns[c].name, name) == 0)
            (void)snprintf(ret, 32, "%s_", name);
    return ret;
}

/* The label of each row of probabilities; "" where they are NaN. */
static json_t *expected_labels(const struct rows *r, const float *values)
{
    size_t k = r->info->n_outputs;
    json_t *labels = json_array();
    for (size_t i = 0; i < r->n; i++) {
        const float *p = values + i * k;
        const char *label =
            isnan(p[0]) ? "" : r->info->classes[model_combine_class(r->combine, p, k)];
        ck_assert_int_eq(json_array_append_new(labels, json_string(label)), 0);
    }
    return labels;
}

/* The unit of each target: the deviation by which networks and trees compute it. */
static json_t *units_of(const struct rows *r)
{
    json_t *units = json_array();
    for (size_t t = 0; t < r->fit->n_targets; t++)
        ck_assert_int_eq(json_array_append_new(units, json_real(r->fit->target_scale[t])), 0);
    return units;
}

static json_t *expected_outputs(const struct rows *r, const float *values)
{
    bool classes = r->info->task == DATASET_CLASSIFICATION;
    size_t k = r->info->n_outputs;
    char name[32];
    json_t *list = json_array();
    json_t *numbers =
        json_pack("{s:s, s:s, s:[i, i], s:s}", "name",
                  output_name(r, classes ? "probabilities" : "predictions", name), "type",
                  "float32", "dims", (int)r->n, (int)k, "file", "expected.bin");
    if (!classes && r->fit->n_targets > 0 && r->fit->target_transform == TARGET_AS_IS)
        ck_assert_int_eq(json_object_set_new(numbers, "unit", units_of(r)), 0);
    ck_assert_int_eq(json_array_append_new(list, numbers), 0);
    child_write(r->child, "expected.bin", values, r->n * k * sizeof *values);
    if (!classes)
        return list;
    json_t *labels =
        json_pack("{s:s, s:s, s:[i], s:o}", "name", output_name(r, "label", name), "type", "string",
                  "dims", (int)r->n, "texts", expected_labels(r, values));
    ck_assert_int_eq(json_array_append_new(list, labels), 0);
    return list;
}

void onnx_case_run(const struct child *c, json_t *inputs, json_t *outputs, bool refused)
{
    AS_AUTO(as_freep) char *graph = child_path(c, "model.onnx");
    AS_AUTO(as_freep) char *plan = child_path(c, "case.json");
    JSON_AUTO test = json_pack("{s:o, s:o, s:f, s:b}", "inputs", inputs, "outputs", outputs,
                               "tolerance", TOLERANCE, "refused", (int)refused);
    AS_AUTO(as_freep) char *text = json_format(test);
    ck_assert_ptr_nonnull(text);
    child_write(c, "case.json", text, strlen(text));
    if (onnx_case_has_checker())
        ask_tool(&check, "the checker", graph, NULL);
    if (onnx_case_has_runtime())
        ask_tool(&runtime, "ONNX Runtime", graph, plan);
}

/* Export, check, and run the graph. */
static void run_case(const struct child *c, const struct model_file *f, json_t *inputs,
                     json_t *outputs, bool refused)
{
    AS_AUTO(as_freep) char *graph = child_path(c, "model.onnx");
    ck_ok(onnx_write(f, graph, &err), err);
    onnx_case_run(c, inputs, outputs, refused);
}

/* The graph must give `expected` [rows, outputs]. */
static void run_graph(struct rows *r, const struct model_file *f, const float *expected)
{
    feed(r);
    run_case(r->child, f, json_incref(r->inputs), expected_outputs(r, expected),
             isnan(expected[0]));
}

static void begin(struct rows *r, const struct child *c, const char *name, size_t n,
                  struct model_file **ret)
{
    AS_AUTO(as_freep) char *path = child_path(c, name);
    ck_ok(model_file_read(path, MODEL_FILE_MAX_BYTES, ret, &err), err);
    *r = (struct rows){.child = c,
                       .info = model_file_data(*ret),
                       .combine = model_file_combine(*ret),
                       .fit = model_file_member(*ret, 0)->fit,
                       .n = n};
    draw_rows(r);
}

/* Is this input a number that means a missing value? */
static bool is_code(const struct rows *r, size_t i)
{
    const struct dataset_column *columns = r->info->columns;
    bool is_number = !columns || !columns[i % r->info->n_features].categorical;
    return is_number && dataset_codes_have(&r->info->options.missing, (double)r->raw[i]);
}

/* What XGBoost predicts for the rows with the one member that is trees. */
static void predict_trees(const struct rows *r, const struct model_file *f, float *ret)
{
    const struct model_member *m = model_file_member(f, 0);
    const struct safetensors_tensor *trees = model_file_find(f, 0, "trees");
    AS_AUTO(tree_model_freep) struct tree_model *model = NULL;
    AS_AUTO(dataset_done)
    struct dataset set = {.n_rows = r->n, .n_features = r->info->n_features};
    AS_AUTO(as_freep) int32_t *codes = NULL;
    AS_AUTO(as_freep) float *inputs = as_calloc(r->n * r->info->n_features, sizeof *inputs);
    set.x = as_calloc(r->n * r->info->n_features, sizeof *set.x);
    ck_assert(inputs && set.x);
    for (size_t i = 0; i < r->n * r->info->n_features; i++)
        set.x[i] = is_code(r, i) ? NAN : r->raw[i];
    ck_ok(preprocess_apply(m->fit, r->info, &set, &codes, &err), err);
    tree_inputs_of(r->info, set.x, codes, NULL, r->n, inputs);
    ck_ok(tree_model_load(trees->data, trees->size_bytes, m->spec, r->info, 1, &model, &err), err);
    ck_ok(tree_model_predict(model, inputs, r->n, ret, &err), err);
    if (r->info->task == DATASET_REGRESSION)
        outputs_to_own_unit(ret, r->n, m->fit);
}

void onnx_case_compare(const struct child *c, const char *name, size_t rows)
{
    AS_AUTO(rows_done) struct rows r = {0};
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    begin(&r, c, name, rows, &f);
    AS_AUTO(as_freep) float *expected = as_calloc(rows * r.info->n_outputs, sizeof *expected);
    ck_assert_ptr_nonnull(expected);
    if (model_file_n_members(f) == 1 && model_file_find(f, 0, "trees")) {
        predict_trees(&r, f, expected);
    } else {
        ck_ok(predictor_create(f, 0, &r.predictor, &err), err);
        ck_ok(predictor_run(r.predictor, r.raw, rows, expected, &err), err);
    }
    run_graph(&r, f, expected);
}

void onnx_case_refuses(const struct child *c, const char *name, size_t column, float value)
{
    AS_AUTO(rows_done) struct rows r = {0};
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    begin(&r, c, name, 1, &f);
    AS_AUTO(as_freep) float *expected = as_calloc(r.info->n_outputs, sizeof *expected);
    ck_assert_ptr_nonnull(expected);
    r.raw[column] = value;
    ck_ok(predictor_create(f, 0, &r.predictor, &err), err);
    ck_fails(predictor_run(r.predictor, r.raw, 1, expected, &err), AS_E_INVAL, err, "expected");
    for (size_t i = 0; i < r.info->n_outputs; i++)
        expected[i] = NAN;
    run_graph(&r, f, expected);
}

/* ---- text ---- */

/* Outputs [rows, context, vocabulary] of the network for tokens [rows, context]. */
static void run_network(const struct model_file *f, const struct net_plan *plan,
                        const int32_t *tokens, size_t rows, float *ret)
{
    const struct backend_opts opts = {.threads = 1};
    struct backend *be = NULL;
    struct network *net = NULL;
    struct buf *codes = NULL;
    AS_AUTO(as_freep) float *params = as_calloc(plan->n_params, sizeof *params);
    ck_assert_ptr_nonnull(params);
    for (size_t i = 0; i < plan->n_tensors; i++)
        ck_ok(model_file_tensor(f, 0, plan->tensors[i].name, SAFETENSORS_F32,
                                plan->tensors[i].count, params + plan->tensors[i].offset, &err),
              err);
    ck_ok(backend_open("cpu", &opts, &be, &err), err);
    ck_ok(network_create_forward(be, plan, 1, rows, &net, &err), err);
    ck_ok(network_write(net, network_params(net), 0, plan, params, &err), err);
    ck_ok(buf_create(be, BUF_I32, rows * plan->tokens, &codes, &err), err);
    ck_ok(buf_upload(codes, 0, tokens, rows * plan->tokens, &err), err);
    const struct network_pass pass = {.rows = rows, .codes = tensor_at(codes, 0, 0)};
    ck_ok(network_forward(net, be, 0, 1, &pass, &err), err);
    struct tensor out = network_outputs(net, 0);
    ck_ok(buf_download(out.buf, out.offset, ret, rows * plan->tokens * plan->outputs, &err), err);
    buf_free(codes);
    network_free(net);
    backend_free(be);
}

void onnx_case_compare_text(const struct child *c, const char *name, size_t rows)
{
    AS_AUTO(as_freep) char *path = child_path(c, name);
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    AS_AUTO(net_plan_freep) struct net_plan *plan = NULL;
    ck_ok(model_file_read(path, MODEL_FILE_MAX_BYTES, &f, &err), err);
    const struct net_data data = net_data_of(model_file_data(f), NULL);
    ck_ok(net_plan_create(model_file_member(f, 0)->spec, &data, "", &plan, &err), err);
    size_t n = rows * plan->tokens;
    AS_AUTO(as_freep) int32_t *tokens = as_calloc(n, sizeof *tokens);
    AS_AUTO(as_freep) int64_t *fed = as_calloc(n, sizeof *fed);
    AS_AUTO(as_freep) float *logits = as_calloc(n * plan->outputs, sizeof *logits);
    struct rng rng;
    rng_init(&rng, 3, 9);
    ck_assert(tokens && fed && logits);
    for (size_t i = 0; i < n; i++)
        fed[i] = tokens[i] = (int32_t)rng_below(&rng, plan->outputs);
    run_network(f, plan, tokens, rows, logits);
    child_write(c, "tokens.bin", fed, n * sizeof *fed);
    child_write(c, "expected.bin", logits, n * plan->outputs * sizeof *logits);
    run_case(c, f,
             json_pack("[{s:s, s:s, s:[i, i], s:s}]", "name", "tokens", "type", "int64", "dims",
                       (int)rows, (int)plan->tokens, "file", "tokens.bin"),
             json_pack("[{s:s, s:s, s:[i, i, i], s:s}]", "name", "logits", "type", "float32",
                       "dims", (int)rows, (int)plan->tokens, (int)plan->outputs, "file",
                       "expected.bin"),
             false);
}
