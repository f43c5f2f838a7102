/* The columns of a row: names, cells, and which values a row may have. */
#include <math.h>
#include <stdio.h>

#include "data/column.h"
#include "data/csv_table.h"
#include "data/preprocess/table.h"
#include "data/target.h"
#include "model/predict/predictor_priv.h"

static const struct dataset_column *column_of(const struct predictor *p, size_t column)
{
    return p->info->columns ? &p->info->columns[column] : NULL;
}

const char *predictor_column(const struct predictor *p, size_t column, char *buf, size_t size)
{
    const struct dataset_column *c = column_of(p, column);
    if (c)
        return c->name;
    (void)snprintf(buf, size, "%zu", column);
    return buf;
}

static as_status fail_missing(const struct dataset_column *c, struct as_err *err)
{
    return as_fail(err, AS_E_INVAL,
                   "the value is missing, expected a %s: no row of the training data lacks it",
                   c && c->part != DATASET_CELL ? "date" : "number");
}

float predictor_median(const struct predictor *p, size_t column)
{
    float median = NAN; /* that of the first members stands for all */
    for (size_t e = p->n_encodings; e-- > 0;) {
        const float *known = p->encodings[e].fit->median;
        if (!known || isnan(known[column]))
            return NAN;
        median = known[column];
    }
    return median;
}

/* May a cell of the column be missing? A missing text has no words. */
static bool may_miss(const struct predictor *p, size_t column)
{
    const struct dataset_column *c = column_of(p, column);
    return c && (c->categorical || c->n_missing > 0 || c->part == DATASET_HASHED ||
                 !isnan(predictor_median(p, column)));
}

bool predictor_is_imputed(const struct predictor *p, size_t column, float value)
{
    const struct dataset_column *c = column_of(p, column);
    return isnan(value) && c && preprocess_column_is_complete(c);
}

/* Put the column's name before an error. */
static as_status in_column(const struct predictor *p, size_t column, as_status st,
                           struct as_err *err)
{
    char buf[24];
    return as_err_prefix(err, st, "column '%.80s'", predictor_column(p, column, buf, sizeof buf));
}

as_status predictor_cell(const struct predictor *p, size_t column, const char *text, size_t len,
                         float *ret, struct as_err *err)
{
    const struct dataset_column *c = column_of(p, column);
    double plain;
    bool numeric = !c || (!c->categorical && c->part == DATASET_CELL);
    const struct dataset_codes *codes = &p->info->options.missing;
    if (numeric && csv_plain_number(text, len, &plain) && !dataset_codes_have(codes, plain)) {
        *ret = (float)plain; /* at most 15 digits: never too large for float32 */
        return AS_OK;
    }
    struct column_cell cell = column_cell_of_text(text, len);
    if (numeric && c && dataset_names_match(&p->info->options.numeric, c->name))
        column_cell_as_number(&cell, p->info->options.decimal);
    column_cell_code(&cell, codes);
    as_status st = cell.missing && !may_miss(p, column) ? fail_missing(c, err)
                                                        : column_values_of(c, &cell, ret, err);
    return st == AS_OK ? AS_OK : in_column(p, column, st, err);
}

as_status predictor_know_values(struct predictor *p, struct as_err *err)
{
    size_t n = 0;
    p->categorical = as_calloc(p->info->n_features, sizeof *p->categorical);
    if (!p->categorical)
        return as_fail_nomem(err);
    if (!p->info->columns)
        return AS_OK;
    p->first_value = as_calloc(p->info->n_features, sizeof *p->first_value);
    if (!p->first_value)
        return as_fail_nomem(err);
    for (size_t c = 0; c < p->info->n_features; c++) {
        p->categorical[c] = p->info->columns[c].categorical;
        p->first_value[c] = n;
        n += p->info->columns[c].n_values;
    }
    p->known = as_calloc(n, sizeof *p->known);
    if (!p->known)
        return as_fail_nomem(err);
    for (size_t e = 0; e < p->n_encodings; e++)
        for (size_t i = 0; p->encodings[e].fit->seen && i < n; i++)
            p->known[i] = p->known[i] || p->encodings[e].fit->seen[i];
    return AS_OK;
}

bool predictor_is_unknown(const struct predictor *p, size_t column, float value)
{
    const struct dataset_column *c = column_of(p, column);
    if (!c || !c->categorical)
        return false;
    size_t v = (size_t)value;
    return v < c->n_values ? !p->known[p->first_value[column] + v]
                           : v == c->n_values || c->n_missing == 0;
}

/* A category is the index of a value, "another one" or "missing". */
static as_status check_category(const struct dataset_column *c, float value, struct as_err *err)
{
    float most = (float)(c->n_values + 1);
    if (value >= 0 && value <= most && value == floorf(value))
        return AS_OK;
    return as_fail(err, AS_E_INVAL, "found %g, expected the index of a category, 0 to %g",
                   (double)value, (double)most);
}

as_status predictor_check(const struct predictor *p, size_t column, float value, struct as_err *err)
{
    const struct dataset_column *c = column_of(p, column);
    as_status st = AS_OK;
    if (c && c->categorical)
        st = check_category(c, value, err);
    else if (isnan(value))
        st = may_miss(p, column) ? AS_OK : fail_missing(c, err);
    else
        st = target_check_float((double)value, err);
    return st == AS_OK ? AS_OK : in_column(p, column, st, err);
}
