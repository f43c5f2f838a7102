/* Naive Bayes of mixed inputs: given the class, inputs are independent of one another. The score of
 * a class is the logarithm of its share of the training rows plus a term for each input of the row
 * that is there; probabilities are the softmax of the scores.
 *
 *   a number x    normal: -(log(2 pi v) + (x - m)^2 / v) / 2, with the mean m and the variance v of
 *                 the class. Added to v is `spread` times the variance of the column in all rows
 *                 (scikit-learn's GaussianNB adds that part of the largest variance of any column,
 *                 so that it depends on units). A column without variance says nothing
 *   a category    log((n of the value in the class + count) / (n of the class + count * values)):
 *                 scikit-learn's CategoricalNB
 *   words         inputs of hashed texts (data/text_hash.h): the positive and the negative part of
 *                 each are words of their own, t. Each is multiplied by its idf,
 *                 log((1 + n) / (1 + n with it)) + 1, and the words of a row are divided by their
 *                 Euclidean norm (all texts of a row are one bag). The term is the sum of t times
 *                 the weight of the word, which is of multinomial naive Bayes
 *                   log((sum of t in the class + count) / (sum of all + count * words)),
 *                 and of complement naive Bayes minus the same of all other classes together
 *                 (Rennie, Shih, Teevan, Karger: "Tackling the Poor Assumptions of Naive Bayes Text
 *                 Classifiers", 2003, without the norm of weights)
 *
 * Numbers of rows and sums are of weights. A class without rows has the probability 0.
 *
 * A model is one block of bytes, little-endian, without pointers:
 *   [8]                      "assaynb1"
 *   uint32 [4]               inputs, classes, and twice 0
 *   uint32 [inputs]          what each input is: BAYES_NUMBER, BAYES_WORDS, or how many values a
 *                            category has
 *                            zeros to a multiple of 8 bytes
 *   double [classes]         logarithms of the shares
 *   then, for each input:
 *     a number               double [classes] m, double [classes] v
 *     words                  double [2] idf of the positive and of the negative part, and
 *                            double [2][classes] their weights
 *     a category             double [values][classes] its terms */
#ifndef ASSAY_MODEL_NAIVE_BAYES_H
#define ASSAY_MODEL_NAIVE_BAYES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define BAYES_NUMBER UINT32_C(0)
#define BAYES_WORDS UINT32_MAX
#define BAYES_NEVER (-1e30)               /* the logarithm of a share of 0 */
#define BAYES_MAX_BYTES ((size_t)1 << 28) /* of a stored model */

struct bayes_shape {
    size_t inputs, classes;
    const uint32_t *kinds; /* [inputs], as above; borrowed */
};

struct bayes_opts {
    double count;    /* > 0: added to each number of rows and of words (Laplace, Lidstone) */
    double spread;   /* > 0: part of a column's variance that is added */
    bool complement; /* words */
};

/* What is learned from; all borrowed. */
struct bayes_rows {
    const float *x; /* [n, inputs]; NaN: missing. A category is the index of its value */
    size_t n;
    const int32_t *labels; /* [n] */
    const float *weights;  /* [n], >= 0; NULL: all 1 */
};

/* The bytes of a stored model; SIZE_MAX: more than can be. */
size_t bayes_bytes(const struct bayes_shape *shape);

/* Learn a model, in double and in the order of the rows; its bytes are owned by the caller.
 * AS_E_INVAL: no row has a weight above 0. AS_E_TOO_LARGE: past BAYES_MAX_BYTES. AS_E_NOMEM. */
AS_MUST_CHECK as_status bayes_train(const struct bayes_shape *shape, const struct bayes_opts *opts,
                                    const struct bayes_rows *rows, char **ret, size_t *ret_len,
                                    struct as_err *err);

/* A model that predicts. A zeroed one is empty. */
struct bayes {
    struct bayes_shape shape; /* its kinds are owned */
    size_t *at;               /* owned: [inputs] where the values of each input begin */
    size_t words;             /* inputs that are words */
    const double *shares;     /* [classes]; a view of the bytes … */
    const double *values;     /* … and these, too */
    double *copy;             /* owned: both of them where the bytes are not aligned */
};

/* Read and check a model.
 *   bytes  stay until bayes_done(); hostile ones are refused
 *   ret    untouched on failure
 * AS_E_INVAL: not such bytes, cut short, another shape, a number that is not finite, a variance or
 * an idf that is not above 0. AS_E_NOMEM. */
AS_MUST_CHECK as_status bayes_read(const void *bytes, size_t len, const struct bayes_shape *shape,
                                   struct bayes *ret, struct as_err *err);
void bayes_done(struct bayes *m);

/* Predict rows.
 *   x    [rows, inputs]; borrowed. A category that is no index of a value counts as missing
 *   ret  [rows, classes]: probabilities
 * A row's bits depend on the row alone. Any number of threads may call it at once. AS_E_NOMEM. */
AS_MUST_CHECK as_status bayes_predict(const struct bayes *m, const float *x, size_t rows,
                                      float *ret, struct as_err *err);

#endif
