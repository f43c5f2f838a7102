/* A download is a stream. A job in the slow pool reads one piece of PIECE_BYTES from the
 * database and writes it, whenever the stream has room. So a slow client holds two pieces of memory
 * and no thread.
 *
 * At most one job exists for a download (is_filling). If on_stream_room() is called while that job
 * runs, it sets wants_more, and the job submits itself again. The job holds a reference to the
 * stream, because the stream owns struct download and frees it with its last reference. */
#include "api/server/answer_blob.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "api/http/http_content.h"
#include "api/server/server_priv.h"
#include "base/log.h"

struct download {
    struct pool_job job;
    struct server *server;
    struct http_stream *stream; /* not a reference: the stream owns this object */
    char sha256[65];
    int64_t end;          /* offset behind the last byte */
    pthread_mutex_t lock; /* guards the rest */
    bool is_filling;      /* a job is queued or runs */
    bool wants_more;      /* on_stream_room() was called meanwhile */
    int64_t offset;       /* used by the one job only */
};

#define TYPE "application/octet-stream"

/* Memory of this size is used again, here, in libpq and in PostgreSQL. Of a whole chunk malloc()
 * gets new pages for each of its copies, and the first touch of these took five times as long as
 * all else (bench/RESULTS.md, "Early stopping"). It divides BLOB_CHUNK_BYTES. */
#define PIECE_BYTES ((size_t)64 << 10)

/* Content has one version: its digest. Returns whether the client has it; it is answered then. */
static bool name_version(struct call *c, const char *sha256, const char **ret_etag)
{
    const char *etag = arena_printf(c->arena, "\"%s\"", sha256);
    if (ret_etag)
        *ret_etag = etag;
    return etag && call_has_version(c, etag);
}

as_status answer_blob_size(struct call *c, const char *sha256, struct as_err *err)
{
    int64_t size = 0;
    as_status st = blob_stat(c->db, sha256, &size, err);
    if (st < 0)
        return st;
    http_answer_header(c->x, "Accept-Ranges", "bytes");
    return name_version(c, sha256, NULL) ? AS_OK : call_size(c, TYPE, size);
}

/* Read the next piece and write it. *ret_len: its length. */
static as_status pass_piece(struct download *d, size_t *ret_len, struct as_err *err)
{
    size_t len = 0;
    AS_AUTO(as_freep) char *buf = as_calloc(PIECE_BYTES, 1);
    if (!buf)
        return as_fail(err, AS_E_NOMEM, "out of memory for a piece of content");
    int64_t left = d->end - d->offset;
    size_t want = left < (int64_t)PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    as_status st = blob_read(d->server->store, d->sha256, d->offset, buf, want, &len, err);
    if (st < 0)
        return st;
    if (len)
        st = http_stream_write(d->stream, buf, len);
    if (st < 0)
        return st;
    d->offset += (int64_t)len;
    *ret_len = len;
    return AS_OK;
}

/* Write one piece if there is room for it. Returns whether more pieces must follow. */
static bool fill_stream_once(struct download *d)
{
    struct as_err err = {0};
    size_t len = 0;
    if (http_stream_room(d->stream) < PIECE_BYTES)
        return !http_stream_is_gone(d->stream);
    as_status st = pass_piece(d, &len, &err);
    if (st == AS_E_NOT_FOUND && http_stream_is_gone(d->stream))
        return false; /* the client left */
    if (st == AS_OK && len && d->offset < d->end)
        return true;
    bool is_whole = st == AS_OK && d->offset == d->end;
    if (!is_whole)
        log_write(LOG_WARN, "download cut", "sha256=%s offset=%lld detail=\"%s\"", d->sha256,
                  (long long)d->offset, err.msg);
    http_stream_end(d->stream, is_whole);
    return false;
}

