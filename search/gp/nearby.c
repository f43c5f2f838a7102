/* The reach of a move follows from what ended around the trial that it begins from, and not from
 * the moves before it, so that nothing has to be kept between suggestions. */
#include "search/gp/nearby.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/population/design.h"
#include "search/population/moves.h"
#include "search/problem/random_stream.h"

/* The constants are of the decisions 4024 and 4041. */
#define ENOUGH 5        /* successes, for the models to find more */
#define FAILED_BESIDE 9 /* failures for each success: 90% fail */
#define NEWEST 3        /* trials, all of which failed: the models do not find more */
#define MANY_PENDING 4
#define MOVES_ALL 12 /* failures in the neighbourhood, then the success may have been an accident */
#define REACH 0.25   /* how far a number moves at first, and what counts as the neighbourhood */
#define REACH_LEAST 0.002
#define REACH_MOST 0.5
#define SHRINK 0.8
#define WIDEN 1.5
#define MOVED_SHARE 0.5 /* of the parameters */
#define DRAWS 64

static bool newest_failed(const struct training_set *s)
{
    size_t n = 0;
    for (size_t i = s->n; i-- > 0 && n < NEWEST;) {
        if (s->state[i] == OBSERVED_COMPLETED)
            return false;
        n += s->avoided[i];
    }
    return true;
}

bool nearby_is_needed(const struct training_set *s)
{
    return s->n_feasible > 0 && s->n_feasible < ENOUGH && s->n_rungs == 0 &&
           s->n_avoided >= FAILED_BESIDE * s->n_completed && newest_failed(s);
}

/* Are the numbers of two points within REACH of each other, and their choices equal? */
static bool is_neighbour(const struct encoding *e, const double *a, const double *b)
{
    for (size_t i = 0; i < e->n; i++) {
        bool is_choice = e->params[i].kind == ENCODED_CHOICE;
        if (is_choice ? a[i] != b[i] : fabs(a[i] - b[i]) > REACH)
            return false;
    }
    return true;
}

/* How far moves from a trial go. */
static double reach_of(const struct training_set *s, size_t trial)
{
    double reach = REACH;
    const double *from = training_set_point(s, trial);
    for (size_t i = 0; i < s->n; i++) {
        if (i == trial || !(s->feasible[i] || s->avoided[i]) ||
            !is_neighbour(s->enc, from, training_set_point(s, i)))
            continue;
        reach *= s->feasible[i] ? WIDEN : SHRINK;
    }
    return fmin(REACH_MOST, fmax(REACH_LEAST, reach));
}

/* The k-th trial that succeeded. */
static size_t success(const struct training_set *s, uint64_t k)
{
    size_t i = 0;
    while (!s->feasible[i] || k-- > 0)
        i++;
    return i;
}

bool nearby_is_all(const struct training_set *s)
{
    if (s->n_feasible != 1 || s->n_completed != 1 || s->n_rungs > 0 ||
        s->n_avoided < FAILED_BESIDE || s->n_pending < MANY_PENDING)
        return false;
    size_t n = 0;
    const double *from = training_set_point(s, success(s, 0));
    for (size_t i = 0; i < s->n; i++)
        n += s->avoided[i] && is_neighbour(s->enc, from, training_set_point(s, i));
    return n < MOVES_ALL;
}

/* A level moves by one at least. A choice changes less often the shorter the moves are. */
static void move(const struct encoding *e, size_t i, double reach, struct rng *r, double *point)
{
    const struct encoded_param *p = &e->params[i];
    double step = reach * (2 * rng_uniform(r) - 1);
    if (p->kind == ENCODED_CHOICE) {
        if (rng_uniform(r) < reach)
            point[i] = moves_other_choice(r, p, point[i]);
        return;
    }
    double moved = fmin(1, fmax(0, point[i] + step));
    if (p->kind == ENCODED_LEVELS &&
        encoding_level(e, i, moved) == encoding_level(e, i, point[i])) {
        uint64_t at = encoding_level(e, i, point[i]);
        bool is_up = at == 0 || (step > 0 && at + 1 < p->levels);
        moved = encoding_place(e, i, is_up ? at + 1 : at - 1);
    }
    point[i] = moved;
}

bool nearby_point(const struct training_set *s, uint64_t number, double *ret_point)
{
    const struct encoding *e = s->enc;
    struct rng r;
    rng_init(&r, s->spec->seed, number << 8 | SEARCH_DRAW_GP_NEARBY);
    size_t from = success(s, rng_below(&r, s->n_feasible));
    double reach = reach_of(s, from);
    for (size_t k = 0; k < DRAWS; k++) {
        memcpy(ret_point, training_set_point(s, from), e->n * sizeof *ret_point);
        for (size_t i = 0; i < e->n; i++)
            if (e->params[i].kind != ENCODED_CONSTANT && rng_uniform(&r) < MOVED_SHARE)
                move(e, i, reach, &r, ret_point);
        encoding_snap(e, ret_point);
        if (encoding_allows(e, ret_point, s->scratch) &&
            !training_set_tried(s, ret_point, DESIGN_TOLERANCE))
            return true;
    }
    return false;
}
