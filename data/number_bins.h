/* The distribution of numbers that come one after another: counts in bins of one width, which is a
 * power of two and doubles when a number lies outside, so that no number is kept and each is
 * counted exactly. The bins are as narrow as the first NUMBER_BINS_FIRST numbers allow; of numbers
 * that are all whole no bin is narrower than 1. */
#ifndef ASSAY_DATA_NUMBER_BINS_H
#define ASSAY_DATA_NUMBER_BINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUMBER_BINS 64
#define NUMBER_BINS_FIRST 256

/* A zeroed struct has seen nothing. The figures hold after number_bins_end(). */
struct number_bins {
    size_t n;
    double least, most, mean, squares; /* squares: the sum of squared differences from the mean */
    int exponent;                      /* a bin is 2^exponent wide … */
    int64_t first, last;               /* … and that at place p begins at p * 2^exponent */
    size_t counts[NUMBER_BINS];        /* of the places first to last */
    bool is_open;                      /* the width is chosen; else the numbers are in `begin` */
    double begin[NUMBER_BINS_FIRST];
};

/* `v` is finite. */
void number_bins_add(struct number_bins *b, double v);
void number_bins_end(struct number_bins *b);

double number_bins_width(const struct number_bins *b);
double number_bins_deviation(
    const struct number_bins *b); /* of the numbers themselves; 0: of one */

#endif
