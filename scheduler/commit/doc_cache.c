#include "scheduler/commit/doc_cache.h"

#include <string.h>

#include "base/json.h"
#include "scheduler/sweep/stored_doc.h"

static void row_done(struct cached_doc *r)
{
    sweep_doc_free(r->doc);
    json_decref(r->tree);
    free(r->trial);
    *r = (struct cached_doc){0};
}

void doc_cache_done(struct doc_cache *c)
{
    for (size_t i = 0; i < c->n; i++)
        row_done(&c->rows[i]);
    c->n = 0;
}

const struct cached_doc *doc_cache_find(struct doc_cache *c, int64_t key)
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
static struct cached_doc *free_row(struct doc_cache *c)
{
    if (c->n < DOC_CACHE_MAX)
        return &c->rows[c->n++];
    struct cached_doc *oldest = &c->rows[0];
    for (size_t i = 1; i < c->n; i++)
        if (c->rows[i].used < oldest->used)
            oldest = &c->rows[i];
    row_done(oldest);
    return oldest;
}

as_status doc_cache_add(struct doc_cache *c, int64_t key, const char *text, struct as_err *err)
{
    struct cached_doc row = {.key = key};
    if (strlen(text) > DOC_CACHE_TEXT_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "the document of a sweep has %zu bytes", strlen(text));
    as_status st = stored_doc_read(text, &row.tree, &row.doc, err);
    if (st == AS_OK) {
        row.is_command = !json_object_get(json_object_get(row.tree, "trial"), "train");
        row.trial = json_format(json_object_get(row.tree, "trial"));
        st = row.trial ? AS_OK : as_fail_nomem(err);
    }
    if (st != AS_OK) {
        row_done(&row);
        return st;
    }
    row.used = ++c->now;
    *free_row(c) = row;
    return AS_OK;
}
