/* What failing less costs in regret, and the other values of the constants that were tried:
 * decision 4007. */
#include "search/gp/failure_penalty.h"

#include <math.h>

#include "search/space/space.h"

/* One failure outweighs 32 completed trials. Chosen on the instances 1 and 2 of the benchmark's
 * `cliff`, `ball`, `disc`, `slope` and `banana`. The sum of a sweep still grows when the sweep
 * ends, so that a tenth of the trials fails: with nine completed trials it was an eighth. */
#define STEP 0.6
#define BALANCE 0.03 /* the share of failures at which the sum stands still */
#define SUM_MOST 8.0
#define CHECKED_MOST 64 /* the newest ended trials */
#define NEIGHBOURS 3
#define SKILL_OF_CHANCE 0.1 /* up to this, failures count as random */
#define SKILL_ENOUGH 0.35
/* Variance of the noise in the model of failures, relative to that of the ends: from here on, ends
 * count as predictable, and up to there, as random. Beside a region that fails it was 0 to 0.7 most
 * of the time, with failures anywhere 0.85 to 1. */
#define NOISE_ENOUGH 0.6
#define NOISE_OF_CHANCE 0.85
#define THRESHOLD 0.5
/* With full trust the threshold is lower by the share sum / (sum + SUM_OF_HALF), at least by
 * half. */
#define LOWER_LEAST 0.5
#define SUM_OF_HALF (1 / 0.3)

static bool has_failed(const struct training_set *s, size_t i)
{
    return s->avoided[i];
}

static bool counts(const struct training_set *s, size_t i)
{
    return s->state[i] == OBSERVED_COMPLETED || s->avoided[i];
}

/* What a difference in each dimension counts, from the lengthscales. */
struct scales {
    double real[2 * SPACE_MAX_PARAMS]; /* [n_real], per unit */
    double category[SPACE_MAX_PARAMS]; /* [n_category], squared */
};

static void set_scales(struct scales *ret, const struct encoding *e, const double *theta)
{
    for (size_t i = 0; i < e->n_real; i++)
        ret->real[i] = exp(-theta[e->real_length[i]]);
    for (size_t i = 0; i < e->n_category; i++)
        ret->category[i] = exp(-2 * theta[e->n_groups + i]);
}

/* Squared distance of two trials. */
static double distance(const struct training_set *s, const struct scales *by, size_t a, size_t b)
{
    const struct encoding *e = s->enc;
    const double *x = s->x + a * e->n_real, *y = s->x + b * e->n_real;
    const int32_t *u = s->z + a * e->n_category, *v = s->z + b * e->n_category;
    double sum = 0;
    for (size_t i = 0; i < e->n_real; i++) {
        double off = (x[i] - y[i]) * by->real[i];
        sum += off * off;
    }
    for (size_t i = 0; i < e->n_category; i++)
        sum += u[i] != v[i] ? by->category[i] : 0;
    return sum;
}

/* Did most of the nearest ended trials fail? */
static bool neighbours_failed(const struct training_set *s, const struct scales *by, size_t trial)
{
    double near[NEIGHBOURS] = {INFINITY, INFINITY, INFINITY};
    bool failed[NEIGHBOURS] = {false};
    size_t votes = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (i == trial || !counts(s, i))
            continue;
        double r = distance(s, by, trial, i);
        size_t at = NEIGHBOURS;
        while (at > 0 && r < near[at - 1])
            at--;
        for (size_t k = NEIGHBOURS - 1; at < NEIGHBOURS && k > at; k--) {
            near[k] = near[k - 1];
            failed[k] = failed[k - 1];
        }
        if (at < NEIGHBOURS) {
            near[at] = r;
            failed[at] = has_failed(s, i);
        }
    }
    for (size_t k = 0; k < NEIGHBOURS; k++)
        votes += failed[k];
    return 2 * votes > NEIGHBOURS;
}

/* By how much the neighbours predict better than the commonest end does: 1 always right, 0 no
 * better. */
static double prediction_skill(const struct training_set *s, const double *theta)
{
    size_t n = 0, n_failed = 0, n_right = 0;
    struct scales by;
    set_scales(&by, s->enc, theta);
    for (size_t i = s->n; i-- > 0 && n < CHECKED_MOST;) {
        if (!counts(s, i))
            continue;
        n++;
        n_failed += has_failed(s, i);
        n_right += neighbours_failed(s, &by, i) == has_failed(s, i);
    }
    size_t commonest = n_failed > n - n_failed ? n_failed : n - n_failed;
    return n > commonest ? ((double)n_right - (double)commonest) / (double)(n - commonest) : 0;
}

/* How far failures can be predicted, 0 to 1. While the trials gather at the border of a region, the
 * neighbours of each are of both kinds and predict little, although the model knows the region: so
 * the model's noise also counts. */
static double trust_of_failures(const struct training_set *s, const double *theta)
{
    double skill = prediction_skill(s, theta), noise = exp(theta[s->enc->n_lengths + 1]);
    double by_skill = (skill - SKILL_OF_CHANCE) / (SKILL_ENOUGH - SKILL_OF_CHANCE);
    double by_noise = (NOISE_OF_CHANCE - noise) / (NOISE_OF_CHANCE - NOISE_ENOUGH);
    return fmin(1, fmax(0, fmax(by_skill, by_noise)));
}

struct failure_penalty failure_penalty_of(const struct training_set *s, const double *theta)
{
    double sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (counts(s, i))
            sum += has_failed(s, i) ? STEP : -STEP * BALANCE / (1 - BALANCE);
        sum = fmin(SUM_MOST, fmax(0, sum));
    }
    double trust = trust_of_failures(s, theta), trusted = sum * trust;
    double lower = trust * fmax(LOWER_LEAST, trusted / (trusted + SUM_OF_HALF));
    return (struct failure_penalty){exp(trusted), THRESHOLD * (1 - lower)};
}
