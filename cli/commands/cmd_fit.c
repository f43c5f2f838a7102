/* assay fit TABLE --target COLUMN: from a table to a model that can be served.
 *
 * What is decided (columns, metric, folds, kinds, ranges) is pure and in cli/fit/; this file
 * performs it with the same requests as `data add`, `run`, `ensemble` and `models add`. The
 * sweep is one like any other: --print shows its document.
 *
 * The time that is given is that of the whole command. A part of it is kept back for what comes
 * after the search: ensembles, the model, its file. At the end of the sweep's wall time the
 * trainings that run are ended. */
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/temp_file.h"
#include "base/yaml_reader.h"
#include "cli/commands/cmd.h"
#include "cli/commands/data_add.h"
#include "cli/commands/fit_choice.h"
#include "cli/commands/fit_report.h"
#include "cli/commands/watch.h"
#include "cli/files/row_sample.h"
#include "cli/files/running_server.h"
#include "cli/fit/fit_facts.h"
#include "cli/fit/fit_plan.h"
#include "cli/fit/fit_sweep.h"
#include "cli/predict/row_time.h"
#include "cli/session/exit_code.h"
#include "cli/session/fetch.h"
#include "cli/session/interrupt.h"
#include "cli/session/request.h"
#include "cli/session/session.h"
#include "cli/up/background.h"
#include "cli/up/up.h"
#include "cli/view/say.h"
#include "data/dataset_json.h"

#define RETRY_MS 30000
#define NAMES_TRIED 100 /* NAME, NAME-2, … */
#define NAME_MAX_LEN 40
#define MOST_RUNNERS 8 /* of an `assay up` that is started here */

struct fit {
    struct session session;
    struct data_add data; /* the table; `file`, `target` and options of reading it */
    struct fit_wishes wishes;
    int64_t time_ms; /* of the whole command */
    const char *size, *output, *name;
    bool print;
    int64_t start_ns;
    /* what was decided */
    struct table_look look;
    struct fit_columns columns;
    struct fit_facts facts;
    struct fit_plan plan;
    struct str command, document;
    struct str drop, numeric, text; /* lists of names: the user's and ours */
    char dataset[NAME_MAX_LEN + 8], model[NAME_MAX_LEN + 8];
    char sample[256]; /* a temporary file with a part of the rows; "": none */
    struct trial_ref sweep;
    json_t *remarks; /* a list of texts; owned */
};

static void fit_done(struct fit *f)
{
    table_look_done(&f->look);
    fit_columns_done(&f->columns);
    json_decref(f->remarks);
    str_done(&f->command);
    str_done(&f->document);
    str_done(&f->drop);
    str_done(&f->numeric);
    str_done(&f->text);
    if (f->sample[0])
        (void)unlink(f->sample);
    session_done(&f->session);
}

static int64_t elapsed_ms(const struct fit *f)
{
    return (clock_mono_ns() - f->start_ns) / NS_PER_MS;
}

/* For what comes after the search. */
static int64_t kept_back_ms(const struct fit *f)
{
    int64_t share = f->time_ms / 12;
    return share < 3000 ? 3000 : share > 60000 ? 60000 : share;
}

static size_t usable_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : (size_t)n;
}

/* ---- the table ---- */

/* The slug of a file's name: "/data/My Table.csv" is my-table. */
static void name_of(const char *path, char *ret)
{
    const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path;
    size_t n = 0, end = strcspn(from, ".");
    for (size_t i = 0; i < end && n < NAME_MAX_LEN; i++) {
        char c = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] + 32) : from[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
        if (plain)
            ret[n++] = c;
        else if (n && ret[n - 1] != '-')
            ret[n++] = '-';
    }
    while (n && (ret[n - 1] == '-' || ret[n - 1] == '_'))
        n--;
    ret[n] = '\0';
    if (!as_slug_valid(ret))
        (void)snprintf(ret, NAME_MAX_LEN, "table");
}

static void join_lists(struct str *b, const char *given, const struct str *ours)
{
    str_printf(b, "%s%s%s", given ? given : "", given && ours->len ? "," : "", str_cstr(ours));
}

