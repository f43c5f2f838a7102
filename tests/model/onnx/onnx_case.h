/* A model that assay-train has trained, as an ONNX file in ONNX Runtime, beside model/predict. */
#ifndef ASSAY_TESTS_MODEL_ONNX_ONNX_CASE_H
#define ASSAY_TESTS_MODEL_ONNX_ONNX_CASE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "data/dataset_read.h"
#include "model/file/model_file.h"
#include "tests/support/child.h"

/* Is there python3 with the package onnx? It is started, for all tests: ask before Check forks. */
bool onnx_case_has_checker(void);
/* Is there node, and ONNX Runtime below ASSAY_ONNX_RUNTIME? Started as well. */
bool onnx_case_has_runtime(void);

/* Is there XGBoost's library? */
bool onnx_case_has_trees(void);

/* The data of a training. */
struct onnx_data {
    struct dataset_paths paths;
    dataset_format format;
    const char *target;
    dataset_task task;
    struct dataset_options options;
    const char *base;         /* of a stage of boosting: the model before it, in DIR; else NULL */
    const char *const *stack; /* [2] of a further layer: the models that it sees, in DIR, with their
                               * predictions in NAME.npy; else NULL */
};

/* Train with the fields of `train` besides its data set; the model becomes DIR/name. */
void onnx_case_train(struct child *c, const struct onnx_data *data, const char *fields,
                     const char *seed, const char *name);

/* Export DIR/name, give `rows` random rows to the graph and to a predictor, and compare. The rows
 * have categories that training did not see, and missing cells and codes where the data set has
 * some. */
void onnx_case_compare(const struct child *c, const char *name, size_t rows);

/* As onnx_case_compare() for a transformer: the logits of random tokens, beside those of
 * model/network. */
void onnx_case_compare_text(const struct child *c, const char *name, size_t rows);

/* As onnx_case_compare() for one row whose number in column `column` is `value`, which predicting
 * refuses: every number of the graph is NaN, and the label is empty. */
void onnx_case_refuses(const struct child *c, const char *name, size_t column, float value);

/* Check DIR/model.onnx and run it: inputs [tensor] must give outputs [tensor] (run.mjs). Takes
 * both.
 *   refused  all numbers of the outputs are NaN */
void onnx_case_run(const struct child *c, json_t *inputs, json_t *outputs, bool refused);

#endif
