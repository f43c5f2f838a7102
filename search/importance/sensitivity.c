/* Sobol's indices by the pick-freeze method (sensitivity.h).
 *
 * The rows of A and B are evaluated in blocks, and each block keeps only sums. Resampling then
 * draws blocks and adds their sums, so that no function is evaluated twice. With independent
 * inputs, one set of mixed points serves the first and the total index. With constraints the two
 * indices need different sets: the mixed points must be allowed, so the missing inputs are drawn
 * until the point is.
 *
 * Values are taken relative to each function's value at the first point. Otherwise the sums of
 * squares would lose digits if the mean is large. */
#include "search/importance/sensitivity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "search/sampling/sobol.h"

/* The most points tried for each row of A and of B, and the most draws of a part of a row. After
 * that the row keeps its part, or does not count. */
#define MAX_POINT_DRAWS 256
#define MAX_PART_DRAWS 256

/* Further inputs use plain random numbers, because two sets need twice as many Sobol dimensions. */
#define MAX_SOBOL_INPUTS (SOBOL_MAX_DIMS / 2)

/* Sums over the rows of one block, for one function. Values are relative to its shift. */
struct moments {
    double sum, square; /* over A and B */
};

struct sums {
    double far;          /* (f(B) - f(A_j))^2 / 2 */
    double cross, drift; /* f(B) (f(A_j) - f(A)), and f(A_j) - f(A), without f(A) if some points
                            are not allowed */
    double near;         /* (f(A) - f(A_j))^2 / 2 */
};

/* The number of valid rows in one block. */
struct counts {
    size_t both, first, total;
};

struct design {
    const struct sensitivity_problem *p;
    struct rng rng;
    size_t n;                /* rows that were found: p->rows where all is allowed */
    double *a, *b, *mixed;   /* rows x d */
    bool *mixed_is;          /* rows: does this one count? */
    double *fa, *fb, *fm;    /* rows x n_functions */
    double *shift;           /* n_functions */
    struct moments *moments; /* blocks x n_functions */
    struct sums *sums;       /* blocks x n_functions, of one input */
    struct counts counts[SENSITIVITY_BLOCKS];
    unsigned char *picks; /* n_functions x blocks: how often each block counts */
};

static void design_done(struct design *s)
{
    free(s->a);
    free(s->b);
    free(s->mixed);
    free(s->mixed_is);
    free(s->fa);
    free(s->fb);
    free(s->fm);
    free(s->shift);
    free(s->moments);
    free(s->sums);
    free(s->picks);
}

static as_status design_alloc(struct design *s, struct as_err *err)
{
    size_t N = s->p->rows, d = s->p->d, S = s->p->n_functions;
    s->a = as_calloc(N, d * sizeof *s->a);
    s->b = as_calloc(N, d * sizeof *s->b);
    s->mixed = as_calloc(N, d * sizeof *s->mixed);
    s->mixed_is = as_calloc(N, sizeof *s->mixed_is);
    s->fa = as_calloc(N, S * sizeof *s->fa);
    s->fb = as_calloc(N, S * sizeof *s->fb);
    s->fm = as_calloc(N, S * sizeof *s->fm);
    s->shift = as_calloc(S, sizeof *s->shift);
    s->moments = as_calloc(SENSITIVITY_BLOCKS, S * sizeof *s->moments);
    s->sums = as_calloc(SENSITIVITY_BLOCKS, S * sizeof *s->sums);
    s->picks = as_calloc(S, SENSITIVITY_BLOCKS);
    if (!s->a || !s->b || !s->mixed || !s->mixed_is || !s->fa || !s->fb || !s->fm || !s->shift ||
        !s->moments || !s->sums || !s->picks)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows of %zu inputs", N, d);
    return AS_OK;
}

/* ---- points ---- */

static bool is_allowed(const struct design *s, const double *u)
{
    return !s->p->allowed || s->p->allowed(s->p->ctx, u);
}

