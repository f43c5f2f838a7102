/* Resumes suspended connections, those of a moment together.
 *
 * When a connection is resumed, libmicrohttpd (0.9.75) goes through all suspended connections of
 * its I/O thread to find it. With some thousand requests that wait, that was most of what an answer
 * cost. So there is a pause between two times that connections are resumed, which grows with the
 * number of those that wait: 5 ms at 10,000, and none below 1,000. */
#ifndef ASSAY_API_HTTP_HTTP_RESUME_PRIV_H
#define ASSAY_API_HTTP_HTTP_RESUME_PRIV_H

#include "api/http/http_watch_priv.h"

struct http_resumer;

/* One connection that is to be resumed; embedded in its exchange. */
struct http_resumed {
    void *conn;
    struct http_resumed *next; /* private */
};

/* `table` is borrowed for its life. AS_E_NOMEM. */
AS_MUST_CHECK as_status http_resumer_create(struct http_table *table, void (*resume)(void *conn),
                                            struct http_resumer **ret, struct as_err *err);

/* Count a connection that was suspended. */
void http_resumer_waits(struct http_resumer *r);

/* Resume one that was counted, by http_table_release(): at once, or from the thread. Its exchange
 * may be gone when this returns. */
void http_resumer_add(struct http_resumer *r, struct http_resumed *item);

/* Resumes what is left, and ends the thread. NULL is fine. */
void http_resumer_free(struct http_resumer *r);

#endif
