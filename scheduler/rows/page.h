/* A request for one page of a list. */
#ifndef ASSAY_SCHEDULER_ROWS_PAGE_H
#define ASSAY_SCHEDULER_ROWS_PAGE_H

#include <stdint.h>

#define PAGE_SIZE_MAX 1000
/* A page ends before its next row would pass this many bytes of columns. It always has one row if
 * there is one. */
#define PAGE_BYTES_MAX (INT64_C(4) << 20)

struct page_req {
    const char *cursor; /* NULL: the first page; AS_E_INVAL: not a cursor of this list */
    int64_t size;       /* at most so many rows: 1..PAGE_SIZE_MAX; 0 means 100 */
};

#endif
