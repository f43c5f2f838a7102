/* Packing a folder of images.
 *
 * The files are read twice: their headers first, to know the size of the whole and to refuse images
 * of several sizes before any work is done, then their pixels. What is uploaded are decoded bytes:
 * the server and the trainers need no decoder, and a hostile image meets only the process of the
 * person who named it. */
#include "cli/files/image_folder.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cli/files/image_list.h"
#include "data/formats/array.h"
#include "data/formats/safetensors.h"
#include "data/image/image.h"

#define MAX_ROW ((size_t)65536) /* bytes of an image: the features of a data set */

struct pack {
    struct image_list list;
    char *const *path; /* [n] those in folders of classes; views of list */
    size_t n, n_classes;
    size_t height, width, channels;
    unsigned char *x;
    int32_t *y;
};

static void pack_done(struct pack *p)
{
    image_list_done(&p->list);
    free(p->x);
    free(p->y);
}

/* ---- the folder ---- */

/* The sub-folders are the classes; images beside them are skipped. */
static as_status find_images(const char *folder, struct pack *p, struct as_err *err)
{
    struct image_list *l = &p->list;
    as_status st = image_list_read(folder, l, err);
    if (st != AS_OK)
        return st;
    p->n_classes = l->folders.n;
    p->path = l->paths.name + l->n_direct;
    p->n = l->paths.n - l->n_direct;
    l->n_skipped += l->n_direct;
    if (p->n_classes < 2)
        return as_fail(err, AS_E_INVAL,
                       "%.200s: found %zu folder%s in it, expected one for each class, two or more",
                       folder, p->n_classes, p->n_classes == 1 ? "" : "s");
    for (size_t i = 0; i < p->n_classes; i++)
        if (l->end[i] == (i > 0 ? l->end[i - 1] : l->n_direct))
            return as_fail(err, AS_E_INVAL,
                           "%.200s/%.100s has no image, expected files .png, .jpg or .jpeg in the "
                           "folder of a class",
                           folder, l->folders.name[i]);
    return AS_OK;
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
            st = image_read_size(p->path[i], &image, err);
        if (st != AS_OK)
            return st;
        p->channels = image.channels > p->channels && !o->grey ? image.channels : p->channels;
        p->height = p->height ? p->height : image.height;
        p->width = p->width ? p->width : image.width;
        if (!o->height && (image.height != p->height || image.width != p->width))
            return as_fail(err, AS_E_INVAL,
                           "%.120s has %zu x %zu pixels, and images before it %zu x %zu: name one "
                           "size, --size HEIGHTxWIDTH",
                           p->path[i], image.height, image.width, p->height, p->width);
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
    size_t row = p->height * p->width * p->channels, label = 0;
    p->x = as_calloc(p->n, row);
    p->y = as_calloc(p->n, sizeof *p->y);
    if (!p->x || !p->y)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu images of %zu bytes", p->n, row);
    for (size_t i = 0; i < p->n; i++) {
        AS_AUTO(image_done) struct image image = {0};
        as_status st = on_file(o, p->n + i, 2 * p->n, err);
        if (st == AS_OK)
            st = image_read(p->path[i], &image, err);
        if (st == AS_OK)
            st = image_resize(&image, p->height, p->width, p->channels, p->x + i * row, err);
        if (st != AS_OK)
            return st;
        while (p->list.n_direct + i >= p->list.end[label])
            label++;
        p->y[i] = (int32_t)label;
    }
    return AS_OK;
}

static as_status write_pack(const struct pack *p, const char *path, struct as_err *err)
{
    JSON_AUTO names = json_array();
    for (size_t i = 0; i < p->n_classes; i++)
        if (json_array_append_new(names, json_string(p->list.folders.name[i])) != 0)
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
                                 .n_classes = p.n_classes,
                                 .n_skipped = p.list.n_skipped,
                                 .height = p.height,
                                 .width = p.width,
                                 .channels = p.channels};
    return AS_OK;
}
