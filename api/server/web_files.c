/* The dashboard's files in memory, sorted by URL path.
 *
 * They are read once at the start, so a request never opens a file: path traversal and races with
 * an installation are impossible. Files under /assets/ have a hash in their names and are cached
 * for ever. All others have an ETag and are validated each time, so that a browser sees a new
 * dashboard at once. A path without a file is answered with index.html if the client wants a page,
 * because the dashboard routes its own pages. */
#include "api/server/web_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/http/http_content.h"
#include "api/server/answer_content.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"

#define DEPTH_MAX 8

/* Allow only files of this server, and nothing inline. Preact and uPlot set styles through the
 * CSSOM, to which the policy does not apply. */
#define POLICY                                                                                     \
    "default-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; "             \
    "form-action 'self'"

struct web_file {
    char *path; /* of the URL: "/assets/index-3f2a.js" */
    char *bytes;
    size_t len;
    struct str gzip; /* empty: it is not smaller */
    const char *type;
    char etag[24]; /* weak, because it is sent with and without compression */
    bool is_hashed;
};

struct web_files {
    struct web_file *files; /* by path */
    size_t n, cap;
};

static const char absent_page[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Assay</title>"
    "<body><h1>Assay</h1><p>The server runs. Its dashboard is not installed: build it with npm "
    "(<code>meson setup build -Dweb=enabled</code>, <code>ninja -C build</code>), or name its "
    "folder "
    "with <code>assayd --web DIR</code>.</p>"
    "<p>The API is described by <a href=\"/openapi.json\">/openapi.json</a>.</p></body></html>\n";

static const char *type_of(const char *path)
{
    static const struct {
        const char *suffix, *type;
    } types[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".mjs", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".json", "application/json"},
        {".map", "application/json"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".ico", "image/x-icon"},
        {".woff2", "font/woff2"},
        {".txt", "text/plain; charset=utf-8"},
        {".webmanifest", "application/manifest+json"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(types); i++)
        if (as_ends_with(path, types[i].suffix))
            return types[i].type;
    return "application/octet-stream";
}

/* Compressed once, so that it may cost time. Images and fonts do not get smaller. */
static as_status compress_file(struct web_file *f, struct as_err *err)
{
    if (f->len < GZIP_MIN)
        return AS_OK;
    as_status st = http_gzip(f->bytes, f->len, 9, &f->gzip, err);
    if (st == AS_OK && f->gzip.len > f->len / 10 * 9)
        str_done(&f->gzip);
    return st;
}

static as_status add_file(struct web_files *w, const char *disk_path, const char *url_path,
                          struct as_err *err)
{
    char digest[SHA256_HEX_SIZE];
    if (w->n == WEB_FILES_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "the web folder has more than %d files", WEB_FILES_MAX);
    as_status st = as_reserve_one(&w->files, w->n, &w->cap, sizeof *w->files, err);
    if (st < 0)
        return st;
    struct web_file *f = &w->files[w->n];
    *f = (struct web_file){.type = type_of(url_path),
                           .is_hashed = as_starts_with(url_path, "/assets/")};
    w->n++;
    f->path = as_strdup(url_path);
    if (!f->path)
        return as_fail(err, AS_E_NOMEM, "out of memory for the web folder");
    st = file_read(disk_path, WEB_FILE_MAX, &f->bytes, &f->len, err);
    if (st < 0)
        return st;
    st = sha256_of(f->bytes, f->len, digest, err);
    if (st < 0)
        return st;
    (void)snprintf(f->etag, sizeof f->etag, "W/\"%.16s\"", digest);
    return compress_file(f, err);
}

static as_status add_dir(struct web_files *w, const char *disk_path, const char *url_path,
                         int depth, struct as_err *err);

static as_status add_entry(struct web_files *w, const char *dir, const char *url_dir,
                           const char *name, int depth, struct as_err *err)
{
    AS_AUTO(as_freep) char *disk_path = file_join(dir, name);
    AS_AUTO(as_freep) char *url_path = file_join(url_dir, name);
    struct stat sb;
    if (!disk_path || !url_path)
        return as_fail(err, AS_E_NOMEM, "out of memory for the web folder");
    if (lstat(disk_path, &sb) != 0)
        return as_fail(err, AS_E_IO, "cannot stat %s: %m", disk_path);
    if (S_ISDIR(sb.st_mode))
        return add_dir(w, disk_path, url_path, depth + 1, err);
    return S_ISREG(sb.st_mode) ? add_file(w, disk_path, url_path, err) : AS_OK;
}

static as_status add_dir(struct web_files *w, const char *disk_path, const char *url_path,
                         int depth, struct as_err *err)
{
    as_status st = AS_OK;
    if (depth > DEPTH_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "%s is nested too deeply", disk_path);
    DIR *dir = opendir(disk_path);
    if (!dir)
        return errno == ENOENT && depth == 0
                   ? AS_OK
                   : as_fail(err, AS_E_IO, "cannot read the web folder %s: %m", disk_path);
    for (struct dirent *e; st == AS_OK && (e = readdir(dir));)
        if (e->d_name[0] != '.')
            st = add_entry(w, disk_path, url_path, e->d_name, depth, err);
    (void)closedir(dir);
    return st;
}

static int compare_paths(const void *a, const void *b)
{
    const struct web_file *fa = a, *fb = b;
    return strcmp(fa->path, fb->path);
}

as_status web_files_load(const char *dir, struct web_files **ret, struct as_err *err)
{
    AS_AUTO(web_files_freep) struct web_files *w = as_calloc(1, sizeof *w);
    if (!w)
        return as_fail(err, AS_E_NOMEM, "out of memory for the web folder");
    as_status st = dir ? add_dir(w, dir, "", 0, err) : AS_OK;
    if (st < 0)
        return st;
    if (w->n)
        qsort(w->files, w->n, sizeof *w->files, compare_paths);
    *ret = as_steal(w);
    return AS_OK;
}

void web_files_free(struct web_files *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n; i++) {
        free(w->files[i].path);
        free(w->files[i].bytes);
        str_done(&w->files[i].gzip);
    }
    free(w->files);
    free(w);
}

