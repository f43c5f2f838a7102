/* Where Horovod's processes find each other: a store of small values over HTTP, which `horovodrun`
 * brings otherwise. A process puts the addresses of its sockets under its rank, asks every 10 ms
 * for those of the others until they are there, and says at the end that it is done.
 *
 *   PUT /SCOPE/KEY     keep the body: 200
 *   GET /SCOPE/KEY     200 with the value, or 404: not yet
 *   DELETE /SCOPE/KEY  the process KEY is done with SCOPE: 200
 *
 * as horovod/common/gloo/http_store.cc and horovod/runner/http/http_server.py of Horovod 0.28 have
 * it. Values stay until the end of the attempt, because others may still ask for them. */
#ifndef ASSAY_TRIAL_RUNNER_RANK_RENDEZVOUS_H
#define ASSAY_TRIAL_RUNNER_RANK_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define RENDEZVOUS_VALUE_MAX ((size_t)1 << 20) /* of one value */
#define RENDEZVOUS_MAX ((size_t)64 << 20)      /* of all, with their names */

struct rendezvous;

/* Listen on a free port of a numeric address; nothing is answered before rendezvous_serve(). ret is
 * owned by the caller. AS_E_IO, AS_E_INVAL, AS_E_NOMEM. */
AS_MUST_CHECK as_status rendezvous_open(const char *address, struct rendezvous **ret,
                                        int64_t *ret_port, struct as_err *err);

/* Answer, in a thread of its own, until rendezvous_free(). Call it once. AS_E_INTERNAL, AS_E_IO,
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status rendezvous_serve(struct rendezvous *r, struct as_err *err);
void rendezvous_free(struct rendezvous *r);

#endif
