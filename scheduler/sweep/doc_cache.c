/* Documents by their text.
 *
 * An entry is found by length, hash and text. The whole text is compared, so a wrong document is
 * never found, and a sweep whose limits change has another text and another entry; the older one
 * goes when it is the least recently used. The tree is made first; the checked document is added
 * when somebody wants it, because sweeps whose method learns have theirs with their history. */
#include "scheduler/sweep/doc_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"
#include "base/json.h"
#include "base/mem.h"
#include "scheduler/sweep/stored_doc.h"

struct doc_entry {
    atomic_long users; /* references, that of the cache among them */
    char *text, *trial;
    size_t len;
    uint64_t hash;
    json_t *tree;
    struct sweep_doc *doc; /* guarded by the cache's mu until it is set; NULL: nobody wanted it */
    uint64_t used;         /* guarded by mu, as the cache's fields are */
};

struct doc_cache {
    pthread_mutex_t mu; /* guards all below; no other lock is taken while it is held */
    struct doc_entry *entries[DOC_CACHE_MAX];
    size_t n, bytes;
    uint64_t uses;
};

static void entry_release(struct doc_entry *e)
{
    if (!e || atomic_fetch_sub(&e->users, 1) > 1)
        return;
    sweep_doc_free(e->doc);
    json_decref(e->tree);
    free(e->trial);
    free(e->text);
    free(e);
}

AS_DEFINE_FREEP(struct doc_entry, entry_release)

as_status doc_cache_create(struct doc_cache **ret, struct as_err *err)
{
    struct doc_cache *c = as_calloc(1, sizeof *c);
    if (!c)
        return as_fail_nomem(err);
    pthread_mutex_init(&c->mu, NULL);
    *ret = c;
    return AS_OK;
}

void doc_cache_free(struct doc_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        entry_release(c->entries[i]);
    pthread_mutex_destroy(&c->mu);
    free(c);
}

static struct doc_entry *find_locked(struct doc_cache *c, const char *text, size_t len,
                                     uint64_t hash)
{
    for (size_t i = 0; i < c->n; i++) {
        struct doc_entry *e = c->entries[i];
        if (e->hash == hash && e->len == len && memcmp(e->text, text, len) == 0) {
            e->used = ++c->uses;
            return e;
        }
    }
    return NULL;
}

/* Take the least recently used entry out. */
static struct doc_entry *evict_locked(struct doc_cache *c)
{
    size_t oldest = 0;
    for (size_t i = 1; i < c->n; i++) {
        if (c->entries[i]->used < c->entries[oldest]->used)
            oldest = i;
    }
    struct doc_entry *e = c->entries[oldest];
    c->entries[oldest] = c->entries[--c->n];
    c->bytes -= e->len;
    return e;
}

/* Keep an entry, and drop others until there is room. A text that would take the place of most
 * others is not kept. */
static void keep(struct doc_cache *c, struct doc_entry *e)
{
    struct doc_entry *gone[DOC_CACHE_MAX];
    size_t n_gone = 0;
    if (e->len > DOC_CACHE_BYTES / 4)
        return;
    pthread_mutex_lock(&c->mu);
    if (!find_locked(c, e->text, e->len, e->hash)) {
        while (c->n == DOC_CACHE_MAX || (c->n > 0 && c->bytes + e->len > DOC_CACHE_BYTES))
            gone[n_gone++] = evict_locked(c);
        c->entries[c->n++] = e;
        c->bytes += e->len;
        e->used = ++c->uses;
        atomic_fetch_add(&e->users, 1);
    }
    pthread_mutex_unlock(&c->mu);
    for (size_t i = 0; i < n_gone; i++)
        entry_release(gone[i]);
}

static as_status entry_read(const char *text, size_t len, uint64_t hash, bool with_doc,
                            struct doc_entry **ret, struct as_err *err)
{
    AS_AUTO(entry_releasep) struct doc_entry *e = as_calloc(1, sizeof *e);
    if (!e)
        return as_fail_nomem(err);
    atomic_init(&e->users, 1);
    e->len = len;
    e->hash = hash;
    e->text = as_strdup(text);
    as_status st = e->text ? stored_doc_read(text, &e->tree, with_doc ? &e->doc : NULL, err)
                           : as_fail_nomem(err);
    if (st != AS_OK)
        return st;
    const json_t *trial = json_object_get(e->tree, "trial");
    if (trial && !(e->trial = json_format(trial)))
        return as_fail_nomem(err);
    *ret = as_steal(e);
    return AS_OK;
}

/* Add the checked document to an entry that somebody else may read. */
static as_status add_doc(struct doc_cache *c, struct doc_entry *e, struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    as_status st = stored_doc_read(e->text, NULL, &doc, err);
    if (st != AS_OK)
        return st;
    pthread_mutex_lock(&c->mu);
    if (!e->doc)
        e->doc = as_steal(doc);
    pthread_mutex_unlock(&c->mu);
    return AS_OK;
}

as_status doc_cache_read(struct doc_cache *c, const char *text, bool with_doc, struct doc_ref *ret,
                         struct as_err *err)
{
    const size_t len = strlen(text);
    const uint64_t hash = fnv64(FNV64_BASIS, text, len);
    as_status st = AS_OK;
    pthread_mutex_lock(&c->mu);
    struct doc_entry *e = find_locked(c, text, len, hash);
    bool lacks_doc = e && with_doc && !e->doc;
    if (e)
        atomic_fetch_add(&e->users, 1);
    pthread_mutex_unlock(&c->mu);
    if (lacks_doc)
        st = add_doc(c, e, err);
    else if (!e && (st = entry_read(text, len, hash, with_doc, &e, err)) == AS_OK)
        keep(c, e);
    if (st != AS_OK) {
        entry_release(e);
        return st;
    }
    *ret = (struct doc_ref){
        .tree = e->tree, .trial = e->trial, .doc = with_doc ? e->doc : NULL, .entry = e};
    return AS_OK;
}

void doc_ref_done(struct doc_ref *ref)
{
    entry_release(ref->entry);
    *ref = (struct doc_ref){0};
}
