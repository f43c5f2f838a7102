/* Files of trials. Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_FILE_ROW_H
#define ASSAY_SCHEDULER_ROWS_FILE_ROW_H

#include <stddef.h>
#include <stdint.h>

struct file_row {
    const char *path;
    int64_t size; /* bytes */
    const char *sha256;
};

struct file_list {
    struct file_row *rows; /* in the order of paths */
    size_t n;
};

#endif
