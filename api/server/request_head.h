/* Which requests reach a handler: the checks of a head, in this order: Host and Origin, route,
 * token, rate, role, query, media type. A path that is not in the route table is denied.
 *
 * In an I/O thread, which never waits. A token that is not in the cache is looked up in the thread
 * of auth.c; meanwhile the transport holds the exchange, so the body is read only after the token
 * was found valid. */
#ifndef ASSAY_API_SERVER_REQUEST_HEAD_H
#define ASSAY_API_SERVER_REQUEST_HEAD_H

struct call;

/* Check the head of the call. Afterwards it has its answer, or says which body it expects, or the
 * thread of auth.c owns it and does the rest. */
void request_head_check(struct call *c);

#endif
