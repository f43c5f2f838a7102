#include "data/dataset_cells.h"

#include <stdlib.h>
#include <string.h>

void dataset_cells_done(struct dataset_cells *c)
{
    free(c->at);
    free(c->text);
    *c = (struct dataset_cells){0};
}

/* Room for `more` beyond `n` elements, doubling; the capacity follows from n alone: it is the least
 * power of two that n fits into. */
static as_status make_room(void **p, size_t n, size_t more, size_t size, struct as_err *err)
{
    size_t before = 64, after = 64;
    while (before < n)
        before *= 2;
    while (after < n + more)
        after *= 2;
    if (*p && after == before)
        return AS_OK;
    void *grown = realloc(*p, after * size);
    if (!grown)
        return as_fail(err, AS_E_NOMEM, "out of memory for the cells of a column");
    *p = grown;
    return AS_OK;
}

as_status dataset_cells_add(struct dataset_cells *c, const char *s, size_t len, struct as_err *err)
{
    void *at = c->at, *text = c->text;
    as_status st = make_room(&at, c->n, 1, sizeof *c->at, err);
    c->at = at;
    if (st != AS_OK)
        return st;
    st = make_room(&text, c->bytes, len + 1, 1, err);
    c->text = text;
    if (st != AS_OK)
        return st;
    memcpy(c->text + c->bytes, s, len);
    c->text[c->bytes + len] = 0;
    c->at[c->n++] = c->bytes;
    c->bytes += len + 1;
    return AS_OK;
}
