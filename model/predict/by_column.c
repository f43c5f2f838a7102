/* A combination by a column: the rows of a pass are sorted by their inputs, and each input predicts
 * its own. So a row costs what one model costs, however many there are. */
#include <string.h>

#include "model/predict/predictor_priv.h"

/* Copy the rows of an input from `raw`. Returns their number. */
static size_t gather(const struct predictor *p, size_t input, const float *raw, size_t rows)
{
    size_t n = 0, width = p->info->n_features;
    for (size_t r = 0; r < rows; r++)
        if (p->of_row[r] == input)
            memcpy(p->raw + n++ * width, raw + r * width, width * sizeof *raw);
    return n;
}

static void scatter(const struct predictor *p, size_t input, size_t rows, float *ret)
{
    size_t n = 0, width = p->n_outputs;
    for (size_t r = 0; r < rows; r++)
        if (p->of_row[r] == input)
            memcpy(ret + r * width, p->part + n++ * width, width * sizeof *ret);
}

as_status predictor_by_column(struct predictor *p, const float *raw, size_t rows, float *ret,
                              struct as_err *err)
{
    const struct model_combine *c = model_file_combine(p->file);
    for (size_t r = 0; r < rows; r++)
        p->of_row[r] = model_combine_input(c, raw + r * p->info->n_features);
    for (size_t k = 0; k < c->n_inputs; k++) {
        size_t n = gather(p, k, raw, rows);
        if (n == 0)
            continue;
        as_status st = predictor_members_run(p, k, p->raw, n, err);
        if (st != AS_OK)
            return st;
        predictor_combine_input(p, k, n, p->part);
        scatter(p, k, rows, ret);
    }
    return AS_OK;
}
