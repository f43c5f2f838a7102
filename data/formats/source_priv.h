/* The stream itself, for source.c and source_zip.c. */
#ifndef ASSAY_DATA_FORMATS_SOURCE_PRIV_H
#define ASSAY_DATA_FORMATS_SOURCE_PRIV_H

#include <zlib.h>

#include "data/formats/source.h"

#define SOURCE_BUFFER ((size_t)1 << 16)

struct source {
    int fd;
    char *path;
    uint64_t size;     /* as source_size() */
    uint64_t raw_left; /* bytes that may still be read from fd */
    bool inflating, gzip, ended;
    bool interruptible;
    z_stream z;
    unsigned char *in; /* SOURCE_BUFFER bytes for z */
    uint64_t given;    /* bytes unpacked so far */
    bool zip;          /* a member of an archive: `left` bytes follow; its checksum is want_crc */
    uint64_t left;
    uint32_t crc, want_crc;
};

/* A stream of the whole file. */
AS_MUST_CHECK as_status source_start(const char *path, struct source **ret, struct as_err *err);

/* Unpack all bytes from here on: `raw` is DEFLATE without a header, else gzip. */
AS_MUST_CHECK as_status source_inflate(struct source *s, bool raw, struct as_err *err);

/* Read bytes of the file as they are, at most raw_left. */
AS_MUST_CHECK as_status source_read_raw(struct source *s, void *buf, size_t size, size_t *ret_len,
                                        struct as_err *err);

#endif
