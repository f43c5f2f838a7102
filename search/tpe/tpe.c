/* The mixtures are written for one suggestion. A density costs O(trials x parameters), so the
 * kernels' constants are computed once: the cut of a normal distribution at the ends of [0, 1]
 * depends on its centre alone. */
#include "search/tpe/tpe.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "search/population/population.h"
#include "search/prior/prior_dist.h"
#include "search/prior/trust.h"
#include "search/problem/explain.h"
#include "search/regression/special.h"

#define GOOD_SHARE 0.1
#define WIDEST 0.5 /* of a kernel, in units of the range */
#define SQRT_2_PI 2.5066282746310002
#define FEWEST_OF_FLOOR 100.0

/* One mixture. Component n is flat. In the mixture of the best, a share of it is the priors, which
 * falls with the number of results. */
struct mixture {
    const struct training_set *set; /* borrowed */
    const size_t *rows;             /* [n] of the set; borrowed */
    size_t n;
    double params;      /* the share of component n that is the priors */
    const bool *active; /* [set->n, d]: which parameters a trial has; borrowed */
    double *width;      /* [d] of the kernels of numbers; for choices the share that is spread */
    double *log_scale;  /* [n, d]: minus the log of the kernel's integral over [0, 1] */
};

static void mixture_done(struct mixture *m)
{
    free(m->width);
    free(m->log_scale);
}

static bool is_choice(const struct encoding *e, size_t j)
{
    return e->params[j].kind == ENCODED_CHOICE;
}

/* Scott's rule for a product kernel in d dimensions, from the spread of the mixture's own trials;
 * not narrower than a share of the range that shrinks with their number. */
static double number_width(const struct mixture *m, size_t j, size_t d)
{
    size_t n = 0;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (!m->active[m->rows[i] * d + j])
            continue;
        double x = training_set_point(m->set, m->rows[i])[j];
        sum += x;
        squares += x * x;
        n++;
    }
    double mean = n ? sum / (double)n : 0;
    double deviation = n > 1 ? sqrt(fmax(0, squares / (double)n - mean * mean)) : WIDEST;
    double scott = pow((double)(n + 1), -1.0 / (double)(d + 4));
    double least = 1 / fmin(FEWEST_OF_FLOOR, 1 + (double)n);
    return fmin(WIDEST, fmax(deviation * scott, least));
}

/* Laplace's rule: the share of a kernel that does not lie on its trial's own choice. */
static double choice_width(const struct mixture *m, size_t j)
{
    double k = (double)m->set->enc->params[j].levels;
    return (k - 1) / (k - 1 + (double)(m->n + 1));
}

static double integral(double centre, double width)
{
    return gp_norm_cdf((1 - centre) / width) - gp_norm_cdf(-centre / width);
}

static as_status mixture_make(const struct training_set *s, const size_t *rows, size_t n,
                              const bool *active, struct mixture *ret, struct as_err *err)
{
    size_t d = s->enc->n;
    struct mixture m = {s,
                        rows,
                        n,
                        0,
                        active,
                        as_calloc(d, sizeof *m.width),
                        as_calloc(n + 1, d * sizeof *m.log_scale)};
    if (!m.width || !m.log_scale) {
        mixture_done(&m);
        return as_fail(err, AS_E_NOMEM, "out of memory for the kernels of %zu trials", n);
    }
    for (size_t j = 0; j < d; j++) {
        m.width[j] = is_choice(s->enc, j) ? choice_width(&m, j) : number_width(&m, j, d);
        for (size_t i = 0; i < n && !is_choice(s->enc, j); i++) {
            double x = training_set_point(s, rows[i])[j];
            m.log_scale[i * d + j] = -log(SQRT_2_PI * m.width[j] * integral(x, m.width[j]));
        }
    }
    *ret = m;
    return AS_OK;
}

/* ---- draw ---- */

static double draw_number(struct rng *r, double centre, double width)
{
    double low = gp_norm_cdf(-centre / width), high = gp_norm_cdf((1 - centre) / width);
    double x = centre + width * gp_norm_quantile(low + rng_uniform(r) * (high - low));
    return fmin(1, fmax(0, x));
}

