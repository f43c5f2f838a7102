/* The copy is read through once when it is opened, to check it; its descriptor is not needed after
 * that, and the cache may remove the file meanwhile. Labels lie at any offset in it, so those that
 * are used as an array are copied. */
#include "data/dataset_map.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "data/dataset_alloc.h"
#include "data/dataset_decoded_priv.h"
#include "data/dataset_rows.h"

void dataset_map_forget(struct dataset_map *m)
{
    free(m->set.labels);
    free(m->set.targets);
    m->set.labels = NULL;
    m->set.targets = NULL;
    if (m->pages)
        (void)madvise((void *)(uintptr_t)m->pages, m->size, MADV_DONTNEED);
}

void dataset_map_close(struct dataset_map *m)
{
    dataset_map_forget(m);
    if (m->pages)
        (void)munmap((void *)(uintptr_t)m->pages, m->size);
    *m = (struct dataset_map){0};
}

/* ---- making the copy ---- */

struct making {
    const struct dataset_info *info;
    int fd;
    bool is_bytes;
    unsigned char *row;   /* [n_features x 4]: as it is stored */
    unsigned char *piece; /* [DECODED_PIECE] */
    size_t used, n_rows;  /* bytes of the piece; rows that were stored */
    struct decoded_sum sum;
    struct dataset behind; /* labels, targets: they follow x */
};

static void making_done(struct making *m)
{
    free(m->row);
    free(m->piece);
    dataset_done(&m->behind);
}

static as_status see_row(void *ctx, const struct dataset_row_view *row, struct as_err *err)
{
    struct making *m = ctx;
    const struct dataset one = {
        .n_rows = 1, .n_features = m->info->n_features, .x = (float *)(uintptr_t)row->x};
    (void)err;
    m->is_bytes = dataset_is_bytes(&one);
    return m->is_bytes ? AS_OK : AS_E_EXHAUSTED;
}

static as_status write_piece(struct making *m, struct as_err *err)
{
    size_t n = m->used;
    m->used = 0;
    if (n == 0)
        return AS_OK;
    decoded_sum_add(&m->sum, m->piece, n);
    return file_write_all(m->fd, m->piece, n, err);
}