static void fill_stream(struct pool_job *job)
{
    struct download *d = (struct download *)(void *)((char *)job - offsetof(struct download, job));
    struct http_stream *stream = d->stream; /* d is freed with the last reference */
    bool more = fill_stream_once(d);
    pthread_mutex_lock(&d->lock);
    d->is_filling = more && d->wants_more;
    d->wants_more = false;
    bool again = d->is_filling;
    pthread_mutex_unlock(&d->lock);
    if (again)
        pool_submit(d->server->slow_pool, &d->job);
    else
        http_stream_unref(stream); /* the reference of the job */
}

/* Called in an I/O thread: less than half of the limit waits to be sent. */
static void on_stream_room(void *ctx)
{
    struct download *d = ctx;
    pthread_mutex_lock(&d->lock);
    bool start = !d->is_filling;
    d->is_filling = true;
    d->wants_more = !start;
    pthread_mutex_unlock(&d->lock);
    if (start) {
        (void)http_stream_ref(d->stream); /* for the job */
        pool_submit(d->server->slow_pool, &d->job);
    }
}

static void download_free(void *ctx)
{
    struct download *d = ctx;
    (void)pthread_mutex_destroy(&d->lock);
    free(d);
}

/* A stream of the bytes [first, end) */
static struct http_stream *open_download(struct call *c, const char *sha256, int64_t first,
                                         int64_t end)
{
    struct download *d = as_calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->server = c->server;
    d->offset = first;
    d->end = end;
    d->job.run = fill_stream;
    (void)snprintf(d->sha256, sizeof d->sha256, "%s", sha256);
    (void)pthread_mutex_init(&d->lock, NULL); /* cannot fail with default attributes on Linux */
    /* room for two pieces: one waits to be sent while the next is read */
    d->stream = http_stream_create(2 * PIECE_BYTES, on_stream_room, d, download_free);
    struct http_stream *stream = d->stream;
    if (stream)
        on_stream_room(d); /* the first piece */
    else
        download_free(d);
    return stream;
}

/* Is the piece there with which the answer begins? Once it has begun, an answer can only be cut,
 * and a client that is patient would ask again for ever. A client that asks for the rest after a
 * cut hears it too. AS_E_NOT_FOUND: the content is lost or altered in the blob store, or cut short
 * in the database. */
static as_status check_begin(struct call *c, const char *sha256, int64_t first, struct as_err *err)
{
    char byte;
    size_t len = 0;
    as_status st = blob_read(c->server->store, sha256, first, &byte, 1, &len, err);
    if (st == AS_OK && len == 0) /* `first` is before its end */
        st = as_fail(err, AS_E_IO, "the content %.64s is cut short", sha256);
    if (st != AS_E_IO)
        return st;
    log_write(LOG_WARN, "download refused", "sha256=%s offset=%lld detail=\"%s\"", sha256,
              (long long)first, err->msg);
    return err->code = AS_E_NOT_FOUND;
}

as_status answer_blob(struct call *c, const char *sha256, struct as_err *err)
{
    const struct http_head *h = &c->x->head;
    const char *etag = NULL;
    int64_t size = 0, first = 0, last = 0;
    as_status st = blob_stat(c->db, sha256, &size, err);
    if (st < 0)
        return st;
    http_answer_header(c->x, "Accept-Ranges", "bytes");
    if (name_version(c, sha256, &etag))
        return AS_OK;
    /* a range of another version would not fit to what the client has */
    bool fits = !h->if_range || as_streq(h->if_range, etag);
    http_range range = fits ? http_range_read(h->range, size, &first, &last) : HTTP_RANGE_WHOLE;
    if (range == HTTP_RANGE_UNSATISFIABLE)
        return call_no_part(c, size);
    if (size == 0)
        return call_bytes(c, TYPE, "", 0);
    bool is_part = range == HTTP_RANGE_PART;
    st = check_begin(c, sha256, is_part ? first : 0, err);
    if (st < 0)
        return st;
    struct http_stream *stream =
        is_part ? open_download(c, sha256, first, last + 1) : open_download(c, sha256, 0, size);
    if (!stream)
        return as_fail(err, AS_E_NOMEM, "out of memory for the download");
    return is_part ? call_part(c, TYPE, stream, first, last, size)
                   : call_stream(c, TYPE, stream, size);
}