size_t web_files_count(const struct web_files *w)
{
    return w->n;
}

static const struct web_file *find_file(const struct web_files *w, const char *path)
{
    struct web_file key = {.path = (char *)path};
    return w->n ? bsearch(&key, w->files, w->n, sizeof key, compare_paths) : NULL;
}

static bool wants_page(const struct http_head *h)
{
    return h->accept && strstr(h->accept, "text/html");
}

static void answer_page(struct http_exchange *x, const char *type, const char *bytes, size_t len)
{
    x->answer.status = 200;
    x->answer.content_type = type;
    x->answer.bytes = bytes;
    x->answer.len = len;
    http_answer_header(x, "Content-Security-Policy", POLICY);
    http_answer_header(x, "Referrer-Policy", "no-referrer");
    http_answer_header(x, "Cross-Origin-Opener-Policy", "same-origin");
}

static void answer_file(struct http_exchange *x, const struct web_file *f)
{
    bool packed = f->gzip.len > 0 && http_accepts_gzip(x->head.accept_encoding);
    answer_page(x, f->type, packed ? f->gzip.s : f->bytes, packed ? f->gzip.len : f->len);
    if (f->gzip.len > 0)
        http_answer_header(x, "Vary", "Accept-Encoding");
    http_answer_header(x, "ETag", f->etag);
    http_answer_header(x, "Cache-Control",
                       f->is_hashed ? "public, max-age=31536000, immutable" : "no-cache");
    if (http_etag_listed(x->head.if_none_match, f->etag)) {
        x->answer.status = 304;
        x->answer.bytes = "";
        x->answer.len = 0;
    } else if (packed) {
        http_answer_header(x, "Content-Encoding", "gzip");
    }
}

bool web_files_answer(const struct web_files *w, struct http_exchange *x)
{
    const char *path = as_streq(x->head.path, "/") ? "/index.html" : x->head.path;
    const struct web_file *f = find_file(w, path);
    if (!f && wants_page(&x->head))
        f = find_file(w, "/index.html");
    if (f) {
        answer_file(x, f);
        return true;
    }
    if (!as_streq(x->head.path, "/"))
        return false;
    answer_page(x, "text/html; charset=utf-8", absent_page, sizeof absent_page - 1);
    http_answer_header(x, "Cache-Control", "no-cache");
    return true;
}
