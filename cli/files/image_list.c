/* Lists the images of a folder and of the folders in it, one level: a folder is a class. Names are
 * sorted by their bytes and not by the locale, because equal folders have to give equal data sets
 * on every machine (decision 1004). Names that begin with '.' are skipped. */
#include "cli/files/image_list.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"

static void names_done(struct image_names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->name[i]);
    free(names->name);
    *names = (struct image_names){0};
}

void image_list_done(struct image_list *l)
{
    names_done(&l->paths);
    names_done(&l->folders);
    free(l->end);
    *l = (struct image_list){0};
}

/* Takes `name`, which may be NULL when memory is out. */
static as_status names_add(struct image_names *names, char *name, struct as_err *err)
{
    AS_AUTO(as_freep) char *own = name;
    if (!own)
        return as_fail_nomem(err);
    as_status st = as_reserve_one(&names->name, names->n, &names->cap, sizeof *names->name, err);
    if (st == AS_OK)
        names->name[names->n++] = as_steal(own);
    return st;
}

static void dir_closep(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a folder that do not begin with '.'. */
static as_status list_folder(const char *folder, struct image_names *ret, struct as_err *err)
{
    AS_AUTO(dir_closep) DIR *d = opendir(folder);
    const struct dirent *e;
    if (!d)
        return as_fail(err, errno == ENOENT ? AS_E_NOT_FOUND : AS_E_IO, "cannot open %.200s: %s",
                       folder, strerror(errno));
    while ((e = readdir(d))) {
        as_status st = e->d_name[0] == '.' ? AS_OK : names_add(ret, as_strdup(e->d_name), err);
        if (st != AS_OK)
            return st;
    }
    if (ret->n)
        qsort(ret->name, ret->n, sizeof *ret->name, compare_names);
    return AS_OK;
}

bool image_list_is_image(const char *name)
{
    static const char *const ends[] = {".png", ".jpg", ".jpeg"};
    size_t n = strlen(name);
    for (size_t i = 0; i < AS_ARRAY_LEN(ends); i++)
        if (n > strlen(ends[i]) && strcasecmp(name + n - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* Add the images of one folder. `ret_folders` gets the names of the folders in it; NULL: they are
 * skipped. */
static as_status add_images(const char *folder, struct image_list *l,
                            struct image_names *ret_folders, struct as_err *err)
{
    AS_AUTO(names_done) struct image_names names = {0};
    as_status st = list_folder(folder, &names, err);
    for (size_t i = 0; st == AS_OK && i < names.n; i++) {
        AS_AUTO(as_freep) char *path = file_join(folder, names.name[i]);
        if (!path)
            return as_fail_nomem(err);
        if (file_is_folder(path)) {
            if (ret_folders)
                st = names_add(ret_folders, as_steal(names.name[i]), err);
            l->n_skipped += !ret_folders;
        } else if (!image_list_is_image(names.name[i])) {
            l->n_skipped++;
        } else if (l->paths.n == IMAGE_LIST_MAX) {
            return as_fail(err, AS_E_TOO_LARGE, "more than %zu images", IMAGE_LIST_MAX);
        } else {
            st = names_add(&l->paths, as_steal(path), err);
        }
    }
    return st;
}

as_status image_list_read(const char *folder, struct image_list *ret, struct as_err *err)
{
    *ret = (struct image_list){0};
    as_status st = add_images(folder, ret, &ret->folders, err);
    ret->n_direct = ret->paths.n;
    if (st == AS_OK && ret->folders.n > IMAGE_LIST_MAX_FOLDERS)
        return as_fail(err, AS_E_TOO_LARGE, "%.200s: more than %zu folders", folder,
                       IMAGE_LIST_MAX_FOLDERS);
    for (size_t i = 0; st == AS_OK && i < ret->folders.n; i++) {
        AS_AUTO(as_freep) char *path = file_join(folder, ret->folders.name[i]);
        st = as_reserve_one(&ret->end, i, &ret->cap_end, sizeof *ret->end, err);
        if (st != AS_OK || !path)
            return path ? st : as_fail_nomem(err);
        st = add_images(path, ret, NULL, err);
        ret->end[i] = ret->paths.n;
    }
    return st;
}
