/* Jobs of trees for the tests of assay-train: the data sets, a run to its end, and the model that
 * it left, which is read with model/trees. Each test begins with setup() and has one child. */
#ifndef ASSAY_TESTS_SUPPORT_TREE_JOBS_H
#define ASSAY_TESTS_SUPPORT_TREE_JOBS_H

#include <jansson.h>

#include "data/dataset.h"
#include "data/formats/safetensors.h"
#include "data/preprocess/preprocess.h"
#include "model/document/train_spec.h"
#include "model/trees/tree_model.h"
#include "tests/support/child.h"

#define LINE 1024

extern struct as_err err;
extern struct child child;
extern char last[LINE]; /* the last report */

void setup(void);
void teardown(void);

/* The path of a file in the child's folder; free(). */
char *in_dir(const char *name);

/* A number of a report. */
double field(const char *line, const char *name);

/* ---- jobs ---- */

/* The data set of a CSV file, as a job has it. */
json_t *dataset_of(const char *path, const char *target, dataset_task task);

/* `model` are members of train.model; `more` follows it in the document, with a comma before it. */
void write_job(const json_t *dataset, const char *model, const char *more);
void digits_job(const char *model, const char *more);

/* Numbers, of which one is sometimes missing, a category that decides most, and noise. Where the
 * number is missing the target is 4 higher: only a model that sees the gap knows. */
void write_table(const char *name, size_t rows, bool classes);

/* A job on such a table of 800 rows; its path, free(). */
char *table_job(bool classes, const char *model, const char *more);

/* Run the job to its end; returns the number of reports. */
int run_job(void);

/* The job must end with this code, and this in the last line of its stderr. */
void run_ends(int code, const char *part);

/* ---- the stored model ---- */

struct stored {
    struct safetensors *file;
    struct train_spec spec;
    struct dataset_info info;
    struct preprocess fit;
    struct tree_model *model;
};

void stored_read(struct stored *s);
void stored_done(struct stored *s);

/* The values of an array in the child's folder; free(). */
double *recorded(const char *name, size_t *ret_n);

/* The stored model, in this process and one row at a time, predicts what the trainer recorded. */
void predicts_as_recorded(const char *path);

#endif
