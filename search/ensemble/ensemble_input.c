#include "search/ensemble/ensemble_input.h"

#include <inttypes.h>
#include <math.h>

const char *const ensemble_method_names[ENSEMBLE_METHODS + 1] = {
    [ENSEMBLE_GREEDY] = "greedy",
    [ENSEMBLE_STACKING] = "stacking",
    [ENSEMBLE_AVERAGE] = "average",
    [ENSEMBLE_BUCKETING] = "bucketing",
};

static as_status check_targets(const struct ensemble_input *in, struct as_err *err)
{
    const struct score_truth *t = &in->truth;
    if (!score_is_of_classes(in->metric)) {
        bool finite = t->targets != NULL;
        for (size_t i = 0; finite && i < t->rows * t->outputs; i++)
            finite = isfinite(t->targets[i]);
        return finite ? AS_OK
                      : as_fail(err, AS_E_INVAL, "%s needs targets that are finite numbers",
                                score_format(in->metric));
    }
    if (!t->classes)
        return as_fail(err, AS_E_INVAL, "%s needs targets that are classes",
                       score_format(in->metric));
    for (size_t i = 0; i < t->rows; i++)
        if (t->classes[i] < 0 || (uint64_t)t->classes[i] >= t->outputs)
            return as_fail(err, AS_E_INVAL,
                           "row %zu has class %" PRId64 ", expected 0 to %zu (one per output)", i,
                           t->classes[i], t->outputs - 1);
    return AS_OK;
}

static as_status check_weights(const struct score_truth *t, struct as_err *err)
{
    double sum = t->weights ? 0 : 1;
    for (size_t i = 0; t->weights && i < t->rows; i++) {
        if (!(t->weights[i] >= 0) || !isfinite(t->weights[i]))
            return as_fail(err, AS_E_INVAL, "row %zu has the weight %g, expected 0 or more", i,
                           (double)t->weights[i]);
        sum += (double)t->weights[i];
    }
    return sum > 0 ? AS_OK : as_fail(err, AS_E_INVAL, "all rows have the weight 0");
}

as_status ensemble_input_check(const struct ensemble_input *in, struct as_err *err)
{
    size_t cells, bytes, rows = in->truth.rows, outputs = in->truth.outputs;
    if (in->candidates == 0 || rows == 0 || outputs == 0)
        return as_fail(err, AS_E_INVAL,
                       "an ensemble needs candidates, rows and outputs; found %zu, %zu and %zu",
                       in->candidates, rows, outputs);
    if (in->candidates > ENSEMBLE_MAX_CANDIDATES)
        return as_fail(err, AS_E_TOO_LARGE, "%zu candidates, at most %d are allowed",
                       in->candidates, ENSEMBLE_MAX_CANDIDATES);
    if (in->size < 1 || in->size > ENSEMBLE_MAX_SIZE)
        return as_fail(err, AS_E_INVAL, "an ensemble of %zu members, expected 1 to %d", in->size,
                       ENSEMBLE_MAX_SIZE);
    if (in->buckets && (in->n_buckets == 0 || in->n_buckets > ENSEMBLE_MAX_BUCKETS))
        return as_fail(err, AS_E_TOO_LARGE, "rows in %zu buckets, expected 1 to %d", in->n_buckets,
                       ENSEMBLE_MAX_BUCKETS);
    if (in->buckets && in->bytes)
        return as_fail(err, AS_E_INVAL, "models of buckets have no limit of bytes");
    if (in->calibrate && (!in->truth.classes || outputs < 2))
        return as_fail(err, AS_E_INVAL,
                       "only probabilities of two or more classes can be calibrated");
    if (rows > UINT32_MAX || __builtin_mul_overflow(rows, outputs, &cells) ||
        __builtin_mul_overflow(cells, 2 * sizeof(double), &bytes))
        return as_fail(err, AS_E_TOO_LARGE, "%zu rows of %zu outputs do not fit in memory", rows,
                       outputs);
    as_status st = check_weights(&in->truth, err);
    return st == AS_OK ? check_targets(in, err) : st;
}
