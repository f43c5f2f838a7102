/* Training rows dealt to partitions, of which a process may hold some alone.
 *
 * A partition is a run of the training rows in a random order that the seed of the split decides,
 * not of the file, so that a file in the order of its classes makes no partition of one class. How
 * many there are does not depend on who holds them. Each gives an equal number of rows to an epoch:
 * rows / partitions, rounded down. So an epoch leaves out fewer rows than there are partitions,
 * other ones each time. */
#ifndef ASSAY_DATA_PREPROCESS_ROW_PARTS_H
#define ASSAY_DATA_PREPROCESS_ROW_PARTS_H

#include <stddef.h>
#include <stdint.h>

struct row_parts {
    size_t n;      /* partitions; 0: there are none, and the rows are together */
    size_t n_rows; /* of all of them, at least n */
    size_t micro;  /* rows of a micro-step, each of which has rows of one partition */
    int64_t *base; /* [n] where the rows of a partition begin among those in memory; -1: they are
                    * not there */
    int32_t *work; /* [n_rows / n + 1] */
};                 /* the arrays are borrowed */

/* Put the rows into the order of the partitions, of which the first has rows [0,
 * row_parts_first(p, 1)), and so on. */
void row_parts_deal(int32_t *rows, size_t n, uint64_t seed);

static inline size_t row_parts_first(const struct row_parts *p, size_t part)
{
    return p->n_rows * part / p->n;
}

/* Rows that a partition gives to an epoch. */
static inline size_t row_parts_each(const struct row_parts *p)
{
    return p->n_rows / p->n;
}

/* Batches of an epoch: each has a micro-step of each partition. */
static inline size_t row_parts_batches(const struct row_parts *p)
{
    return (row_parts_each(p) + p->micro - 1) / p->micro;
}

/* The order of an epoch: micro-step s of batch b, the rows of partition s, at (b n + s) micro of
 * ret [row_parts_batches() n micro]. Places of rows that are not in memory, and those behind the
 * last row of a partition, are 0. The order in a partition depends on seed, epoch and partition
 * alone. */
void row_parts_order(const struct row_parts *p, uint64_t seed, int64_t epoch, int32_t *ret);

#endif
