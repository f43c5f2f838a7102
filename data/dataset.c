#include "data/dataset.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/dataset_priv.h"
#include "base/str.h"

const char *const dataset_format_names[] = {"csv",         "npy",  "npz",    "idx", "cifar",
                                            "safetensors", "text", "tokens", NULL};
const char *const dataset_task_names[] = {"auto", "classification", "regression",
                                          "language_modeling", NULL};
const char *const dataset_input_names[] = {"table", "image", "tokens", NULL};

const char *dataset_format_name(dataset_format format)
{
    return dataset_format_names[format];
}

const char *dataset_task_name(dataset_task task)
{
    return dataset_task_names[task];
}

const char *dataset_input_name(dataset_input input)
{
    return dataset_input_names[input];
}

as_status dataset_format_parse(const char *s, dataset_format *ret, struct as_err *err)
{
    for (int i = 0; dataset_format_names[i]; i++)
        if (as_streq(s, dataset_format_names[i])) {
            *ret = (dataset_format)i;
            return AS_OK;
        }
    return as_fail(err, AS_E_INVAL,
                   "format: found '%.60s', expected csv, npy, npz, idx, cifar, safetensors, text "
                   "or tokens",
                   s);
}

as_status dataset_task_parse(const char *s, dataset_task *ret, struct as_err *err)
{
    for (int i = 0; dataset_task_names[i]; i++)
        if (as_streq(s, dataset_task_names[i])) {
            *ret = (dataset_task)i;
            return AS_OK;
        }
    return as_fail(err, AS_E_INVAL,
                   "task: found '%.60s', expected auto, classification, regression or "
                   "language_modeling",
                   s);
}

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; names && i < n; i++)
        free(names[i]);
    free(names);
}

void dataset_info_done(struct dataset_info *info)
{
    free(info->target);
    free(info->options.x);
    free(info->options.y);
    free_names(info->classes, info->n_classes);
    for (size_t i = 0; info->columns && i < info->n_features; i++) {
        free(info->columns[i].name);
        free_names(info->columns[i].values, info->columns[i].n_values);
    }
    free(info->columns);
    *info = (struct dataset_info){0};
}

void dataset_done(struct dataset *d)
{
    free(d->x);
    free(d->bytes);
    free(d->labels);
    free(d->targets);
    free(d->tokens);
    *d = (struct dataset){0};
}

/* ---- how a model sees a row ---- */

size_t dataset_column_slots(const struct dataset_column *column)
{
    return column->n_values + 1 + (column->n_missing > 0);
}

size_t dataset_numeric_inputs(const struct dataset_info *info)
{
    if (info->input == DATASET_TOKEN_TEXT)
        return 0;
    size_t n = info->columns ? 0 : info->n_features;
    for (size_t i = 0; info->columns && i < info->n_features; i++)
        if (!info->columns[i].categorical)
            n += 1 + (info->columns[i].n_missing > 0);
    return n;
}

size_t dataset_categorical_columns(const struct dataset_info *info)
{
    size_t n = 0;
    for (size_t i = 0; info->columns && i < info->n_features; i++)
        n += info->columns[i].categorical;
    return n;
}

size_t dataset_category_slots(const struct dataset_info *info)
{
    size_t n = 0;
    for (size_t i = 0; info->columns && i < info->n_features; i++)
        if (info->columns[i].categorical)
            n += dataset_column_slots(&info->columns[i]);
    return n;
}

size_t dataset_inputs(const struct dataset_info *info)
{
    if (info->input == DATASET_TOKEN_TEXT)
        return 1;
    return dataset_numeric_inputs(info) + dataset_category_slots(info);
}

/* ---- checks that the formats share ---- */

as_status dataset_check_size(size_t rows, size_t features, struct as_err *err)
{
    size_t values;
    if (features == 0)
        return as_fail(err, AS_E_INVAL,
                       "the table has no feature: it needs a column besides the target");
    if (rows > DATASET_MAX_ROWS || features > DATASET_MAX_FEATURES ||
        __builtin_mul_overflow(rows, features, &values) || values > DATASET_MAX_VALUES)
        return as_fail(err, AS_E_TOO_LARGE,
                       "%zu rows of %zu features: at most %zu rows, %zu features and %zu values",
                       rows, features, DATASET_MAX_ROWS, DATASET_MAX_FEATURES, DATASET_MAX_VALUES);
    return AS_OK;
}

