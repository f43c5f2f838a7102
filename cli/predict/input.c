/* Opens the data and cuts it into blocks.
 *
 * The kind of file follows from its name. A table is read once, because it may be a pipe: its
 * header is found in the first block, which is kept and given away as the first. It is written as
 * the model's data set was: the same separator, decimal sign and comments. A model that has names
 * needs a header, so for it the first record is one; for others csv.h decides.
 *
 * Images in an array may have their channels first, as the model's data set had. A block of image
 * files is their names: decoding is the work of the threads that compute. */
#include "cli/predict/input.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/str.h"
#include "data/csv_table.h"
#include "data/formats/array.h"
#include "data/target.h"

#define BLOCK_NUMBERS ((size_t)1 << 16) /* of an array: 256 KiB as float32 */
#define BLOCK_IMAGES ((size_t)32)       /* files */

struct predict_input {
    const struct dataset_info *info; /* borrowed */
    const char *name;                /* borrowed */
    struct predict_columns columns;
    int64_t file_bytes;

    struct csv_blocks *blocks; /* a table: owned */
    struct csv *table;         /* its columns, and how it is written; owned */
    struct csv_block first;    /* the first block, until it is given away */
    bool has_first, has_header;

    struct array array; /* an array */
    size_t rows, at;    /* of the array, or of images */
    double *row;        /* one row of the array */

    bool has_images;
    struct image_list images;
};

void predict_block_done(struct predict_block *b)
{
    csv_block_done(&b->csv);
    free(b->raw);
    *b = (struct predict_block){0};
}

void predict_input_free(struct predict_input *in)
{
    if (!in)
        return;
    predict_columns_done(&in->columns);
    csv_blocks_free(in->blocks);
    csv_free(in->table);
    csv_block_done(&in->first);
    array_done(&in->array);
    image_list_done(&in->images);
    free(in->row);
    free(in);
}

const struct predict_columns *predict_input_columns(const struct predict_input *in)
{
    return &in->columns;
}

const char *predict_input_name(const struct predict_input *in)
{
    return in->name;
}

const struct csv *predict_input_table(const struct predict_input *in)
{
    return in->table;
}

bool predict_input_has_images(const struct predict_input *in)
{
    return in->has_images;
}

/* ---- tables ---- */

static as_status match_table(struct predict_input *in, struct as_err *err)
{
    size_t n = csv_columns(in->table);
    AS_AUTO(as_freep) const char **names = as_calloc(n, sizeof *names);
    if (!names)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        names[i] = csv_column_name(in->table, i);
    return predict_columns_match(in->info, names, n, &in->columns, err);
}

static struct csv_dialect dialect_of(const struct dataset_info *info,
                                     const struct csv_dialect *written)
{
    struct csv_dialect d = dataset_dialect(&info->options);
    if (written->separator && written->separator != d.separator)
        d.decimal = 0; /* found in the first records */
    d.separator = written->separator ? written->separator : d.separator;
    d.decimal = written->decimal ? written->decimal : d.decimal;
    d.comment = written->comment ? written->comment : d.comment;
    return d;
}

static as_status open_table(struct predict_input *in, const char *path,
                            const struct csv_dialect *written, struct as_err *err)
{
    struct source *source = NULL;
    csv_header header = predict_columns_named(in->info) ? CSV_HEADER_YES : CSV_HEADER_AUTO;
    const struct csv_dialect dialect = dialect_of(in->info, written);
    as_status st = source_open(path, true, &source, err);
    if (st != AS_OK)
        return st;
    source_interruptible(source);
    st = csv_blocks_open(source, dialect.comment, &in->blocks, err);
    if (st != AS_OK)
        return st;
    st = csv_blocks_next(in->blocks, &in->first, err);
    if (st == AS_E_EXHAUSTED)
        return as_fail(err, AS_E_INVAL, "the table is empty, expected a header and rows");
    if (st != AS_OK)
        return st;
    in->has_first = true;
    st = csv_open_bytes_as(in->first.bytes, in->first.len, &dialect, header, &in->table, err);
    if (st != AS_OK)
        return st;
    in->has_header = csv_has_header(in->table);
    return match_table(in, err);
}

