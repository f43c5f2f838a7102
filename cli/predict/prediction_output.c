/* Formats and writes predictions.
 *
 * CSV has one line for each row: `prediction`, the class or the number of the target; with several
 * targets `prediction_TARGET` for each, of clusters `prediction_cluster` and `prediction_distance`.
 * With `proba` each class has a column `probability_CLASS`.
 * Images have the column `file` before these.
 * Class names are written as they are, also those that a spreadsheet would take for a formula,
 * because programs compare them. Numbers are the shortest text that reads back as the same float32.
 *
 * An array is float32 [rows, columns]: probabilities, or numbers. The number of rows is known at
 * the end only, so the header is written twice. */
#include "cli/predict/prediction_output.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/formats/npy.h"
#include "data/target.h"

#define DIGITS_ALWAYS 9 /* of a float32 that read back as it */

void predict_output_done(struct predict_output *o)
{
    for (size_t i = 0; o->labels && i < o->info->n_classes; i++)
        free(o->labels[i]);
    free(o->labels);
    file_output_done(&o->file);
    *o = (struct predict_output){0};
}

/* ---- CSV ---- */

static void put_text(struct str *b, const char *text)
{
    size_t len = strlen(text);
    bool quote =
        strpbrk(text, ",\"\r\n") || (len && (text[0] == ' ' || text[len - 1] == ' ')) || len == 0;
    str_puts(b, quote ? "\"" : "");
    for (const char *p = text; *p; p++) {
        if (*p == '"')
            str_putc(b, '"');
        str_putc(b, *p);
    }
    str_puts(b, quote ? "\"" : "");
}

static void put_number(struct str *b, float v)
{
    char best[32], text[32];
    if (!isfinite(v)) {
        str_puts(b, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
        return;
    }
    (void)snprintf(best, sizeof best, "%.*g", DIGITS_ALWAYS, (double)v);
    for (int digits = DIGITS_ALWAYS - 1; digits > 0; digits--) {
        (void)snprintf(text, sizeof text, "%.*g", digits, (double)v);
        if (strtof(text, NULL) != v)
            break;
        memcpy(best, text, sizeof best);
    }
    str_puts(b, best);
}

static as_status quote_labels(struct predict_output *o, struct as_err *err)
{
    o->labels = as_calloc(o->info->n_classes, sizeof *o->labels);
    if (!o->labels)
        return as_fail_nomem(err);
    for (size_t i = 0; i < o->info->n_classes; i++) {
        struct str b = {0};
        put_text(&b, o->info->classes[i]);
        o->labels[i] = str_take(&b);
        if (!o->labels[i])
            return as_fail_nomem(err);
    }
    return AS_OK;
}

/* The name of a target among several: `target` is "a,b", unless names have commas. */
static void put_target(struct str *b, const struct dataset_info *info, size_t i)
{
    size_t commas = 0, at = 0;
    if (info->task == DATASET_CLUSTERING) {
        str_puts(b, i == 0 ? "cluster" : "distance");
        return;
    }
    const char *p = info->target ? info->target : "";
    for (const char *c = p; *c; c++)
        commas += *c == ',';
    if (commas + 1 != info->n_outputs) {
        str_printf(b, "%zu", i);
        return;
    }
    for (; at < i; at++)
        p = strchr(p, ',') + 1;
    str_printf(b, "%.*s", (int)strcspn(p, ","), p);
}

static void put_header(const struct predict_output *o, struct str *b)
{
    bool several = o->info->task != DATASET_CLASSIFICATION && o->columns > 1;
    str_puts(b, o->files ? "file," : "");
    str_puts(b, several ? "" : "prediction");
    for (size_t i = 0; i < o->columns && (several || o->proba); i++) {
        AS_AUTO(str_done) struct str name = {0};
        str_puts(&name, several ? "prediction_" : "probability_");
        if (several)
            put_target(&name, o->info, i);
        else
            str_puts(&name, o->info->classes[i]);
        str_puts(b, several && i == 0 ? "" : ",");
        put_text(b, str_cstr(&name));
        b->failed = b->failed || name.failed;
    }
    str_putc(b, '\n');
}

static void put_row(const struct predict_output *o, const float *v, struct str *b)
{
    if (o->labels)
        str_puts(b, o->labels[model_combine_class(o->combine, v, o->columns)]);
    for (size_t i = 0; i < o->columns && (!o->labels || o->proba); i++) {
        if (i > 0 || o->labels)
            str_putc(b, ',');
        put_number(b, v[i]);
    }
    str_putc(b, '\n');
}

/* ---- both ---- */

static as_status npy_start(const struct predict_output *o, struct str *b, struct as_err *err)
{
    return npy_format_header(NPY_F4, (size_t[]){o->rows, o->columns}, 2, NPY_HEADER_ROOM, b, err);
}

as_status predict_output_open(struct predict_output *o, const struct model_file *model,
                              const char *path, bool proba, bool files, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    const struct dataset_info *info = model_file_data(model);
    *o = (struct predict_output){.info = info,
                                 .combine = model_file_combine(model),
                                 .npy = as_ends_with(path, ".npy"),
                                 .proba = proba,
                                 .files = files,
                                 .columns = info->n_outputs};
    as_status st = info->task == DATASET_CLASSIFICATION ? quote_labels(o, err) : AS_OK;
    if (st == AS_OK)
        st = file_output_open(&o->file, path, 0644, err);
    if (st == AS_OK && o->npy && !o->file.draft.path)
        st = as_fail(err, AS_E_INVAL,
                     "%.200s is a pipe or a device, expected a file: the size of an array is known "
                     "at its end only",
                     path);
    if (st == AS_OK && o->npy)
        st = npy_start(o, &b, err);
    else if (st == AS_OK)
        put_header(o, &b);
    return st == AS_OK ? predict_output_write(o, &b, 0, err) : st;
}

void predict_output_format(const struct predict_output *o, const float *predictions,
                           char *const *files, size_t rows, struct str *b)
{
    if (o->npy)
        str_add(b, (const char *)predictions, rows * o->columns * sizeof *predictions);
    for (size_t r = 0; !o->npy && r < rows; r++) {
        if (files) {
            put_text(b, files[r]);
            str_putc(b, ',');
        }
        put_row(o, predictions + r * o->columns, b);
    }
}

as_status predict_output_write(struct predict_output *o, const struct str *b, size_t rows,
                               struct as_err *err)
{
    as_status st = str_check(b, err);
    if (st == AS_OK && b->len > 0)
        st = file_write_all(o->file.fd, b->s, b->len, err);
    if (st == AS_OK)
        o->rows += rows;
    return st;
}

as_status predict_output_commit(struct predict_output *o, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    if (o->npy) {
        as_status st = npy_start(o, &b, err);
        if (st != AS_OK)
            return st;
        if (pwrite(o->file.fd, b.s, b.len, 0) != (ssize_t)b.len)
            return as_fail(err, AS_E_IO, "cannot write the size of the array: %s", strerror(errno));
    }
    return file_output_commit(&o->file, err);
}
