#include "scheduler/store/page_fill_priv.h"

#include "scheduler/rows/page.h"

#define FIRST_ROWS 16 /* most pages of small rows take two queries */

struct page_fill page_fill_start(int64_t size)
{
    return (struct page_fill){.size = size};
}

int64_t page_fill_next(const struct page_fill *f)
{
    int64_t left = f->size - f->n, fit = FIRST_ROWS;
    if (f->is_full || left <= 0)
        return 0;
    if (f->n > 0)
        fit = (PAGE_BYTES_MAX - f->bytes) / (f->bytes / f->n + 1);
    fit = fit < 1 ? 1 : fit;
    return fit < left ? fit : left;
}

static int64_t row_bytes(const struct result *r, int row)
{
    int64_t n = 0;
    for (int i = 0; i < PQnfields(r->pg); i++)
        n += PQgetlength(r->pg, row, i);
    return n;
}

int page_fill_take(struct page_fill *f, const struct result *r, int64_t ask)
{
    int take = 0;
    for (; take < r->rows && take < ask; take++) {
        int64_t bytes = row_bytes(r, take);
        if (f->n > 0 && f->bytes + bytes > PAGE_BYTES_MAX)
            break;
        f->bytes += bytes;
        f->n++;
    }
    f->has_more = r->rows > take;
    f->is_full = take < ask || !f->has_more; /* out of budget, or out of rows */
    return take;
}
