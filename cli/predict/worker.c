/* What a thread does with a block: cells become numbers of rows, rows become predictions, and these
 * become text, a batch of rows at a time. Batches have at most BATCH_ROWS rows and so few numbers
 * that they stay in the second cache between the three. A fault ends the block; its message has the
 * file, the line and the column. */
#include "cli/predict/worker.h"

#include <stdio.h>
#include <string.h>

#define BATCH_ROWS ((size_t)256)
#define BATCH_NUMBERS ((size_t)1 << 18) /* inputs of a batch: 1 MiB */
#define MOST_LISTED 200                 /* bytes of a list of categories */

void predict_worker_done(struct predict_worker *w)
{
    predictor_free(w->predictor);
    free(w->raw);
    free(w->bytes);
    free(w->predictions);
    free(w->categorical);
    *w = (struct predict_worker){0};
}

as_status predict_worker_init(struct predict_worker *w, const struct model_file *f,
                              const struct predict_input *input,
                              const struct predict_output *output, bool strict, struct as_err *err)
{
    const struct dataset_info *info = model_file_data(f);
    size_t fit = BATCH_NUMBERS / info->n_features;
    *w = (struct predict_worker){.input = input, .output = output, .strict = strict};
    w->batch = fit < 1 ? 1 : fit < BATCH_ROWS ? fit : BATCH_ROWS;
    w->raw = as_calloc(w->batch * info->n_features, sizeof *w->raw);
    w->predictions = as_calloc(w->batch * info->n_outputs, sizeof *w->predictions);
    w->categorical = as_calloc(info->n_features, sizeof *w->categorical);
    if (!w->raw || !w->predictions || !w->categorical)
        return as_fail_nomem(err);
    if (predict_input_has_images(input) && !(w->bytes = as_calloc(info->n_features, 1)))
        return as_fail_nomem(err);
    for (size_t i = 0; info->columns && i < info->n_features; i++)
        w->categorical[i] = info->columns[i].categorical;
    return predictor_create(f, 0, &w->predictor, err);
}

/* ---- cells ---- */

/* The categories that training saw, for a message. */
static void list_values(const struct predict_worker *w, size_t column, struct str *b)
{
    const struct dataset_column *c = &w->output->info->columns[column];
    size_t listed = 0;
    for (size_t i = 0; i < c->n_values && b->len < MOST_LISTED; i++, listed = i)
        if (!predictor_is_unknown(w->predictor, column, (float)i))
            str_printf(b, "%s%.60s", b->len ? ", " : "", c->values[i]);
    str_puts(b, listed < c->n_values ? ", …" : "");
}

/* A cell whose category training did not see. */
static as_status note_unknown(const struct predict_worker *w, size_t column, size_t line,
                              const struct csv_cell *cell, struct predict_done *ret)
{
    char buf[24];
    const char *name = predictor_column(w->predictor, column, buf, sizeof buf);
    if (ret->unknown++ == 0)
        (void)snprintf(ret->first, sizeof ret->first, "line %zu, column '%.80s': '%.60s'", line,
                       name, cell->s);
    if (!w->strict)
        return AS_OK;
    AS_AUTO(str_done) struct str list = {0};
    list_values(w, column, &list);
    return as_fail(&ret->err, AS_E_INVAL,
                   "%.150s: line %zu: column '%.80s': found '%.60s', expected a category that "
                   "training saw: %s",
                   predict_input_name(w->input), line, name, cell->s, str_cstr(&list));
}

/* A missing number in a column that had none. */
static as_status note_imputed(const struct predict_worker *w, size_t column, size_t line,
                              struct predict_done *ret)
{
    char buf[24];
    ret->imputed[column]++;
    if (!w->strict)
        return AS_OK;
    return as_fail(
        &ret->err, AS_E_INVAL,
        "%.150s: line %zu: column '%.80s': the value is missing, expected one: no row of "
        "the training data lacks it",
        predict_input_name(w->input), line,
        predictor_column(w->predictor, column, buf, sizeof buf));
}

