#include "tests/model/onnx/onnx_table.h"

#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "tests/model/onnx/onnx_case.h"
#include "tests/support/check_main.h"

void onnx_table_write(const struct child *c, size_t rows, int classes)
{
    static const char *const colours[] = {"blue", "green", "", "red"};
    static const char *const names[] = {"high", "low", "middle, or so"};
    AS_AUTO(str_done) struct str b = {0};
    struct rng r;
    rng_init(&r, 1, 5);
    str_puts(&b, "probabilities,assay/x,\"colour, NA\",label,y,y2\n");
    for (size_t i = 0; i < rows; i++) {
        double x = rng_uniform(&r), w = 100 * rng_uniform(&r);
        size_t k = (size_t)rng_below(&r, 4);
        double y = 3 * x + 0.05 * w + 2 * (double)k + rng_uniform(&r);
        if (rng_below(&r, 8) > 0)
            str_printf(&b, "%.4f", x);
        str_printf(&b, ",%.4f,%s,", w, colours[k]);
        if (i >= 10 && i < 26) /* values of two rows, which training may not see */
            str_printf(&b, "scarce %zu,", i / 2);
        else
            str_printf(&b, "%s,", i == 7 ? "rare" : rng_below(&r, 2) ? "round" : "square");
        if (classes == 0)
            str_printf(&b, "%.4f,%.4f\n", 1000 + 50 * y, -y / 1000);
        else
            str_printf(&b, "\"%s\",1\n", names[y < 5 ? 1 : y > 8 && classes == 3 ? 0 : 2]);
    }
    child_write(c, "t.csv", b.s, b.len);
}

static void train(struct child *c, int classes, const char *fields, const char *seed,
                  const char *base, const char *const *stack, const char *name)
{
    AS_AUTO(as_freep) char *path = file_join(c->dir, "t.csv");
    ck_assert_ptr_nonnull(path);
    const struct onnx_data data = {
        .paths = {.table = path},
        .format = DATASET_CSV,
        .target = classes ? "y" : "y,y2",
        .task = classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION,
        .base = base,
        .stack = stack,
    };
    onnx_case_train(c, &data, fields, seed, name);
}

void onnx_table_train_stage(struct child *c, int classes, const char *fields, const char *seed,
                            const char *base, const char *name)
{
    train(c, classes, fields, seed, base, NULL, name);
}

#define ONNX_FOLDS ",\"validation\":{\"folds\":2}"

/* A model with folds, and its predictions beside it. */
static void train_below(struct child *c, int classes, const char *fields, const char *name,
                        const char *predictions)
{
    AS_AUTO(as_freep) char *from = file_join(c->dir, "artifacts/predictions.npy");
    AS_AUTO(as_freep) char *to = file_join(c->dir, predictions);
    ck_assert(from && to);
    train(c, classes, fields, "1", NULL, NULL, name);
    ck_assert_int_eq(rename(from, to), 0);
}

void onnx_table_train_layers(struct child *c, int classes, const char *above, const char *name)
{
    static const char *const below[] = {"a", "b"};
    AS_AUTO(str_done) struct str fields = {0};
    train_below(c, classes, "\"epochs\":3,\"model\":{\"layers\":[9]}" ONNX_FOLDS, "a", "a.npy");
    train_below(c, classes, "\"model\":{\"kind\":\"extra_trees\",\"n_estimators\":4}" ONNX_FOLDS,
                "b", "b.npy");
    str_printf(&fields, "%s" ONNX_FOLDS ",\"stack\":[\"s/0\",\"s/1\"]", above);
    train(c, classes, str_cstr(&fields), "2", NULL, below, name);
}

void onnx_table_train(struct child *c, int classes, const char *fields, const char *seed,
                      const char *name)
{
    onnx_table_train_stage(c, classes, fields, seed, NULL, name);
}
