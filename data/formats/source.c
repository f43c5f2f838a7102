/* Streams of bytes: plain files, gzip files, members of ZIP archives.
 *
 * zlib unpacks into the buffer of the caller, so the memory of a stream depends neither on the size
 * of the file nor on what it unpacks to. A gzip file may consist of several members, one behind the
 * other; the decoder is reset between them.
 *
 * For a member of a ZIP archive, the directory states the size and the checksum. `left` counts the
 * bytes that are still to come; the checksum is compared when it reaches 0. source_zip.c finds the
 * member and positions the stream. */
#include "data/formats/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "data/formats/source_priv.h"
#include "base/str.h"

#define GZIP_WINDOW (15 + 16) /* zlib: the largest window, gzip headers */
#define RAW_WINDOW (-15)      /* no header at all */

void source_free(struct source *s)
{
    if (!s)
        return;
    file_closep(&s->fd);
    if (s->inflating)
        (void)inflateEnd(&s->z);
    free(s->path);
    free(s->in);
    free(s);
}

void source_interruptible(struct source *s)
{
    s->interruptible = true;
}

const char *source_path(const struct source *s)
{
    return s->path;
}

uint64_t source_size(const struct source *s)
{
    return s->size;
}

as_status source_start(const char *path, struct source **ret, struct as_err *err)
{
    AS_AUTO(source_freep) struct source *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    s->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0)
        return as_fail(err, errno == ENOENT ? AS_E_NOT_FOUND : AS_E_IO, "cannot open %.200s: %s",
                       path, strerror(errno));
    struct stat sb;
    if (fstat(s->fd, &sb) != 0)
        return as_fail(err, AS_E_IO, "cannot read %.200s: %s", path, strerror(errno));
    s->path = as_strdup(path);
    s->in = as_calloc(SOURCE_BUFFER, 1);
    if (!s->path || !s->in)
        return as_fail_nomem(err);
    s->raw_left = UINT64_MAX;
    s->size = (uint64_t)sb.st_size;
    *ret = as_steal(s);
    return AS_OK;
}

as_status source_read_raw(struct source *s, void *buf, size_t size, size_t *ret_len,
                          struct as_err *err)
{
    size_t have = 0;
    size = size < s->raw_left ? size : (size_t)s->raw_left;
    while (have < size) {
        ssize_t got = read(s->fd, (char *)buf + have, size - have);
        if (got < 0 && errno == EINTR && !s->interruptible)
            continue;
        if (got < 0)
            return as_fail(err, AS_E_IO, "cannot read %.200s: %s", s->path, strerror(errno));
        if (got == 0)
            break;
        have += (size_t)got;
    }
    s->raw_left -= have;
    *ret_len = have;
    return AS_OK;
}

as_status source_inflate(struct source *s, bool raw, struct as_err *err)
{
    if (inflateInit2(&s->z, raw ? RAW_WINDOW : GZIP_WINDOW) != Z_OK)
        return as_fail(err, AS_E_NOMEM, "out of memory to unpack %.200s", s->path);
    s->inflating = true;
    s->gzip = !raw;
    return AS_OK;
}

as_status source_open(const char *path, bool gzip, struct source **ret, struct as_err *err)
{
    AS_AUTO(source_freep) struct source *s = NULL;
    unsigned char magic[2];
    as_status st = source_start(path, &s, err);
    if (st != AS_OK)
        return st;
    if (gzip && pread(s->fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
        s->size = SOURCE_SIZE_UNKNOWN;
        st = source_inflate(s, false, err);
    }
    if (st != AS_OK)
        return st;
    *ret = as_steal(s);
    return AS_OK;
}

/* ---- unpacking ---- */

static as_status fail_damaged(const struct source *s, const char *why, struct as_err *err)
{
    return as_fail(err, AS_E_INVAL, "%.200s: the compressed data is %s, after %llu bytes unpacked",
                   s->path, why, (unsigned long long)s->given);
}

static as_status refill_input(struct source *s, struct as_err *err)
{
    size_t n = 0;
    as_status st = source_read_raw(s, s->in, SOURCE_BUFFER, &n, err);
    s->z.next_in = s->in;
    s->z.avail_in = (uInt)n;
    return st;
}

/* At the end of a gzip member: continue with the next one, if there is one. */
static as_status next_member(struct source *s, struct as_err *err)
{
    if (s->gzip && s->z.avail_in == 0) {
        as_status st = refill_input(s, err);
        if (st != AS_OK)
            return st;
    }
    s->ended = !s->gzip || s->z.avail_in == 0;
    if (!s->ended && inflateReset(&s->z) != Z_OK)
        return fail_damaged(s, "damaged", err);
    return AS_OK;
}

static as_status unpack_bytes(struct source *s, unsigned char *buf, size_t size, size_t *ret_len,
                              struct as_err *err)
{
    size_t have = 0;
    while (have < size && !s->ended) {
        as_status st = s->z.avail_in ? AS_OK : refill_input(s, err);
        if (st != AS_OK)
            return st;
        if (s->z.avail_in == 0)
            return fail_damaged(s, "cut short", err);
        uInt room = size - have < (1u << 30) ? (uInt)(size - have) : 1u << 30;
        s->z.next_out = buf + have;
        s->z.avail_out = room;
        int z = inflate(&s->z, Z_NO_FLUSH);
        have += room - s->z.avail_out;
        s->given += room - s->z.avail_out;
        if (z == Z_STREAM_END)
            st = next_member(s, err);
        else if (z != Z_OK && z != Z_BUF_ERROR)
            st = fail_damaged(s, "damaged", err);
        if (st != AS_OK)
            return st;
    }
    *ret_len = have;
    return AS_OK;
}

/* Check a member of an archive while it is read: its size, and at its end its checksum. */
static as_status verify_member(struct source *s, const void *buf, size_t len, bool at_end,
                               struct as_err *err)
{
    s->crc = (uint32_t)crc32_z(s->crc, buf, len);
    s->left -= len;
    if (at_end && s->left > 0)
        return as_fail(err, AS_E_INVAL, "%.200s: a member of the archive is cut short", s->path);
    if (s->left == 0 && s->crc != s->want_crc)
        return as_fail(err, AS_E_INVAL, "%.200s: the checksum of an archive's member is wrong",
                       s->path);
    return AS_OK;
}

as_status source_read(struct source *s, void *buf, size_t size, size_t *ret_len, struct as_err *err)
{
    size_t want = s->zip && size > s->left ? (size_t)s->left : size, len = 0;
    as_status st = s->inflating ? unpack_bytes(s, buf, want, &len, err)
                                : source_read_raw(s, buf, want, &len, err);
    if (st != AS_OK)
        return st;
    if (s->zip && size > 0)
        st = verify_member(s, buf, len, len < want, err);
    if (st != AS_OK)
        return st;
    *ret_len = len;
    return AS_OK;
}

as_status source_read_exact(struct source *s, void *buf, size_t size, const char *what,
                            struct as_err *err)
{
    size_t len = 0;
    as_status st = source_read(s, buf, size, &len, err);
    if (st != AS_OK)
        return st;
    if (len < size)
        return as_fail(err, AS_E_INVAL, "%.200s is cut short in %s: %zu bytes, expected %zu",
                       s->path, what, len, size);
    return AS_OK;
}

as_status source_expect_end(struct source *s, struct as_err *err)
{
    char byte;
    size_t len = 0;
    as_status st = source_read(s, &byte, 1, &len, err);
    if (st != AS_OK)
        return st;
    if (len)
        return as_fail(err, AS_E_INVAL, "%.200s has more bytes than it says", s->path);
    return AS_OK;
}
