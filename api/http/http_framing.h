/* Follows the raw bytes of one connection: where messages begin and end, and whether every byte of
 * their framing is allowed.
 *
 * libmicrohttpd 0.9.75 reads lines as C strings, so that a NUL cuts a header's value; it accepts a
 * bare LF wherever a CRLF belongs; and it answers a Content-Length that is no number by itself,
 * with two heads. All of these are found here, before the library sees the bytes (http_recv.h).
 * Pure: no I/O, so that fuzz_http_framing can drive it. */
#ifndef ASSAY_API_HTTP_HTTP_FRAMING_H
#define ASSAY_API_HTTP_HTTP_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_TARGET_MAX 4096        /* bytes of path and query */
#define HTTP_QUERY_MAX 32           /* parameters */
#define HTTP_HEAD_MAX (20 * 1024)   /* bytes of request line and headers */
#define HTTP_HEADERS_MAX 99         /* header lines */
#define HTTP_CHUNK_LINE_MAX 256     /* the size of a chunk with its extensions */
#define HTTP_TRAILER_MAX (4 * 1024) /* bytes after the last chunk */

/* What is wrong with a message that the transport refuses. */
typedef enum http_refusal {
    HTTP_REFUSAL_REQUEST, /* malformed, or its body: see the error */
    HTTP_REFUSAL_TARGET,  /* the target is too long, or has too many parameters */
    HTTP_REFUSAL_HEAD,    /* the head is too large */
} http_refusal;

typedef enum http_framing_part {
    HTTP_FRAMING_START, /* between messages */
    HTTP_FRAMING_LINE,  /* the request line */
    HTTP_FRAMING_NAME,  /* of a header; or the empty line that ends the head */
    HTTP_FRAMING_VALUE,
    HTTP_FRAMING_BODY,
    HTTP_FRAMING_CHUNK_SIZE,
    HTTP_FRAMING_CHUNK_EXT,
    HTTP_FRAMING_CHUNK_DATA,
    HTTP_FRAMING_CHUNK_END, /* the CRLF after the data of a chunk */
    HTTP_FRAMING_TRAILER,
} http_framing_part;

/* Starts zeroed. Fields are private, except where they are described. */
struct http_framing {
    http_framing_part part; /* public */
    bool is_after_cr;
    size_t part_bytes; /* of the head, the chunk line or the trailer so far */
    size_t line_bytes; /* of this line */
    size_t n_headers, n_parameters;
    bool is_in_query;
    int64_t left; /* of the body or the chunk */
    char name[20], value[24];
    size_t name_len, value_len, blanks;
    bool has_length, is_chunked;
    int64_t length;
    const char *problem;  /* public: why a message is refused; NULL: nothing is */
    http_refusal refusal; /* public: what kind of problem it is */
};

/* Follow the next bytes. Returns how many of them come before the first message that is refused:
 * all of them unless f->problem is set. Then the rest must not be read as HTTP, and this function
 * must not be called again. A message that is refused may have begun before these bytes: then the
 * result is 0. */
size_t http_framing_follow(struct http_framing *f, const char *bytes, size_t len);

#endif
