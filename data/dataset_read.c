/* Inspect and load data sets of any format.
 *
 * A table has one row for each format: its files, its options, and two functions. What a format
 * accepts is checked here, before a file is opened, so that the families of formats need not do it.
 *
 * dataset_load() first tries the decoded copy. If the copy is absent, damaged or of another data
 * set, the files are read and the copy is written again. Failing to write it is no error: it is a
 * cache, and the data is already in memory. */
#include "data/dataset_read.h"

#include <unistd.h>

#include "data/dataset_alloc.h"
#include "data/dataset_arrays.h"
#include "data/dataset_csv.h"
#include "data/dataset_decoded.h"
#include "data/dataset_tokens.h"
#include "data/target.h"

/* ---- the formats ---- */

/* Which files a format takes. */
typedef enum file_need { ONE_FILE, TWO_FILES, EITHER } file_need;

/* Which options a format takes. */
enum {
    CHANNELS_FIRST = 1,
    RAW = 2,
    VOCAB = 4,
    NAMES = 8,
    DIALECT = 16,
    COLUMNS = 32,
    TEXT = 64,
    CELLS = 128
};

static const struct format {
    file_need files;
    bool names_target; /* a table's column */
    unsigned options;
    as_status (*inspect)(const struct dataset_paths *paths, const char *target, dataset_task task,
                         struct dataset_info *ret, struct as_err *err);
    as_status (*load)(const struct dataset_paths *paths, const struct dataset_info *info,
                      struct dataset *ret, struct as_err *err);
    as_status (*test)(const struct dataset_paths *paths, const struct dataset_info *info,
                      size_t *rows, struct dataset *ret, struct as_err *err); /* NULL: no rows */
} formats[] = {
    [DATASET_CSV] = {ONE_FILE, true, DIALECT | COLUMNS | TEXT | CELLS, dataset_csv_inspect,
                     dataset_csv_load, dataset_csv_test},
    [DATASET_NPY] = {EITHER, true, CHANNELS_FIRST, dataset_arrays_inspect, dataset_arrays_load,
                     dataset_arrays_test},
    [DATASET_NPZ] = {ONE_FILE, false, CHANNELS_FIRST | NAMES, dataset_arrays_inspect,
                     dataset_arrays_load, dataset_arrays_test},
    [DATASET_IDX] = {TWO_FILES, false, 0, dataset_arrays_inspect, dataset_arrays_load,
                     dataset_arrays_test},
    [DATASET_CIFAR] = {ONE_FILE, false, 0, dataset_arrays_inspect, dataset_arrays_load,
                       dataset_arrays_test},
    [DATASET_SAFETENSORS] = {ONE_FILE, false, CHANNELS_FIRST | NAMES, dataset_arrays_inspect,
                             dataset_arrays_load, dataset_arrays_test},
    [DATASET_TEXT] = {ONE_FILE, false, 0, dataset_tokens_inspect, dataset_tokens_load, NULL},
    [DATASET_TOKENS] = {ONE_FILE, false, RAW | VOCAB, dataset_tokens_inspect, dataset_tokens_load,
                        NULL},
};

static as_status check_paths(const struct dataset_paths *p, dataset_format format,
                             struct as_err *err)
{
    static const char *const expected[] = {
        [ONE_FILE] = "one, the table",
        [TWO_FILES] = "two, features and targets",
        [EITHER] = "a table, or features and targets",
    };
    file_need need = formats[format].files;
    bool pair = p->features && p->targets && !p->table;
    bool table = p->table && !p->features && !p->targets;
    if (!(table && need != TWO_FILES) && !(pair && need != ONE_FILE))
        return as_fail(err, AS_E_INVAL, "the files of a %s data set: expected %s",
                       dataset_format_names[format], expected[need]);
    return AS_OK;
}

static as_status check_target(const struct dataset_paths *p, dataset_format format,
                              const char *target, struct as_err *err)
{
    bool wanted = formats[format].names_target && p->table;
    if (target && !*target)
        return as_fail(err, AS_E_INVAL, "target: found '', expected a column's name or index");
    if (!wanted && target)
        return as_fail(
            err, AS_E_INVAL,
            "target: found '%.60s', but the targets of this %s data set are not a column of "
            "a table",
            target, dataset_format_names[format]);
    return AS_OK;
}

/* Other formats say where their targets are; who clusters leaves them out. */
static as_status check_clustering(dataset_format format, dataset_task task, struct as_err *err)
{
    if (task != DATASET_CLUSTERING || format == DATASET_CSV)
        return AS_OK;
    return as_fail(
        err, AS_E_INVAL,
        "task: found clustering with the format %s, expected csv; k-means takes data sets "
        "with targets too, and leaves these out",
        dataset_format_names[format]);
}