as_status dataset_check_match(const struct dataset_info *info, size_t rows, size_t features,
                              struct as_err *err)
{
    if (features != info->n_features)
        return as_fail(err, AS_E_INVAL, "the file has %zu features, the data set says %zu",
                       features, info->n_features);
    if (rows > info->n_rows)
        return as_fail(err, AS_E_INVAL, "the file has more than the %zu rows of the data set",
                       info->n_rows);
    if (rows < info->n_rows)
        return as_fail(err, AS_E_INVAL, "the file has %zu rows, the data set says %zu", rows,
                       info->n_rows);
    return AS_OK;
}

#define HUGE_FROM ((size_t)8 << 20) /* bytes */
#define HUGE_PAGE ((uintptr_t)2 << 20)

/* Large pages for large arrays: touching 188 MB of fresh memory in pages of 4 KiB takes as long as
 * reading and converting what goes there. Only advice: what comes back does not matter. */
static void advise_huge(void *p, size_t size)
{
    uintptr_t begin = ((uintptr_t)p + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)p + size) & ~(HUGE_PAGE - 1);
    if (p && size >= HUGE_FROM && end > begin)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

static unsigned char *alloc_bytes(const struct dataset *d)
{
    size_t n = d->n_rows * d->n_features / 4 + 1;
    unsigned char *bytes = as_calloc(n, 4);
    advise_huge(bytes, 4 * n);
    return bytes;
}

as_status dataset_alloc(const struct dataset_info *info, bool bytes, struct dataset *ret,
                        struct as_err *err)
{
    as_status st = dataset_check_size(info->n_rows, info->n_features, err);
    if (st < 0)
        return st;
    ret->n_rows = info->n_rows;
    ret->n_features = info->n_features;
    ret->n_outputs = info->n_outputs;
    bool tokens = info->task == DATASET_LANGUAGE_MODELING;
    if (tokens)
        ret->tokens = as_calloc(info->n_rows, sizeof *ret->tokens);
    else if (bytes)
        ret->bytes = alloc_bytes(ret);
    else
        ret->x = as_calloc(info->n_rows * info->n_features, sizeof *ret->x);
    advise_huge(ret->x, info->n_rows * info->n_features * sizeof *ret->x);
    if (info->task == DATASET_CLASSIFICATION)
        ret->labels = as_calloc(info->n_rows, sizeof *ret->labels);
    else if (!tokens)
        ret->targets = as_calloc(info->n_rows * info->n_outputs, sizeof *ret->targets);
    if (tokens ? !ret->tokens : (!ret->x && !ret->bytes) || (!ret->labels && !ret->targets))
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows of %zu features", info->n_rows,
                       info->n_features);
    return AS_OK;
}

/* ---- the formats ---- */

/* Which files a format takes. */
typedef enum file_need { ONE_FILE, TWO_FILES, EITHER } file_need;

/* Which options. */
enum { CHANNELS_FIRST = 1, RAW = 2, VOCAB = 4, NAMES = 8 };

static const struct format {
    file_need files;
    bool names_target; /* a table's column */
    unsigned options;
    as_status (*inspect)(const struct dataset_paths *paths, const char *target, dataset_task task,
                         struct dataset_info *ret, struct as_err *err);
    as_status (*load)(const struct dataset_paths *paths, const struct dataset_info *info,
                      struct dataset *ret, struct as_err *err);
} formats[] = {
    [DATASET_CSV] = {ONE_FILE, true, 0, dataset_csv_inspect, dataset_csv_load},
    [DATASET_NPY] = {EITHER, true, CHANNELS_FIRST, dataset_arrays_inspect, dataset_arrays_load},
    [DATASET_NPZ] = {ONE_FILE, false, CHANNELS_FIRST | NAMES, dataset_arrays_inspect,
                     dataset_arrays_load},
    [DATASET_IDX] = {TWO_FILES, false, 0, dataset_arrays_inspect, dataset_arrays_load},
    [DATASET_CIFAR] = {ONE_FILE, false, 0, dataset_arrays_inspect, dataset_arrays_load},
    [DATASET_SAFETENSORS] = {ONE_FILE, false, CHANNELS_FIRST | NAMES, dataset_arrays_inspect,
                             dataset_arrays_load},
    [DATASET_TEXT] = {ONE_FILE, false, 0, dataset_tokens_inspect, dataset_tokens_load},
    [DATASET_TOKENS] = {ONE_FILE, false, RAW | VOCAB, dataset_tokens_inspect, dataset_tokens_load},
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
    if (!wanted && target)
        return as_fail(
            err, AS_E_INVAL,
            "target: found '%.60s', but the targets of this %s data set are no column of "
            "a table",
            target, dataset_format_names[format]);
    return AS_OK;
}

