/* Where a rank of this machine can be reached by the others. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_RANK_ADDRESS_H
#define ASSAY_TRIAL_RUNNER_PROCESS_RANK_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define RANK_ADDRESS_MAX 64

/* Is it a numeric IPv4 or IPv6 address? */
bool rank_address_valid(const char *text);

/* The local address of the way to the server: that of this machine which the server's machine, and
 * so others near it, can reach. A server on this machine gives the loopback address. Sends nothing,
 * but may ask the resolver. AS_E_INVAL: no URL; AS_E_UNAVAILABLE: its host has no address, or no
 * way leads there. */
AS_MUST_CHECK as_status rank_address_find(const char *server_url, char ret[RANK_ADDRESS_MAX],
                                          struct as_err *err);

/* A TCP port of this address that nobody uses now. Nothing keeps it free: the program binds it
 * later. AS_E_IO. */
AS_MUST_CHECK as_status rank_address_free_port(const char *address, int64_t *ret,
                                               struct as_err *err);

#endif