static as_status check_options(dataset_format format, const struct dataset_options *o,
                               struct as_err *err)
{
    static const char *const names[] = {"channels_first",
                                        "raw",
                                        "vocab",
                                        "x or y",
                                        "separator, decimal or comment",
                                        "select or drop",
                                        "text or buckets",
                                        "numeric, missing or drop_unlabelled"};
    unsigned given =
        (o->channels_first ? CHANNELS_FIRST : 0) | (o->raw ? RAW : 0) | (o->vocab ? VOCAB : 0) |
        (o->x || o->y ? NAMES : 0) | (o->separator || o->decimal || o->comment ? DIALECT : 0) |
        (o->select.n || o->drop.n ? COLUMNS : 0) | (o->text.n || o->buckets ? TEXT : 0) |
        (o->numeric.n || o->missing.n || o->drop_unlabelled ? CELLS : 0);
    for (unsigned i = 0; i < AS_ARRAY_LEN(names); i++)
        if ((given & ~formats[format].options) & 1u << i)
            return as_fail(err, AS_E_INVAL, "the option %s is not for the format %s", names[i],
                           dataset_format_names[format]);
    return AS_OK;
}

as_status dataset_inspect(const struct dataset_paths *paths, dataset_format format,
                          const char *target, dataset_task task,
                          const struct dataset_options *options, struct dataset_info *ret,
                          struct as_err *err)
{
    static const struct dataset_options defaults;
    const struct dataset_options *o = options ? options : &defaults;
    AS_AUTO(dataset_info_done) struct dataset_info info = {.format = format};
    as_status st = check_paths(paths, format, err);
    if (st != AS_OK)
        return st;
    st = check_target(paths, format, target, err);
    if (st != AS_OK)
        return st;
    st = check_options(format, o, err);
    if (st == AS_OK)
        st = check_clustering(format, task, err);
    if (st != AS_OK)
        return st;
    st = dataset_options_copy(o, &info.options, err);
    if (st != AS_OK)
        return st;
    st = formats[format].inspect(paths, target, task, &info, err);
    if (st == AS_OK)
        st = target_order_classes(&info, err);
    if (st != AS_OK)
        return st;
    if (dataset_inputs(&info) > DATASET_MAX_FEATURES)
        return as_fail(err, AS_E_TOO_LARGE, "%zu inputs, categories one-hot, at most %zu",
                       dataset_inputs(&info), DATASET_MAX_FEATURES);
    *ret = info;
    info = (struct dataset_info){0};
    return AS_OK;
}

/* ---- loading ---- */

static as_status load_files(const struct dataset_paths *paths, const struct dataset_info *info,
                            bool bytes, struct dataset *ret, struct as_err *err)
{
    as_status st = check_paths(paths, info->format, err);
    if (st < 0)
        return st;
    AS_AUTO(dataset_done) struct dataset d = {0};
    if (paths->decoded && dataset_decoded_read(paths->decoded, info, bytes, &d) == AS_OK) {
        *ret = d;
        d = (struct dataset){0};
        return AS_OK;
    }
    dataset_done(&d);
    st = formats[info->format].load(paths, info, &d, err);
    if (st != AS_OK)
        return st;
    if (paths->decoded && dataset_decoded_write(paths->decoded, info, &d) != AS_OK)
        (void)unlink(paths->decoded); /* it is only a cache: the data is in memory */
    st = bytes ? dataset_to_bytes(&d, err) : AS_OK;
    if (st != AS_OK)
        return st;
    *ret = d;
    d = (struct dataset){0};
    return AS_OK;
}

as_status dataset_load(const struct dataset_paths *paths, const struct dataset_info *info,
                       struct dataset *ret, struct as_err *err)
{
    return load_files(paths, info, false, ret, err);
}

as_status dataset_load_bytes(const struct dataset_paths *paths, const struct dataset_info *info,
                             struct dataset *ret, struct as_err *err)
{
    return load_files(paths, info, info->input == DATASET_IMAGE, ret, err);
}

/* ---- test rows ---- */

static as_status read_test(const struct dataset_paths *paths, const struct dataset_info *info,
                           size_t *rows, struct dataset *ret, struct as_err *err)
{
    if (!formats[info->format].test)
        return as_fail(err, AS_E_UNSUPPORTED, "test rows are for tables and images, found %s",
                       dataset_format_names[info->format]);
    as_status st = check_paths(paths, info->format, err);
    if (st == AS_OK)
        st = formats[info->format].test(paths, info, rows, ret, err);
    return st == AS_OK && *rows == 0 ? as_fail(err, AS_E_INVAL, "the file has no rows") : st;
}

as_status dataset_test_inspect(const struct dataset_paths *paths, const struct dataset_info *info,
                               size_t *ret_rows, struct as_err *err)
{
    size_t rows = 0;
    as_status st = read_test(paths, info, &rows, NULL, err);
    if (st == AS_OK)
        *ret_rows = rows;
    return st;
}

as_status dataset_test_load(const struct dataset_paths *paths, const struct dataset_info *info,
                            size_t rows, struct dataset *ret, struct as_err *err)
{
    AS_AUTO(dataset_done) struct dataset d = {0};
    as_status st = read_test(paths, info, &rows, &d, err);
    if (st != AS_OK)
        return st;
    *ret = d;
    d = (struct dataset){0};
    return AS_OK;
}
