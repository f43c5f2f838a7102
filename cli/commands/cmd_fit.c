/* assay fit TABLE --target COLUMN: from a table to a model that can be served.
 *
 * What is decided (columns, metric, folds, kinds, ranges) is pure and in cli/fit/. What is done are
 * the same requests as of `data add`, `run`, `ensemble` and `models add`, one file for each step
 * (fit_run.h). The sweep is one like any other: --print shows its document.
 *
 * The time that is given is that of the whole command but the start of a server, where none runs. A
 * part of it is kept back for what comes after the search: ensembles, the model, its file. At the
 * end of the sweep's wall time the trainings that run are ended. */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/commands/cmd.h"
#include "cli/commands/fit_run.h"
#include "cli/commands/watch.h"
#include "cli/session/exit_code.h"
#include "cli/session/interrupt.h"
#include "cli/view/say.h"

#define NOT_GIVEN INT64_MIN /* an option with a number */
#define LEAST_SIZE 1000     /* bytes of a model */

static void fit_done(struct fit *f)
{
    table_look_done(&f->look);
    fit_columns_done(&f->columns);
    json_decref(f->remarks);
    json_decref(f->doubts);
    json_decref(f->warm_trials);
    json_decref(f->defaults);
    json_decref(f->first_trials);
    json_decref(f->stack);
    json_decref(f->tree);
    str_done(&f->warm_from);
    str_done(&f->first);
    str_done(&f->command);
    str_done(&f->document);
    str_done(&f->drop);
    str_done(&f->numeric);
    str_done(&f->target_numeric);
    str_done(&f->target_written);
    str_done(&f->text);
    if (f->sample[0])
        (void)unlink(f->sample);
    session_done(&f->session);
}

static size_t usable_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : (size_t)n;
}

/* ---- the plan ---- */

static void join_lists(struct str *b, const char *given, const struct str *ours)
{
    str_printf(b, "%s%s%s", given ? given : "", given && ours->len ? "," : "", str_cstr(ours));
}

/* What is unusual about the table, and what is done about it. */
static void say_plan(const struct fit *f)
{
    const struct table_look *t = &f->look;
    if (f->plan.tree_bins)
        say("%zu columns: each tree of boosting sees %.2g to %.2g of them, in %zu bins, so that "
            "many trials fit; no column is left out for it",
            f->facts.columns, f->plan.ranges[FIT_COLUMNS].min, f->plan.ranges[FIT_COLUMNS].max,
            f->plan.tree_bins);
    if (f->plan.class_weights)
        say("`%s`: the class '%.40s' has %zu of %zu rows (%.2g %%): held-out rows have their share "
            "of it, and class weights are searched over",
            t->target, t->rarest_name, t->rarest, t->n_rows,
            100 * (double)t->rarest / (double)t->n_rows);
}

static as_status plan(struct fit *f, struct as_err *err)
{
    f->wishes.cores = usable_cores();
    if (!f->print && getloadavg(&f->wishes.load, 1) != 1)
        f->wishes.load = 0;
    f->wishes.time_ms = f->time_ms - fit_kept_back_ms(f) - (f->print ? 0 : fit_elapsed_ms(f));
    as_status st = fit_plan_make(&f->facts, &f->wishes, &f->plan, err);
    if (st < 0)
        return st;
    if (!f->print)
        say_plan(f);
    join_lists(&f->drop, f->data.drop, &f->columns.drop);
    join_lists(&f->numeric, f->data.numeric, &f->columns.numeric);
    join_lists(&f->text, f->data.text, &f->columns.text);
    f->data.drop = f->drop.len ? str_cstr(&f->drop) : NULL;
    f->data.numeric = f->numeric.len ? str_cstr(&f->numeric) : NULL;
    f->data.text = f->text.len ? str_cstr(&f->text) : NULL;
    return f->drop.failed || f->numeric.failed || f->text.failed ? as_fail_nomem(err) : AS_OK;
}

/* ---- the verb ---- */

/* Can the file be written that gets the model? Asked before the search, not after it. */
static as_status check_output(const struct fit *f, struct as_err *err)
{
    AS_AUTO(file_draft_done) struct file_draft d = {0};
    struct stat sb;
    if (!f->output || (stat(f->output, &sb) == 0 && (S_ISCHR(sb.st_mode) || S_ISFIFO(sb.st_mode))))
        return AS_OK;
    as_status st = file_draft_open(&d, f->output, err);
    return st < 0 ? as_err_prefix(err, st, "--output") : AS_OK;
}

