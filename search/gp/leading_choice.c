#include "search/gp/leading_choice.h"

#include <math.h>

#include "base/json.h"

/* The constants are of decision 4036. With fewer numbers one model sorts them out. */
#define NUMBERS_LEAST 8
#define VALUES_MOST 16 /* of all choices: others have no trials for each */
#define LEVELS_MOST 6  /* of the choice */
#define STANDS_OUT 2.0 /* it lacks so many times the correlation that any other choice lacks */

/* Matern-5/2, covariance.h. */
double choice_distance(const struct encoding *e, size_t j, const json_t *theta)
{
    double log_length;
    const struct encoded_param *p = &e->params[j];
    if (p->kind != ENCODED_CHOICE ||
        !json_number_get(json_array_get(theta, (size_t)p->length), &log_length))
        return 0;
    double r = sqrt(5) / exp(log_length);
    return 1 - (1 + r + r * r / 3) * exp(-r);
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
        double d = choice_distance(e, j, theta);
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
