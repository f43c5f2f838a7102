#include "tests/scheduler/lifecycle/predictions.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "data/formats/npy.h"
#include "scheduler/content/blobs.h"
#include "tests/support/check_main.h"

/* Store bytes as a blob; the row of a file. */
static struct file_row put_file(struct service *s, const char *name, const char *bytes, size_t len)
{
    char *hex = arena_alloc(&s->a, SHA256_HEX_SIZE, 1);
    put_bytes(s, bytes, len, hex);
    return (struct file_row){.path = name, .size = (int64_t)len, .sha256 = hex};
}

struct file_row put_text(struct service *s, const char *name, const char *text)
{
    return put_file(s, name, text, strlen(text));
}

struct file_row put_buckets(struct service *s, const char *const names[3])
{
    AS_AUTO(str_done) struct str text = {0};
    str_puts(&text, "{\"column\":\"region\",\"values\":[");
    for (int i = 0; i < PREDICTED_ROWS; i++)
        str_printf(&text, "%s\"%s\"", i ? "," : "", names[i % 3]);
    str_puts(&text, "]}");
    return put_text(s, "buckets.json", str_cstr(&text));
}

static struct file_row put_array(struct service *s, const char *name, npy_type type, size_t rows,
                                 size_t columns, const void *data)
{
    char path[] = "/tmp/assay-test-XXXXXX";
    AS_AUTO(file_closep) int fd = mkstemp(path);
    size_t shape[2] = {rows, columns}, len = 0;
    char *bytes = NULL;
    struct as_err err;
    ck_ok(npy_write(path, type, shape, columns ? 2 : 1, data, &err), err);
    ck_ok(file_read(path, 1 << 20, &bytes, &len, &err), err);
    unlink(path);
    const struct file_row row = put_file(s, name, bytes, len);
    free(bytes);
    return row;
}

struct file_row put_weights(struct service *s, const float weights[3])
{
    float all[PREDICTED_ROWS];
    for (int i = 0; i < PREDICTED_ROWS; i++)
        all[i] = weights[i % 3];
    return put_array(s, "weights.npy", NPY_F4, PREDICTED_ROWS, 0, all);
}

/* Returns how many files there are. */
static size_t put_held(struct service *s, int k, bool classification, size_t rows,
                       struct file_row files[2])
{
    int64_t classes[PREDICTED_ROWS];
    float predictions[PREDICTED_ROWS * 2], values[PREDICTED_ROWS];
    for (int i = 0; i < PREDICTED_ROWS; i++) {
        bool wrong = (i + k) % 3 == 0;
        classes[i] = k >= 100 ? 1 - i % 2 : i % 2;
        values[i] = (float)i;
        for (int c = 0; c < 2; c++)
            predictions[i * 2 + c] =
                wrong ? (c == i % 2 ? 0.4f : 0.6f) : (c == i % 2 ? 0.8f : 0.2f);
        if (!classification)
            predictions[i] = (float)i + (wrong ? 3.0f : 0.5f);
    }
    files[0] = put_array(s, "predictions.npy", NPY_F4, rows, classification ? 2 : 1, predictions);
    files[1] = classification ? put_array(s, "targets.npy", NPY_I8, PREDICTED_ROWS, 0, classes)
                              : put_array(s, "targets.npy", NPY_F4, PREDICTED_ROWS, 0, values);
    return 2;
}

void leave_predictions_with(struct service *s, struct attempt_ref ref, int k, bool classification,
                            size_t rows, const struct file_row *more, size_t n_more)
{
    struct file_row files[6];
    struct as_err err;
    size_t n = put_held(s, k, classification, rows, files);
    ck_assert_uint_le(n + n_more, 6);
    for (size_t i = 0; i < n_more; i++)
        files[n++] = more[i];
    ck_ok(attempt_files(s->db, &ref, NULL, FILE_ARTIFACT, files, n, &err), err);
}

void leave_predictions_and(struct service *s, struct attempt_ref ref, int k, bool classification,
                           size_t rows, const struct file_row *more)
{
    leave_predictions_with(s, ref, k, classification, rows, more, more ? 1 : 0);
}

void leave_predictions(struct service *s, struct attempt_ref ref, int k, bool classification,
                       size_t rows)
{
    leave_predictions_and(s, ref, k, classification, rows, NULL);
}

void leave_test_predictions(struct service *s, struct attempt_ref ref, int k, bool without)
{
    enum { ROWS = 80 };
    int64_t classes[ROWS];
    float predictions[ROWS * 2];
    struct file_row files[4];
    struct as_err err;
    size_t n = put_held(s, k, true, PREDICTED_ROWS, files);
    for (int i = 0; i < ROWS; i++) {
        bool wrong = (i + k) % 4 == 0;
        classes[i] = i / 2 % 2;
        predictions[2 * i + classes[i]] = wrong ? 0.4f : 0.9f;
        predictions[2 * i + 1 - classes[i]] = wrong ? 0.6f : 0.1f;
    }
    files[n++] = put_array(s, "test_predictions.npy", NPY_F4, ROWS, 2, predictions);
    if (!without)
        files[n++] = put_array(s, "test_targets.npy", NPY_I8, ROWS, 0, classes);
    ck_ok(attempt_files(s->db, &ref, NULL, FILE_ARTIFACT, files, n, &err), err);
}
