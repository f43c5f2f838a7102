/* Jobs for groups of the trainer in a folder of their own: documents, outputs, comparisons. */
#ifndef ASSAY_TESTS_SUPPORT_RIG_H
#define ASSAY_TESTS_SUPPORT_RIG_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

#include "data/dataset.h"
#include "base/status.h"
#include "tests/support/temp_folder.h"

#define RIG_DIGITS_ROWS 1797 /* of examples/digits.csv */

/* A trial: its seed, and the fields of its train document except the data set. */
struct trial {
    const char *id, *train, *seed;
};

struct rig {
    char dir[TEMP_FOLDER_SIZE];
    char *dataset; /* `dataset` of the jobs; owned. The digits, unless rig_data() was called */
    char name[16]; /* its name in train documents */
    struct as_err err;
};

void rig_open(struct rig *r);
void rig_close(struct rig *r);

/* Open it before each test of the case, and close it after. A program has one such rig. */
void rig_fixture(TCase *t, struct rig *r);

/* Use a table of digits as the data set of the jobs: the columns are those of
 * examples/digits.csv. */
void rig_digits(struct rig *r, const char *path, size_t rows);

/* Use these files in DIR as the data set of the jobs. The target of a table is its last column. */
void rig_data(struct rig *r, const char *name, const struct dataset_paths *paths,
              dataset_format format, dataset_task task);

/* Write DIR/job.json, group form. Outputs of trial I go to DIR/TAG/ID/. */
void rig_job(struct rig *r, const char *tag, const struct trial *const *trials, size_t n,
             size_t slots);

/* The text of a member in such a job. Owned by the caller (free). */
char *rig_member(const struct rig *r, const char *tag, const struct trial *t);

/* Run DIR/job.json here, with this back end and number of threads; the exit code. */
int rig_run(struct rig *r, const char *backend, size_t threads);

/* Run one trial by itself, as a group of one; the exit code. */
int rig_solo(struct rig *r, const char *tag, const struct trial *t, const char *backend);

/* The bytes of DIR/TAG/ID/NAME, NUL-terminated; free(). NULL when there is no such file. */
char *rig_read(const struct rig *r, const char *tag, const char *id, const char *name,
               size_t *ret_len);

/* A metric in the last line of a trial's report. */
double rig_last(const struct rig *r, const char *tag, const struct trial *t, const char *name);

/* Fails unless the trial's model, predictions (where there are some) and reports are the same bytes
 * under both tags. */
void rig_same(const struct rig *r, const char *a, const char *b, const struct trial *t);

/* The largest difference of two models' numbers, relative to the largest number of each tensor. */
double rig_distance(const struct rig *r, const char *a, const char *b, const struct trial *t);

#endif
