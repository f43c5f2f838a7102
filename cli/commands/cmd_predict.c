/* assay predict MODEL --data FILE: the predictions of a model for the rows of a file.
 *
 * MODEL is a file, or a version of a model on the server, which is fetched to a temporary file
 * first. Everything that reads, computes and writes is cli/predict/; this file finds the model, and
 * tells people what happened. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/file.h"
#include "base/str.h"
#include "base/temp_file.h"
#include "cli/commands/cmd.h"
#include "cli/commands/models_show.h"
#include "cli/files/model_ref.h"
#include "cli/files/table_options.h"
#include "cli/predict/predict_file.h"
#include "cli/session/exit_code.h"
#include "cli/session/fetch.h"
#include "cli/session/interrupt.h"
#include "cli/session/session.h"
#include "cli/view/meter.h"
#include "cli/view/say.h"

#define MOST_THREADS 16 /* each has the weights of the model */

struct predict_run {
    struct session session;
    const char *model, *data, *output, *separator, *decimal;
    struct csv_dialect written;
    bool proba, strict;
    struct meter meter;
};

static void show_progress(void *arg, int64_t bytes)
{
    meter_show(arg, bytes);
}

static void say_ignored(const char *columns)
{
    say("columns that the model does not use: %s", columns);
}

static size_t usable_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : (size_t)n;
}

static int64_t size_of(const char *path)
{
    struct stat sb;
    return !as_streq(path, "-") && stat(path, &sb) == 0 && S_ISREG(sb.st_mode) ? sb.st_size : -1;
}

static bool writes_file(const struct predict_run *run)
{
    return run->output && !as_streq(run->output, "-");
}

/* A line for each column whose missing numbers the model has not seen before. */
static void say_imputed(const struct predict_summary *s, const struct dataset_info *info)
{
    char buf[32];
    for (size_t c = 0; c < s->n_columns; c++)
        if (s->imputed[c] > 0 && info->columns[c].part == DATASET_CELL)
            say("column '%.80s': %zu number%s missing, as in no row of the training data; %s, the "
                "column's median, stands for %s",
                info->columns[c].name, s->imputed[c], s->imputed[c] == 1 ? " is" : "s are",
                as_format_double((double)s->medians[c], buf, sizeof buf),
                s->imputed[c] == 1 ? "it" : "them");
        else if (s->imputed[c] > 0)
            say("column '%.80s': %zu date%s missing, as in no row of the training data; the median "
                "day stands for %s",
                info->columns[c].name, s->imputed[c], s->imputed[c] == 1 ? " is" : "s are",
                s->imputed[c] == 1 ? "it" : "them");
}

static as_status print_summary(const struct predict_run *run, const struct predict_summary *s,
                               struct as_err *err)
{
    if (s->unknown > 0)
        say("%zu cell%s hold%s a category that training saw in no row or in one, and count%s as "
            "another one; "
            "the first: %s",
            s->unknown, s->unknown == 1 ? "" : "s", s->unknown == 1 ? "s" : "",
            s->unknown == 1 ? "s" : "", s->first);
    if (!writes_file(run))
        return AS_OK;
    say("%s: %zu row%s", run->output, s->rows, s->rows == 1 ? "" : "s");
    if (!run->session.json)
        return AS_OK;
    JSON_AUTO j =
        json_pack("{s:s, s:I, s:I, s:s?}", "file", run->output, "rows", (json_int_t)s->rows,
                  "unknown_categories", (json_int_t)s->unknown, "ignored_columns", s->ignored);
    return session_print_json(j, err);
}

static as_status predict_and_tell(struct predict_run *run, const struct model_file *f,
                                  struct as_err *err)
{
    AS_AUTO(predict_summary_done) struct predict_summary summary = {0};
    const struct predict_opts opts = {.data = run->data,
                                      .output = run->output,
                                      .written = run->written,
                                      .proba = run->proba,
                                      .strict = run->strict,
                                      .threads = usable_cores(),
                                      .stop = interrupt_seen,
                                      .on_progress = show_progress,
                                      .arg = &run->meter};
    if (run->proba && model_file_data(f)->task != DATASET_CLASSIFICATION)
        return as_fail(err, AS_E_INVAL,
                       "--proba: the model predicts numbers, which have no probabilities");
    meter_start(&run->meter, as_streq(run->data, "-") ? "standard input" : run->data, "predicting",
                size_of(run->data));
    as_status st = predict_file(f, &opts, say_ignored, &summary, err);
    meter_end(&run->meter);
    if (st != AS_OK)
        return st;
    say_imputed(&summary, model_file_data(f));
    return print_summary(run, &summary, err);
}

