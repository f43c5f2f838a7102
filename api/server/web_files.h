/* The dashboard's files: read into memory at the start, served from that list and from nothing
 * else, so that no path of a client ever reaches open(). */
#ifndef ASSAY_API_SERVER_WEB_FILES_H
#define ASSAY_API_SERVER_WEB_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "api/http/http.h"
#include "base/mem.h"
#include "base/status.h"

#define WEB_FILE_MAX ((size_t)16 << 20)
#define WEB_FILES_MAX 2000

struct web_files;

/* Read every regular file under `dir` (NULL or absent: none; links are not followed). AS_E_IO,
 * AS_E_NOMEM, AS_E_TOO_LARGE: more or larger files than a dashboard has. */
AS_MUST_CHECK as_status web_files_load(const char *dir, struct web_files **ret, struct as_err *err);
void web_files_free(struct web_files *w);
AS_DEFINE_FREEP(struct web_files, web_files_free)

size_t web_files_count(const struct web_files *w);

/* Answer a GET or HEAD of x->head.path: the file, 304 when the client has it, index.html for a page
 * of the dashboard (a path without a file whose Accept has text/html), or, without any files, a
 * page at / that says how to build them. False: nothing of that, x is untouched. */
bool web_files_answer(const struct web_files *w, struct http_exchange *x);

#endif
