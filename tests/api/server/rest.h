/* A REST client for tests, on libcurl. Every answer is checked with api/openapi.yaml: the operation
 * must list its status, and its body must fit the schema. */
#ifndef ASSAY_TESTS_API_SERVER_REST_H
#define ASSAY_TESTS_API_SERVER_REST_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"

/* What the runners of the tests show, unless a test gives a secret of its own. */
#define REST_SECRET "0123456789abcdefghijklmnopqrstuvwxyzABCDEF"

struct rest {
    const char *url;    /* of the server, without a slash at the end */
    const char *token;  /* NULL: none is sent */
    const char *secret; /* Assay-Runner-Secret; NULL: REST_SECRET; "": none is sent */
};

struct reply {
    int status;
    struct str body;
    struct str headers;
    json_t *json; /* NULL: the body is not JSON */
    bool is_json;
};

void reply_done(struct reply *r);
#define REPLY_AUTO AS_AUTO(reply_done) struct reply

/* `body` NULL: none. Its type is application/json, of a PATCH application/merge-patch+json. */
struct reply rest_call(const struct rest *to, const char *method, const char *path,
                       const char *body);

/* The same for GET of a path that is printed from a format. */
struct reply rest_get(const struct rest *to, const char *fmt, ...) AS_PRINTF(2, 3);

struct rest_options {
    const char *const *headers; /* NULL-terminated lines, NULL for none */
    const char *body;
    size_t len;
    const char *type;  /* of the body; NULL: none is sent */
    bool is_unchecked; /* the answer is not checked with the document */
    bool may_fail;     /* no answer is allowed: status 0, and the body is the reason */
};
struct reply rest_call_with(const struct rest *to, const char *method, const char *path,
                            const struct rest_options *opts);

/* A request in a separate thread, while the test continues. */
struct rest_request {
    struct rest to;
    char method[8], path[300], body[800]; /* without a body: "" */
    struct reply reply;                   /* from rest_join() on; the caller's to end */
    int64_t took_ms;
    pthread_t thread;
};

/* Send it. All are copied but the strings of `to`. */
void rest_start(struct rest_request *r, const struct rest *to, const char *method, const char *path,
                const char *body);
/* Wait for its answer. */
void rest_join(struct rest_request *r);

/* A header of the answer, as a view of r->headers up to the line's end copied to buf; "" when
 * absent. */
const char *reply_header(const struct reply *r, const char *name, char *buf, size_t size);

/* A string or an integer at a dotted path such as "counts.total"; "" and -1 when absent. */
const char *reply_str(const struct reply *r, const char *path);
long long reply_int(const struct reply *r, const char *path);
json_t *reply_get(const struct reply *r, const char *path);

#define ck_status(r, want)                                                                         \
    ck_assert_msg((r).status == (want), "got %d, wanted %d: %s", (r).status, (want),               \
                  str_cstr(&(r).body))

#endif
