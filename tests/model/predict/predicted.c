#include "tests/model/predict/predicted.h"

#include <stdlib.h>
#include <string.h>

#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "data/preprocess/train_data.h"
#include "model/predict/predictor.h"
#include "tests/support/check_main.h"

static struct as_err err;
struct child predicted_child[PREDICTED_MOST];

void predicted_setup(void)
{
    for (size_t i = 0; i < PREDICTED_MOST; i++)
        child_setup(&predicted_child[i]);
}

void predicted_teardown(void)
{
    for (size_t i = 0; i < PREDICTED_MOST; i++)
        child_teardown(&predicted_child[i]);
}

void predicted_train(size_t i, const struct dataset_paths *paths, dataset_format format,
                     const char *target, dataset_task task, const char *fields)
{
    char report[512];
    trained_model(&predicted_child[i], paths, format, target, task, fields, report, sizeof report);
}

struct model_file *predicted_read(size_t i)
{
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[i], "artifacts/model.safetensors");
    struct model_file *f = NULL;
    ck_ok(model_file_read(path, 1 << 26, &f, &err), err);
    return f;
}

/* ---- the rows held out ---- */

void predicted_rows_done(struct predicted_rows *r)
{
    free(r->x);
}

void predicted_held_rows(const struct model_file *f, const struct dataset_paths *paths,
                         struct predicted_rows *ret)
{
    AS_AUTO(train_data_done) struct train_data d = {0};
    AS_AUTO(dataset_done) struct dataset set = {0};
    const struct dataset_info *info = model_file_data(f);
    const struct train_spec *spec = model_file_member(f, 0)->spec;
    struct dataset split;
    const struct preprocess_opts opts = {
        .split_seed = (uint64_t)spec->validation_seed,
        .n_validation = train_spec_validation_rows(spec, info->n_rows),
    };
    ck_ok(dataset_load(paths, info, &split, &err), err);
    ck_ok(train_data_prepare(&split, info, &opts, &d, &err), err);
    ck_ok(dataset_load(paths, info, &set, &err), err);
    *ret = (struct predicted_rows){.n = d.n_val, .width = set.n_features};
    ret->x = as_calloc(ret->n * ret->width, sizeof *ret->x);
    ck_assert(ret->n > 0 && ret->x);
    for (size_t i = 0; i < ret->n; i++)
        memcpy(ret->x + i * ret->width, set.x + (size_t)d.val_rows[i] * ret->width,
               ret->width * sizeof *ret->x);
}

float *predicted_recorded(size_t i, size_t rows, size_t columns)
{
    AS_AUTO(as_freep) char *path = child_path(&predicted_child[i], "artifacts/predictions.npy");
    AS_AUTO(npy_freep) struct npy *npy = NULL;
    ck_ok(npy_open(path, &npy, &err), err);
    const struct npy_header *h = npy_header_of(npy);
    ck_assert(h->type == NPY_F4 && h->n_dims == 2);
    ck_assert_uint_eq(h->shape[0], rows);
    ck_assert_uint_eq(h->shape[1], columns);
    AS_AUTO(as_freep) double *values = as_calloc(h->n_values, sizeof *values);
    float *ret = as_calloc(h->n_values, sizeof *ret);
    ck_assert(values && ret);
    ck_ok(npy_read(npy, h->n_values, values, &err), err);
    for (size_t k = 0; k < h->n_values; k++)
        ret[k] = (float)values[k]; /* exact: it was a float32 */
    return ret;
}

/* ---- predicting ---- */

void predicted_same_bits(const float *got, const float *expected, size_t n, const char *how)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(memcmp(&got[i], &expected[i], sizeof *got) == 0,
                      "%s: number %zu is %.9g, expected %.9g", how, i, (double)got[i],
                      (double)expected[i]);
}

void predicted_check(const struct model_file *f, const struct predicted_rows *rows,
                     const float *expected, size_t columns)
{
    AS_AUTO(as_freep) float *got = as_calloc(rows->n * columns, sizeof *got);
    static const size_t passes[] = {0, 1, 3, 7, 16};
    for (size_t i = 0; i < AS_ARRAY_LEN(passes); i++) {
        AS_AUTO(predictor_freep) struct predictor *p = NULL;
        ck_ok(predictor_create(f, passes[i], &p, &err), err);
        ck_assert_uint_eq(predictor_inputs(p), rows->width);
        ck_assert_uint_eq(predictor_outputs(p), columns);
        ck_ok(predictor_run(p, rows->x, rows->n, got, &err), err);
        predicted_same_bits(got, expected, rows->n * columns, "all rows");
        for (size_t r = rows->n; i == 0 && r-- > 0;) {
            ck_ok(predictor_run(p, rows->x + r * rows->width, 1, got, &err), err);
            predicted_same_bits(got, expected + r * columns, columns, "one row");
        }
    }
}
