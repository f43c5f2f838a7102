#include "cli/predict/images.h"

#include "base/file.h"
#include "data/image/image.h"

bool predict_images_at(const char *path)
{
    return file_is_folder(path) || image_list_is_image(path);
}

static as_status list_one(const char *path, struct image_list *ret, struct as_err *err)
{
    *ret = (struct image_list){0};
    ret->paths.name = as_calloc(1, sizeof *ret->paths.name);
    if (!ret->paths.name || !(ret->paths.name[0] = as_strdup(path)))
        return as_fail_nomem(err);
    ret->paths.n = ret->paths.cap = ret->n_direct = 1;
    return AS_OK;
}

as_status predict_images_list(const struct dataset_info *info, const char *path,
                              struct image_list *ret, struct as_err *err)
{
    *ret = (struct image_list){0};
    if (info->input != DATASET_IMAGE)
        return as_fail(err, AS_E_INVAL,
                       "%.200s is %s, but the model takes %s: expected a file with rows", path,
                       file_is_folder(path) ? "a folder" : "an image",
                       info->input == DATASET_TABLE ? "columns of a table" : "text");
    if (info->channels != 1 && info->channels != 3)
        return as_fail(
            err, AS_E_INVAL,
            "%.200s: image files have 1 or 3 channels, but the model takes %zu: expected "
            "an array",
            path, info->channels);
    as_status st =
        file_is_folder(path) ? image_list_read(path, ret, err) : list_one(path, ret, err);
    if (st == AS_OK && ret->paths.n == 0)
        return as_fail(err, AS_E_INVAL,
                       "%.200s: found no image, expected files .png, .jpg or .jpeg", path);
    return st;
}

as_status predict_images_read(const struct dataset_info *info, const char *path,
                              unsigned char *bytes, float *ret, struct as_err *err)
{
    AS_AUTO(image_done) struct image image = {0};
    as_status st = image_read(path, &image, err);
    if (st == AS_OK)
        st = image_resize(&image, info->height, info->width, info->channels, bytes, err);
    for (size_t i = 0; st == AS_OK && i < info->n_features; i++)
        ret[i] = (float)bytes[i];
    return st;
}