/* ---- arrays ---- */

static as_status match_images(struct predict_input *in, struct as_err *err)
{
    const struct dataset_info *info = in->info;
    const size_t *s = in->array.shape;
    bool first = in->array.n_dims == 4 && info->options.channels_first;
    size_t channels = in->array.n_dims == 3 ? 1 : first ? s[1] : s[3];
    size_t height = first ? s[2] : s[1], width = first ? s[3] : s[2];
    if (height == info->height && width == info->width && channels == info->channels)
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "found images of %zu x %zu with %zu channels, expected %zu x %zu with %zu",
                   height, width, channels, info->height, info->width, info->channels);
}

/* Are there columns whose cells are texts? */
static bool has_texts(const struct dataset_info *info)
{
    bool any = false;
    for (size_t i = 0; info->columns && i < info->n_features; i++)
        any = any || info->columns[i].categorical || info->columns[i].part != DATASET_CELL;
    return any;
}

static as_status match_array(struct predict_input *in, struct as_err *err)
{
    const struct array *a = &in->array;
    bool image = in->info->input == DATASET_IMAGE;
    size_t n = 1;
    if (has_texts(in->info))
        return as_fail(
            err, AS_E_INVAL,
            "the model has categories, dates or texts, which an array of numbers does not "
            "hold: expected a CSV table");
    if (a->n_dims < 2 || a->n_dims > 4 || (a->n_dims > 2 && !image))
        return as_fail(err, AS_E_INVAL, "found an array of %zu dimensions, expected %s", a->n_dims,
                       image ? "3 or 4: rows, height, width, channels" : "2: rows, columns");
    for (size_t i = 1; i < a->n_dims; i++)
        n *= a->shape[i];
    in->rows = a->shape[0];
    in->row = as_calloc(n, sizeof *in->row);
    if (!in->row)
        return as_fail_nomem(err);
    as_status st = a->n_dims > 2 ? match_images(in, err) : AS_OK;
    if (st != AS_OK)
        return st;
    return predict_columns_match(in->info, NULL, n, &in->columns, err);
}

static as_status open_array(struct predict_input *in, const char *path, struct as_err *err)
{
    const char *x = in->info->options.x ? in->info->options.x : "x";
    as_status st = as_ends_with(path, ".npy")   ? array_open_npy(path, &in->array, err)
                   : as_ends_with(path, ".npz") ? array_open_npz(path, x, &in->array, err)
                   : as_ends_with(path, ".safetensors")
                       ? array_open_safetensors(path, x, &in->array, err)
                       : array_open_idx(path, &in->array, err);
    return st == AS_OK ? match_array(in, err) : st;
}

static bool is_array(const char *path)
{
    static const char *const ends[] = {".npy",    ".npz",   ".safetensors", ".idx",
                                       ".idx.gz", "-ubyte", "-ubyte.gz"};
    for (size_t i = 0; i < AS_ARRAY_LEN(ends); i++)
        if (as_ends_with(path, ends[i]))
            return true;
    return false;
}

/* ---- all ---- */

static as_status open_images(struct predict_input *in, const char *path, struct as_err *err)
{
    as_status st = predict_images_list(in->info, path, &in->images, err);
    in->has_images = true;
    in->rows = in->images.paths.n;
    return st;
}

as_status predict_input_open(const struct model_file *f, const char *path,
                             const struct csv_dialect *written, struct predict_input **ret,
                             struct as_err *err)
{
    AS_AUTO(predict_input_freep) struct predict_input *in = as_calloc(1, sizeof *in);
    struct stat sb;
    bool standard = as_streq(path, "-");
    if (!in)
        return as_fail_nomem(err);
    *in = (struct predict_input){
        .info = model_file_data(f), .name = standard ? "standard input" : path, .file_bytes = -1};
    if (!standard && stat(path, &sb) == 0) {
        if (S_ISCHR(sb.st_mode) || S_ISBLK(sb.st_mode))
            return as_fail(err, AS_E_INVAL, "%.200s is a device, expected a file or a folder",
                           path);
        in->file_bytes = S_ISREG(sb.st_mode) && !as_ends_with(path, ".gz") ? sb.st_size : -1;
    }
    if (!standard && predict_images_at(path)) {
        as_status st = open_images(in, path, err);
        if (st != AS_OK)
            return st;
    } else if (!standard && is_array(path)) {
        as_status st = open_array(in, path, err);
        if (st != AS_OK)
            return st;
    } else {
        as_status st = open_table(in, standard ? "/dev/stdin" : path, written, err);
        if (st != AS_OK)
            return st == AS_E_NOT_FOUND ? st : as_err_prefix(err, st, "%.200s", in->name);
    }
    *ret = as_steal(in);
    return AS_OK;
}

