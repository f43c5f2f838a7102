/* Suggestions by Gaussian processes: the method `gp`. See search/README.md for the whole of it. */
#ifndef ASSAY_SEARCH_GP_GP_H
#define ASSAY_SEARCH_GP_GP_H

#include "search/problem/method.h"

/* With at most GP_MAX_ROWS rows (and SURROGATE_NEW_ROWS and the pending ones) a model in the cache
 * holds one square matrix of them, 42 MB; a sweep with more than three models has bases of
 * GP_MAX_ROWS_MANY rows, 13 MB each. */
#define GP_MAX_ROWS 2048
#define GP_MAX_ROWS_MANY 1024

extern const struct search_method search_gp;

#endif