static double draw_flat(const struct encoding *e, size_t j, bool from_prior, struct rng *r)
{
    const struct encoded_param *p = &e->params[j];
    if (from_prior && e->space->params[j].prior)
        return prior_dist_place(e, j, rng_uniform(r));
    if (p->kind == ENCODED_CONSTANT)
        return 0;
    if (p->kind == ENCODED_CHOICE)
        return (double)rng_below(r, p->levels);
    return rng_uniform(r);
}

/* Every parameter is drawn, active or not: which ones are follows from the choices. */
static void mixture_draw(const struct mixture *m, struct rng *r, double *ret)
{
    const struct encoding *e = m->set->enc;
    size_t i = (size_t)rng_below(r, m->n + 1), d = e->n;
    bool from_prior = i == m->n && m->params > 0 && rng_uniform(r) < m->params;
    for (size_t j = 0; j < d; j++) {
        bool flat = i == m->n || !m->active[m->rows[i] * d + j];
        if (flat || (is_choice(e, j) && rng_uniform(r) < m->width[j]))
            ret[j] = draw_flat(e, j, from_prior, r);
        else if (is_choice(e, j) || e->params[j].kind == ENCODED_CONSTANT)
            ret[j] = training_set_point(m->set, m->rows[i])[j];
        else
            ret[j] = draw_number(r, training_set_point(m->set, m->rows[i])[j], m->width[j]);
    }
    encoding_snap(e, ret);
}

/* ---- density ---- */

/* The log of a kernel's density, relative to that of the flat one, at a point. */
static double kernel_log(const struct mixture *m, size_t i, const double *x, const bool *active)
{
    const struct encoding *e = m->set->enc;
    size_t d = e->n, row = m->rows[i];
    const double *at = training_set_point(m->set, row);
    double sum = 0;
    for (size_t j = 0; j < d; j++) {
        if (!active[j] || !m->active[row * d + j] || e->params[j].kind == ENCODED_CONSTANT)
            continue;
        if (is_choice(e, j)) {
            double k = (double)e->params[j].levels, spread = m->width[j];
            sum += log(x[j] == at[j] ? k * (1 - spread) + spread : spread);
        } else {
            double off = (x[j] - at[j]) / m->width[j];
            sum += m->log_scale[i * d + j] - 0.5 * off * off;
        }
    }
    return sum;
}

/* The log of the last component. */
static double flat_log(const struct mixture *m, const double *x, const bool *active)
{
    double sum = 0;
    if (!(m->params > 0))
        return 0;
    for (size_t j = 0; j < m->set->enc->n; j++)
        sum += active[j] ? prior_dist_density(m->set->enc, j, x[j]) : 0;
    double share = log(m->params), rest = log1p(-m->params);
    return fmax(share + sum, rest) + log1p(exp(-fabs(share + sum - rest)));
}

/* Up to a constant that all mixtures share at a point: log of the mean over the components. */
static double mixture_log(const struct mixture *m, const double *x, const bool *active)
{
    double most = flat_log(m, x, active), sum = 1;
    for (size_t i = 0; i < m->n; i++) {
        double v = kernel_log(m, i, x, active);
        if (v > most) {
            sum = sum * exp(most - v) + 1;
            most = v;
        } else {
            sum += exp(v - most);
        }
    }
    return most + log(sum / (double)(m->n + 1));
}

/* ---- the suggestion ---- */

/* The others: after the best come the rest, then the trials under way. */
static size_t list_others(const struct population *p, size_t n_good, size_t *rows)
{
    size_t n = 0;
    for (size_t i = n_good; i < p->n; i++)
        rows[n++] = p->order[i];
    for (size_t i = 0; i < p->set->n; i++)
        if (p->set->state[i] == OBSERVED_PENDING)
            rows[n++] = i;
    return n;
}

