/* The last step of an answer to GET: its version (ETag), 304 to who has it, and gzip. */
#ifndef ASSAY_API_SERVER_ANSWER_CONTENT_H
#define ASSAY_API_SERVER_ANSWER_CONTENT_H

#include "api/http/http.h"

#define GZIP_MIN 1024 /* bytes; smaller answers are sent as they are */

/* For an answer of bytes with status 200: add a weak ETag, and make it 304 without bytes if the
 * client has that version. Computes a digest, unless the answer has an ETag. */
void answer_version(struct http_exchange *x);

/* For an answer of bytes that are text: compress them if they are many and the client accepts that.
 * When memory is out, they stay as they are. */
void answer_compress(struct http_exchange *x);

#endif
