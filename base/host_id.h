/* Which machine this is, so that two programs can tell whether they run on the same one. */
#ifndef ASSAY_BASE_HOST_ID_H
#define ASSAY_BASE_HOST_ID_H

#include "base/mem.h"
#include "base/status.h"

#define HOST_ID_SIZE 33 /* 32 hexadecimal digits and a NUL */

/* The same text for all programs on one machine: a digest of /etc/machine-id and the host's name,
 * which outlive a start of the machine; without a machine-id, of the kernel's boot id. Containers
 * have a host's name of their own, and so another text. The machine-id itself cannot be told from
 * it. AS_E_UNSUPPORTED: there is neither. AS_E_NOMEM. */
AS_MUST_CHECK as_status host_id_read(char ret[HOST_ID_SIZE], struct as_err *err);

#endif
