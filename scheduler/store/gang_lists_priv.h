/* Texts that the statements of gangs share, and lists as array parameters of statements that take
 * sets. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_GANG_LISTS_PRIV_H
#define ASSAY_SCHEDULER_STORE_GANG_LISTS_PRIV_H

#include "scheduler/store/pg_priv.h"

#define LIVE "in ('seated', 'listening', 'running')"
/* For one gang: $1 to $3. */
#define THIS "sweep_key = $1 and number = $2 and attempt = $3"
#define SAME(a, b)                                                                                 \
    a ".sweep_key = " b ".sweep_key and " a ".number = " b ".number and " a ".attempt = " b        \
      ".attempt"

#define ARG_KEY(k) arg_i64((k)->sweep_key), arg_i64((k)->number), arg_i64((k)->attempt)

/* Lists of numbers and words, as array parameters. */
struct lists {
    struct str c[10];
};

static inline void lists_open(struct lists *x)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(x->c); i++)
        array_open(&x->c[i]);
}

static inline void lists_done(struct lists *x)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(x->c); i++)
        str_done(&x->c[i]);
}

static inline as_status lists_close(struct lists *x, struct as_err *err)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(x->c); i++) {
        array_close(&x->c[i]);
        as_status st = str_check(&x->c[i], err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

static inline struct arg arg_list(const struct lists *x, size_t i)
{
    return arg_str(str_cstr(&x->c[i]));
}

#endif