static as_status check_options(dataset_format format, const struct dataset_options *o,
                               struct as_err *err)
{
    static const char *const names[] = {"channels_first", "raw", "vocab", "x or y"};
    unsigned given = (o->channels_first ? CHANNELS_FIRST : 0) | (o->raw ? RAW : 0) |
                     (o->vocab ? VOCAB : 0) | (o->x || o->y ? NAMES : 0);
    for (unsigned i = 0; i < AS_ARRAY_LEN(names); i++)
        if ((given & ~formats[format].options) & 1u << i)
            return as_fail(err, AS_E_INVAL, "the option %s is not for the format %s", names[i],
                           dataset_format_names[format]);
    return AS_OK;
}

static as_status copy_options(const struct dataset_options *o, struct dataset_options *ret,
                              struct as_err *err)
{
    *ret = *o;
    ret->x = as_strdup(o->x);
    ret->y = as_strdup(o->y);
    return (o->x && !ret->x) || (o->y && !ret->y) ? as_fail(err, AS_E_NOMEM, "out of memory")
                                                  : AS_OK;
}

as_status dataset_inspect(const struct dataset_paths *paths, dataset_format format,
                          const char *target, dataset_task task,
                          const struct dataset_options *options, struct dataset_info *ret,
                          struct as_err *err)
{
    static const struct dataset_options defaults;
    const struct dataset_options *o = options ? options : &defaults;
    struct dataset_info info = {.format = format};
    as_status st = check_paths(paths, format, err);
    if (st == AS_OK)
        st = check_target(paths, format, target, err);
    if (st == AS_OK)
        st = check_options(format, o, err);
    if (st == AS_OK)
        st = copy_options(o, &info.options, err);
    if (st == AS_OK)
        st = formats[format].inspect(paths, target, task, &info, err);
    if (st == AS_OK && dataset_inputs(&info) > DATASET_MAX_FEATURES)
        st = as_fail(err, AS_E_TOO_LARGE, "%zu inputs, categories one-hot, at most %zu",
                     dataset_inputs(&info), DATASET_MAX_FEATURES);
    if (st < 0)
        dataset_info_done(&info);
    else
        *ret = info;
    return st;
}

/* ---- bytes ---- */

bool dataset_is_bytes(const struct dataset *d)
{
    for (size_t i = 0; d->x && i < d->n_rows * d->n_features; i++)
        if (!(d->x[i] >= 0 && d->x[i] <= 255 && d->x[i] == floorf(d->x[i])) || signbit(d->x[i]))
            return false;
    return d->x != NULL;
}

static as_status to_bytes(struct dataset *d, struct as_err *err)
{
    size_t n = d->n_rows * d->n_features;
    if (!dataset_is_bytes(d))
        return AS_OK;
    d->bytes = alloc_bytes(d);
    if (!d->bytes)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu rows of %zu features", d->n_rows,
                       d->n_features);
    for (size_t i = 0; i < n; i++)
        d->bytes[i] = (unsigned char)d->x[i];
    free(as_steal(d->x));
    return AS_OK;
}

/* ---- loading ---- */

static as_status load(const struct dataset_paths *paths, const struct dataset_info *info,
                      bool bytes, struct dataset *ret, struct as_err *err)
{
    as_status st = check_paths(paths, info->format, err);
    if (st < 0)
        return st;
    struct dataset d = {0};
    if (paths->decoded && dataset_decoded_read(paths->decoded, info, bytes, &d) == AS_OK) {
        *ret = d;
        return AS_OK;
    }
    dataset_done(&d);
    st = formats[info->format].load(paths, info, &d, err);
    if (st < 0) {
        dataset_done(&d);
        return st;
    }
    if (paths->decoded && dataset_decoded_write(paths->decoded, info, &d) != AS_OK)
        (void)unlink(paths->decoded); /* it is a cache: the data is here all the same */
    st = bytes ? to_bytes(&d, err) : AS_OK;
    if (st < 0)
        dataset_done(&d);
    else
        *ret = d;
    return st;
}

as_status dataset_load(const struct dataset_paths *paths, const struct dataset_info *info,
                       struct dataset *ret, struct as_err *err)
{
    return load(paths, info, false, ret, err);
}

as_status dataset_load_bytes(const struct dataset_paths *paths, const struct dataset_info *info,
                             struct dataset *ret, struct as_err *err)
{
    return load(paths, info, info->input == DATASET_IMAGE, ret, err);
}
