/* Where a rank can be reached, as one line of text that the server stores without reading it.
 *
 * "10.0.0.3:40217 host=6f1c... socket=9ab2...": a TCP address, and for ranks on the same host the
 * name of a Unix socket. Two ranks are on the same host when `host` is equal: it is a digest of the
 * machine's boot id and of the network and process namespaces, because a Unix socket needs the
 * first and watching the peer's process needs the second. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_ENDPOINT_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define ENDPOINT_TEXT_MAX 200
#define ENDPOINT_ADDRESS_MAX 64

struct endpoint {
    char address[ENDPOINT_ADDRESS_MAX]; /* numeric IPv4 or IPv6 address */
    uint16_t port;                      /* > 0 */
    char host[17];                      /* 16 hexadecimal digits */
    char socket[33];                    /* 32 hexadecimal digits: an abstract Unix socket */
};

/* buf >= ENDPOINT_TEXT_MAX. Returns buf. An IPv6 address is written in brackets. */
const char *endpoint_format(const struct endpoint *e, char *buf);

/* AS_E_INVAL: the text is not what endpoint_format writes. */
AS_MUST_CHECK as_status endpoint_parse(const char *text, struct endpoint *ret, struct as_err *err);

/* The host of this process; AS_E_IO when /proc cannot be read. */
AS_MUST_CHECK as_status endpoint_this_host(char ret[17], struct as_err *err);

bool endpoint_same_host(const struct endpoint *a, const struct endpoint *b);

#endif