/* Point i of the half of the sequence that is for A (0) or B (1). */
static void draw_point(struct design *s, size_t i, unsigned half, double *u)
{
    size_t d = s->p->d, n_sobol = d < MAX_SOBOL_INPUTS ? d : MAX_SOBOL_INPUTS;
    uint64_t scramble = rng_mix(s->p->key, s->p->hi);
    for (size_t k = 0; k < n_sobol; k++)
        u[k] = sobol_point(scramble, i, (unsigned)(half * n_sobol + k));
    for (size_t k = n_sobol; k < d; k++)
        u[k] = rng_uniform(&s->rng);
}

/* Fill up to `rows` points with the allowed ones of the sequence. Returns how many they are. */
static size_t draw_half(struct design *s, unsigned half, double *points)
{
    size_t d = s->p->d, found = 0, rows = s->p->rows;
    for (size_t i = 0; i < rows * MAX_POINT_DRAWS && found < rows; i++) {
        draw_point(s, i, half, points + found * d);
        found += is_allowed(s, points + found * d);
    }
    return found;
}

static as_status draw_points(struct design *s, struct as_err *err)
{
    size_t n_a = draw_half(s, 0, s->a), n_b = draw_half(s, 1, s->b);
    s->n = n_a < n_b ? n_a : n_b;
    if (s->n < SENSITIVITY_BLOCKS)
        return as_fail(err, AS_E_EXHAUSTED, "%zu of %zu points were allowed", s->n,
                       s->p->rows * MAX_POINT_DRAWS);
    return AS_OK;
}

/* Build A with input j from B. With constraints, B's value may not fit A's other inputs. Then
 * values are drawn until one fits; if none does, A's value stays. */
static void mix_for_total(struct design *s, size_t j)
{
    size_t d = s->p->d;
    for (size_t i = 0; i < s->n; i++) {
        const double *a = s->a + i * d;
        double *m = s->mixed + i * d;
        memcpy(m, a, d * sizeof *m);
        m[j] = s->b[i * d + j];
        s->mixed_is[i] = true;
        bool fits = !s->p->allowed;
        for (size_t draw = 0; !fits; draw++) {
            m[j] = draw < MAX_PART_DRAWS ? rng_uniform(&s->rng) : a[j];
            fits = draw == MAX_PART_DRAWS || is_allowed(s, m);
        }
    }
}

/* Keep B's input j and draw the others until they fit it. A row in which none fit does not
 * count. */
static void mix_for_first(struct design *s, size_t j)
{
    size_t d = s->p->d;
    for (size_t i = 0; i < s->n; i++) {
        double *m = s->mixed + i * d;
        s->mixed_is[i] = false;
        for (size_t draw = 0; draw < MAX_PART_DRAWS && !s->mixed_is[i]; draw++) {
            for (size_t k = 0; k < d; k++)
                m[k] = k == j ? s->b[i * d + j] : rng_uniform(&s->rng);
            s->mixed_is[i] = is_allowed(s, m);
        }
    }
}

/* ---- sums ---- */

static size_t block_of(const struct design *s, size_t row)
{
    return row * SENSITIVITY_BLOCKS / s->n;
}

static void take_moments(struct design *s)
{
    size_t S = s->p->n_functions;
    memcpy(s->shift, s->fa, S * sizeof *s->shift);
    for (size_t i = 0; i < s->n; i++) {
        double *fa = s->fa + i * S, *fb = s->fb + i * S;
        struct moments *m = s->moments + block_of(s, i) * S;
        s->counts[block_of(s, i)].both++;
        for (size_t f = 0; f < S; f++) {
            fa[f] -= s->shift[f];
            fb[f] -= s->shift[f];
            m[f].sum += fa[f] + fb[f];
            m[f].square += fa[f] * fa[f] + fb[f] * fb[f];
        }
    }
}

/* Add the evaluated `mixed` rows to the sums. With independent inputs one set serves both
 * indices. */
static void take_sums(struct design *s, bool for_first, bool for_total)
{
    size_t S = s->p->n_functions;
    for (size_t i = 0; i < s->n; i++) {
        if (!s->mixed_is[i])
            continue;
        size_t block = block_of(s, i);
        const double *fa = s->fa + i * S, *fb = s->fb + i * S, *fm = s->fm + i * S;
        s->counts[block].first += for_first;
        s->counts[block].total += for_total;
        for (size_t f = 0; f < S; f++) {
            struct sums *q = &s->sums[block * S + f];
            double m = fm[f] - s->shift[f], drift = m - fa[f], far = m - fb[f];
            if (for_first) {
                double change = for_total ? drift : m; /* otherwise A is unrelated to this row */
                q->far += far * far / 2;
                q->cross += fb[f] * change;
                q->drift += change;
            }
            if (for_total)
                q->near += drift * drift / 2;
        }
    }
}

