/* Packing a folder of images.
 *
 * The files are read twice: their headers first, to know the size of the whole and to refuse images of
 * several sizes before any work is done, then their pixels. What is uploaded are decoded bytes: the
 * server and the trainers need no decoder, and a hostile image meets only the process of the person who
 * named it. */
#include "cli/files/image_folder.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/formats/array.h"
#include "data/formats/safetensors.h"
#include "data/image/image.h"

#define MAX_CLASSES ((size_t)4096)
#define MAX_IMAGES ((size_t)1 << 24)
#define MAX_ROW ((size_t)65536) /* bytes of an image: the features of a data set */

struct names {
    char **name;
    size_t n, cap;
};

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i]);
    free(names->name);
}

struct file {
    char *path;
    size_t label;
};

struct pack {
    struct names classes;
    struct file *files;
    size_t n, cap, n_skipped;
    size_t height, width, channels;
    unsigned char *x;
    int32_t *y;
};

static void pack_done(struct pack *p)
{
    names_done(&p->classes);
    for (size_t i = 0; i < p->n; i++)
        free(p->files[i].path);
    free(p->files);
    free(p->x);
    free(p->y);
}

/* ---- the folder ---- */

static void dir_closep(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a folder that do not begin with '.', in the order of their bytes. */
static as_status list_folder(const char *folder, struct names *ret, struct as_err *err)
{
    AS_AUTO(dir_closep) DIR *d = opendir(folder);
    const struct dirent *e;
    if (!d)
        return as_fail(err, errno == ENOENT ? AS_E_NOT_FOUND : AS_E_IO, "cannot open %.200s: %s",
                       folder, strerror(errno));
    while ((e = readdir(d))) {
        if (e->d_name[0] == '.')
            continue;
        as_status st = as_reserve_one(&ret->name, ret->n, &ret->cap, sizeof *ret->name, err);
        if (st != AS_OK)
            return st;
        if (!(ret->name[ret->n] = as_strdup(e->d_name)))
            return as_fail_nomem(err);
        ret->n++;
    }
    if (ret->n)
        qsort(ret->name, ret->n, sizeof *ret->name, compare_names);
    return AS_OK;
}

static bool is_folder(const char *path)
{
    struct stat sb;
    return stat(path, &sb) == 0 && S_ISDIR(sb.st_mode);
}

static bool has_image_name(const char *name)
{
    static const char *const ends[] = {".png", ".jpg", ".jpeg"};
    size_t n = strlen(name);
    for (size_t i = 0; i < AS_ARRAY_LEN(ends); i++)
        if (n > strlen(ends[i]) && strcasecmp(name + n - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

static as_status add_images(const char *folder, size_t label, struct pack *p, struct as_err *err)
{
    AS_AUTO(names_done) struct names names = {0};
    size_t before = p->n;
    as_status st = list_folder(folder, &names, err);
    for (size_t i = 0; st == AS_OK && i < names.n; i++) {
        if (!has_image_name(names.name[i])) {
            p->n_skipped++;
            continue;
        }
        if (p->n == MAX_IMAGES)
            return as_fail(err, AS_E_TOO_LARGE, "more than %zu images", MAX_IMAGES);
        st = as_reserve_one(&p->files, p->n, &p->cap, sizeof *p->files, err);
        if (st != AS_OK)
            return st;
        p->files[p->n] = (struct file){file_join(folder, names.name[i]), label};
        if (!p->files[p->n].path)
            return as_fail_nomem(err);
        p->n++;
    }
    if (st == AS_OK && p->n == before)
        return as_fail(err, AS_E_INVAL,
                       "%.200s has no image, expected files .png, .jpg or .jpeg in the folder of a "
                       "class",
                       folder);
    return st;
}

/* The sub-folders are the classes; files beside them are skipped. */
static as_status find_images(const char *folder, struct pack *p, struct as_err *err)
{
    AS_AUTO(names_done) struct names names = {0};
    as_status st = list_folder(folder, &names, err);
    for (size_t i = 0; st == AS_OK && i < names.n; i++) {
        AS_AUTO(as_freep) char *path = file_join(folder, names.name[i]);
        if (!path)
            return as_fail_nomem(err);
        if (!is_folder(path)) {
            p->n_skipped++;
            continue;
        }
        if (p->classes.n == MAX_CLASSES)
            return as_fail(err, AS_E_TOO_LARGE, "%.200s: more than %zu classes", folder,
                           MAX_CLASSES);
        st = as_reserve_one(&p->classes.name, p->classes.n, &p->classes.cap,
                            sizeof *p->classes.name, err);
        if (st != AS_OK)
            return st;
        p->classes.name[p->classes.n++] = as_steal(names.name[i]);
        st = add_images(path, p->classes.n - 1, p, err);
    }
    if (st == AS_OK && p->classes.n < 2)
        return as_fail(err, AS_E_INVAL,
                       "%.200s: found %zu folder%s in it, expected one for each class, two or more",
                       folder, p->classes.n, p->classes.n == 1 ? "" : "s");
    return st;
}

/* ---- sizes ---- */

static as_status on_file(const struct image_folder_opts *o, size_t done, size_t total,
                         struct as_err *err)
{
    return o->on_file ? o->on_file(o->arg, done, total, err) : AS_OK;
}

static as_status measure(const struct image_folder_opts *o, struct pack *p, struct as_err *err)
{
    size_t n = p->n;
    p->height = o->height;
    p->width = o->width;
    p->channels = 1;
    for (size_t i = 0; i < n; i++) {
        struct image image = {0};
        as_status st = on_file(o, i, 2 * n, err);
        if (st == AS_OK)
            st = image_read_size(p->files[i].path, &image, err);
        if (st != AS_OK)
            return st;
        p->channels = image.channels > p->channels && !o->grey ? image.channels : p->channels;
        p->height = p->height ? p->height : image.height;
        p->width = p->width ? p->width : image.width;
        if (!o->height && (image.height != p->height || image.width != p->width))
            return as_fail(err, AS_E_INVAL,
                           "%.120s has %zu x %zu pixels, and images before it %zu x %zu: name one "
                           "size, --size HEIGHTxWIDTH",
                           p->files[i].path, image.height, image.width, p->height, p->width);
    }
    size_t row;
    if (__builtin_mul_overflow(p->height, p->width, &row) ||
        __builtin_mul_overflow(row, p->channels, &row) || row > MAX_ROW ||
        row * n > ARRAY_MAX_VALUES)
        return as_fail(
            err, AS_E_TOO_LARGE,
            "%zu images of %zu x %zu pixels, %zu channels: at most %zu values in an image "
            "and %zu in all; name a smaller --size",
            n, p->height, p->width, p->channels, MAX_ROW, ARRAY_MAX_VALUES);
    return AS_OK;
}

/* ---- pixels ---- */

static as_status decode(const struct image_folder_opts *o, struct pack *p, struct as_err *err)
{
    size_t row = p->height * p->width * p->channels;
    p->x = as_calloc(p->n, row);
    p->y = as_calloc(p->n, sizeof *p->y);
    if (!p->x || !p->y)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu images of %zu bytes", p->n, row);
    for (size_t i = 0; i < p->n; i++) {
        AS_AUTO(image_done) struct image image = {0};
        as_status st = on_file(o, p->n + i, 2 * p->n, err);
        if (st == AS_OK)
            st = image_read(p->files[i].path, &image, err);
        if (st == AS_OK)
            st = image_resize(&image, p->height, p->width, p->channels, p->x + i * row, err);
        if (st != AS_OK)
            return st;
        p->y[i] = (int32_t)p->files[i].label;
    }
    return AS_OK;
}

static as_status write_pack(const struct pack *p, const char *path, struct as_err *err)
{
    JSON_AUTO names = json_array();
    for (size_t i = 0; i < p->classes.n; i++)
        if (json_array_append_new(names, json_string(p->classes.name[i])) != 0)
            return as_fail(err, AS_E_INVAL, "the name of the folder %zu is not UTF-8", i);
    AS_AUTO(as_freep) char *text = names ? json_format(names) : NULL;
    JSON_AUTO meta = text ? json_pack("{s:s}", "classes", text) : NULL;
    const struct safetensors_tensor tensors[] = {
        {.name = "x",
         .type = SAFETENSORS_U8,
         .n_dims = 4,
         .shape = {p->n, p->height, p->width, p->channels},
         .data = p->x},
        {.name = "y", .type = SAFETENSORS_I32, .n_dims = 1, .shape = {p->n}, .data = p->y},
    };
    if (!meta)
        return as_fail_nomem(err);
    return safetensors_write(path, meta, tensors, AS_ARRAY_LEN(tensors), err);
}

as_status image_folder_pack(const char *folder, const char *path,
                            const struct image_folder_opts *opts, struct image_folder *ret,
                            struct as_err *err)
{
    AS_AUTO(pack_done) struct pack p = {0};
    as_status st = find_images(folder, &p, err);
    if (st == AS_OK)
        st = measure(opts, &p, err);
    if (st == AS_OK)
        st = decode(opts, &p, err);
    if (st == AS_OK)
        st = write_pack(&p, path, err);
    if (st != AS_OK)
        return st;
    *ret = (struct image_folder){.n_images = p.n,
                                 .n_classes = p.classes.n,
                                 .n_skipped = p.n_skipped,
                                 .height = p.height,
                                 .width = p.width,
                                 .channels = p.channels};
    return AS_OK;
}
