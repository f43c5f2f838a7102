/* Idempotency-Key: a request that is repeated with its key gets the answer that is stored under it.
 */
#ifndef ASSAY_API_SERVER_CALL_KEY_H
#define ASSAY_API_SERVER_CALL_KEY_H

#include <stdbool.h>

#include "api/server/call.h"

/* Set c->idem if the request has a key and its route takes one. AS_E_NOMEM. */
AS_MUST_CHECK as_status call_key_read(struct call *c, struct as_err *err);
/* Does the key settle the call? If so, the answer is set: the stored one, or a refusal. */
bool call_key_answer(struct call *c);
/* Store the answer under the key. Only successes are stored: a refused request changed nothing and
 * may succeed the next time. What fails is logged. */
void call_key_store(struct call *c);

#endif
