/* Which sweep, model or data set was meant by a name that does not exist. */
#ifndef ASSAY_CLI_SESSION_MEANT_H
#define ASSAY_CLI_SESSION_MEANT_H

#include <stddef.h>

#include "api/client/client.h"

/* Compare the arguments of a verb that, by its synopsis, name something of the server with what is
 * there, and say (view/say.h) which name is near to one that is not. The newest 500 of each kind
 * are asked for. Says nothing if the server does not answer. */
void meant_say(const char *synopsis, const char *const *args, size_t n_args, struct client *c);

#endif
