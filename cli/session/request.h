/* Requests of the verbs: one function per kind. Each sends a single request; lists send one per
 * page. */
#ifndef ASSAY_CLI_SESSION_REQUEST_H
#define ASSAY_CLI_SESSION_REQUEST_H

#include <jansson.h>
#include <stdint.h>

#include "api/client/client.h"
#include "base/status.h"

/* A trial as it is written on the command line: SWEEP/NUMBER. */
struct trial_ref {
    char sweep[81];
    int64_t number; /* -1: the whole sweep */
};

/* Parse SWEEP/NUMBER. With `number_optional` a sweep alone is valid, too. AS_E_USAGE: the message
 * names what was expected. */
AS_MUST_CHECK as_status request_parse_ref(const char *text, bool number_optional,
                                          struct trial_ref *ret, struct as_err *err);

/* Parse a sweep; a text with a trial number is AS_E_USAGE. */
AS_MUST_CHECK as_status request_parse_sweep(const char *text, struct trial_ref *ret,
                                            struct as_err *err);

/* GET /v1/sweeps/{sweep}[/trials/{number}][/rest]; `rest` NULL: the sweep or trial itself. The
 * answer is owned by the caller. */
AS_MUST_CHECK as_status request_get(struct client *c, const struct trial_ref *ref, const char *rest,
                                    const char *query, json_t **ret, struct as_err *err);

/* The same, repeated for up to `retry_ms` while the server cannot be reached. */
AS_MUST_CHECK as_status request_get_within(struct client *c, const struct trial_ref *ref,
                                           const char *rest, int64_t retry_ms, json_t **ret,
                                           struct as_err *err);

/* The same for an answer with `items` and `next_cursor`: append the items of the next pages, until
 * there are `limit`. */
AS_MUST_CHECK as_status request_items(struct client *c, const struct trial_ref *ref,
                                      const char *rest, const char *query, int64_t limit,
                                      json_t **ret, struct as_err *err);

/* GET a list and follow its cursors. `limit` 0: all; below 0: AS_E_USAGE. ret is the array of
 * items, owned by the caller. */
AS_MUST_CHECK as_status request_list(struct client *c, const char *path, const char *query,
                                     int64_t limit, json_t **ret, struct as_err *err);

/* As request_list, but calls page() with one page at a time; the items are borrowed. Memory does
 * not grow with the list. */
typedef as_status (*request_page_fn)(void *arg, const json_t *items, struct as_err *err);
AS_MUST_CHECK as_status request_pages(struct client *c, const char *path, const char *query,
                                      int64_t limit, request_page_fn page, void *arg,
                                      struct as_err *err);

/* GET path/id; the id is escaped. The answer is owned by the caller. */
AS_MUST_CHECK as_status request_one(struct client *c, const char *path, const char *id,
                                    json_t **ret, struct as_err *err);
/* PATCH the sweep or trial that `ref` names; body NULL: AS_E_NOMEM. *ret is as it is now; owned by
 * the caller. */
AS_MUST_CHECK as_status request_patch(struct client *c, const struct trial_ref *ref,
                                      const json_t *body, json_t **ret, struct as_err *err);

/* DELETE path/id; the id is escaped. */
AS_MUST_CHECK as_status request_delete(struct client *c, const char *path, const char *id,
                                       struct as_err *err);

/* Append the path of the sweep or trial that `ref` names. */
void request_path(struct str *b, const struct trial_ref *ref, const char *rest);

#endif
