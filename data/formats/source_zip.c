/* ZIP archives, as far as numpy's .npz files need them (APPNOTE.TXT 6.3.10).
 *
 * The central directory at the end of the file names the members, their sizes and their places.
 * Only the length of the local header before a member is used, because writers that stream leave
 * its sizes empty. The directory is searched from the end of the file, behind a comment of unknown
 * length.
 *
 * All sizes come from the file. Each is checked against the size of the file before it is used, and
 * the directory has a limit of its own. */
#include <errno.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "data/formats/source_priv.h"
#include "base/str.h"

#define END_SIZE ((size_t)22)
#define ENTRY_SIZE ((size_t)46)
#define LOCAL_SIZE ((size_t)30)
#define MAX_COMMENT ((size_t)65535)
#define MAX_DIRECTORY ((size_t)1 << 20)
#define IN_ZIP64 UINT32_C(0xffffffff)

struct entry {
    const char *name; /* not terminated */
    size_t name_len;
    unsigned flags, method;
    uint32_t crc, packed, size, offset;
};

static uint32_t read_u16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t read_u32(const unsigned char *p)
{
    return read_u16(p) | read_u16(p + 2) << 16;
}

static as_status fail_archive(const struct source *s, const char *what, struct as_err *err)
{
    return as_fail(err, AS_E_INVAL, "%.200s is not a whole ZIP archive: %s", s->path, what);
}

static as_status read_at(struct source *s, uint64_t offset, void *buf, size_t size,
                         struct as_err *err)
{
    size_t len = 0;
    s->raw_left = UINT64_MAX;
    if (lseek(s->fd, (off_t)offset, SEEK_SET) < 0)
        return as_fail(err, AS_E_IO, "cannot read %.200s: %s", s->path, strerror(errno));
    as_status st = source_read_raw(s, buf, size, &len, err);
    if (st != AS_OK)
        return st;
    return len < size ? fail_archive(s, "it ends too early", err) : AS_OK;
}

/* The central directory, owned by the caller. */
static as_status read_directory(struct source *s, unsigned char **ret, size_t *ret_len,
                                struct as_err *err)
{
    uint64_t size = s->size;
    size_t tail = size < END_SIZE + MAX_COMMENT ? (size_t)size : END_SIZE + MAX_COMMENT;
    AS_AUTO(as_freep) unsigned char *buf = as_calloc(tail, 1);
    if (!buf)
        return as_fail_nomem(err);
    as_status st = read_at(s, size - tail, buf, tail, err);
    if (st != AS_OK)
        return st;
    size_t at = tail >= END_SIZE ? tail - END_SIZE + 1 : 0;
    while (at > 0 && memcmp(buf + at - 1, "PK\5\6", 4) != 0)
        at--;
    if (at == 0)
        return fail_archive(s, "it has no directory at its end", err);
    const unsigned char *end = buf + at - 1;
    uint32_t len = read_u32(end + 12), offset = read_u32(end + 16);
    if (len == IN_ZIP64 || offset == IN_ZIP64)
        return as_fail(err, AS_E_UNSUPPORTED, "%.200s: archives past 4 GiB are not read", s->path);
    if (len > MAX_DIRECTORY || (uint64_t)offset + len > size)
        return fail_archive(s, "its directory is not inside the file", err);
    AS_AUTO(as_freep) unsigned char *dir = as_calloc(len, 1);
    if (!dir)
        return as_fail_nomem(err);
    st = read_at(s, offset, dir, len, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(dir);
    *ret_len = len;
    return AS_OK;
}

/* Read the entry at *at and move *at behind it. False if no whole entry is there. */
static bool next_entry(const unsigned char *dir, size_t len, size_t *at, struct entry *ret)
{
    if (len - *at < ENTRY_SIZE || memcmp(dir + *at, "PK\1\2", 4) != 0)
        return false;
    const unsigned char *p = dir + *at;
    size_t rest = (size_t)read_u16(p + 28) + read_u16(p + 30) + read_u16(p + 32);
    if (len - *at - ENTRY_SIZE < rest)
        return false;
    *ret = (struct entry){.name = (const char *)p + ENTRY_SIZE,
                          .name_len = read_u16(p + 28),
                          .flags = read_u16(p + 8),
                          .method = read_u16(p + 10),
                          .crc = read_u32(p + 16),
                          .packed = read_u32(p + 20),
                          .size = read_u32(p + 24),
                          .offset = read_u32(p + 42)};
    *at += ENTRY_SIZE + rest;
    return true;
}

static as_status find_member(const struct source *s, const unsigned char *dir, size_t len,
                             const char *name, struct entry *ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    struct entry e;
    size_t at = 0;
    while (next_entry(dir, len, &at, &e)) {
        if (e.name_len == strlen(name) && memcmp(e.name, name, e.name_len) == 0) {
            *ret = e;
            return AS_OK;
        }
        if (list.len < 160)
            str_printf(&list, "%s%.*s", list.len ? ", " : "",
                       e.name_len < 40 ? (int)e.name_len : 40, e.name);
    }
    if (at != len)
        return fail_archive(s, "its directory is damaged", err);
    return as_fail(err, AS_E_INVAL, "%.200s has no member '%.80s'; it has: %s", s->path, name,
                   str_cstr(&list));
}

/* Position the stream at the member's first byte. */
static as_status enter_member(struct source *s, const struct entry *e, struct as_err *err)
{
    unsigned char local[LOCAL_SIZE];
    if (e->packed == IN_ZIP64 || e->size == IN_ZIP64 || e->offset == IN_ZIP64)
        return as_fail(err, AS_E_UNSUPPORTED, "%.200s: archives past 4 GiB are not read", s->path);
    if ((e->flags & 1) || (e->method != 0 && e->method != 8))
        return as_fail(err, AS_E_UNSUPPORTED,
                       "%.200s: the member %.*s is %s; expected stored or deflated", s->path,
                       e->name_len < 60 ? (int)e->name_len : 60, e->name,
                       e->flags & 1 ? "encrypted" : "compressed in another way");
    as_status st = read_at(s, e->offset, local, sizeof local, err);
    if (st != AS_OK)
        return st;
    uint64_t begin = (uint64_t)e->offset + LOCAL_SIZE + read_u16(local + 26) + read_u16(local + 28);
    if (memcmp(local, "PK\3\4", 4) != 0 || begin + e->packed > s->size ||
        (e->method == 0 && e->packed != e->size))
        return fail_archive(s, "a member is not where the directory says", err);
    if (lseek(s->fd, (off_t)begin, SEEK_SET) < 0)
        return as_fail(err, AS_E_IO, "cannot read %.200s: %s", s->path, strerror(errno));
    s->zip = true;
    s->raw_left = e->packed;
    s->size = s->left = e->size;
    s->want_crc = e->crc;
    return e->method == 8 ? source_inflate(s, true, err) : AS_OK;
}

as_status source_open_zip(const char *path, const char *name, struct source **ret,
                          struct as_err *err)
{
    AS_AUTO(source_freep) struct source *s = NULL;
    AS_AUTO(as_freep) unsigned char *dir = NULL;
    size_t len = 0;
    struct entry e = {0};
    as_status st = source_start(path, &s, err);
    if (st != AS_OK)
        return st;
    st = read_directory(s, &dir, &len, err);
    if (st != AS_OK)
        return st;
    st = find_member(s, dir, len, name, &e, err);
    if (st != AS_OK)
        return st;
    st = enter_member(s, &e, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(s);
    return AS_OK;
}
