/* The chance that a trial beats the best one, from its value at a rung and from the trials that ran
 * to the end: the rule `curve`.
 *
 * The values at the end are a line of the values at the rung, with normal residuals (least squares
 * on the latest trials that ran to the end, both cut where they are far worse than the median, so
 * that a diverged trial is one bad trial and no lever). The chance is that of a normal variable
 * with the line's variance of prediction. That selection has removed trials with bad values at the
 * rung does not bias the line, because the line is given these values. */
#ifndef ASSAY_SEARCH_STOPPING_CHANCE_H
#define ASSAY_SEARCH_STOPPING_CHANCE_H

#include <stddef.h>

#define CHANCE_LATEST 128 /* of the trials that ran to the end */
#define CHANCE_ENOUGH 5   /* of these, before anything is predicted */

/* What trials had at one rung and at the end. Zeroed: none. */
struct chance_pairs {
    double here[CHANCE_LATEST], last[CHANCE_LATEST]; /* costs; NaN is worst */
    size_t n, next;                                  /* a ring */
};
void chance_add(struct chance_pairs *p, double here, double last);

/* The chance that a trial with cost `here` at the rung ends below `best`. 1 if too little is
 * known. */
double chance_below(const struct chance_pairs *p, double here, double best);

#endif
