/* The decoded copy of a data set: the arrays that dataset_load() made of its files, so that the
 * next trial of a sweep starts without unpacking and parsing.
 *
 * The file is a header, then x, labels, targets or tokens, each only if the data set has it. x is
 * stored as bytes if every value is a whole number from 0 to 255 (a quarter of the size), tokens as
 * 16 bits. The header holds a digest of dataset_info and a checksum of the rest; a copy in which
 * anything does not match is not used.
 *
 * The copy is a cache. It is not synced to disk, its folder belongs to the user whose programs read
 * it, and the caller names it by the digest of the data set's content. A change of the format needs
 * a new DECODED_MAGIC. */
#include "data/dataset_decoded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "data/dataset_alloc.h"
#include "data/dataset_decoded_priv.h"
#include "data/dataset_json.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

/* Every piece of a part but the last must be a multiple of 32 bytes. */
void decoded_sum_add(struct decoded_sum *s, const void *bytes, size_t len)
{
    static const uint64_t k = UINT64_C(0x9e3779b185ebca87);
    uint64_t w[4];
    const char *p = bytes;
    for (size_t left = len; left; p += sizeof w) {
        size_t n = left < sizeof w ? left : sizeof w;
        if (n < sizeof w)
            memset(w, 0, sizeof w);
        memcpy(w, p, n);
        for (int i = 0; i < 4; i++) {
            s->lane[i] = (s->lane[i] ^ w[i]) * k;
            s->lane[i] = s->lane[i] << 31 | s->lane[i] >> 33;
        }
        left -= n;
    }
    s->lane[len / 32 % 4] ^= len;
}

uint64_t decoded_sum_end(const struct decoded_sum *s)
{
    uint64_t h = 0;
    for (int i = 0; i < 4; i++) {
        h = (h ^ s->lane[i]) * UINT64_C(0xc2b2ae3d27d4eb4f);
        h ^= h >> 29;
    }
    return h;
}

/* ---- the parts ---- */

void decoded_parts_of(const struct dataset *d, bool x_is_bytes,
                      struct decoded_part ret[DECODED_PARTS])
{
    size_t rows = d->n_rows;
    ret[0] =
        (struct decoded_part){d->x, d->x ? rows * d->n_features : 0, x_is_bytes ? 1 : sizeof *d->x,
                              x_is_bytes ? BYTES_OF_FLOATS : SAME_BYTES};
    if (d->bytes)
        ret[0] = (struct decoded_part){d->bytes, rows * d->n_features, 1, SAME_BYTES};
    ret[1] = (struct decoded_part){d->labels, d->labels ? rows : 0, sizeof *d->labels, SAME_BYTES};
    ret[2] = (struct decoded_part){d->targets, d->targets ? rows * d->n_outputs : 0,
                                   sizeof *d->targets, SAME_BYTES};
    ret[3] =
        (struct decoded_part){d->tokens, d->tokens ? rows : 0, sizeof(uint16_t), WORDS_OF_TOKENS};
}

uint64_t decoded_size_of(const struct decoded_part parts[DECODED_PARTS])
{
    uint64_t size = 0;
    for (size_t i = 0; i < DECODED_PARTS; i++)
        size += parts[i].n * parts[i].kept_size;
    return size;
}

as_status decoded_info_digest(const struct dataset_info *info, char ret[SHA256_HEX_SIZE])
{
    JSON_AUTO j = dataset_info_to_json(info);
    AS_AUTO(as_freep) char *text = j ? json_format(j) : NULL;
    return text ? sha256_of(text, strlen(text), ret, NULL) : AS_E_NOMEM;
}

bool decoded_is_header(const struct decoded_header *h, const struct dataset_info *info,
                       uint64_t size)
{
    char digest[SHA256_HEX_SIZE];
    return decoded_info_digest(info, digest) == AS_OK &&
           memcmp(h->magic, DECODED_MAGIC, sizeof h->magic) == 0 &&
           memcmp(h->info, digest, sizeof digest) == 0 && h->size == size - sizeof *h &&
           (h->x_is_bytes == 0 || h->x_is_bytes == 1);
}

/* ---- reading ---- */

