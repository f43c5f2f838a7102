/* Answers with stored content: whole or one range of it, with its digest as ETag. */
#ifndef ASSAY_API_SERVER_ANSWER_BLOB_H
#define ASSAY_API_SERVER_ANSWER_BLOB_H

#include "api/server/call.h"

/* The bytes of a blob, as the request's Range, If-Range and If-None-Match ask: 200, 206, 304 or
 * 416. AS_E_NOT_FOUND, AS_E_INVAL: not a digest. AS_E_UNAVAILABLE, AS_E_NOMEM. */
AS_MUST_CHECK as_status answer_blob(struct call *c, const char *sha256, struct as_err *err);

/* The same for HEAD: its size. */
AS_MUST_CHECK as_status answer_blob_size(struct call *c, const char *sha256, struct as_err *err);

#endif
