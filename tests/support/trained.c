#include "tests/support/trained.h"

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"
#include "data/formats/npy.h"
#include "tests/support/check_main.h"

static struct as_err err;

static void set_path(json_t *paths, const char *name, const char *path)
{
    if (path)
        ck_assert_int_eq(json_object_set_new(paths, name, json_string(path)), 0);
}

void trained_model(struct child *c, const struct dataset_paths *paths, dataset_format format,
                   const char *target, dataset_task task, const char *fields, char *report,
                   size_t report_size)
{
    trained_model_with(c, paths, format, NULL, target, task, fields, report, report_size);
}

void trained_model_with(struct child *c, const struct dataset_paths *paths, dataset_format format,
                        const struct dataset_options *options, const char *target,
                        dataset_task task, const char *fields, char *report, size_t report_size)
{
    struct dataset_info info = {0};
    ck_ok(dataset_inspect(paths, format, target, task, options, &info, &err), err);
    JSON_AUTO dataset = dataset_info_to_json(&info);
    JSON_AUTO places = json_object();
    set_path(places, "table", paths->table);
    set_path(places, "features", paths->features);
    set_path(places, "targets", paths->targets);
    ck_assert_int_eq(json_object_set(dataset, "paths", places), 0);
    AS_AUTO(as_freep) char *text = json_format(dataset);
    AS_AUTO(str_done) struct str job = {0};
    str_printf(&job, "{\"train\":{\"dataset\":\"d\",%s},\"dataset\":%s}", fields, text);
    child_write(c, "job.json", job.s, job.len);
    child_start(c, "11", NULL);
    while (child_line(c, report, report_size))
        ;
    ck_assert_int_eq(child_wait(c), 0);
    dataset_info_done(&info);
}

void trained_write_mixed(const struct child *c, size_t rows, int classes)
{
    static const char *const words[] = {"good", "bad", "not", "very", "tea", "coffee"};
    AS_AUTO(str_done) struct str b = {0};
    struct rng r;
    rng_init(&r, 1, 8);
    str_puts(&b, "# a table of 3\" nails\nwhen;note;colour;amount;y\n");
    for (size_t i = 0; i < rows; i++) {
        unsigned day = (unsigned)rng_below(&r, 28) + 1, month = (unsigned)rng_below(&r, 12) + 1;
        size_t word[4];
        if (rng_below(&r, 9))
            str_printf(&b, "%u.%u.2024 %02u:30", day, month, (unsigned)rng_below(&r, 24));
        for (size_t k = 0; k < 4; k++)
            word[k] = (size_t)rng_below(&r, 6);
        str_puts(&b, ";");
        if (rng_below(&r, 9))
            str_printf(&b, "\"%s %s,\n%s %s; %zu\"", words[word[0]], words[word[1]], words[word[2]],
                       words[word[3]], i);
        str_printf(&b, ";%s;%u,%02u;", i % 3 ? "red" : "blue", month, day);
        if (classes)
            str_printf(&b, "%s\n", word[0] + month > 8 ? "early" : "late");
        else
            str_printf(&b, "%zu,%02u\n", month + word[0], day);
        if (i % 7 == 3)
            str_printf(&b, "# line \" %zu\n", i);
    }
    child_write(c, "t.csv", b.s, b.len);
}

void trained_write_table(const struct child *c, size_t rows, int classes)
{
    static const char *const colours[] = {"blue", "green", "red"};
    static const char *const names[] = {"high", "low", "middle"};
    AS_AUTO(str_done) struct str b = {0};
    struct rng r;
    rng_init(&r, 1, 5);
    str_puts(&b, "size,weight,colour,y\n");
    for (size_t i = 0; i < rows; i++) {
        double x = rng_uniform(&r), w = 100 * rng_uniform(&r);
        size_t k = (size_t)rng_below(&r, 3);
        double y = 3 * x + 0.05 * w + 2 * (double)k + rng_uniform(&r);
        if (rng_below(&r, 8) == 0)
            str_printf(&b, ",%.4f,%s,", w, colours[k]);
        else
            str_printf(&b, "%.4f,%.4f,%s,", x, w, colours[k]);
        if (classes == 0)
            str_printf(&b, "%.4f\n", 1000 + 50 * y);
        else
            str_printf(&b, "%s\n", names[y < 5 ? 1 : y > 8 && classes == 3 ? 0 : 2]);
    }
    child_write(c, "t.csv", b.s, b.len);
}

void trained_write_images(const char *x_path, const char *y_path, size_t n, double scale)
{
    const size_t shape[] = {n, 8, 6, 1};
    AS_AUTO(as_freep) float *x = as_calloc(n * 48, sizeof *x);
    AS_AUTO(as_freep) int64_t *y = as_calloc(n, sizeof *y);
    struct rng r;
    rng_init(&r, 1, 6);
    for (size_t i = 0; i < n; i++) {
        y[i] = (int64_t)rng_below(&r, 2);
        for (size_t p = 0; p < 48; p++)
            x[i * 48 + p] =
                (float)(scale * (double)(rng_below(&r, 150) + (p / 24 == (size_t)y[i] ? 90 : 0)));
    }
    ck_ok(npy_write(x_path, NPY_F4, shape, 4, x, &err), err);
    ck_ok(npy_write(y_path, NPY_I8, &n, 1, y, &err), err);
}
