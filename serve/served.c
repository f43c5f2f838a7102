/* A version is complete before anybody sees it: the file is checked, networks are built, and one
 * row of zeros is predicted, so a model that cannot predict is refused while the old one still
 * serves (decision 6007). The count of holders is atomic; the last one frees it in whatever thread
 * it is. */
#include "serve/served.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static void served_free(struct served *v)
{
    if (!v)
        return;
    for (size_t i = 0; v->predictors && i < v->n_predictors; i++)
        predictor_free(v->predictors[i]);
    free(v->predictors);
    free(v->warned);
    model_schema_done(&v->schema);
    model_file_free(v->file);
    str_done(&v->metadata);
    free(v->name);
    free(v);
}

static void served_freep(struct served **v)
{
    served_free(*v);
}

struct served *served_ref(struct served *v)
{
    (void)atomic_fetch_add(&v->n_refs, 1);
    return v;
}

void served_unref(struct served *v)
{
    if (v && atomic_fetch_sub(&v->n_refs, 1) == 1)
        served_free(v);
}

/* Predict one row of zeros: a model that cannot is not served. */
static as_status try_once(struct served *v, struct as_err *err)
{
    AS_AUTO(as_freep) float *raw = as_calloc(v->schema.features, sizeof *raw);
    AS_AUTO(as_freep) float *out = as_calloc(v->schema.outputs, sizeof *out);
    if (!raw || !out)
        return as_fail_nomem(err);
    return served_predict(v, 0, raw, 1, out, err);
}

static as_status prepare(struct served *v, struct as_err *err)
{
    as_status st = predictor_create(v->file, v->max_rows, &v->predictors[0], err);
    if (st < 0)
        return st;
    st = model_schema_init(&v->schema, v->file, predictor_outputs(v->predictors[0]), err);
    if (st < 0)
        return st;
    v->warned = as_calloc(v->schema.features, sizeof *v->warned);
    if (!v->warned)
        return as_fail_nomem(err);
    st = model_schema_metadata(&v->schema, v->name, v->version, &v->metadata, err);
    return st < 0 ? st : try_once(v, err);
}

as_status served_load(const char *name, const char *version, struct file_image *image,
                      const struct served_options *opts, struct served **ret, struct as_err *err)
{
    AS_AUTO(file_image_done) struct file_image owned = *image;
    *image = (struct file_image){0};
    AS_AUTO(served_freep) struct served *v = as_calloc(1, sizeof *v);
    if (!v)
        return as_fail_nomem(err);
    atomic_init(&v->n_refs, 1);
    v->max_rows = opts->max_rows;
    v->n_predictors = opts->workers;
    v->predictors = as_calloc(opts->workers, sizeof *v->predictors);
    v->name = as_strdup(name);
    v->queue.tail = &v->queue.head;
    if (!v->predictors || !v->name)
        return as_fail_nomem(err);
    as_status st = sha256_of(owned.at, owned.len, v->sha256, err);
    if (st < 0)
        return st;
    (void)snprintf(v->version, sizeof v->version, "%.*s", version ? SERVED_VERSION_SIZE - 1 : 12,
                   version ? version : v->sha256);
    st = model_file_parse_image(&owned, &v->file, err);
    if (st == AS_OK)
        st = prepare(v, err);
    if (st < 0)
        return st;
    *ret = as_steal(v);
    return AS_OK;
}

/* A median that stands for a missing number is said once for each column: whoever asks gets a
 * prediction like any other, and would not see that a column has stopped coming. */
static void warn_imputed(struct served *v, const struct predictor *p, const float *raw, size_t rows)
{
    char name[24];
    for (size_t i = 0; i < rows * v->schema.features; i++) {
        size_t c = i % v->schema.features;
        if (!isnan(raw[i]) || !predictor_is_imputed(p, c, raw[i]) ||
            atomic_exchange(&v->warned[c], true))
            continue;
        log_write(LOG_WARN, "a missing number is imputed, as in no row of the training data",
                  "model=%s version=%s column=\"%.80s\" median=%g", v->name, v->version,
                  predictor_column(p, c, name, sizeof name), (double)predictor_median(p, c));
    }
}

as_status served_predict(struct served *v, size_t worker, const float *raw, size_t rows, float *ret,
                         struct as_err *err)
{
    struct predictor **p = &v->predictors[worker];
    as_status st = *p ? AS_OK : predictor_create(v->file, v->max_rows, p, err);
    if (st == AS_OK)
        warn_imputed(v, *p, raw, rows);
    for (size_t done = 0; done < rows && st == AS_OK;) {
        size_t n = rows - done < v->max_rows ? rows - done : v->max_rows;
        st = predictor_run(*p, raw + done * v->schema.features, n, ret + done * v->schema.outputs,
                           err);
        done += n;
    }
    return st;
}
