/* One version of a model in memory, ready to predict. It is not changed while it is served, and
 * counts its holders, so that requests which began with it end with it while a new version takes
 * its place.
 *
 * A predictor works for one thread at a time, so each worker has its own, made when the worker
 * first needs it; the first one is made by the load. */
#ifndef ASSAY_SERVE_SERVED_H
#define ASSAY_SERVE_SERVED_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/hash.h"
#include "base/str.h"
#include "model/file/model_file.h"
#include "model/predict/predictor.h"
#include "serve/tensor_schema.h"

#define SERVED_VERSION_SIZE 32

struct stats;
struct batch_job;

/* The requests that wait for one version. Guarded by the lock of the batcher (batcher.h). */
struct served_queue {
    struct batch_job *head, **tail;
    size_t n_jobs, n_rows;
    size_t n_active, n_large; /* workers that compute; those of them with more than a pass */
    int64_t row_ns, pass_ns;  /* what a row and a pass of one row took lately */
    bool is_ready;            /* stands in the list of the batcher, which holds a reference */
    struct served *next_ready;
};

struct served {
    atomic_size_t n_refs;
    char *name;                        /* that it is served under */
    char version[SERVED_VERSION_SIZE]; /* the registry's number, or the begin of the digest */
    char sha256[SHA256_HEX_SIZE];      /* of its file */
    struct model_file *file;
    struct model_schema schema;
    struct str metadata;           /* the answer to GET /v2/models/NAME */
    size_t max_rows;               /* of one pass */
    struct predictor **predictors; /* [n_predictors], by worker */
    size_t n_predictors;
    struct stats *stats; /* of the name; set by the cache, borrowed */
    atomic_bool *warned; /* [features]: of each column, that a missing number was imputed */
    struct served_queue queue;
};

struct served_options {
    size_t workers;  /* indices of threads that will call served_predict() */
    size_t max_rows; /* of one pass */
};

/* Check and load the bytes of a model file, and predict one row with it. Takes what *image holds,
 * even on failure: it is zeroed.
 *   version  NULL: the first 12 digits of the file's digest
 *   ret      one reference: served_unref()
 * Errors as model_file_parse(), model_schema_init() and predictor_create(). */
AS_MUST_CHECK as_status served_load(const char *name, const char *version, struct file_image *image,
                                    const struct served_options *opts, struct served **ret,
                                    struct as_err *err);
struct served *served_ref(struct served *v);
void served_unref(struct served *v); /* NULL is fine */
static inline void served_unrefp(struct served **v)
{
    served_unref(*v);
}

/* Predict `rows` (any number) of raw [rows, features] into ret [rows, outputs]. `worker` is the
 * index of the calling thread. Errors as predictor_create() and predictor_run(). */
AS_MUST_CHECK as_status served_predict(struct served *v, size_t worker, const float *raw,
                                       size_t rows, float *ret, struct as_err *err);

#endif
