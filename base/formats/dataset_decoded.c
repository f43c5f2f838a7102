/* The decoded copy of a data set: what dataset_load() made of its files, as it lies in memory, so
 * that the next trial of a sweep starts without unpacking and parsing.
 *
 * A header, then x, labels, targets or tokens, each only if the data set has it. x is kept as bytes
 * when every value is a whole number from 0 to 255 (a quarter to read), tokens as 16 bits. The
 * header holds a digest of dataset_info and a checksum of what follows; a copy that does not fit in
 * every respect is no copy. It is a cache: not synced to disk, in a folder that belongs to the user
 * whose programs read it. The file is named by the digest of the data set's content by whoever
 * names it; a change of the format here goes with a new MAGIC. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/formats/dataset_priv.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

#define MAGIC "assay-decoded-1"

struct header {
    char magic[16];
    char info[SHA256_HEX_SIZE]; /* digest of dataset_info as JSON */
    char x_is_bytes;
    char unused[6];
    uint64_t size; /* bytes behind the header */
    uint64_t checksum;
};

_Static_assert(sizeof(struct header) % 8 == 0, "what follows is aligned");

/* Four lanes of multiply and rotate (the constants are odd, from xxHash64): catches what disks and
 * crashes do, not what people do. */
static uint64_t checksum(const void *bytes, size_t len)
{
    static const uint64_t k1 = UINT64_C(0x9e3779b185ebca87), k2 = UINT64_C(0xc2b2ae3d27d4eb4f);
    uint64_t lane[4] = {1, 2, 3, len}, last[4] = {0};
    const char *p = bytes;
    for (; len >= sizeof last; p += sizeof last, len -= sizeof last) {
        uint64_t w[4];
        memcpy(w, p, sizeof w);
        for (int i = 0; i < 4; i++) {
            lane[i] = (lane[i] ^ w[i]) * k1;
            lane[i] = lane[i] << 31 | lane[i] >> 33;
        }
    }
    if (len)
        memcpy(last, p, len);
    uint64_t h = 0;
    for (int i = 0; i < 4; i++) {
        h = (h ^ lane[i] ^ last[i]) * k2;
        h ^= h >> 29;
    }
    return h;
}

/* Bytes of the parts; each is padded to 8. */
struct parts {
    size_t x, labels, targets, tokens, total;
};