/* The slug of a file's name: "/data/My Table.csv" is my-table. */
static void name_of(const char *path, char *ret)
{
    const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path;
    size_t n = 0, end = strcspn(from, ".");
    for (size_t i = 0; i < end && n < FIT_NAME_MAX; i++) {
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
        (void)snprintf(ret, FIT_NAME_MAX, "table");
}

static as_status prepare(struct fit *f, struct as_err *err)
{
    f->start_ns = clock_mono_ns();
    as_status st = f->print ? AS_OK : check_output(f, err);
    if (st == AS_OK)
        st = fit_table_look(f, err);
    if (st == AS_OK)
        st = plan(f, err);
    if (st == AS_OK && f->data.test)
        st = fit_table_test(f, err);
    if (st != AS_OK || f->print)
        return st;
    st = fit_server_find(f, err);
    if (st == AS_OK)
        st = fit_table_add(f, err);
    return st == AS_OK ? fit_search_start(f, err) : st;
}

/* Watch the search. Half of its time shows which ranges are too narrow. */
static int search(struct fit *f)
{
    struct as_err err = {0};
    struct watch_opts opts = {.top = -1,
                              .look_ms = f->plan.search_ms / 2,
                              .ends_ms = clock_wall_ms() + f->plan.search_ms};
    int code = watch_sweep(&f->session, f->sweep.sweep, &opts);
    if (code != EXIT_TIMEOUT)
        return code;
    as_status st = fit_search_widen(f, &err);
    if (st < 0)
        return session_end(&f->session, st, &err);
    opts.look_ms = 0;
    return watch_sweep(&f->session, f->sweep.sweep, &opts);
}

static int fit(struct fit *f)
{
    struct as_err err = {0};
    as_status st = prepare(f, &err);
    if (st == AS_OK && f->print) {
        (void)snprintf(f->dataset, sizeof f->dataset, "%s", f->model);
        fit_warm_look(f);
        st = fit_warm_defaults(f, &err);
        if (st == AS_OK)
            st = fit_search_write(f, &err);
        return session_end(&f->session, st == AS_OK ? session_print_text(&f->document, &err) : st,
                           &err);
    }
    if (st < 0)
        return session_end(&f->session, st, &err);
    int code = search(f);
    if (interrupt_seen())
        say("`assay models add %s %s` keeps its model when it has ended", f->sweep.sweep, f->model);
    if (interrupt_seen() || (code != EXIT_OK && code != EXIT_FAIL && code != EXIT_CANCELLED))
        return code;
    code = EXIT_OK;
    st = fit_layer_train(f, &code, &err);
    if (code != EXIT_OK)
        return code;
    if (st == AS_OK)
        st = fit_model_keep(f, &err);
    return session_end(&f->session, st, &err);
}

/* An option that was not given becomes 0, what is decided by the table. */
static as_status check_count(const char *option, int64_t most, const char *expected, int64_t *value,
                             struct as_err *err)
{
    if (*value == NOT_GIVEN) {
        *value = 0;
        return AS_OK;
    }
    if (*value >= 1 && *value <= most)
        return AS_OK;
    return as_fail(err, AS_E_USAGE, "--%s: found %" PRId64 ", expected %s", option, *value,
                   expected);
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
    if (as_parse_size(f->size, &f->wishes.size_bytes, err) < 0 || f->wishes.size_bytes < LEAST_SIZE)
        return as_fail(err, AS_E_USAGE,
                       "--size: found '%.40s', expected a size such as 50MB, %d bytes or more",
                       f->size, LEAST_SIZE);
    as_status st = check_count("folds", INT64_MAX, "1 or more", &f->wishes.folds, err);
    if (st == AS_OK)
        st = check_count("trials", 1000000, "1 to 1000000", &f->wishes.trials, err);
    if (st == AS_OK)
        st = check_count("layers", FIT_LAYERS, "1 or 2", &f->wishes.layers, err);
    if (st < 0)
        return st;
    if (f->name && (!as_slug_valid(f->name) || strlen(f->name) > FIT_NAME_MAX))
        return as_fail(err, AS_E_USAGE,
                       "--name: found '%.80s', expected lower-case letters, digits, '.', '_' and "
                       "'-', at most %d",
                       f->name, FIT_NAME_MAX);
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
    struct fit f = {.time_ms = INT64_C(600000),
                    .row_time_ms = 20,
                    .size = "50MB",
                    .wishes = {.folds = NOT_GIVEN, .trials = NOT_GIVEN, .layers = NOT_GIVEN}};
    static const char *const later = ""; /* fit_server_find() connects */
    AS_AUTO(as_freep)
    char **line = as_calloc((size_t)argc, sizeof *line); /* opt_parse() moves it */
    int n, code;
    const struct opt table[] = {
        {"target", 't', OPT_STRING, &f.data.target, "COLUMN", NULL, "what the model is to predict"},
        {"time", 0, OPT_DURATION, &f.time_ms, "TIME", NULL,
         "for everything but the start of a server, 10s or more (10m)"},
        {"size", 0, OPT_STRING, &f.size, "SIZE", NULL, "of the model, at most (50MB)"},
        {"row-time", 0, OPT_DURATION, &f.row_time_ms, "TIME", NULL,
         "of the model for one row on one core, at most (20ms)"},
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
        {"layers", 0, OPT_I64, &f.wishes.layers, "N", NULL,
         "2: then train the best configurations again, which see what the first ones predicted of "
         "the rows that they held out (1)"},
        {"output", 'o', OPT_STRING, &f.output, "FILE", NULL, "write the model here, too"},
        {"print", 0, OPT_FLAG, &f.print, NULL, NULL,
         "print the sweep's document for `assay run`, and do nothing else"},
        {"no-warm", 0, OPT_FLAG, &f.no_warm, NULL, NULL,
         "begin without what earlier fits on this server found on similar tables, and without what "
         "was good on public ones"},
        {"name", 0, OPT_STRING, &f.name, "NAME", NULL,
         "of the model and the data set (that of the file)"},
        DATA_TABLE_OPTS(&f.data),
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