/* For the report. */
static as_status keep_remarks(struct fit *f, const struct remark *remarks, size_t n,
                              struct as_err *err)
{
    f->remarks = json_array();
    for (size_t i = 0; f->remarks && i < n; i++) {
        AS_AUTO(str_done) struct str line = {0};
        remark_format(&f->look, &remarks[i], &line);
        if (json_array_append_new(f->remarks, json_string(str_cstr(&line))) != 0)
            return as_fail_nomem(err);
    }
    return f->remarks ? AS_OK : as_fail_nomem(err);
}

static as_status look_at_table(struct fit *f, struct as_err *err)
{
    AS_AUTO(dataset_options_done) struct dataset_options o = {0};
    AS_AUTO(as_freep) struct remark *remarks = NULL;
    dataset_task task = DATASET_TASK_AUTO;
    size_t n = 0;
    as_status st = data_add_options(&f->data, &o, err);
    if (st == AS_OK && f->data.task)
        st = dataset_task_parse(f->data.task, &task, err);
    if (st == AS_OK)
        st = table_look(f->data.file, f->data.target, task, &o, &f->look, err);
    if (st < 0)
        return as_err_prefix(err, st, "%.200s", f->data.file);
    st = remarks_of(&f->look, &remarks, &n, err);
    if (st == AS_OK)
        st = fit_columns_choose(&f->look, f->wishes.groups, &f->columns, err);
    if (st < 0)
        return st;
    st = keep_remarks(f, remarks, n, err);
    if (st != AS_OK || f->print)
        return st;
    remarks_say(&f->look, remarks, n);
    if (f->columns.drop.len)
        say("Left out: %s", str_cstr(&f->columns.drop));
    if (f->columns.numeric.len)
        say("Taken as numbers, and as missing where they are none: %s",
            str_cstr(&f->columns.numeric));
    if (f->columns.text.len)
        say("Taken as texts, whose words are hashed: %s", str_cstr(&f->columns.text));
    return AS_OK;
}

static as_status plan(struct fit *f, struct as_err *err)
{
    f->facts = fit_facts_of(&f->look, f->wishes.groups);
    f->wishes.cores = usable_cores();
    if (!f->print && getloadavg(&f->wishes.load, 1) != 1)
        f->wishes.load = 0;
    f->wishes.time_ms = f->time_ms - kept_back_ms(f) - (f->print ? 0 : elapsed_ms(f));
    as_status st = fit_plan_make(&f->facts, &f->wishes, &f->plan, err);
    if (st < 0)
        return st;
    join_lists(&f->drop, f->data.drop, &f->columns.drop);
    join_lists(&f->numeric, f->data.numeric, &f->columns.numeric);
    join_lists(&f->text, f->data.text, &f->columns.text);
    f->data.drop = f->drop.len ? str_cstr(&f->drop) : NULL;
    f->data.numeric = f->numeric.len ? str_cstr(&f->numeric) : NULL;
    f->data.text = f->text.len ? str_cstr(&f->text) : NULL;
    return f->drop.failed || f->numeric.failed || f->text.failed ? as_fail_nomem(err) : AS_OK;
}

static as_status write_document(struct fit *f, struct as_err *err)
{
    char name[NAME_MAX_LEN + 16];
    (void)snprintf(name, sizeof name, "%s-fit", f->model);
    str_clear(&f->document);
    fit_sweep_write(&f->plan, &f->facts, name, f->dataset, str_cstr(&f->command), &f->document);
    return str_check(&f->document, err);
}

/* ---- the server ---- */

/* Does the server answer, and has it runners? Asked before anything is sent. */
static as_status look_at_server(const struct fit *f, struct as_err *err)
{
    JSON_AUTO runners = NULL;
    as_status st = request_list(f->session.client, "/v1/runners", NULL, 0, &runners, err);
    size_t live = 0, i;
    json_t *r;
    json_array_foreach(runners, i, r) live +=
        as_streq(json_string_value(json_object_get(r, "state")), "live");
    if (st == AS_OK && live == 0)
        say("%s has no live runner: trials wait until one comes", f->session.url);
    return st;
}

