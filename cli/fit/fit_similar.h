/* How similar two tables are for `assay fit`, by a few figures. The sweep of each has its figures
 * as tags, so that later ones find it. Pure. */
#ifndef ASSAY_CLI_FIT_FIT_SIMILAR_H
#define ASSAY_CLI_FIT_FIT_SIMILAR_H

#include <jansson.h>

#include "base/str.h"
#include "cli/fit/fit_facts.h"

#define FIT_TAG "assay-fit" /* of each sweep of `assay fit` */
#define FIT_FAR 2.0         /* tables at this distance or beyond are not similar */

struct fit_figures {
    double rows, columns; /* that are learned from */
    double classes;       /* 0: numbers are predicted */
    double categories;    /* the share of the columns that are categories */
};

struct fit_figures fit_figures_of(const struct fit_facts *f, double row_share);

/* Append them as a list of tags in YAML. */
void fit_figures_write(const struct fit_figures *figures, struct str *b);

/* Read them from the tags of a sweep's document; false: they are not there. */
bool fit_figures_read(const json_t *tags, struct fit_figures *ret);

/* The distance: the root of the sum of squares of log4 of the ratio of rows, log2 of those of
 * columns and of classes, and four times the difference of the shares of categories. Infinite
 * where one predicts numbers, two classes, or more, and the other does not. */
double fit_distance(const struct fit_figures *a, const struct fit_figures *b);

/* A sweep that was found: views. */
struct fit_similar {
    const char *sweep; /* its id */
    const char *dataset;
    const json_t *best;
    struct fit_figures figures;
    double distance;
};

/* The nearest of the sweeps of a list, nearest first, the newest of equals first; one of each data
 * set.
 *   sweeps  as GET /v1/sweeps?include=document lists them, newest first. Those with fewer than
 *           FIT_LEAST_COMPLETED completed trials, another tag or no figures, and those that were
 *           made of another sweep (layers, bagging, boosting) are passed over
 *   ret     [most]
 * Returns how many were found. */
#define FIT_LEAST_COMPLETED 3
size_t fit_similar_find(const struct fit_figures *own, const json_t *sweeps, size_t most,
                        struct fit_similar *ret);

#endif
