/* Domains and their maps. Levels of an int are exact in int64. The unit interval is double, so a
 * discrete parameter survives the map through it exactly up to PARAM_EXACT_LEVELS levels. */
#include "search/space/param.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "search/space/cond.h"
#include "search/space/param_prior.h"

bool param_is_choice(const struct space_param *p)
{
    return p->kind != PARAM_FLOAT && p->kind != PARAM_INT;
}

void param_done(struct space_param *p)
{
    free(p->name);
    json_decref(p->values);
    for (size_t i = 0; i < p->n_conds; i++)
        cond_done(&p->conds[i]);
    free(p->conds);
    param_prior_free(p->prior);
    *p = (struct space_param){0};
}

/* ---- levels ---- */

double param_round(double v, double tolerance)
{
    char buf[32];
    (void)snprintf(buf, sizeof buf, "%.15g", v);
    double rounded = strtod(buf, NULL);
    return fabs(rounded - v) <= tolerance ? rounded : v;
}

static double float_level(const struct space_param *p, uint64_t k)
{
    /* 0.30000000000000004 becomes 0.3; a step that needs more than 15 digits keeps them */
    double v = param_round(p->real.min + (double)k * p->real.step, 1e-6 * p->real.step);
    /* a value within rounding of max is meant to be max */
    if (v > p->real.max || fabs(v - p->real.max) <= 1e-9 * p->real.step)
        return p->real.max;
    return k == 0 ? p->real.min : v;
}

uint64_t param_levels(const struct space_param *p)
{
    switch (p->kind) {
    case PARAM_FLOAT:
        if (p->real.step <= 0)
            return 0;
        return (uint64_t)floor((p->real.max - p->real.min) / p->real.step + 1e-9) + 1;
    case PARAM_INT:
        return (uint64_t)(p->integer.max - p->integer.min) / p->integer.step + 1;
    default:
        return p->n_values;
    }
}

union param_value param_level(const struct space_param *p, uint64_t k)
{
    switch (p->kind) {
    case PARAM_FLOAT:
        return (union param_value){.real = float_level(p, k)};
    case PARAM_INT:
        return (union param_value){.integer = p->integer.min + (int64_t)(k * p->integer.step)};
    default:
        return (union param_value){.choice = (size_t)k};
    }
}

uint64_t param_level_of(const struct space_param *p, union param_value v)
{
    switch (p->kind) {
    case PARAM_FLOAT: {
        double k = round((v.real - p->real.min) / p->real.step);
        double last = (double)(param_levels(p) - 1);
        return (uint64_t)fmin(fmax(k, 0), last);
    }
    case PARAM_INT:
        return (uint64_t)(v.integer - p->integer.min) / p->integer.step;
    default:
        return v.choice;
    }
}

int param_compare(const struct space_param *p, union param_value a, union param_value b)
{
    switch (p->kind) {
    case PARAM_FLOAT:
        return (a.real > b.real) - (a.real < b.real);
    case PARAM_INT:
        return (a.integer > b.integer) - (a.integer < b.integer);
    default:
        return (a.choice > b.choice) - (a.choice < b.choice);
    }
}

bool param_contains(const struct space_param *p, union param_value v)
{
    switch (p->kind) {
    case PARAM_FLOAT:
        if (!(v.real >= p->real.min && v.real <= p->real.max))
            return false;
        return p->real.step <= 0 || float_level(p, param_level_of(p, v)) == v.real;
    case PARAM_INT:
        return v.integer >= p->integer.min && v.integer <= p->integer.max &&
               (uint64_t)(v.integer - p->integer.min) % p->integer.step == 0;
    default:
        return v.choice < p->n_values;
    }
}

/* ---- the unit interval ---- */

/* Log scale of levels x_k = min + k step: level k owns [x_k - step/2, x_k + step/2), the first one
 * not less than half of min. All values are relative to that lowest edge, so that large levels of a
 * narrow range stay exact. */
struct log_levels {
    double low;    /* the lowest edge */
    double offset; /* (min - step/2) - low, at most 0 */
    double step;
    double span; /* ln(highest edge / low) */
};

static struct log_levels log_levels_of(const struct space_param *p)
{
    bool is_int = p->kind == PARAM_INT;
    double min = is_int ? (double)p->integer.min : p->real.min;
    double step = is_int ? (double)p->integer.step : p->real.step;
    struct log_levels l = {.low = fmax(min - step / 2, min / 2), .step = step};
    l.low = fmax(l.low, 1e-9 * step); /* keeps the ratios finite if min is tiny */
    l.offset = (min - step / 2) - l.low;
    l.span = log1p((l.offset + (double)param_levels(p) * step) / l.low);
    return l;
}

static uint64_t clamp_level(const struct space_param *p, double k)
{
    uint64_t last = param_levels(p) - 1;
    if (!(k > 0))
        return 0;
    return k >= (double)last ? last : (uint64_t)k;
}

static bool is_log(const struct space_param *p)
{
    return !param_is_choice(p) && p->scale == SCALE_LOG;
}

/* ln(max / min), also when the quotient overflows. */
static double log_range(double min, double max)
{
    return isfinite(max / min) ? log(max / min) : log(max) - log(min);
}

double param_spread(const struct space_param *p, double t)
{
    double min = p->kind == PARAM_INT ? (double)p->integer.min : p->real.min;
    double max = p->kind == PARAM_INT ? (double)p->integer.max : p->real.max;
    double v = min + t * (max - min);
    if (is_log(p))
        v = isfinite(max / min) ? min * exp(t * log_range(min, max))
                                : exp(log(min) + t * log_range(min, max));
    return fmin(fmax(v, min), max);
}

static double decode_continuous(const struct space_param *p, double u)
{
    if (u <= 0)
        return p->real.min;
    return u >= 1 ? p->real.max : param_spread(p, u);
}

static double encode_continuous(const struct space_param *p, double v)
{
    double min = p->real.min, max = p->real.max;
    if (!(max > min) || v <= min)
        return 0;
    if (v >= max)
        return 1;
    return is_log(p) ? log_range(min, v) / log_range(min, max) : (v - min) / (max - min);
}

union param_value param_decode(const struct space_param *p, double u)
{
    uint64_t n = param_levels(p);
    if (n == 0)
        return (union param_value){.real = decode_continuous(p, u)};
    if (!is_log(p))
        return param_level(p, clamp_level(p, floor(u * (double)n)));
    struct log_levels l = log_levels_of(p);
    double above = l.low * expm1(u * l.span);
    return param_level(p, clamp_level(p, floor((above - l.offset) / l.step)));
}

double param_encode(const struct space_param *p, union param_value v)
{
    uint64_t n = param_levels(p);
    if (n == 0)
        return encode_continuous(p, v.real);
    double k = (double)param_level_of(p, v);
    if (!is_log(p))
        return (k + 0.5) / (double)n;
    struct log_levels l = log_levels_of(p);
    return fmin(fmax(log1p((l.offset + (k + 0.5) * l.step) / l.low) / l.span, 0), 1);
}
