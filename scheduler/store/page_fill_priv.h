/* Fills one page of a list by several small queries, so that a page of large rows costs no more
 * memory than its budget of bytes. Private to this folder.
 *
 *     struct page_fill f = page_fill_start(size);
 *     for (int64_t ask; (ask = page_fill_next(&f)) > 0;) {
 *         ... query `ask` + 1 rows after the last place, into r
 *         int take = page_fill_take(&f, &r, ask);
 *         ... read the first `take` rows of r, and note the new last place
 *     }
 *     f.has_more                  are there rows after the page?
 *
 * A list of 1,000 sweeps may hold 1 GB, and SQL has no LIMIT of bytes. So the first query asks for
 * few rows, and the next ones for as many as the average row lets expect. */
#ifndef ASSAY_SCHEDULER_STORE_PAGE_FILL_PRIV_H
#define ASSAY_SCHEDULER_STORE_PAGE_FILL_PRIV_H

#include "scheduler/store/pg_priv.h"

struct page_fill {
    int64_t size;  /* rows wanted */
    int64_t n;     /* rows taken so far */
    int64_t bytes; /* of those rows */
    bool is_full, has_more;
};

struct page_fill page_fill_start(int64_t size);

/* The number of rows to ask for next; 0: the page is complete. */
int64_t page_fill_next(const struct page_fill *f);

/* How many rows of `r` belong to the page, from its first: at most `ask`, and no more than the
 * budget allows, but at least one row in a page. */
int page_fill_take(struct page_fill *f, const struct result *r, int64_t ask);

#endif
