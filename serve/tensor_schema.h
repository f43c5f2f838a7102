/* The tensors that a model takes and gives: what GET /v2/models/… says, and how the tensors of a
 * request become rows of its data set.
 *
 * A table's model takes a tensor for each column, by the column's name, of shape [n] or [n, 1]:
 * numbers of any type, or BYTES, which dates, texts and categories must be. Images, arrays, and
 * tables of numbers alone may come as one tensor, `input` [n, features] (or any shape [n, …] with
 * as many numbers). A model gives `predictions` and, for classes, `probabilities`. */
#ifndef ASSAY_SERVE_TENSOR_SCHEMA_H
#define ASSAY_SERVE_TENSOR_SCHEMA_H

#include "base/str.h"
#include "data/dataset.h"
#include "model/predict/predictor.h"
#include "serve/infer_request.h"

#define SCHEMA_INPUT "input"
#define SCHEMA_PREDICTIONS "predictions"
#define SCHEMA_PROBABILITIES "probabilities"

typedef enum schema_output { SCHEMA_OUT_PREDICTIONS, SCHEMA_OUT_PROBABILITIES } schema_output;

struct model_schema {
    const struct dataset_info *info; /* borrowed, as `combine` */
    const struct model_combine *combine;
    size_t features; /* numbers in a row */
    size_t outputs;  /* numbers that predicting gives for a row */
    bool by_column;  /* the tensors of the metadata are the columns */
    bool any_text;   /* a column takes BYTES: categories, dates, texts */
    size_t columns;  /* of the file, which are inputs; 0: they are not described */
    size_t
        *by_name; /* [columns] their first features, sorted by name; owned; NULL: not described */
};

/* `model` is borrowed until model_schema_done(). AS_E_UNSUPPORTED: a model of text; AS_E_NOMEM. */
AS_MUST_CHECK as_status model_schema_init(struct model_schema *s, const struct model_file *model,
                                          size_t outputs, struct as_err *err);
void model_schema_done(struct model_schema *s);

/* The metadata of a model, as JSON text in *ret. AS_E_NOMEM. */
AS_MUST_CHECK as_status model_schema_metadata(const struct model_schema *s, const char *name,
                                              const char *version, struct str *ret,
                                              struct as_err *err);

/* The rows of a request, [*ret_rows, features] in the arena, as the predictor takes them.
 * AS_E_INVAL: a tensor is missing, unknown, of a wrong type or shape, or a cell is wrong;
 * AS_E_TOO_LARGE: more than max_rows; AS_E_NOMEM. */
AS_MUST_CHECK as_status model_schema_rows(const struct model_schema *s,
                                          const struct predictor *cells,
                                          const struct infer_request *q, size_t max_rows,
                                          struct arena *arena, float **ret, size_t *ret_rows,
                                          struct as_err *err);

/* Check the names of the outputs that are asked for. AS_E_INVAL. */
AS_MUST_CHECK as_status model_schema_wishes(const struct model_schema *s,
                                            const struct infer_request *q, struct as_err *err);

/* Has the model this output, and which one is it? */
bool model_schema_output(const struct model_schema *s, struct json_text name, schema_output *ret);

#endif
