#include "scheduler/commit/claim_docs.h"

void claim_docs_done(struct claim_docs *c)
{
    for (size_t i = 0; i < c->n; i++)
        doc_ref_done(&c->rows[i].ref);
    c->n = 0;
}

const struct claim_doc *claim_docs_find(struct claim_docs *c, int64_t key)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->rows[i].key != key)
            continue;
        c->rows[i].used = ++c->now;
        return &c->rows[i];
    }
    return NULL;
}

/* A free place, perhaps that of the row that was not used for longest. */
static struct claim_doc *free_row(struct claim_docs *c)
{
    if (c->n < CLAIM_DOCS_MAX)
        return &c->rows[c->n++];
    struct claim_doc *oldest = &c->rows[0];
    for (size_t i = 1; i < c->n; i++)
        if (c->rows[i].used < oldest->used)
            oldest = &c->rows[i];
    doc_ref_done(&oldest->ref);
    return oldest;
}

as_status claim_docs_add(struct claim_docs *c, int64_t key, const char *text, struct as_err *err)
{
    struct claim_doc row = {.key = key};
    as_status st = doc_cache_read(c->shared, text, true, &row.ref, err);
    if (st != AS_OK)
        return st;
    row.is_command =
        row.ref.trial && !json_object_get(json_object_get(row.ref.tree, "trial"), "train");
    row.used = ++c->now;
    *free_row(c) = row;
    return AS_OK;
}