static size_t good_size(const struct population *p)
{
    size_t n = (size_t)ceil(GOOD_SHARE * (double)p->n);
    n = n > TPE_GOOD_MOST ? TPE_GOOD_MOST : n;
    while (n > 1 && p->set->state[p->order[n - 1]] == OBSERVED_FAILED)
        n--;
    return n;
}

/* What one suggestion learns from the trials. */
struct estimate {
    size_t *others_rows;
    bool *active; /* [set->n + 1, d]: of each trial; the last row is of the draw at hand */
    double *x;    /* [d]: the draw at hand */
    struct mixture good, others;
};

static void tpe_end(void *self)
{
    struct estimate *t = self;
    if (!t)
        return;
    mixture_done(&t->good);
    mixture_done(&t->others);
    free(t->others_rows);
    free(t->active);
    free(t->x);
    free(t);
}

static as_status tpe_begin(const struct population *p, void **ret_self, struct as_err *err)
{
    const struct training_set *s = p->set;
    size_t d = s->enc->n, n_good = good_size(p);
    struct estimate *t = as_calloc(1, sizeof *t);
    bool ok = t && (t->others_rows = as_calloc(s->n + 1, sizeof *t->others_rows)) &&
              (t->active = as_calloc(s->n + 1, d * sizeof *t->active)) &&
              (t->x = as_calloc(d, sizeof *t->x));
    as_status st = ok ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    for (size_t i = 0; i < s->n && ok; i++)
        encoding_active(s->enc, training_set_point(s, i), t->active + i * d);
    if (st == AS_OK)
        st = mixture_make(s, p->order, n_good, t->active, &t->good, err);
    if (st == AS_OK) {
        t->good.params = trust_of(s, s->n) * prior_dist_share(p->n);
        st = mixture_make(s, t->others_rows, list_others(p, n_good, t->others_rows), t->active,
                          &t->others, err);
    }
    if (st < 0)
        tpe_end(t);
    else
        *ret_self = t;
    return st;
}

/* The best of the draws that are allowed; the last draw if none is, and the caller draws again. */
static void choose(struct estimate *t, struct rng *r, double *ret_point, double *ret_value)
{
    const struct training_set *s = t->good.set;
    size_t d = s->enc->n;
    bool *active = t->active + s->n * d;
    *ret_value = -INFINITY;
    for (size_t i = 0; i < TPE_CANDIDATES; i++) {
        mixture_draw(&t->good, r, t->x);
        encoding_active(s->enc, t->x, active);
        double v = encoding_allows(s->enc, t->x, s->scratch)
                       ? mixture_log(&t->good, t->x, active) - mixture_log(&t->others, t->x, active)
                       : -INFINITY;
        if (i > 0 && v <= *ret_value)
            continue;
        *ret_value = v;
        memcpy(ret_point, t->x, d * sizeof *ret_point);
    }
}

static as_status tpe_propose(void *self, const struct population *p, struct rng *r,
                             double *ret_point, json_t *reason, struct as_err *err)
{
    struct estimate *t = self;
    double value = 0;
    (void)p;
    choose(t, r, ret_point, &value);
    if (json_object_set_new(reason, "good", json_integer((json_int_t)t->good.n)) < 0 ||
        json_object_set_new(reason, "value", json_number_new(value)) < 0 ||
        (t->good.params > 0 &&
         json_object_set_new(reason, "prior", json_number_new(t->good.params)) < 0))
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion's reason");
    return AS_OK;
}

static void tpe_explain(const json_t *reason, struct str *b)
{
    const int64_t good = explain_count(reason, "good");
    if (good == 1)
        str_puts(b, "like the best trial and unlike the others");
    else
        str_printf(b, "like the %" PRId64 " best trials and unlike the others", good);
    explain_prior(reason, b);
}

static const struct population_method tpe = {.purpose = SEARCH_DRAW_TPE,
                                             .begin = tpe_begin,
                                             .propose = tpe_propose,
                                             .end = tpe_end,
                                             .explain = tpe_explain};

const struct search_method search_tpe = POPULATION_METHOD("tpe", tpe);
