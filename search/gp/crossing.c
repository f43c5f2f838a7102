/* DRAWS and OWN_MOST are of decision 4009: with more than two parameters of its own a branch is
 * found faster by the model (on `methods`, with four, five of six sweeps ended at 0.09 when every
 * branch was crossed, two of six otherwise). Far points are Sobol points, so the same suggestion is
 * the same point. */
#include "search/gp/crossing.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/population/design.h"
#include "search/problem/random_stream.h"
#include "search/sampling/sobol.h"

#define DRAWS 64
#define OWN_MOST 2 /* parameters of which far points are taken; in more, the model leads faster */

struct crossing {
    const struct training_set *s;
    const struct branch *b;
    bool in_best[SPACE_MAX_PARAMS]; /* active in the best trial */
    bool active[SPACE_MAX_PARAMS];  /* scratch */
};

static bool is_usable(const struct training_set *s, const double *point)
{
    return encoding_allows(s->enc, point, s->scratch) &&
           !training_set_tried(s, point, DESIGN_TOLERANCE);
}

/* The best trial in the branch; what it does not have, from `own`. */
static void cross(const struct crossing *c, const double *own, double *point)
{
    const struct encoding *e = c->s->enc;
    const double *best = training_set_point(c->s, c->s->best);
    for (size_t i = 0; i < e->n; i++)
        point[i] = c->in_best[i] ? best[i] : own[i];
    point[c->b->param] = encoding_place(e, c->b->param, c->b->level);
    encoding_snap(e, point);
}

/* The squared distance of the nearest trial of the branch, over the active parameters that the best
 * trial lacks; INFINITY without any. */
static double nearest(struct crossing *c, const double *point)
{
    const struct training_set *s = c->s;
    double least = INFINITY;
    encoding_active(s->enc, point, c->active);
    for (size_t t = 0; t < s->n; t++) {
        const double *other = training_set_point(s, t);
        double sum = 0;
        if (!branch_holds(s->enc, c->b, other))
            continue;
        for (size_t i = 0; i < s->enc->n; i++) {
            if (!c->active[i] || c->in_best[i])
                continue;
            bool is_choice = s->enc->params[i].kind == ENCODED_CHOICE;
            double off = is_choice ? point[i] != other[i] : point[i] - other[i];
            sum += off * off;
        }
        least = fmin(least, sum);
    }
    return least;
}

static bool farthest(struct crossing *c, uint64_t number, double *point)
{
    const struct training_set *s = c->s;
    const size_t d = s->enc->n;
    uint64_t key = rng_mix(s->spec->seed, number << 8 | SEARCH_DRAW_GP_MOVE);
    double own[SPACE_MAX_PARAMS] = {0}, tried[SPACE_MAX_PARAMS], most = -1;
    for (uint64_t k = 0; k < DRAWS; k++) {
        for (size_t i = 0; i < d; i++)
            own[i] = sobol_point(key, k, (unsigned)i);
        encoding_from_unit(s->enc, own, own);
        cross(c, own, tried);
        double far = nearest(c, tried);
        if (far <= most || !is_usable(s, tried))
            continue;
        most = far;
        memcpy(point, tried, d * sizeof *point);
    }
    return most >= 0;
}

/* How many parameters the branch has that the best trial lacks. */
static size_t own_count(struct crossing *c, const double *point)
{
    size_t n = 0;
    encoding_active(c->s->enc, point, c->active);
    for (size_t i = 0; i < c->s->enc->n; i++)
        n += c->active[i] && !c->in_best[i] && c->s->enc->params[i].kind != ENCODED_CONSTANT;
    return n;
}

bool crossing_point(const struct training_set *s, const struct branch *b, uint64_t number,
                    bool as_its_best, double *ret_point)
{
    struct crossing c = {.s = s, .b = b};
    if (s->best == TRAINING_SET_NONE || b->best == TRAINING_SET_NONE)
        return false;
    encoding_active(s->enc, training_set_point(s, s->best), c.in_best);
    cross(&c, training_set_point(s, b->best), ret_point);
    size_t n_own = own_count(&c, ret_point);
    if ((n_own == 0 || n_own > OWN_MOST) && !b->is_revisit)
        return false;
    if (as_its_best && is_usable(s, ret_point))
        return true;
    return n_own > 0 && n_own <= OWN_MOST && farthest(&c, number, ret_point);
}
