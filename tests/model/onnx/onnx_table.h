/* A table whose columns are named to provoke, and models that are trained on it. */
#ifndef ASSAY_TESTS_MODEL_ONNX_ONNX_TABLE_H
#define ASSAY_TESTS_MODEL_ONNX_ONNX_TABLE_H

#include <stddef.h>

#include "tests/support/child.h"

/* Write DIR/t.csv: two columns of numbers, one of them sometimes missing, two of categories,
 * likewise. One value of `shape` is rare, so that it is "other". Columns are named like outputs of
 * the graph, like its own values, with a comma. The target: 3 classes, 2, or (0) two numbers. */
void onnx_table_write(const struct child *c, size_t rows, int classes);

/* Train on that table with the fields of `train` besides its data set; the model becomes DIR/name.
 * `classes` as for onnx_table_write(). */
void onnx_table_train(struct child *c, int classes, const char *fields, const char *seed,
                      const char *name);
/* As above, for a stage of boosting after the model DIR/base; NULL: none. */
void onnx_table_train_stage(struct child *c, int classes, const char *fields, const char *seed,
                            const char *base, const char *name);
/* Train two models with folds on that table, as DIR/a and DIR/b, and one of a layer above them:
 * DIR/name. `above` are its fields. */
void onnx_table_train_layers(struct child *c, int classes, const char *above, const char *name);

#endif
