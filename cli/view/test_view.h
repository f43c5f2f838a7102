/* Figures of test rows in words: of the models that a sweep recommends, and of one trial. */
#ifndef ASSAY_CLI_VIEW_TEST_VIEW_H
#define ASSAY_CLI_VIEW_TEST_VIEW_H

#include <jansson.h>

#include "base/str.h"
#include "cli/view/pairs.h"

/* Append "On 360 test rows …" and what follows, a line for each figure, from the field `test` of an
 * ensemble. Nothing without it. */
void test_view_ensemble(const json_t *ensemble, struct str *b);

/* Append one line from the field `test` of a trial: the figure of the sweep's metric on the test
 * rows; of val_loss the log loss or the squared error, which it is without weights and smoothing.
 * Nothing if there is none. */
void test_view_trial(const json_t *trial, const char *sweep_metric, struct str *b);

/* The same as rows: of the ensemble if it has test rows, else of the trial. Either may be NULL. */
void test_view_pairs(const json_t *ensemble, const json_t *trial, const char *sweep_metric,
                     struct pairs *p);

#endif
