/* Files of data sets. The first byte of an input says which format the rest is ("d": the decoded
 * copy of a fixed data set). What is described can be loaded, keeps its promises, loads again as
 * its JSON says, and its files are test files of their own form. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "data/dataset_json.h"
#include "data/dataset_read.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PATH_SIZE 40

/* A file in memory, and its path. */
static int memory_file(const void *bytes, size_t len, char path[PATH_SIZE])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || file_write_all(fd, bytes, len, NULL) != AS_OK)
        abort();
    (void)snprintf(path, PATH_SIZE, "/proc/self/fd/%d", fd);
    return fd;
}

static void check_values(const struct dataset_info *info, const struct dataset *d)
{
    for (size_t i = 0; d->x && i < d->n_rows * d->n_features; i++) {
        const struct dataset_column *c = info->columns ? &info->columns[i % d->n_features] : NULL;
        bool missing = c && !c->categorical && c->n_missing && isnan(d->x[i]);
        if (!missing && !isfinite(d->x[i]))
            abort();
        if (c && c->categorical && (d->x[i] < 0 || d->x[i] >= (float)dataset_column_slots(c)))
            abort();
    }
    for (size_t i = 0; d->labels && i < d->n_rows; i++)
        if (d->labels[i] < 0 || (size_t)d->labels[i] >= d->n_outputs)
            abort();
    for (size_t i = 0; d->tokens && i < d->n_rows; i++)
        if (d->tokens[i] < 0 || (size_t)d->tokens[i] >= d->n_outputs)
            abort();
}

static void load_as_test(const struct dataset_paths *paths, const struct dataset_info *info)
{
    struct dataset d = {0};
    struct as_err err;
    size_t rows = 0;
    as_status st = dataset_test_inspect(paths, info, &rows, &err);
    if (info->input == DATASET_TOKEN_TEXT) {
        if (st != AS_E_UNSUPPORTED)
            abort();
        return;
    }
    if (st != AS_OK || rows != info->n_rows)
        abort();
    if (dataset_test_load(paths, info, rows, &d, &err) != AS_OK)
        abort();
    check_values(info, &d);
    dataset_done(&d);
}

static void inspect_and_load(const struct dataset_paths *paths, dataset_format format,
                             const char *target, const struct dataset_options *options)
{
    struct dataset_info info = {0}, back = {0};
    struct dataset d = {0};
    struct as_err err;
    if (dataset_inspect(paths, format, target, DATASET_TASK_AUTO, options, &info, &err) != AS_OK)
        return;
    JSON_AUTO j = dataset_info_to_json(&info);
    if (!j || dataset_info_from_json(j, "", &back, &err) != AS_OK)
        abort();
    if (dataset_load(paths, &back, &d, &err) != AS_OK)
        abort();
    check_values(&back, &d);
    load_as_test(paths, &back);
    dataset_done(&d);
    dataset_info_done(&info);
    dataset_info_done(&back);
}

/* A copy of a data set of 3 rows, 2 features (one with categories) and 2 classes. */
static void load_decoded(const char *path)
{
    static char *names[] = {(char *)"a", (char *)"b"};
    static struct dataset_column columns[] = {
        {.name = (char *)"x", .n_missing = 1},
        {.name = (char *)"c", .categorical = true, .n_values = 2, .values = names}};
    struct dataset_info info = {.task = DATASET_CLASSIFICATION,
                                .n_rows = 3,
                                .n_features = 2,
                                .n_outputs = 2,
                                .n_classes = 2,
                                .classes = names,
                                .columns = columns};
    struct dataset d = {0};
    struct as_err err;
    struct dataset_paths paths = {.table = "/nowhere", .decoded = path};
    if (dataset_load(&paths, &info, &d, &err) == AS_OK)
        for (size_t i = 0; i < 3; i++)
            if (d.labels[i] < 0 || d.labels[i] > 1)
                abort();
    dataset_done(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 1, 0, 1};
    static const char kinds[] = "cnzifstk"; /* in the order of dataset_format */
    const char *kind = size ? memchr(kinds, data[0], sizeof kinds - 1) : NULL;
    char path[PATH_SIZE], labels_path[PATH_SIZE];
    if (!kind && (!size || data[0] != 'd'))
        return 0;
    AS_AUTO(file_closep) int fd = memory_file(data + 1, size - 1, path);
    AS_AUTO(file_closep) int fd2 = memory_file(labels, sizeof labels, labels_path);
    struct dataset_paths one = {.table = path};
    struct dataset_paths two = {.features = path, .targets = labels_path};
    if (!kind) {
        load_decoded(path);
        return 0;
    }
    dataset_format format = (dataset_format)(kind - kinds);
    bool table = format == DATASET_CSV || format == DATASET_NPY;
    struct dataset_options raw = {.raw = true};
    inspect_and_load(format == DATASET_IDX ? &two : &one, format, table ? "-1" : NULL, NULL);
    if (format == DATASET_TOKENS)
        inspect_and_load(&one, format, NULL, &raw);
    return 0;
}
