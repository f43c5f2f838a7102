#include "tests/support/temp_folder.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/support/check_main.h"

void temp_folder_make(char ret[TEMP_FOLDER_SIZE])
{
    memcpy(ret, "/tmp/assay-test-XXXXXX", TEMP_FOLDER_SIZE);
    ck_assert_ptr_nonnull(mkdtemp(ret));
}

void temp_folder_remove(const char *folder)
{
    struct as_err err = {0};
    ck_ok(file_remove_tree(folder, &err), err);
}
