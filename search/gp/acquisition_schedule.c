/* The schedule is a table: what a sweep does at which turn can be read and tested row by row. */
#include "search/gp/acquisition_schedule.h"

#include "search/gp/nearby.h"

#define TRENDS_LEAST 10 /* results that show a trend */
/* The warped model drowns in noise past this share of its variance (decision 4043). At one of so
 * many turns it stays, and is fitted, so that it can recover. */
#define DROWNED 0.4
#define DROWNED_PERIOD 4
#define DROWNED_PHASE 2

/* The first row that fits decides.
 *
 * No trial is feasible: look for the first feasible one, by the constraints' models alone.
 * Several objectives: the expected improvement of the hypervolume, on plain models.
 *
 * One objective. While nearly all trials fail, every second suggestion is near one that succeeded
 * (decision 4024); with many pending trials every one is, until two have succeeded (decision 4041).
 * Where the best value may be luck, the best trial is repeated once (decision 4023). The warped
 * model distinguishes the best trials finely and the others hardly; the plain model sees all trials
 * alike, and so does the smooth one, which follows trends to where no trial is. UCB exploits the
 * warped model; logEI explores more. A model that has lost its turns (decision 4025) leaves them to
 * the next row; where noise drowns the warped model, it has one turn of four (decision 4043).
 * A branch that deserves trials has every third suggestion, and one of the leading choice
 * (decision 4036) two of three while the sweep stalls.
 *   With categories, logEI alternates between the warped and the smooth model, which with few
 *   results is the plain one: a trend through less than ten trials is worse. Every fourth
 *   suggestion is UCB, unless trials are pending, because its choices would repeat those trials.
 *   Without categories, UCB is the rule and logEI takes every fourth suggestion. Another fourth
 *   goes to logEI on the plain model while the sweep is stagnant, to look elsewhere than in the
 *   best basin. While the trials crowd in that basin, half of all go to UCB on the plain model in
 *   another basin that is hardly known (decision 4027), or to logEI on the plain model where no
 *   such basin is left. A part of the space that was written off, while numbers have no effect
 *   elsewhere, has two of four (decision 4034). While trials are pending, one in eight is PE, pure
 *   exploration where a good value is possible. One in four tries the quadratic before UCB; or, if
 *   a parameter is not continuous, before logEI on the smooth model. */
static const struct schedule_row rows[] = {
    /* facts, period, phase, acquisition, models, point */
    {FACT_NONE_FEASIBLE, 1, 0, ACQUISITION_FEASIBILITY, SURROGATE_WARPED, POINT_BEST},
    {FACT_SEVERAL_OBJECTIVES, 1, 0, ACQUISITION_EHVI, SURROGATE_PLAIN, POINT_BEST},
    {FACT_ONE_SUCCEEDS, 1, 0, ACQUISITION_LOGEI, SURROGATE_WARPED, POINT_NEARBY},
    {FACT_FEW_SUCCEED, 2, 1, ACQUISITION_LOGEI, SURROGATE_WARPED, POINT_NEARBY},
    {FACT_DOUBT, 1, 0, ACQUISITION_UCB, SURROGATE_WARPED, POINT_REPEAT},
    {FACT_VALUE, 3, 1, ACQUISITION_LOGEI, SURROGATE_WARPED, POINT_BRANCH},
    {FACT_BRANCH, 3, 2, ACQUISITION_LOGEI, SURROGATE_WARPED, POINT_BRANCH},
    {FACT_CATEGORIES | FACT_NONE_PENDING, 4, 2, ACQUISITION_UCB, SURROGATE_WARPED, POINT_BEST},
    {FACT_CATEGORIES | FACT_TRENDS, 2, 1, ACQUISITION_LOGEI, SURROGATE_SMOOTH, POINT_BEST},
    {FACT_CATEGORIES, 2, 1, ACQUISITION_LOGEI, SURROGATE_PLAIN, POINT_BEST},
    {FACT_CATEGORIES, 1, 0, ACQUISITION_LOGEI, SURROGATE_WARPED, POINT_BEST},
    {FACT_PART, 4, 1, ACQUISITION_LOGEI, SURROGATE_WARPED, POINT_PART},
    {FACT_PART, 4, 2, ACQUISITION_LOGEI, SURROGATE_WARPED, POINT_PART},
    {FACT_BASIN, 2, 1, ACQUISITION_UCB, SURROGATE_PLAIN, POINT_BASIN},
    {FACT_CROWDED, 2, 1, ACQUISITION_LOGEI, SURROGATE_PLAIN, POINT_BEST},
    {FACT_STAGNANT, 4, 1, ACQUISITION_LOGEI, SURROGATE_PLAIN, POINT_BEST},
    {0, 4, 3, ACQUISITION_LOGEI, SURROGATE_WARPED, POINT_BEST},
    {FACT_PENDING, 8, 5, ACQUISITION_PE, SURROGATE_WARPED, POINT_BEST},
    {FACT_LEVELS | FACT_TRENDS, 4, 0, ACQUISITION_LOGEI, SURROGATE_SMOOTH, POINT_QUADRATIC},
    {0, 4, 0, ACQUISITION_UCB, SURROGATE_WARPED, POINT_QUADRATIC},
    {0, 1, 0, ACQUISITION_UCB, SURROGATE_WARPED, POINT_BEST},
    {0, 1, 0, ACQUISITION_LOGEI, SURROGATE_PLAIN,
     POINT_BEST}, /* the warped model has lost its turns */
};

