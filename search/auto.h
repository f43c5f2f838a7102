/* The method `auto`: which of the methods suggests next, by a rule that sees the space and how many
 * trials there are.
 *
 *   gp         up to AUTO_GP_TRIALS trials, in spaces of up to AUTO_GP_PARAMS parameters
 *   tpe        up to AUTO_TPE_TRIALS trials, in larger spaces
 *   evolution  beyond, where a parameter has conditions
 *   cmaes      beyond, elsewhere
 *
 * A sweep that grows past a limit changes its method there: what comes after learns from the same
 * trials. So the rule needs no limit, and a limit that is raised changes nothing.
 * docs/decisions/4012 has the measurements. */
#ifndef ASSAY_SEARCH_AUTO_H
#define ASSAY_SEARCH_AUTO_H

#include "search/problem/method.h"

/* Where the other methods overtake, by the table of decision 4012 (1,500 trials, two seeds). */
#define AUTO_GP_TRIALS 2000
#define AUTO_GP_PARAMS 50 /* with more than one value */
#define AUTO_TPE_TRIALS 500

/* The reason is that of the method that suggests, with "chosen_by": "auto". */
extern const struct search_method search_auto;

#endif
