/* What a surrogate that is ready says: predictions with its guides, and the units of its values. */
#include "search/gp/surrogate.h"

#include <math.h>

as_status surrogate_reserve(const struct surrogate *s, struct gp_work *w, size_t batch,
                            struct as_err *err)
{
    as_status st = gp_work_reserve(w, s->model, batch, err);
    return st < 0 ? st : guides_reserve(&s->guides, batch, err);
}

void surrogate_predict(const struct surrogate *s, struct gp_work *w, const struct gp_rows *p,
                       double *ret_mean, double *ret_var)
{
    gp_predict(s->model, w, p, ret_mean, ret_var);
    guides_add(&s->guides, gp_model_columns(s->model), p, ret_mean, NULL);
}

void surrogate_predict_grad(const struct surrogate *s, struct gp_work *w, const struct gp_rows *p,
                            double *ret_mean, double *ret_var, double *ret_dmean, double *ret_dvar)
{
    gp_predict_grad(s->model, w, p, ret_mean, ret_var, ret_dmean, ret_dvar);
    guides_add(&s->guides, gp_model_columns(s->model), p, ret_mean, ret_dmean);
}

double surrogate_forward(const struct surrogate *s, double v)
{
    if (isinf(v)) /* no bound */
        return v;
    return s->warp ? gp_warp_forward(s->warp, v) : (v - s->mean) / s->deviation;
}

double surrogate_back(const struct surrogate *s, double v)
{
    return s->warp ? gp_warp_inverse(s->warp, v) : s->mean + s->deviation * v;
}

double surrogate_back_deviation(const struct surrogate *s, double mean, double sd)
{
    return sd * (s->warp ? gp_warp_inverse_slope(s->warp, mean) : s->deviation);
}