/* Connect; where no server is known and none was named, start one, which goes on afterwards. */
static as_status find_server(struct fit *f, struct as_err *err)
{
    struct session *s = &f->session;
    const char *const named[] = {s->server, s->profile, getenv("ASSAY_SERVER"),
                                 getenv("ASSAY_PROFILE")};
    size_t runners = f->wishes.cores < MOST_RUNNERS ? f->wishes.cores : MOST_RUNNERS;
    pid_t pid = 0;
    as_status st = session_connect(s, err);
    for (size_t i = 0; i < AS_ARRAY_LEN(named); i++)
        if (named[i] && *named[i])
            return st;
    if (st != AS_E_UNAVAILABLE)
        return st;
    session_done(s);
    say("No server runs: starting `assay up` with %zu runner%s", runners, runners == 1 ? "" : "s");
    st = background_up_start(runners, interrupt_seen, &pid, err);
    if (st == AS_OK)
        st = session_connect(s, err);
    if (st == AS_OK && pid > 0)
        say("It goes on after this command, so that models can be served and looked at; `kill %d` "
            "ends it",
            (int)pid);
    return st;
}

/* ---- the data set ---- */

static as_status take_sample(struct fit *f, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    size_t kept = 0;
    if (f->plan.row_share >= 1)
        return AS_OK;
    as_status st = temp_file_create(f->sample, sizeof f->sample, &fd, err);
    if (st < 0) {
        f->sample[0] = '\0';
        return st;
    }
    st = row_sample_file(f->data.file, &f->look.dialect, f->plan.row_share, fd, &kept, err);
    if (st == AS_OK)
        say("Learning from %zu of %zu rows, drawn at random: more do not fit into the time "
            "(--time)",
            kept, f->look.n_rows);
    return st;
}

/* Register the table. A name that other content has is given a number. */
static as_status add_data(struct fit *f, struct as_err *err)
{
    const char *file = f->data.file;
    as_status st = take_sample(f, err);
    f->data.file = f->sample[0] ? f->sample : file;
    for (int i = 1; st == AS_OK && i <= NAMES_TRIED; i++) {
        (void)snprintf(f->dataset, sizeof f->dataset, i > 1 ? "%s-%d" : "%s", f->model, i);
        f->data.name = f->dataset;
        f->data.looked_at = true;
        st = data_add(&f->data, err);
        if (st != AS_E_CONFLICT || i == NAMES_TRIED)
            break;
        st = AS_OK;
    }
    f->data.file = file;
    return st;
}

/* ---- the sweep ---- */

static as_status create_paused(struct fit *f, struct as_err *err)
{
    JSON_AUTO tree = NULL;
    JSON_AUTO sweep = NULL;
    char key[CLIENT_KEY_SIZE];
    client_key_new(key);
    const struct client_opts opts = {.idempotency_key = key, .retry_ms = RETRY_MS};
    as_status st = yaml_parse(str_cstr(&f->document), f->document.len, &tree, err);
    if (st == AS_OK)
        st = client_call(f->session.client, "POST", "/v1/sweeps", "paused=true", tree, &opts,
                         &sweep, NULL, err);
    if (st < 0)
        return st;
    const char *id = json_string_value(json_object_get(sweep, "id"));
    return id ? request_parse_sweep(id, &f->sweep, err)
              : as_fail(err, AS_E_INTERNAL, "the server returned a sweep without an id");
}

static as_status add_first_trials(struct fit *f, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    JSON_AUTO trials = fit_sweep_first_trials(&f->plan, &f->facts);
    JSON_AUTO answer = NULL;
    char key[CLIENT_KEY_SIZE];
    client_key_new(key);
    const struct client_opts opts = {.idempotency_key = key, .retry_ms = RETRY_MS};
    request_path(&path, &f->sweep, "trials");
    as_status st = trials ? str_check(&path, err) : as_fail_nomem(err);
    return st < 0 ? st
                  : client_call(f->session.client, "POST", path.s, NULL, trials, &opts, &answer,
                                NULL, err);
}

static as_status start_sweep(struct fit *f, struct as_err *err)
{
    JSON_AUTO body = json_pack("{s:s}", "state", "running");
    JSON_AUTO answer = NULL;
    int64_t left = f->time_ms - kept_back_ms(f) - elapsed_ms(f);
    if (left < 1000)
        return as_fail(err, AS_E_TIMEOUT,
                       "--time: reading and registering the table took %.0f s, and nothing is left "
                       "for the search",
                       (double)elapsed_ms(f) / 1000);
    f->plan.search_ms = left;
    as_status st = write_document(f, err);
    if (st == AS_OK)
        st = create_paused(f, err);
    if (st == AS_OK)
        st = add_first_trials(f, err);
    if (st == AS_OK)
        st = request_patch(f->session.client, &f->sweep, body, &answer, err);
    if (st == AS_OK)
        say("Sweep %s: by %s, %s; dashboard: %s/#/sweeps/%s", f->sweep.sweep, f->plan.metric,
            f->plan.folds ? "in folds" : "on held-out rows", f->session.url, f->sweep.sweep);
    return st;
}

