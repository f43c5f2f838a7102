/* The dashboard's files. They are read into memory at the start and served only from there, so that
 * no path of a client ever reaches open(). */
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

/* Read every regular file under `dir` (NULL or absent: none; links are not followed). AS_E_IO;
 * AS_E_NOMEM; AS_E_TOO_LARGE: past WEB_FILES_MAX or WEB_FILE_MAX. */
AS_MUST_CHECK as_status web_files_load(const char *dir, struct web_files **ret, struct as_err *err);
void web_files_free(struct web_files *w);
AS_DEFINE_FREEP(struct web_files, web_files_free)

size_t web_files_count(const struct web_files *w);

/* Answer a GET or HEAD of x->head.path. The answer is the file, 304 if the client has it, or
 * index.html for a page of the dashboard (no file has the path, and Accept has text/html). Without
 * any files, the answer at / is a page that explains how to build them. Returns false if none of
 * these applies; x is untouched then. */
bool web_files_answer(const struct web_files *w, struct http_exchange *x);

#endif