static void pick_blocks(struct design *s)
{
    for (size_t f = 0; f < s->p->n_functions; f++)
        for (size_t r = 0; r < SENSITIVITY_BLOCKS; r++) {
            bool drawn = s->p->resample && f > 0;
            size_t block = drawn ? rng_below(&s->rng, SENSITIVITY_BLOCKS) : r;
            s->picks[f * SENSITIVITY_BLOCKS + block]++;
        }
}

/* The indices of function f from the sums of the blocks that were picked for it. */
static void finish_indices(const struct design *s, size_t f, double *ret_first, double *ret_total)
{
    size_t S = s->p->n_functions;
    double both = 0, n_first = 0, n_total = 0;
    struct moments m = {0};
    struct sums q = {0};
    for (size_t r = 0; r < SENSITIVITY_BLOCKS; r++) {
        double times = s->picks[f * SENSITIVITY_BLOCKS + r];
        const struct sums *one = &s->sums[r * S + f];
        both += 2 * times * (double)s->counts[r].both;
        n_first += times * (double)s->counts[r].first;
        n_total += times * (double)s->counts[r].total;
        m.sum += times * s->moments[r * S + f].sum;
        m.square += times * s->moments[r * S + f].square;
        q.far += times * one->far;
        q.cross += times * one->cross;
        q.drift += times * one->drift;
        q.near += times * one->near;
    }
    double mean = m.sum / both, variance = m.square / both - mean * mean;
    *ret_first = *ret_total = 0;
    if (!(variance > 0))
        return;
    if (n_total > 0)
        *ret_total = q.near / n_total / variance;
    if (n_first > 0) {
        double jansen = 1 - q.far / n_first / variance;
        double saltelli = (q.cross - mean * q.drift) / n_first / variance;
        double share = fmin(fmax(jansen, 0), 1);
        *ret_first = share * jansen + (1 - share) * saltelli;
    }
}

static as_status evaluate_rows(const struct design *s, const double *u, double *ret,
                               struct as_err *err)
{
    return s->p->evaluate(s->p->ctx, u, s->n, ret, err);
}

static as_status measure_input(struct design *s, size_t j, double *ret_first, double *ret_total,
                               struct as_err *err)
{
    memset(s->sums, 0, SENSITIVITY_BLOCKS * s->p->n_functions * sizeof *s->sums);
    for (size_t r = 0; r < SENSITIVITY_BLOCKS; r++)
        s->counts[r].first = s->counts[r].total = 0;
    mix_for_total(s, j);
    as_status st = evaluate_rows(s, s->mixed, s->fm, err);
    if (st < 0)
        return st;
    take_sums(s, !s->p->allowed, true);
    if (s->p->allowed) {
        mix_for_first(s, j);
        st = evaluate_rows(s, s->mixed, s->fm, err);
        if (st < 0)
            return st;
        take_sums(s, true, false);
    }
    for (size_t f = 0; f < s->p->n_functions; f++)
        finish_indices(s, f, &ret_first[f], &ret_total[f]);
    return AS_OK;
}

as_status sensitivity_estimate(const struct sensitivity_problem *p, const size_t *inputs,
                               size_t n_inputs, double *ret_first, double *ret_total,
                               struct as_err *err)
{
    AS_AUTO(design_done) struct design s = {.p = p};
    as_status st = design_alloc(&s, err);
    if (st < 0)
        return st;
    rng_init(&s.rng, p->key, p->hi);
    pick_blocks(&s);
    st = draw_points(&s, err);
    if (st < 0)
        return st;
    if ((st = evaluate_rows(&s, s.a, s.fa, err)) < 0 ||
        (st = evaluate_rows(&s, s.b, s.fb, err)) < 0)
        return st;
    take_moments(&s);
    for (size_t k = 0; k < n_inputs; k++) {
        st = measure_input(&s, inputs[k], ret_first + k * p->n_functions,
                           ret_total + k * p->n_functions, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}
