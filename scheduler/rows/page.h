/* A request for one page of a list. */
#ifndef ASSAY_SCHEDULER_ROWS_PAGE_H
#define ASSAY_SCHEDULER_ROWS_PAGE_H

#include <stdint.h>

#define PAGE_SIZE_MAX 1000

struct page_req {
    const char *cursor; /* NULL: the first page; AS_E_INVAL: not a cursor of this list */
    int64_t size;       /* 1..PAGE_SIZE_MAX; 0 means 100 */
};

#endif