static size_t padded(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

static struct parts parts_of(const struct dataset *d, bool x_is_bytes)
{
    struct parts p = {.x = d->x ? d->n_rows * d->n_features * (x_is_bytes ? 1 : sizeof *d->x) : 0,
                      .labels = d->labels ? d->n_rows * sizeof *d->labels : 0,
                      .targets = d->targets ? d->n_rows * d->n_outputs * sizeof *d->targets : 0,
                      .tokens = d->tokens ? d->n_rows * sizeof(uint16_t) : 0};
    p.total = padded(p.x) + padded(p.labels) + padded(p.targets) + padded(p.tokens);
    return p;
}

static as_status info_digest(const struct dataset_info *info, char ret[SHA256_HEX_SIZE])
{
    JSON_AUTO j = dataset_info_to_json(info);
    AS_AUTO(as_freep) char *text = j ? json_format(j) : NULL;
    return text ? sha256_of(text, strlen(text), ret, NULL) : AS_E_NOMEM;
}

/* ---- reading ---- */

static bool labels_fit(const struct dataset *d)
{
    for (size_t i = 0; i < d->n_rows; i++)
        if (d->labels && (d->labels[i] < 0 || (size_t)d->labels[i] >= d->n_outputs))
            return false;
    return true;
}

static bool tokens_fit(const struct dataset *d)
{
    int32_t largest = 0;
    for (size_t i = 0; d->tokens && i < d->n_rows; i++)
        largest = d->tokens[i] > largest ? d->tokens[i] : largest;
    return !d->tokens || (size_t)largest < d->n_outputs;
}

static void copy_parts(const char *from, const struct parts *p, bool x_is_bytes, struct dataset *d)
{
    if (x_is_bytes) {
        const unsigned char *bytes = (const unsigned char *)from;
        for (size_t i = 0; i < p->x; i++)
            d->x[i] = (float)bytes[i];
    } else if (d->x) {
        memcpy(d->x, from, p->x);
    }
    from += padded(p->x);
    if (d->labels)
        memcpy(d->labels, from, p->labels);
    from += padded(p->labels);
    if (d->targets)
        memcpy(d->targets, from, p->targets);
    from += padded(p->targets);
    for (size_t i = 0; d->tokens && i < d->n_rows; i++) {
        uint16_t v;
        memcpy(&v, from + i * sizeof v, sizeof v);
        d->tokens[i] = v;
    }
}

static as_status read_mapped(const char *file, size_t size, const struct dataset_info *info,
                             struct dataset *d)
{
    struct header h;
    char digest[SHA256_HEX_SIZE];
    memcpy(&h, file, sizeof h);
    const char *data = file + sizeof h;
    as_status st = info_digest(info, digest);
    if (st != AS_OK || memcmp(h.magic, MAGIC, sizeof h.magic) != 0 ||
        memcmp(h.info, digest, sizeof digest) != 0 || h.size != size - sizeof h)
        return AS_E_NOT_FOUND;
    st = dataset_alloc(info, d, NULL);
    if (st != AS_OK)
        return st;
    struct parts p = parts_of(d, h.x_is_bytes);
    if (p.total != h.size || checksum(data, h.size) != h.checksum)
        return AS_E_NOT_FOUND;
    copy_parts(data, &p, h.x_is_bytes && d->x, d);
    return labels_fit(d) && tokens_fit(d) ? AS_OK : AS_E_NOT_FOUND;
}

as_status dataset_decoded_read(const char *path, const struct dataset_info *info,
                               struct dataset *ret)
{
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat sb;
    if (fd < 0 || fstat(fd, &sb) != 0 || (size_t)sb.st_size < sizeof(struct header))
        return AS_E_NOT_FOUND;
    size_t size = (size_t)sb.st_size;
    void *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (file == MAP_FAILED)
        return AS_E_NOT_FOUND;
    as_status st = read_mapped(file, size, info, ret);
    (void)munmap(file, size);
    (void)futimens(fd, NULL); /* used now: caches remove what was used longest ago */
    return st;
}

/* ---- writing ---- */

static bool all_bytes(const struct dataset *d)
{
    for (size_t i = 0; d->x && i < d->n_rows * d->n_features; i++)
        if (!(d->x[i] >= 0 && d->x[i] <= 255 && d->x[i] == floorf(d->x[i])) || signbit(d->x[i]))
            return false;
    return d->x != NULL;
}

static void gather_parts(const struct dataset *d, const struct parts *p, bool x_is_bytes, char *to)
{
    for (size_t i = 0; x_is_bytes && i < p->x; i++)
        to[i] = (char)(unsigned char)d->x[i];
    if (d->x && !x_is_bytes)
        memcpy(to, d->x, p->x);
    to += padded(p->x);
    if (d->labels)
        memcpy(to, d->labels, p->labels);
    to += padded(p->labels);
    if (d->targets)
        memcpy(to, d->targets, p->targets);
    to += padded(p->targets);
    for (size_t i = 0; d->tokens && i < d->n_rows; i++) {
        uint16_t v = (uint16_t)d->tokens[i];
        memcpy(to + i * sizeof v, &v, sizeof v);
    }
}

static as_status write_and_rename(const char *path, const char *bytes, size_t len)
{
    AS_AUTO(str_done) struct str tmp = {0};
    str_printf(&tmp, "%s.%ld.tmp", path, (long)getpid());
    if (str_check(&tmp, NULL) != AS_OK)
        return AS_E_NOMEM;
    int fd = open(tmp.s, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return AS_E_IO;
    as_status st = file_write_all(fd, bytes, len, NULL);
    if (close(fd) != 0 || (st == AS_OK && rename(tmp.s, path) != 0))
        st = AS_E_IO;
    if (st != AS_OK)
        (void)unlink(tmp.s);
    return st;
}

as_status dataset_decoded_write(const char *path, const struct dataset_info *info,
                                const struct dataset *d)
{
    bool x_is_bytes = all_bytes(d);
    struct parts p = parts_of(d, x_is_bytes);
    struct header h = {.magic = MAGIC, .x_is_bytes = x_is_bytes, .size = p.total};
    AS_AUTO(as_freep) char *bytes = as_calloc(sizeof h + p.total, 1);
    as_status st = bytes ? info_digest(info, h.info) : AS_E_NOMEM;
    if (st != AS_OK)
        return st;
    gather_parts(d, &p, x_is_bytes, bytes + sizeof h);
    h.checksum = checksum(bytes + sizeof h, p.total);
    memcpy(bytes, &h, sizeof h);
    return write_and_rename(path, bytes, sizeof h + p.total);
}
