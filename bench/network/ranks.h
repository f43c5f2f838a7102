/* A large trial whose ranks are processes of assay-train on hosts of their own. This plays the
 * runners and the server: it tells the ranks their world. Nobody dies. */
#ifndef ASSAY_BENCH_NETWORK_RANKS_H
#define ASSAY_BENCH_NETWORK_RANKS_H

#include <stddef.h>

#include "base/status.h"

struct ranks_trial {
    const char *dir;         /* x.npy, y.npy; outputs go there too */
    const char *train;       /* fields of the train document, without dataset and distributed */
    const char *distributed; /* the section; NULL: none */
    int n;                   /* 1: a trainer alone, no rank of anything; else at most HOSTS_MAX */
    size_t steps;            /* of an epoch */
};

struct ranks_figures {
    double seconds; /* of a step, evaluations included; without the first epoch */
    double bytes;   /* that the host of rank 0 sends in a step */
    double loss;    /* of the validation rows, at the end */
};

/* Trains to the end. AS_E_IO: a rank failed, with its last message; AS_E_INVAL, AS_E_NOMEM. */
AS_MUST_CHECK as_status ranks_train(const struct ranks_trial *t, struct ranks_figures *ret,
                                    struct as_err *err);

#endif
