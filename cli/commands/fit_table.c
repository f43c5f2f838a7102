/* The table of `assay fit`: what there is to say of it, and the data set that it becomes. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/temp_file.h"
#include "cli/commands/fit_run.h"
#include "cli/files/row_sample.h"
#include "cli/view/say.h"
#include "data/csv_table.h"
#include "data/dataset_json.h"
#include "data/test_copies.h"

#define NAMES_TRIED 100 /* NAME, NAME-2, … */

static bool is_doubt(remark_kind kind)
{
    return kind == REMARK_TARGET || kind == REMARK_COPIES;
}

/* For the report. */
static as_status keep_remarks(struct fit *f, const struct remark *remarks, size_t n,
                              struct as_err *err)
{
    f->remarks = json_array();
    f->doubts = json_array();
    if (f->target_written.len && f->remarks &&
        json_array_append_new(f->remarks, json_string(str_cstr(&f->target_written))) != 0)
        return as_fail_nomem(err);
    for (size_t i = 0; f->remarks && f->doubts && i < n; i++) {
        AS_AUTO(str_done) struct str line = {0};
        remark_format(&f->look, &remarks[i], &line);
        if (json_array_append_new(f->remarks, json_string(str_cstr(&line))) != 0 ||
            (is_doubt(remarks[i].kind) &&
             json_array_append_new(f->doubts, json_string(str_cstr(&line))) != 0))
            return as_fail_nomem(err);
    }
    return f->remarks && f->doubts ? AS_OK : as_fail_nomem(err);
}

static void say_skewness(const struct fit *f)
{
    target_transform t = f->facts.transform;
    if (t != TARGET_AS_IS)
        say("`%s` is skewed (skewness %.2g, of %s %.2g): models of both are tried, and predict "
            "`%s` itself",
            f->look.target, skewness_of(&f->look.skewness.own),
            t == TARGET_LOG ? "its logarithm" : "log(1 + it)", f->facts.skewness_left,
            f->look.target);
}

/* Put the file's name before an error that does not say it. */
static as_status name_file(const char *file, as_status st, struct as_err *err)
{
    return strstr(err->msg, file) ? st : as_err_prefix(err, st, "%.200s", file);
}

static as_status look(struct fit *f, dataset_task task, struct as_err *err)
{
    AS_AUTO(dataset_options_done) struct dataset_options o = {0};
    as_status st = data_add_options(&f->data, &o, err);
    if (st < 0)
        return st;
    table_look_done(&f->look);
    return table_look(f->data.file, f->data.target, task, &o, &f->look, err);
}

/* A target of numbers that are written with signs is looked at once more, as numbers. */
static as_status look_as_numbers(struct fit *f, dataset_task task, struct as_err *err)
{
    AS_AUTO(str_done) struct str name = {0};
    if (!f->look.written)
        return AS_OK;
    str_printf(&f->target_written,
               "`%s`: numbers that are written with signs ('%.40s'), and taken as numbers",
               f->look.target, f->look.written);
    if (!f->print)
        say("%s", str_cstr(&f->target_written));
    dataset_name_pattern(f->look.target, &name);
    str_printf(&f->target_numeric, "%s%s%s", f->data.numeric ? f->data.numeric : "",
               f->data.numeric ? "," : "", str_cstr(&name));
    f->data.numeric = str_cstr(&f->target_numeric);
    as_status st = str_check(&f->target_numeric, err);
    if (st == AS_OK)
        st = str_check(&f->target_written, err);
    return st < 0 ? st : look(f, task, err);
}

as_status fit_table_look(struct fit *f, struct as_err *err)
{
    AS_AUTO(as_freep) struct remark *remarks = NULL;
    dataset_task task = DATASET_TASK_AUTO;
    size_t n = 0;
    as_status st = AS_OK;
    if (f->data.task)
        st = dataset_task_parse(f->data.task, &task, err);
    if (st == AS_OK && task == DATASET_CLUSTERING)
        st = as_fail(err, AS_E_USAGE, "--task: found clustering, expected a task with a target");
    if (st == AS_OK)
        st = look(f, task, err);
    if (st == AS_OK)
        st = look_as_numbers(f, task, err);
    if (st == AS_OK)
        st = fit_facts_check(&f->look, err);
    if (st < 0)
        return name_file(f->data.file, st, err);
    st = remarks_of(&f->look, &remarks, &n, err);
    if (st == AS_OK)
        st = fit_columns_choose(&f->look, f->wishes.groups, &f->columns, err);
    if (st < 0)
        return st;
    f->look.drop_unlabelled = f->data.drop_unlabelled || f->look.n_unlabelled > 0;
    f->data.drop_unlabelled = f->look.drop_unlabelled || f->data.test; /* also those of the test */
    f->facts = fit_facts_of(&f->look, f->wishes.groups);
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
    say_skewness(f);
    return AS_OK;
}

/* The table is read once more: which of its columns are inputs is known after the look alone. That
 * takes 0.8 us for a row of 12 columns. */
as_status fit_table_test(struct fit *f, struct as_err *err)
{
    AS_AUTO(dataset_options_done) struct dataset_options o = {0};
    AS_AUTO(str_done) struct str line = {0};
    size_t rows = 0, copies = 0;
    as_status st = data_add_options(&f->data, &o, err);
    if (st == AS_OK)
        st = test_copies_count(f->data.file, f->data.test, f->data.target, &o, &rows, &copies, err);
    if (st != AS_OK || copies == 0)
        return st;
    remark_count(&line, copies);
    str_puts(&line, " of ");
    remark_count(&line, rows);
    str_puts(&line, " test rows are rows of the table, too: their figure is too good");
    if ((st = str_check(&line, err)) != AS_OK)
        return st;
    if (!f->print)
        say("%s", str_cstr(&line));
    return json_array_append_new(f->remarks, json_string(str_cstr(&line))) != 0 ||
                   json_array_append_new(f->doubts, json_string(str_cstr(&line))) != 0
               ? as_fail_nomem(err)
               : AS_OK;
}

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

as_status fit_table_add(struct fit *f, struct as_err *err)
{
    const char *file = f->data.file;
    as_status st = take_sample(f, err);
    f->data.file = f->sample[0] ? f->sample : file;
    f->data.shown = file;
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
