#include "search/gp/leading_choice.h"

#include <math.h>

#include "base/json.h"

/* The constants are of decision 4036. With fewer numbers one model sorts them out. */
#define NUMBERS_LEAST 8
#define VALUES_MOST 16 /* of all choices: others have no trials for each */
#define LEVELS_MOST 6  /* of the choice */
#define STANDS_OUT 2.0 /* it lacks so many times the correlation that any other choice lacks */

/* 1 / l^2 of the length scale at this place of theta; 0: there is none. */
static double steepness(const json_t *theta, int length)
{
    double log_length;
    return length >= 0 && json_number_get(json_array_get(theta, (size_t)length), &log_length)
               ? exp(-2 * log_length)
               : 0;
}

/* Matern-5/2, covariance.h: 1 less the correlation at this squared distance. */
static double lost_correlation(double squared)
{
    double r = sqrt(5 * squared);
    return 1 - (1 + r + r * r / 3) * exp(-r);
}

double choice_distance(const struct encoding *e, size_t j, const json_t *theta)
{
    const struct encoded_param *p = &e->params[j];
    if (p->kind != ENCODED_CHOICE)
        return 0;
    double squared = steepness(theta, p->length);
    if (p->order_real >= 0)
        squared += steepness(theta, (int)e->real_length[p->order_real]);
    return lost_correlation(squared);
}

/* The same without the order of its values: a choice that is like a number does not lead. */
static double jump_of(const struct encoding *e, size_t j, const json_t *theta)
{
    const struct encoded_param *p = &e->params[j];
    return p->kind == ENCODED_CHOICE ? lost_correlation(steepness(theta, p->length)) : 0;
}

static bool is_searched_by_values(const struct training_set *s)
{
    const struct encoding *e = s->enc;
    uint64_t n = 0;
    for (size_t j = 0; j < e->n; j++)
        n += e->params[j].kind == ENCODED_CHOICE ? e->params[j].levels : 0;
    return s->spec->n_objectives == 1 && !s->spec->n_outcomes && !s->spec->earlier && !s->rungs &&
           !s->n_avoided && !e->has_conditions && e->n_numeric >= NUMBERS_LEAST && n <= VALUES_MOST;
}

size_t leading_choice(const struct training_set *s, const json_t *theta)
{
    const struct encoding *e = s->enc;
    size_t lead = TRAINING_SET_NONE;
    double most = 0, next = 0;
    if (!is_searched_by_values(s))
        return TRAINING_SET_NONE;
    for (size_t j = 0; j < e->n; j++) {
        double d = jump_of(e, j, theta);
        next = fmax(next, fmin(d, most));
        if (d > most) {
            most = d;
            lead = j;
        }
    }
    bool leads =
        most > CHOICE_MATTERS && most > STANDS_OUT * next && e->params[lead].levels <= LEVELS_MOST;
    return leads ? lead : TRAINING_SET_NONE;
}