/* ---- the model ---- */

/* The trials of the chosen model with their parameters. */
static as_status trials_of(const struct fit *f, const struct fit_choice *c, json_t **ret,
                           struct as_err *err)
{
    JSON_AUTO sweep = NULL;
    const json_t *members = json_object_get(c->ensemble, "members");
    const json_t *number = json_object_get(json_object_get(c->ensemble, "best_single"), "number");
    JSON_AUTO trial = NULL;
    char rest[48];
    if (!c->single) {
        *ret = json_incref((json_t *)members);
        return AS_OK;
    }
    as_status st =
        number ? AS_OK : request_get(f->session.client, &f->sweep, NULL, NULL, &sweep, err);
    if (!number)
        number = json_object_get(json_object_get(sweep, "best"), "number");
    (void)snprintf(rest, sizeof rest, "trials/%" JSON_INTEGER_FORMAT, json_integer_value(number));
    if (st == AS_OK)
        st = request_get(f->session.client, &f->sweep, rest, NULL, &trial, err);
    if (st < 0)
        return st;
    *ret = json_pack("[{s:O, s:O?}]", "number", json_object_get(trial, "number"), "params",
                     json_object_get(trial, "params"));
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* Fetch the model to `path` and measure it. */
static as_status fetch_model(const struct fit *f, const json_t *version, const char *path,
                             double *ret_ms, struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *model = NULL;
    const struct fetch what = {.sha256 = json_string_value(json_object_get(version, "sha256")),
                               .size = json_integer_value(json_object_get(version, "size")),
                               .name = f->model,
                               .dest = path};
    as_status st = fetch_content(&f->session, &what, err);
    if (st == AS_OK)
        st = model_file_read(path, MODEL_FILE_MAX_BYTES, &model, err);
    return st == AS_OK ? predict_row_time(model, ret_ms, err) : st;
}

/* The file that was asked for, or a temporary one. */
static as_status measure_model(const struct fit *f, const json_t *version, double *ret_ms,
                               struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    char path[256];
    if (f->output)
        return fetch_model(f, version, f->output, ret_ms, err);
    as_status st = temp_file_create(path, sizeof path, &fd, err);
    if (st < 0)
        return st;
    st = fetch_model(f, version, path, ret_ms, err);
    (void)unlink(path);
    return st;
}

static bool exports_to_onnx(const struct table_look *look, const struct fit_columns *c)
{
    for (size_t i = 0; i < look->n_columns; i++)
        if (look->columns[i].kind == LOOK_DATE || look->columns[i].kind == LOOK_TEXT)
            return false;
    return c->text.len == 0;
}

static as_status report(struct fit *f, const struct fit_choice *c, const json_t *version,
                        double row_ms, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    JSON_AUTO sweep = NULL;
    JSON_AUTO trials = NULL;
    as_status st = request_get(f->session.client, &f->sweep, NULL, NULL, &sweep, err);
    if (st == AS_OK)
        st = trials_of(f, c, &trials, err);
    if (st < 0)
        return st;
    const struct fit_result r = {.choice = c,
                                 .sweep = sweep,
                                 .version = version,
                                 .trials = trials,
                                 .metric = f->plan.metric,
                                 .remarks = f->remarks,
                                 .output = f->output,
                                 .data = f->data.test ? f->data.test : f->data.file,
                                 .row_ms = row_ms,
                                 .size_bytes = f->wishes.size_bytes,
                                 .exports = exports_to_onnx(&f->look, &f->columns)};
    if (f->session.json) {
        JSON_AUTO j = fit_report_json(&r);
        return j ? session_print_json_line(j, err) : as_fail_nomem(err);
    }
    str_puts(&b, f->session.terminal.tty ? "\n" : "");
    fit_report_format(&r, &b);
    return session_print_text(&b, err);
}

static as_status fail_untrained(const struct fit *f, struct as_err *err)
{
    JSON_AUTO page = NULL;
    const json_t *first = NULL;
    if (request_get(f->session.client, &f->sweep, "trials", "state=failed&page_size=1", &page,
                    NULL) == AS_OK)
        first = json_array_get(json_object_get(page, "items"), 0);
    const char *reason = json_string_value(json_object_get(first, "reason"));
    if (reason)
        return as_fail(err, AS_E_INTERNAL,
                       "no training succeeded; one of them: %.150s (assay logs "
                       "%s/%" JSON_INTEGER_FORMAT ")",
                       reason, f->sweep.sweep,
                       json_integer_value(json_object_get(first, "number")));
    return as_fail(err, AS_E_TIMEOUT,
                   "no training ended in time: give more with --time; %s has what there is",
                   f->sweep.sweep);
}

static as_status keep_model(struct fit *f, struct as_err *err)
{
    AS_AUTO(fit_choice_done) struct fit_choice choice = {0};
    JSON_AUTO version = NULL;
    double row_ms = NAN;
    int64_t until_ns = f->start_ns + (f->time_ms - kept_back_ms(f) / 2) * NS_PER_MS;
    as_status st =
        fit_choice_make(&f->session, &f->sweep, f->wishes.size_bytes, until_ns, &choice, err);
    if (st == AS_E_NOT_FOUND)
        return fail_untrained(f, err);
    if (st == AS_OK)
        st = fit_choice_keep(&f->session, &f->sweep, &choice, f->model, &version, err);
    if (st == AS_OK)
        st = measure_model(f, version, &row_ms, err);
    return st == AS_OK ? report(f, &choice, version, row_ms, err) : st;
}

/* ---- the verb ---- */

static as_status prepare(struct fit *f, struct as_err *err)
{
    f->start_ns = clock_mono_ns();
    as_status st = look_at_table(f, err);
    if (st == AS_OK)
        st = plan(f, err);
    if (st != AS_OK || f->print)
        return st;
    st = find_server(f, err);
    if (st == AS_OK)
        st = look_at_server(f, err);
    if (st == AS_OK)
        st = add_data(f, err);
    return st == AS_OK ? start_sweep(f, err) : st;
}

static int fit(struct fit *f)
{
    struct as_err err = {0};
    as_status st = prepare(f, &err);
    if (st == AS_OK && f->print) {
        (void)snprintf(f->dataset, sizeof f->dataset, "%s", f->model);
        st = write_document(f, &err);
        return session_end(&f->session, st == AS_OK ? session_print_text(&f->document, &err) : st,
                           &err);
    }
    if (st < 0)
        return session_end(&f->session, st, &err);
    const struct watch_opts opts = {.top = -1, .ends_ms = clock_wall_ms() + f->plan.search_ms};
    int code = watch_sweep(&f->session, f->sweep.sweep, &opts);
    if (interrupt_seen() || (code != EXIT_OK && code != EXIT_FAIL && code != EXIT_CANCELLED))
        return code;
    st = keep_model(f, &err);
    return session_end(&f->session, st, &err);
}

static as_status check_options(struct fit *f, struct as_err *err)
{
    struct data_add *d = &f->data;
    if (!d->target)
        return as_fail(err, AS_E_USAGE, "expected --target COLUMN: what the model is to predict");
    if (as_streq(d->file, "-"))
        return as_fail(err, AS_E_USAGE, "expected a file: the table is read several times");
    if (f->time_ms < FIT_MIN_TIME_MS)
        return as_fail(err, AS_E_USAGE, "--time: found %" PRId64 " ms, expected 10s or more",
                       f->time_ms);
    if (as_parse_size(f->size, &f->wishes.size_bytes, err) < 0 || f->wishes.size_bytes < 1000)
        return as_fail(err, AS_E_USAGE, "--size: found '%.40s', expected a size such as 50MB",
                       f->size);
    if (f->wishes.folds < 0)
        return as_fail(err, AS_E_USAGE, "--folds: found %" PRId64 ", expected 1 or more",
                       f->wishes.folds);
    if (f->wishes.trials < 0 || f->wishes.trials > 1000000)
        return as_fail(err, AS_E_USAGE, "--trials: found %" PRId64 ", expected 1 to 1000000",
                       f->wishes.trials);
    if (f->name && (!as_slug_valid(f->name) || strlen(f->name) > NAME_MAX_LEN))
        return as_fail(err, AS_E_USAGE,
                       "--name: found '%.80s', expected lower-case letters, digits, '.', '_' and "
                       "'-', at most %d",
                       f->name, NAME_MAX_LEN);
    if (f->output && as_streq(f->output, "-"))
        return as_fail(err, AS_E_USAGE,
                       "--output: found '-', expected a path: the report goes to "
                       "standard output");
    d->format = "csv";
    return data_add_check(d, err);
}

static int run(struct fit *f, int argc, char **argv, char *const *line)
{
    struct as_err err = {0};
    f->data.file = argv[1];
    as_status st = check_options(f, &err);
    if (st < 0)
        return exit_with_usage("fit", "%s", err.msg);
    if (f->name)
        (void)snprintf(f->model, sizeof f->model, "%s", f->name);
    else
        name_of(f->data.file, f->model);
    str_puts(&f->command, "assay");
    for (int i = 0; i < argc; i++)
        str_printf(&f->command, " %s", line[i]);
    return fit(f);
}

int cmd_fit(const struct verb *v, int argc, char **argv)
{
    struct fit f = {.time_ms = INT64_C(600000), .size = "50MB"};
    static const char *const later = ""; /* find_server() connects */
    AS_AUTO(as_freep)
    char **line = as_calloc((size_t)argc, sizeof *line); /* opt_parse() moves it */
    int n, code;
    const struct opt table[] = {
        {"target", 't', OPT_STRING, &f.data.target, "COLUMN", NULL, "what the model is to predict"},
        {"time", 0, OPT_DURATION, &f.time_ms, "TIME", NULL, "for everything, 10s or more (10m)"},
        {"size", 0, OPT_STRING, &f.size, "SIZE", NULL, "of the model, at most (50MB)"},
        {"metric", 0, OPT_STRING, &f.wishes.metric, "METRIC", NULL,
         "auc, log_loss, accuracy, balanced_accuracy, f1, average_precision, brier; rmse, mae, r2, "
         "mape (auc of two classes, log_loss of more, rmse of numbers)"},
        {"test", 0, OPT_STRING, &f.data.test, "FILE", NULL,
         "rows for the final figure, which no search sees; a table like the other"},
        {"groups", 0, OPT_STRING, &f.wishes.groups, "COLUMN", NULL,
         "rows with one value here belong together: none of them is predicted by a model that saw "
         "another"},
        {"folds", 0, OPT_I64, &f.wishes.folds, "N", NULL,
         "how often each trial trains; 1: a part of the rows is held out (by rows and time)"},
        {"trials", 0, OPT_I64, &f.wishes.trials, "N", NULL,
         "configurations that are tried, at most (200)"},
        {"output", 'o', OPT_STRING, &f.output, "FILE", NULL, "write the model here, too"},
        {"print", 0, OPT_FLAG, &f.print, NULL, NULL,
         "print the sweep's document for `assay run`, and do nothing else"},
        {"name", 0, OPT_STRING, &f.name, "NAME", NULL,
         "of the model and the data set (that of the file)"},
        {"task", 0, OPT_STRING, &f.data.task, "TASK", NULL,
         "instead of what follows from the target's values", "classification|regression"},
        {"positive", 0, OPT_STRING, &f.data.positive, "CLASS", NULL,
         "of two classes, the one that f1 and average_precision are of (the last one)"},
        {"separator", 0, OPT_STRING, &f.data.separator, "CHARACTER", NULL,
         "between cells, if the first lines do not show it; \"tab\" is a tab"},
        {"decimal", 0, OPT_STRING, &f.data.decimal, "SIGN", NULL,
         "a comma if numbers are written 3,14 and the first lines do not show it"},
        {"comment", 0, OPT_STRING, &f.data.comment, "CHARACTER", NULL,
         "lines that begin with it are skipped"},
        {"drop", 0, OPT_STRING, &f.data.drop, "COLUMNS", NULL,
         "columns that are no inputs; with commas between, * for any text"},
        {"numeric", 0, OPT_STRING, &f.data.numeric, "COLUMNS", NULL,
         "columns of numbers; a cell that is no number is missing"},
        {"text", 0, OPT_STRING, &f.data.text, "COLUMNS", NULL,
         "free texts, whose words become numbers"},
        SESSION_OPTS(&f.session),
    };
    f.data.session = &f.session;
    f.session.instead = &later;
    for (int i = 0; line && i < argc; i++)
        line[i] = argv[i];
    if (session_begin(&f.session, v, table, argc, argv, 1, 1, &n, &code))
        code = line ? run(&f, argc, argv, line) : exit_with_usage(v->name, "out of memory");
    fit_done(&f);
    return code;
}