/* A number with two levels counts as a category, because it has no order that matters. */
static bool has_categories(const struct encoding *e)
{
    for (size_t i = 0; i < e->n; i++) {
        if (e->params[i].kind == ENCODED_LEVELS && e->params[i].levels == 2)
            return true;
    }
    return e->n_category > 0;
}

unsigned schedule_facts(const struct training_set *s)
{
    unsigned facts = s->n_pending ? FACT_PENDING : FACT_NONE_PENDING;
    if (s->spec->n_outcomes && !s->n_feasible)
        facts |= FACT_NONE_FEASIBLE;
    if (s->spec->n_objectives > 1)
        facts |= FACT_SEVERAL_OBJECTIVES;
    if (has_categories(s->enc))
        facts |= FACT_CATEGORIES;
    else if (s->enc->n_continuous != s->enc->n_varied)
        facts |= FACT_LEVELS;
    if (s->n_completed + s->n_failed >= TRENDS_LEAST)
        facts |= FACT_TRENDS;
    if (nearby_is_needed(s))
        facts |= FACT_FEW_SUCCEED;
    if (nearby_is_all(s))
        facts |= FACT_ONE_SUCCEEDS;
    if (s->stagnant)
        facts |= FACT_STAGNANT;
    if (s->crowded)
        facts |= FACT_CROWDED;
    return facts;
}

unsigned schedule_lost(unsigned lost, noise_verdict noise, double share, uint64_t index)
{
    bool drowns = noise == NOISE_SEEN && share > DROWNED && index % DROWNED_PERIOD != DROWNED_PHASE;
    return drowns ? lost | 1U << SURROGATE_WARPED : lost;
}

static bool has_lost(const struct schedule_row *row, unsigned lost)
{
    bool is_turn = row->point == POINT_BEST || row->point == POINT_QUADRATIC;
    return is_turn && (lost >> row->target & 1);
}

const struct schedule_row *schedule_at(unsigned facts, unsigned lost, uint64_t index)
{
    const unsigned needed = 1 << SURROGATE_WARPED | 1 << SURROGATE_PLAIN;
    const struct schedule_row *row = rows;
    if ((lost & needed) == needed) /* no model would be left */
        lost &= ~(1U << SURROGATE_WARPED);
    while ((row->facts & ~facts) || index % row->period != row->phase || has_lost(row, lost))
        row++;
    return row;
}
