/* The images in a folder and in its sub-folders, in the order of the bytes of their names. */
#ifndef ASSAY_CLI_FILES_IMAGE_LIST_H
#define ASSAY_CLI_FILES_IMAGE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

#define IMAGE_LIST_MAX ((size_t)1 << 24)
#define IMAGE_LIST_MAX_FOLDERS ((size_t)4096)

struct image_names {
    char **name;
    size_t n, cap;
};

/* A zeroed struct is empty. Images of the folder itself come first, then those of each
 * sub-folder. */
struct image_list {
    struct image_names paths;   /* [images] FOLDER/NAME or FOLDER/SUB/NAME */
    struct image_names folders; /* names of sub-folders, also of those without an image */
    size_t *end;                /* [folders.n] how many images there are up to the folder's last */
    size_t n_direct;            /* images in the folder itself */
    size_t n_skipped;           /* files that are no images by their names */
    size_t cap_end;
};

void image_list_done(struct image_list *l);

/* Does the name end with .png, .jpg or .jpeg, in any case? */
bool image_list_is_image(const char *name);

/* List a folder. Names that begin with '.' are left out, and folders in sub-folders are skipped
 * files. ret is owned by the caller, on failure too. AS_E_TOO_LARGE, AS_E_NOT_FOUND, AS_E_IO,
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status image_list_read(const char *folder, struct image_list *ret,
                                        struct as_err *err);

#endif
