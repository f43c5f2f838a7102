/* A blob store of any kind, with the digests of what is read checked.
 *
 * A download reads 1 MiB at a time, and a piece has up to 4 MiB. The last few pieces stay in
 * memory, so that each is fetched and hashed once. They were checked, so they are right whatever
 * happens to the store afterwards. */
#include "scheduler/content/piece_store.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "scheduler/content/piece_kinds_priv.h"
#include "scheduler/store/blob_store.h"

#define KEPT 4 /* pieces in memory: 16 MiB */

struct kept {
    char sha256[SHA256_HEX_SIZE]; /* "": none */
    char *bytes;                  /* owned */
    size_t len;
    uint64_t used; /* a higher number was used later */
};

struct piece_store {
    const struct piece_ops *ops;
    void *self;
    char *where;          /* owned; for messages */
    pthread_mutex_t lock; /* guards the rest */
    struct kept kept[KEPT];
    uint64_t uses;
};

as_status piece_store_open(const struct piece_place *place, struct piece_store **ret,
                           struct as_err *err)
{
    AS_AUTO(piece_store_closep) struct piece_store *s = as_calloc(1, sizeof *s);
    if (!s || !(s->where = as_strdup(place->where)))
        return as_fail_nomem(err);
    (void)pthread_mutex_init(&s->lock, NULL); /* cannot fail with default attributes on Linux */
    bool is_s3 = as_starts_with(place->where, "s3://");
    if (place->endpoint && !is_s3)
        return as_fail(err, AS_E_INVAL,
                       "--s3-endpoint is given, but --blob-store is '%.100s', expected s3://BUCKET",
                       place->where);
    as_status st = is_s3 ? s3_open(place, &s->self, err) : folder_open(place, &s->self, err);
    if (st != AS_OK)
        return st;
    s->ops = is_s3 ? &s3_ops : &folder_ops;
    *ret = as_steal(s);
    return AS_OK;
}

void piece_store_close(struct piece_store *s)
{
    if (!s)
        return;
    if (s->ops)
        s->ops->close(s->self);
    for (size_t i = 0; i < KEPT; i++)
        free(s->kept[i].bytes);
    if (s->where)
        (void)pthread_mutex_destroy(&s->lock);
    free(s->where);
    free(s);
}

as_status piece_store_put(struct piece_store *s, const char *sha256, const void *bytes, size_t len,
                          struct as_err *err)
{
    return s->ops->put(s->self, sha256, bytes, len, err);
}

/* Copy out of memory. Returns whether it was there. */
static bool read_kept(struct piece_store *s, const char *sha256, int64_t offset, void *buf,
                      size_t size, size_t *ret_len)
{
    bool found = false;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < KEPT && !found; i++) {
        struct kept *k = &s->kept[i];
        found = as_streq(k->sha256, sha256);
        if (!found)
            continue;
        size_t left = offset < (int64_t)k->len ? k->len - (size_t)offset : 0;
        *ret_len = size < left ? size : left;
        memcpy(buf, k->bytes + (left ? offset : 0), *ret_len);
        k->used = ++s->uses;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* Keep a piece in place of the one that was used least recently. Takes the bytes. */
static void keep(struct piece_store *s, const char *sha256, char *bytes, size_t len)
{
    pthread_mutex_lock(&s->lock);
    struct kept *oldest = &s->kept[0];
    for (size_t i = 1; i < KEPT; i++)
        if (s->kept[i].used < oldest->used)
            oldest = &s->kept[i];
    char *old = oldest->bytes;
    *oldest = (struct kept){.bytes = bytes, .len = len, .used = ++s->uses};
    (void)snprintf(oldest->sha256, sizeof oldest->sha256, "%s", sha256);
    pthread_mutex_unlock(&s->lock);
    free(old);
}

/* Fetch a piece and check it. *ret is owned by the caller. */
static as_status fetch(struct piece_store *s, const char *sha256, char **ret, size_t *ret_len,
                       struct as_err *err)
{
    AS_AUTO(as_freep) char *bytes = as_calloc((size_t)PART_BYTES, 1);
    char found[SHA256_HEX_SIZE];
    size_t len = 0;
    if (!bytes)
        return as_fail_nomem(err);
    as_status st = s->ops->get(s->self, sha256, bytes, (size_t)PART_BYTES, &len, err);
    if (st == AS_E_NOT_FOUND)
        return as_fail(err, AS_E_IO, "the content %s is missing in the blob store %.80s", sha256,
                       s->where);
    if (st == AS_OK)
        st = sha256_of(bytes, len, found, err);
    if (st == AS_E_TOO_LARGE || (st == AS_OK && !as_streq(found, sha256)))
        return as_fail(err, AS_E_IO,
                       "the content %s was altered in the blob store %.60s: its digest is not its "
                       "name",
                       sha256, s->where);
    if (st != AS_OK)
        return st;
    *ret = as_steal(bytes);
    *ret_len = len;
    return AS_OK;
}

as_status piece_store_read(struct piece_store *s, const char *sha256, int64_t offset, void *buf,
                           size_t size, size_t *ret_len, struct as_err *err)
{
    char *bytes = NULL;
    size_t len = 0;
    if (read_kept(s, sha256, offset, buf, size, ret_len))
        return AS_OK;
    as_status st = fetch(s, sha256, &bytes, &len, err);
    if (st != AS_OK)
        return st;
    size_t left = offset < (int64_t)len ? len - (size_t)offset : 0;
    *ret_len = size < left ? size : left;
    memcpy(buf, bytes + (left ? offset : 0), *ret_len);
    keep(s, sha256, bytes, len);
    return AS_OK;
}

as_status piece_store_remove(struct piece_store *s, const char *sha256, struct as_err *err)
{
    return s->ops->remove(s->self, sha256, err);
}

as_status piece_store_tidy(struct piece_store *s, int64_t keep_ms, struct as_err *err)
{
    return s->ops->tidy ? s->ops->tidy(s->self, keep_ms, err) : AS_OK;
}