static as_status convert_row(struct predict_worker *w, const struct csv_row *row, float *raw,
                             struct predict_done *ret)
{
    const struct predict_columns *columns = predict_input_columns(w->input);
    for (size_t i = 0; i < columns->n; i++) {
        size_t k = columns->of[i];
        const struct csv_cell *cell = &row->cells[i];
        if (k == PREDICT_NO_COLUMN)
            continue;
        as_status st = predictor_cell(w->predictor, k, cell->s, cell->len, &raw[k], &ret->err);
        if (st != AS_OK)
            return as_err_prefix(&ret->err, st, "%.150s: line %zu", predict_input_name(w->input),
                                 row->line);
        if (predictor_is_imputed(w->predictor, k, raw[k])) {
            st = note_imputed(w, k, row->line, ret);
            if (st != AS_OK)
                return st;
        }
        if (w->categorical[k] && predictor_is_unknown(w->predictor, k, raw[k])) {
            st = note_unknown(w, k, row->line, cell, ret);
            if (st != AS_OK)
                return st;
        }
    }
    return AS_OK;
}

/* ---- rows ---- */

/* `files` are the names of images; NULL: the rows have none. */
static as_status predict_rows(struct predict_worker *w, const float *raw, char *const *files,
                              size_t rows, struct predict_done *ret)
{
    as_status st = predictor_run(w->predictor, raw, rows, w->predictions, &ret->err);
    if (st != AS_OK)
        return as_err_prefix(&ret->err, st, "%.150s", predict_input_name(w->input));
    predict_output_format(w->output, w->predictions, files, rows, &ret->text);
    ret->rows += rows;
    return AS_OK;
}

static as_status run_records(struct predict_worker *w, struct csv *csv, bool header,
                             struct predict_done *ret)
{
    size_t width = predictor_inputs(w->predictor), n = 0;
    struct csv_row row;
    as_status st = header ? csv_next(csv, &row, &ret->err) : AS_OK;
    while (st == AS_OK && (st = csv_next(csv, &row, &ret->err)) == AS_OK) {
        st = convert_row(w, &row, w->raw + n * width, ret);
        if (st != AS_OK)
            return st;
        if (++n == w->batch) {
            st = predict_rows(w, w->raw, NULL, n, ret);
            n = 0;
        }
    }
    if (st != AS_E_EXHAUSTED)
        return as_err_prefix(&ret->err, st, "%.150s", predict_input_name(w->input));
    return n > 0 ? predict_rows(w, w->raw, NULL, n, ret) : AS_OK;
}

static as_status run_table(struct predict_worker *w, struct predict_block *block,
                           struct predict_done *ret)
{
    AS_AUTO(csv_freep) struct csv *csv = NULL;
    as_status st = csv_open_block(predict_input_table(w->input), block->csv.bytes, block->csv.len,
                                  block->csv.line, &csv, &ret->err);
    return st == AS_OK ? run_records(w, csv, block->header, ret) : st;
}

static as_status run_array(struct predict_worker *w, const struct predict_block *block,
                           struct predict_done *ret)
{
    size_t width = predictor_inputs(w->predictor);
    for (size_t at = 0; at < block->rows; at += w->batch) {
        size_t n = block->rows - at < w->batch ? block->rows - at : w->batch;
        const float *raw = block->raw + at * width;
        for (size_t i = 0; i < n * width; i++) {
            as_status st = predictor_check(w->predictor, i % width, raw[i], &ret->err);
            if (st != AS_OK)
                return as_err_prefix(&ret->err, st, "%.150s: row %zu", predict_input_name(w->input),
                                     block->first + at + i / width);
            if (predictor_is_imputed(w->predictor, i % width, raw[i]))
                ret->imputed[i % width]++;
        }
        as_status st = predict_rows(w, raw, NULL, n, ret);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status run_images(struct predict_worker *w, const struct predict_block *block,
                            struct predict_done *ret)
{
    size_t width = predictor_inputs(w->predictor);
    for (size_t at = 0; at < block->rows; at += w->batch) {
        size_t n = block->rows - at < w->batch ? block->rows - at : w->batch;
        char *const *files = block->files + at;
        as_status st = AS_OK;
        for (size_t i = 0; st == AS_OK && i < n; i++)
            st = predict_images_read(w->output->info, files[i], w->bytes, w->raw + i * width,
                                     &ret->err);
        if (st == AS_OK)
            st = predict_rows(w, w->raw, files, n, ret);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

void predict_worker_run(struct predict_worker *w, struct predict_block *block,
                        struct predict_done *ret)
{
    str_clear(&ret->text);
    ret->rows = ret->unknown = 0;
    if (ret->imputed)
        memset(ret->imputed, 0, w->output->info->n_features * sizeof *ret->imputed);
    ret->err = (struct as_err){0};
    ret->st = predict_input_has_images(w->input) ? run_images(w, block, ret)
              : predict_input_table(w->input)    ? run_table(w, block, ret)
                                                 : run_array(w, block, ret);
}
