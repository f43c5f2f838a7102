/* Suggestions by Gaussian processes: the method `gp`. search/README.md has the rules and links to
 * the decisions. */
#ifndef ASSAY_SEARCH_GP_GP_H
#define ASSAY_SEARCH_GP_GP_H

#include "search/problem/method.h"

/* The largest base of a model. A model in the cache holds one square matrix of the base,
 * SURROGATE_NEW_ROWS later rows and the pending rows: 42 MB. In a sweep with more than three models
 * each base has at most GP_MAX_ROWS_MANY rows: 13 MB each. */
#define GP_MAX_ROWS 2048
#define GP_MAX_ROWS_MANY 1024

extern const struct search_method search_gp;

#endif