/* ---- blocks ---- */

/* The row of the array as a row of the model. */
static as_status convert_row(const struct predict_input *in, float *out, struct as_err *err)
{
    const struct dataset_info *info = in->info;
    bool swap = in->array.n_dims == 4 && info->options.channels_first;
    size_t plane = info->height * info->width;
    for (size_t i = 0; i < in->columns.n; i++) {
        size_t k = in->columns.of[i];
        if (k == PREDICT_NO_COLUMN)
            continue;
        if (!isnan(in->row[i])) {
            as_status st = target_check_float(in->row[i], err);
            if (st != AS_OK)
                return as_err_prefix(err, st, "row %zu, column %zu", in->at, i);
        }
        out[swap ? k % plane * info->channels + k / plane : k] = (float)in->row[i];
    }
    return AS_OK;
}

static as_status next_rows(struct predict_input *in, struct predict_block *ret, int64_t *ret_bytes,
                           struct as_err *err)
{
    size_t width = in->info->n_features, most = BLOCK_NUMBERS / width;
    most = most > 0 ? most : 1;
    if (in->at == in->rows)
        return AS_E_EXHAUSTED;
    if (!ret->raw && !(ret->raw = as_calloc(most * width, sizeof *ret->raw)))
        return as_fail_nomem(err);
    ret->first = in->at;
    for (ret->rows = 0; ret->rows < most && in->at < in->rows; ret->rows++) {
        as_status st = array_read(&in->array, in->columns.n, in->row, err);
        if (st == AS_OK)
            st = convert_row(in, ret->raw + ret->rows * width, err);
        if (st != AS_OK)
            return st;
        in->at++;
    }
    *ret_bytes = in->rows ? in->file_bytes / (int64_t)in->rows * (int64_t)ret->rows : 0;
    return AS_OK;
}

static as_status next_images(struct predict_input *in, struct predict_block *ret,
                             int64_t *ret_bytes)
{
    size_t left = in->rows - in->at;
    if (left == 0)
        return AS_E_EXHAUSTED;
    ret->rows = left < BLOCK_IMAGES ? left : BLOCK_IMAGES;
    ret->first = in->at;
    ret->files = in->images.paths.name + in->at;
    in->at += ret->rows;
    for (size_t i = 0; i < ret->rows; i++) {
        struct stat sb;
        *ret_bytes += stat(ret->files[i], &sb) == 0 ? sb.st_size : 0;
    }
    return AS_OK;
}

as_status predict_input_next(struct predict_input *in, struct predict_block *ret,
                             int64_t *ret_bytes, struct as_err *err)
{
    as_status st = AS_OK;
    *ret_bytes = 0;
    if (in->has_images) {
        st = next_images(in, ret, ret_bytes);
    } else if (!in->blocks) {
        st = next_rows(in, ret, ret_bytes, err);
    } else if (in->has_first) {
        csv_block_done(&ret->csv);
        ret->csv = in->first;
        in->first = (struct csv_block){0};
        in->has_first = false;
        ret->header = in->has_header;
    } else {
        ret->header = false;
        st = csv_blocks_next(in->blocks, &ret->csv, err);
    }
    if (st != AS_OK)
        return st == AS_E_EXHAUSTED ? st : as_err_prefix(err, st, "%.200s", in->name);
    if (in->blocks)
        *ret_bytes = (int64_t)ret->csv.len;
    return AS_OK;
}
