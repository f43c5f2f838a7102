/* What a client's head says about the content of the answer: which encodings, which part, which
 * version it has. Pure. RFC 9110, sections 8.8.3, 12.5.3 and 14. */
#ifndef ASSAY_API_HTTP_HTTP_CONTENT_H
#define ASSAY_API_HTTP_HTTP_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

/* Does this Accept-Encoding (NULL: none) allow gzip, and not rank it below no encoding? */
bool http_accepts_gzip(const char *accept_encoding);

/* Is `etag` (quoted, perhaps with W/) in this If-None-Match (NULL: none), or is that "*"? Weak
 * comparison: W/ is ignored. */
bool http_etag_listed(const char *list, const char *etag);

typedef enum http_range {
    HTTP_RANGE_WHOLE, /* no range, or one that is ignored: malformed, of another unit, several */
    HTTP_RANGE_PART,
    HTTP_RANGE_UNSATISFIABLE,
} http_range;

/* Read a Range header (NULL: none) for content of `size` bytes. HTTP_RANGE_PART: bytes [*ret_first,
 * *ret_last], both within the content. */
http_range http_range_read(const char *range, int64_t size, int64_t *ret_first, int64_t *ret_last);

/* Compress to gzip. level 1 (fast) to 9 (small). AS_E_NOMEM. */
AS_MUST_CHECK as_status http_gzip(const void *bytes, size_t len, int level, struct str *ret,
                                  struct as_err *err);

/* The same, for planes of measured numbers (data/formats/columnar.h), most of which are noise: what
 * does not shrink is stored, which costs a tenth. Other bytes may come out a twentieth larger. */
AS_MUST_CHECK as_status http_gzip_planes(const void *bytes, size_t len, int level, struct str *ret,
                                         struct as_err *err);

#endif
