/* XGBoost's C interface, opened at run time: the build needs neither its header nor its library,
 * and a machine without it refuses models of trees by name and does all else.
 *
 * The library is the one that ASSAY_XGBOOST names, else libxgboost.so.0 (Debian) or libxgboost.so.
 * Versions 1.7 to 2.x are accepted; the tests run with 1.7. Only model/trees/ calls it. */
#ifndef ASSAY_MODEL_TREES_XGBOOST_H
#define ASSAY_MODEL_TREES_XGBOOST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef void *xgb_matrix;  /* DMatrixHandle */
typedef void *xgb_booster; /* BoosterHandle */
typedef uint64_t xgb_size; /* bst_ulong */

/* The functions that are used: return type, name here, name in the library, parameters. They return
 * 0, or -1 with a reason in last_error() of the same thread. */
#define XGBOOST_FUNCTIONS(F)                                                                       \
    F(void, version, XGBoostVersion, (int *major, int *minor, int *patch))                         \
    F(const char *, last_error, XGBGetLastError, (void))                                           \
    F(int, set_global, XGBSetGlobalConfig, (const char *config))                                   \
    F(int, matrix_from_dense, XGDMatrixCreateFromDense,                                            \
      (const char *data, const char *config, xgb_matrix *ret))                                     \
    F(int, matrix_from_floats, XGDMatrixCreateFromMat_omp,                                         \
      (const float *rows, xgb_size n, xgb_size columns, float missing, xgb_matrix *ret,            \
       int threads))                                                                               \
    F(int, matrix_free, XGDMatrixFree, (xgb_matrix m))                                             \
    F(int, matrix_set_info, XGDMatrixSetInfoFromInterface,                                         \
      (xgb_matrix m, const char *field, const char *data))                                         \
    F(int, matrix_set_texts, XGDMatrixSetStrFeatureInfo,                                           \
      (xgb_matrix m, const char *field, const char **texts, xgb_size n))                           \
    F(int, booster_create, XGBoosterCreate,                                                        \
      (const xgb_matrix matrices[], xgb_size n, xgb_booster *ret))                                 \
    F(int, booster_free, XGBoosterFree, (xgb_booster b))                                           \
    F(int, booster_slice, XGBoosterSlice,                                                          \
      (xgb_booster b, int begin, int end, int step, xgb_booster *ret))                             \
    F(int, booster_rounds, XGBoosterBoostedRounds, (xgb_booster b, int *ret))                      \
    F(int, booster_set, XGBoosterSetParam, (xgb_booster b, const char *name, const char *value))   \
    F(int, booster_inputs, XGBoosterGetNumFeature, (xgb_booster b, xgb_size * ret))                \
    F(int, booster_update, XGBoosterUpdateOneIter, (xgb_booster b, int round, xgb_matrix train))   \
    F(int, booster_boost, XGBoosterBoostOneIter,                                                   \
      (xgb_booster b, xgb_matrix train, float *grad, float *hess, xgb_size n))                     \
    F(int, booster_predict, XGBoosterPredictFromDMatrix,                                           \
      (xgb_booster b, xgb_matrix rows, const char *config, const xgb_size **shape, xgb_size *dims, \
       const float **ret))                                                                         \
    F(int, booster_predict_dense, XGBoosterPredictFromDense,                                       \
      (xgb_booster b, const char *data, const char *config, xgb_matrix rows,                       \
       const xgb_size **shape, xgb_size *dims, const float **ret))                                 \
    F(int, booster_load, XGBoosterLoadModelFromBuffer,                                             \
      (xgb_booster b, const void *bytes, xgb_size len))                                            \
    F(int, booster_save, XGBoosterSaveModelToBuffer,                                               \
      (xgb_booster b, const char *config, xgb_size *len, const char **ret))                        \
    F(int, booster_config, XGBoosterSaveJsonConfig,                                                \
      (xgb_booster b, xgb_size * len, const char **ret))                                           \
    F(int, booster_score, XGBoosterFeatureScore,                                                   \
      (xgb_booster b, const char *config, xgb_size *n, const char ***names, xgb_size *dims,        \
       const xgb_size **shape, const float **ret))

struct xgboost {
    int major, minor, patch;
#define XGBOOST_MEMBER(type, name, symbol, parameters) type(*name) parameters;
    XGBOOST_FUNCTIONS(XGBOOST_MEMBER)
#undef XGBOOST_MEMBER
};

/* Open the library once for the process; it stays open. Any thread may call it.
 * AS_E_UNSUPPORTED: it does not open, lacks a function, or has another version; the message names
 * the library and what to do. */
AS_MUST_CHECK as_status xgboost_open(const struct xgboost **ret, struct as_err *err);

/* Open the library in a thread of its own, while the caller does something else: that takes some
 * milliseconds. The next xgboost_open() reports what is wrong with it. */
struct xgboost_opening {
    pthread_t thread;
    bool is_running; /* false if no thread could be started: xgboost_open() does the work */
};

void xgboost_opening_begin(struct xgboost_opening *o);
void xgboost_opening_wait(struct xgboost_opening *o);

/* Turn a result other than 0 into an error: `what` failed, and the library's reason. A reason that
 * speaks of memory is AS_E_NOMEM, all others are AS_E_INTERNAL. */
AS_MUST_CHECK as_status xgboost_check(const struct xgboost *x, int result, const char *what,
                                      struct as_err *err);

/* Load a stored model, UBJSON, into booster b. The bytes may be hostile: what is no UBJSON is
 * refused before the library sees it, which would read it in its older format, where a wrong length
 * takes and fills as much memory as it says. AS_E_INVAL: they are no model of trees. */
AS_MUST_CHECK as_status xgboost_load(const struct xgboost *x, xgb_booster b, const void *bytes,
                                     size_t len, struct as_err *err);

/* The description of an array of float32 as the library takes it: [rows, columns], or [rows] when
 * columns is 0. */
#define XGBOOST_ARRAY_MAX 160
void xgboost_array(const float *data, size_t rows, size_t columns, char ret[XGBOOST_ARRAY_MAX]);

#endif