static bool read_whole(int fd, void *buf, size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(fd, (char *)buf + have, size - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    return true;
}

/* Convert `n` values of the file into the array, from index `at` on. */
static void decode_values(const struct decoded_part *p, const void *kept, size_t at, size_t n)
{
    if (p->coding == BYTES_OF_FLOATS) {
        const unsigned char *from = kept;
        float *to = (float *)p->array + at;
        for (size_t i = 0; i < n; i++)
            to[i] = (float)from[i];
    } else {
        const uint16_t *from = kept;
        int32_t *to = (int32_t *)p->array + at;
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

static bool read_part(int fd, const struct decoded_part *p, void *piece, struct decoded_sum *sum)
{
    size_t most = DECODED_PIECE / p->kept_size;
    for (size_t at = 0; at < p->n; at += most) {
        size_t n = p->n - at < most ? p->n - at : most;
        bool in_place = p->coding == SAME_BYTES;
        void *to = in_place ? (char *)p->array + at * p->kept_size : piece;
        if (!read_whole(fd, to, n * p->kept_size))
            return false;
        decoded_sum_add(sum, to, n * p->kept_size);
        if (!in_place)
            decode_values(p, piece, at, n);
    }
    return true;
}

/* Check labels and tokens: they are indices, and a file with a correct checksum may still come from
 * another program. */
static bool values_fit(const struct dataset *d)
{
    const int32_t *v = d->labels ? d->labels : d->tokens;
    for (size_t i = 0; v && i < d->n_rows; i++)
        if (v[i] < 0 || (size_t)v[i] >= d->n_outputs)
            return false;
    return true;
}

static as_status read_file(int fd, uint64_t size, const struct dataset_info *info, bool bytes,
                           struct dataset *d)
{
    struct decoded_header h;
    struct decoded_part parts[DECODED_PARTS];
    struct decoded_sum sum = DECODED_SUM_START;
    AS_AUTO(as_freep) void *piece = as_calloc(DECODED_PIECE, 1);
    if (!piece)
        return AS_E_NOMEM;
    if (!read_whole(fd, &h, sizeof h) || !decoded_is_header(&h, info, size))
        return AS_E_NOT_FOUND;
    as_status st = dataset_alloc(info, bytes && h.x_is_bytes, d, NULL);
    if (st != AS_OK)
        return st;
    decoded_parts_of(d, h.x_is_bytes, parts);
    bool whole = decoded_size_of(parts) == h.size;
    for (size_t i = 0; whole && i < DECODED_PARTS; i++)
        whole = read_part(fd, &parts[i], piece, &sum);
    return whole && decoded_sum_end(&sum) == h.checksum && values_fit(d) ? AS_OK : AS_E_NOT_FOUND;
}

as_status dataset_decoded_read(const char *path, const struct dataset_info *info, bool bytes,
                               struct dataset *ret)
{
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat sb;
    if (fd < 0 || fstat(fd, &sb) != 0 || (size_t)sb.st_size < sizeof(struct decoded_header))
        return AS_E_NOT_FOUND;
    as_status st = read_file(fd, (uint64_t)sb.st_size, info, bytes, ret);
    (void)futimens(fd, NULL); /* mark it as used: the cache removes the least recently used */
    return st;
}

/* ---- writing ---- */

static void encode_values(const struct decoded_part *p, void *kept, size_t at, size_t n)
{
    if (p->coding == BYTES_OF_FLOATS) {
        const float *from = (const float *)p->array + at;
        for (size_t i = 0; i < n; i++)
            ((unsigned char *)kept)[i] = (unsigned char)from[i];
    } else if (p->coding == WORDS_OF_TOKENS) {
        const int32_t *from = (const int32_t *)p->array + at;
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)kept)[i] = (uint16_t)from[i];
    } else {
        memcpy(kept, (const char *)p->array + at * p->kept_size, n * p->kept_size);
    }
}

static as_status write_part(int fd, const struct decoded_part *p, void *piece,
                            struct decoded_sum *sum)
{
    size_t most = DECODED_PIECE / p->kept_size;
    for (size_t at = 0; at < p->n; at += most) {
        size_t n = p->n - at < most ? p->n - at : most;
        encode_values(p, piece, at, n);
        decoded_sum_add(sum, piece, n * p->kept_size);
        as_status st = file_write_all(fd, piece, n * p->kept_size, NULL);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* The header is written last, when the checksum is known. */
static as_status write_file(int fd, const struct dataset_info *info, const struct dataset *d)
{
    struct decoded_part parts[DECODED_PARTS];
    struct decoded_sum sum = DECODED_SUM_START;
    struct decoded_header h = {.magic = DECODED_MAGIC, .x_is_bytes = dataset_is_bytes(d)};
    AS_AUTO(as_freep) void *piece = as_calloc(DECODED_PIECE, 1);
    as_status st = piece ? decoded_info_digest(info, h.info) : AS_E_NOMEM;
    decoded_parts_of(d, h.x_is_bytes, parts);
    h.size = decoded_size_of(parts);
    if (st != AS_OK)
        return st;
    if (lseek(fd, sizeof h, SEEK_SET) < 0)
        return AS_E_IO;
    for (size_t i = 0; i < DECODED_PARTS; i++) {
        st = write_part(fd, &parts[i], piece, &sum);
        if (st != AS_OK)
            return st;
    }
    h.checksum = decoded_sum_end(&sum);
    return pwrite(fd, &h, sizeof h, 0) == (ssize_t)sizeof h ? AS_OK : AS_E_IO;
}

as_status dataset_decoded_write(const char *path, const struct dataset_info *info,
                                const struct dataset *d)
{
    AS_AUTO(str_done) struct str tmp = {0};
    str_printf(&tmp, "%s.%ld.tmp", path, (long)getpid());
    if (str_check(&tmp, NULL) != AS_OK)
        return AS_E_NOMEM;
    int fd = open(tmp.s, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return AS_E_IO;
    as_status st = write_file(fd, info, d);
    if (close(fd) != 0 || (st == AS_OK && rename(tmp.s, path) != 0))
        st = AS_E_IO;
    if (st != AS_OK)
        (void)unlink(tmp.s);
    return st;
}
