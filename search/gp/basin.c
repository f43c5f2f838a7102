/* Heads follow from the trials alone, so that nothing has to be kept between suggestions. */
#include "search/gp/basin.h"

#include <math.h>

#include "search/gp/candidates.h"

/* The constants are of decision 4027. */
#define NEAR 0.2        /* of each number's range */
#define ROUNDING 1e-9   /* of distances */
#define BOX_SHARE 0.9   /* of NEAR: a better trial in the box is near the head and takes over */
#define HEADS_AMONG 256 /* the best trials */
#define KNOWN 8         /* trials near a head: its basin is known */
#define KNOWN_FOR_NUMBER 0.5 /* and so many more for each length scale */

/* Are two trials near each other: all numbers within NEAR, and the choices equal? */
static bool is_near(const struct training_set *s, size_t i, size_t j)
{
    const struct encoding *e = s->enc;
    const double *a = training_set_point(s, i), *b = training_set_point(s, j);
    for (size_t k = 0; k < e->n; k++) {
        bool is_choice = e->params[k].kind == ENCODED_CHOICE;
        if (is_choice ? a[k] != b[k] : fabs(a[k] - b[k]) > NEAR + ROUNDING)
            return false;
    }
    return true;
}

/* Trials near this one, itself included. */
static size_t trials_near(const struct training_set *s, size_t head)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += is_near(s, head, i);
    return n;
}

bool basin_choose(const struct training_set *s, size_t *ret_head)
{
    size_t top[HEADS_AMONG + 1], n = gp_candidates_top(s, HEADS_AMONG, top);
    if (!s->enc->n_continuous)
        return false;
    double known = KNOWN + KNOWN_FOR_NUMBER * (double)s->enc->n_varied;
    for (size_t i = 1; i < n && s->feasible[top[i]]; i++) {
        bool is_head = true;
        for (size_t j = 0; j < i && is_head; j++)
            is_head = !is_near(s, top[i], top[j]);
        if (is_head && (double)trials_near(s, top[i]) < known) {
            *ret_head = top[i];
            return true;
        }
    }
    return false;
}

void basin_box(const struct training_set *s, size_t head, double *lower, double *upper)
{
    const double *centre = training_set_point(s, head);
    for (size_t i = 0; i < s->enc->n; i++) {
        lower[i] = fmax(0, centre[i] - BOX_SHARE * NEAR);
        upper[i] = fmin(1, centre[i] + BOX_SHARE * NEAR);
    }
}
