/* A number that may stand for a missing value: -999 among measurements between -3 and 3. */
#ifndef ASSAY_DATA_MISSING_CODE_H
#define ASSAY_DATA_MISSING_CODE_H

#include <stdbool.h>
#include <stddef.h>

/* The two values at each end of a column of numbers; a zeroed struct has seen none. */
struct missing_code {
    size_t n;
    struct code_end {
        double value, next; /* the end, and the value that is nearest to it; equal: there is none */
        size_t n;           /* how often the end is */
    } low, high;
};

void missing_code_add(struct missing_code *m, double v);

/* A code, how often it stands, and the least and the most of the other values. */
struct found_code {
    double value;
    size_t n;
    double least, most;
};

/* Does an end of the column look like a code? It is made of two nines or more (-99, 9999), stands
 * three times at least, and is further from the other values than these are from each other, which
 * are two at least. *ret is untouched if there is none. Of two codes the lower one. */
bool missing_code_find(const struct missing_code *m, struct found_code *ret);

#endif
