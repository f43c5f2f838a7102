/* Texts that the statements of gangs share. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_GANG_SQL_PRIV_H
#define ASSAY_SCHEDULER_STORE_GANG_SQL_PRIV_H

#include "scheduler/store/pg_priv.h"

#define LIVE "in ('seated', 'listening', 'running')"
/* For one gang: $1 to $3. */
#define THIS "sweep_key = $1 and number = $2 and attempt = $3"
#define SAME(a, b)                                                                                 \
    a ".sweep_key = " b ".sweep_key and " a ".number = " b ".number and " a ".attempt = " b        \
      ".attempt"

#define ARG_KEY(k) arg_i64((k)->sweep_key), arg_i64((k)->number), arg_i64((k)->attempt)

#endif