/* Read the version that the server stores under a name. */
static as_status read_of_server(struct predict_run *run, struct model_file **ret,
                                struct as_err *err)
{
    struct model_ref ref;
    JSON_AUTO v = NULL;
    char path[256], label[2 * MODEL_REF_MAX + 2];
    AS_AUTO(file_closep) int fd = -1;
    as_status st = model_ref_parse(run->model, &ref, err);
    if (st == AS_OK)
        st = session_connect(&run->session, err);
    if (st == AS_OK)
        st = models_get_version(&run->session, &ref, &v, err);
    if (st == AS_OK)
        st = temp_file_create(path, sizeof path, &fd, err);
    if (st != AS_OK)
        return st;
    (void)snprintf(label, sizeof label, "%s@%" JSON_INTEGER_FORMAT, ref.name,
                   json_integer_value(json_object_get(v, "version")));
    const struct fetch f = {.sha256 = json_string_value(json_object_get(v, "sha256")),
                            .size = json_integer_value(json_object_get(v, "size")),
                            .name = label,
                            .dest = path};
    st = fetch_content(&run->session, &f, err);
    if (st == AS_OK)
        st = model_file_read(path, MODEL_FILE_MAX_BYTES, ret, err);
    (void)unlink(path);
    return st;
}

/* A file comes first; a name with a slash is no model of the server. */
static as_status read_model(struct predict_run *run, struct model_file **ret, struct as_err *err)
{
    struct stat sb;
    if (stat(run->model, &sb) == 0 || strchr(run->model, '/'))
        return model_file_read(run->model, MODEL_FILE_MAX_BYTES, ret, err);
    return read_of_server(run, ret, err);
}

static as_status find_and_predict(struct predict_run *run, struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    as_status st = read_model(run, &f, err);
    return st == AS_OK ? predict_and_tell(run, f, err) : st;
}

static as_status check_options(struct predict_run *run, struct as_err *err)
{
    if (!run->data)
        return as_fail(err, AS_E_USAGE, "expected --data FILE");
    return table_options_parse(run->separator, run->decimal, NULL, &run->written, err);
}

int cmd_predict(const struct verb *v, int argc, char **argv)
{
    struct predict_run run = {0};
    static const char *const later = ""; /* read_of_server() connects */
    struct as_err err = {0};
    int n, code;
    const struct opt table[] = {
        {"data", 'd', OPT_STRING, &run.data, "FILE", NULL,
         "the rows: CSV (also .gz), .npy, .npz, .safetensors or IDX; a folder of images, or one "
         "image; - is standard input"},
        {"output", 'o', OPT_STRING, &run.output, "FILE", NULL,
         "CSV, or an array if it ends with .npy; - and the default are standard output"},
        {"proba", 0, OPT_FLAG, &run.proba, NULL, NULL,
         "classes: also a column with the probability of each class"},
        {"separator", 0, OPT_STRING, &run.separator, "CHARACTER", NULL,
         "csv: between cells, if it is another one than the model's data had; \"tab\" is a tab"},
        {"decimal", 0, OPT_STRING, &run.decimal, "SIGN", NULL,
         "csv: the sign before the fraction of a number, likewise"},
        {"strict", 0, OPT_FLAG, &run.strict, NULL, NULL,
         "a category that training did not see is an error"},
        SESSION_OPTS(&run.session),
    };
    run.session.instead = &later;
    if (session_begin(&run.session, v, table, argc, argv, 1, 1, &n, &code)) {
        run.model = argv[1];
        code = check_options(&run, &err) == AS_OK
                   ? session_end(&run.session, find_and_predict(&run, &err), &err)
                   : exit_with_usage(v->name, "%s", err.msg);
    }
    session_done(&run.session);
    return code;
}
