/* The table of direction numbers behind sobol.c. */
#ifndef ASSAY_SEARCH_SAMPLING_SOBOL_TABLE_PRIV_H
#define ASSAY_SEARCH_SAMPLING_SOBOL_TABLE_PRIV_H

#include <stdint.h>

#define SOBOL_TABLE_ROWS 255 /* dimensions 2 to 256; the first has no row */
#define SOBOL_MAX_DEGREE 11

struct sobol_row {
    uint16_t poly;
    uint16_t m[SOBOL_MAX_DEGREE];
};

extern const struct sobol_row sobol_rows[SOBOL_TABLE_ROWS]; /* [dim - 1] */

#endif
