#include "model/combine/combine.h"

#include <math.h>
#include <string.h>

double combine_log(double p)
{
    double clipped = p < COMBINE_MIN_PROBABILITY ? COMBINE_MIN_PROBABILITY : p;
    return log(clipped > 1 ? 1 : clipped);
}

static void add_term(const struct combine_rule *rule, const struct combine_term *t, bool of_logs,
                     const size_t *rows, size_t n_rows, double *ret)
{
    size_t C = rule->outputs;
    for (size_t i = 0; i < n_rows; i++) {
        const float *p = t->predictions + (rows ? rows[i] : i) * C;
        for (size_t c = 0; c < C; c++)
            ret[i * C + c] += t->weight * (of_logs ? combine_log((double)p[c]) : (double)p[c]);
    }
}

static void softmax(double *p, size_t C)
{
    double most = -INFINITY, sum = 0;
    for (size_t c = 0; c < C; c++)
        most = p[c] > most ? p[c] : most;
    for (size_t c = 0; c < C; c++)
        sum += p[c] = exp(p[c] - most);
    for (size_t c = 0; c < C; c++)
        p[c] /= sum;
}

void combine_calibrate(const struct combine_calibration *c, size_t outputs, size_t n_rows,
                       double *p)
{
    for (size_t i = 0; i < n_rows; i++, p += outputs) {
        for (size_t k = 0; k < outputs; k++)
            p[k] = c->slope * combine_log((double)(float)p[k]);
        p[1] += c->bias;
        softmax(p, outputs);
    }
}

void combine_predictions(const struct combine_rule *rule, const struct combine_term *terms,
                         size_t n, const size_t *rows, size_t n_rows, double *ret)
{
    size_t C = rule->outputs;
    bool of_logs = rule->of_logs && (rule->biases || rule->is_sum);
    memset(ret, 0, n_rows * C * sizeof *ret);
    for (size_t t = 0; t < n; t++)
        add_term(rule, &terms[t], of_logs && (t == 0 || !rule->is_sum), rows, n_rows, ret);
    for (size_t i = 0; i < n_rows; i++) {
        for (size_t c = 0; rule->biases && c < C; c++)
            ret[i * C + c] += rule->biases[c];
        if (of_logs)
            softmax(ret + i * C, C);
    }
}
