/* Models that assay-train made, in a process of its own, for tests of what reads them. The data are
 * random, and the same in each run. */
#ifndef ASSAY_TESTS_SUPPORT_TRAINED_H
#define ASSAY_TESTS_SUPPORT_TRAINED_H

#include <stddef.h>

#include "data/dataset.h"
#include "tests/support/child.h"

/* Inspect the files and train on them, with the fields of `train` besides its data set, such as
 * "\"epochs\":2". The model is in artifacts/ of the child's folder. `report` gets the last line of
 * the trainer's reports. */
void trained_model(struct child *c, const struct dataset_paths *paths, dataset_format format,
                   const char *target, dataset_task task, const char *fields, char *report,
                   size_t report_size);

/* The same with options for reading the files; NULL: the defaults. */
void trained_model_with(struct child *c, const struct dataset_paths *paths, dataset_format format,
                        const struct dataset_options *options, const char *target,
                        dataset_task task, const char *fields, char *report, size_t report_size);

/* Write DIR/t.csv: a table of dates, texts, categories and numbers, the first two sometimes
 * missing, and a positive number or one of 2 classes to predict, the column y. It has semicolons,
 * decimal commas, texts with line ends, and comments with quotes: its options have the comment
 * '#'. */
void trained_write_mixed(const struct child *c, size_t rows, int classes);

/* Write DIR/t.csv: a table of two numbers, one of them sometimes missing, and a category, with 2 or
 * 3 classes, or a number to predict (0). The target is the column y. */
void trained_write_table(const struct child *c, size_t rows, int classes);

/* Write pictures [n, 8, 6, 1] with a bright half, as bytes (scale 1) or as fractions, and which
 * half it is. */
void trained_write_images(const char *x_path, const char *y_path, size_t n, double scale);

#endif