static as_status write_bytes(struct making *m, const void *bytes, size_t n, struct as_err *err)
{
    const unsigned char *from = bytes;
    while (n > 0) {
        size_t room = DECODED_PIECE - m->used, some = n < room ? n : room;
        memcpy(m->piece + m->used, from, some);
        m->used += some;
        from += some;
        n -= some;
        as_status st = m->used == DECODED_PIECE ? write_piece(m, err) : AS_OK;
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status store_row(void *ctx, const struct dataset_row_view *row, struct as_err *err)
{
    struct making *m = ctx;
    size_t n = m->info->n_features, outputs = m->info->n_outputs, at = m->n_rows++;
    for (size_t i = 0; m->is_bytes && i < n; i++)
        m->row[i] = (unsigned char)row->x[i];
    if (m->behind.labels)
        m->behind.labels[at] = row->label;
    if (m->behind.targets)
        memcpy(m->behind.targets + at * outputs, row->targets, outputs * sizeof(float));
    return m->is_bytes ? write_bytes(m, m->row, n, err)
                       : write_bytes(m, row->x, n * sizeof(float), err);
}

static as_status alloc_making(struct making *m, struct as_err *err)
{
    const struct dataset_info *info = m->info;
    m->piece = as_calloc(DECODED_PIECE, 1);
    m->row = as_calloc(info->n_features, 1);
    if (info->task == DATASET_CLASSIFICATION)
        m->behind.labels = as_calloc(info->n_rows, sizeof *m->behind.labels);
    else
        m->behind.targets = as_calloc(info->n_rows * info->n_outputs, sizeof *m->behind.targets);
    return m->piece && m->row && (m->behind.labels || m->behind.targets) ? AS_OK
                                                                         : as_fail_nomem(err);
}

static as_status write_behind(struct making *m, struct as_err *err)
{
    size_t n = m->info->n_rows;
    as_status st = write_piece(m, err);
    if (st == AS_OK && m->behind.labels)
        st = write_bytes(m, m->behind.labels, n * sizeof(int32_t), err);
    if (st == AS_OK && m->behind.targets)
        st = write_bytes(m, m->behind.targets, n * m->info->n_outputs * sizeof(float), err);
    return st == AS_OK ? write_piece(m, err) : st;
}

/* Writes the copy into the empty file. */
static as_status make_copy(const struct dataset_paths *paths, const struct dataset_info *info,
                           int fd, struct as_err *err)
{
    AS_AUTO(making_done)
    struct making m = {.info = info, .fd = fd, .is_bytes = true, .sum = DECODED_SUM_START};
    struct decoded_header h = {.magic = DECODED_MAGIC};
    as_status st = alloc_making(&m, err);
    if (st == AS_OK)
        st = dataset_rows_read(paths, info, see_row, &m, err);
    if (st != AS_OK && st != AS_E_EXHAUSTED)
        return st;
    if ((st = file_write_all(fd, &h, sizeof h, err)) != AS_OK ||
        (st = dataset_rows_read(paths, info, store_row, &m, err)) != AS_OK ||
        (st = write_behind(&m, err)) != AS_OK || (st = decoded_info_digest(info, h.info)) != AS_OK)
        return st;
    h.x_is_bytes = m.is_bytes;
    h.size = (uint64_t)lseek(fd, 0, SEEK_CUR) - sizeof h;
    h.checksum = decoded_sum_end(&m.sum);
    return pwrite(fd, &h, sizeof h, 0) == (ssize_t)sizeof h
               ? AS_OK
               : as_fail(err, AS_E_IO, "the decoded copy of the data set cannot be written");
}

/* A file without a name. */
static int open_nameless(void)
{
    AS_AUTO(str_done) struct str path = {0};
    const char *folder = getenv("TMPDIR");
    str_printf(&path, "%s/assay-rows-XXXXXX", folder && *folder ? folder : "/tmp");
    int fd = str_check(&path, NULL) == AS_OK ? mkostemp(path.s, O_CLOEXEC) : -1;
    if (fd >= 0)
        (void)unlink(path.s);
    return fd;
}

/* Readers see no file, or the whole one. Other processes may do the same. */
static as_status make_file(const struct dataset_paths *paths, const struct dataset_info *info,
                           int *ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str tmp = {0};
    int fd = -1;
    if (paths->decoded) {
        str_printf(&tmp, "%s.%ld.tmp", paths->decoded, (long)getpid());
        if (str_check(&tmp, err) != AS_OK)
            return AS_E_NOMEM;
        fd = open(tmp.s, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }
    bool named = fd >= 0;
    if (!named && (fd = open_nameless()) < 0)
        return as_fail(err, AS_E_IO, "no file can be made for the decoded copy of the data set");
    as_status st = make_copy(paths, info, fd, err);
    if (named && (st != AS_OK || rename(tmp.s, paths->decoded) != 0))
        (void)unlink(tmp.s);
    if (st == AS_OK)
        *ret = fd;
    else
        (void)close(fd);
    return st;
}

/* ---- reading it ---- */

static bool is_whole(const struct decoded_header *h, const unsigned char *pages,
                     const struct decoded_part parts[DECODED_PARTS])
{
    struct decoded_sum sum = DECODED_SUM_START;
    const unsigned char *at = pages + sizeof *h;
    if (decoded_size_of(parts) != h->size)
        return false;
    for (size_t i = 0; i < DECODED_PARTS; i++)
        for (size_t left = parts[i].n * parts[i].kept_size; left > 0;) {
            size_t n = left < DECODED_PIECE ? left : DECODED_PIECE;
            decoded_sum_add(&sum, at, n);
            at += n;
            left -= n;
        }
    return decoded_sum_end(&sum) == h->checksum;
}

/* Checks the file, and sets the arrays. AS_E_NOT_FOUND: it is no whole copy of this data set. */
static as_status take_pages(struct dataset_map *m, const struct dataset_info *info,
                            struct as_err *err)
{
    struct decoded_part parts[DECODED_PARTS];
    struct decoded_header h;
    struct dataset *set = &m->set;
    memcpy(&h, m->pages, sizeof h);
    if (!decoded_is_header(&h, info, m->size))
        return AS_E_NOT_FOUND;
    *set = (struct dataset){
        .n_rows = info->n_rows, .n_features = info->n_features, .n_outputs = info->n_outputs};
    bool classes = info->task == DATASET_CLASSIFICATION;
    size_t behind = info->n_rows * (classes ? 1 : info->n_outputs) * sizeof(float);
    set->labels = classes ? as_calloc(behind, 1) : NULL;
    set->targets = classes ? NULL : as_calloc(behind, 1);
    if (!set->labels && !set->targets)
        return as_fail_nomem(err);
    unsigned char *x = (unsigned char *)(uintptr_t)m->pages + sizeof h;
    set->bytes = h.x_is_bytes ? x : NULL;
    set->x = h.x_is_bytes ? NULL : (float *)(void *)x;
    decoded_parts_of(set, h.x_is_bytes, parts);
    if (!is_whole(&h, m->pages, parts))
        return AS_E_NOT_FOUND;
    m->labels_at = m->targets_at = sizeof h + parts[0].n * parts[0].kept_size;
    memcpy(classes ? (void *)set->labels : (void *)set->targets, m->pages + m->labels_at, behind);
    for (size_t i = 0; classes && i < set->n_rows; i++)
        if (set->labels[i] < 0 || (size_t)set->labels[i] >= set->n_outputs)
            return AS_E_NOT_FOUND;
    return AS_OK;
}

static as_status map_file(int fd, const struct dataset_info *info, struct dataset_map *ret,
                          struct as_err *err)
{
    AS_AUTO(dataset_map_close) struct dataset_map m = {0};
    struct stat sb;
    if (fstat(fd, &sb) != 0 || (size_t)sb.st_size < sizeof(struct decoded_header))
        return AS_E_NOT_FOUND;
    void *pages = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (pages == MAP_FAILED)
        return as_fail(err, AS_E_IO, "the decoded copy of the data set cannot be mapped");
    m.pages = pages;
    m.size = (size_t)sb.st_size;
    as_status st = take_pages(&m, info, err);
    if (st != AS_OK)
        return st;
    *ret = m;
    m = (struct dataset_map){0};
    return AS_OK;
}

as_status dataset_map_open(const struct dataset_paths *paths, const struct dataset_info *info,
                           struct dataset_map *ret, struct as_err *err)
{
    AS_AUTO(file_closep)
    int fd = paths->decoded ? open(paths->decoded, O_RDONLY | O_CLOEXEC) : -1;
    as_status st = fd >= 0 ? map_file(fd, info, ret, err) : AS_E_NOT_FOUND;
    if (st != AS_E_NOT_FOUND) {
        if (fd >= 0)
            (void)futimens(fd, NULL); /* the cache removes the least recently used */
        return st;
    }
    AS_AUTO(file_closep) int made = -1;
    st = make_file(paths, info, &made, err);
    if (st == AS_OK)
        st = map_file(made, info, ret, err);
    return st == AS_E_NOT_FOUND
               ? as_fail(err, AS_E_IO, "the decoded copy of the data set was damaged at once")
               : st;
}

/* ---- rows ---- */

static void copy_row(const struct dataset_map *m, size_t from, struct dataset *to, size_t at)
{
    size_t n = m->set.n_features, outputs = m->set.n_outputs;
    const unsigned char *bytes = m->set.bytes ? m->set.bytes + from * n : NULL;
    if (to->bytes)
        memcpy(to->bytes + at * n, bytes, n);
    else if (bytes)
        for (size_t i = 0; i < n; i++)
            to->x[at * n + i] = (float)bytes[i];
    else
        memcpy(to->x + at * n, m->set.x + from * n, n * sizeof(float));
    if (to->labels)
        memcpy(to->labels + at, m->pages + m->labels_at + from * sizeof(int32_t), sizeof(int32_t));
    else
        memcpy(to->targets + at * outputs,
               m->pages + m->targets_at + from * outputs * sizeof(float), outputs * sizeof(float));
}

as_status dataset_map_rows(const struct dataset_map *m, const struct dataset_info *info,
                           const int32_t *rows, size_t n, struct dataset *ret, struct as_err *err)
{
    AS_AUTO(dataset_done) struct dataset d = {0};
    struct dataset_info some = *info; /* borrows all that info owns */
    some.n_rows = n;
    as_status st = dataset_alloc(&some, m->set.bytes && info->input == DATASET_IMAGE, &d, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < n; i++)
        copy_row(m, (size_t)rows[i], &d, i);
    *ret = d;
    d = (struct dataset){0};
    return AS_OK;
}
