/* What the plugin exports for peers.h. */
#ifndef ASSAY_KERNELS_PEERS_PRIV_H
#define ASSAY_KERNELS_PEERS_PRIV_H

#include "kernels/backend_priv.h"
#include "kernels/peers.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PEERS_ABI 2
#define PEERS_OPS_SYMBOL "assay_peers_ops"

/* As the functions of peers.h; arguments are checked. */
struct peers_ops {
    unsigned abi;
    as_status (*card)(struct backend *be, struct peers_card *ret, struct as_err *err);
    as_status (*new_id)(uint8_t ret[PEERS_ID_BYTES], struct as_err *err);
    as_status (*open)(struct backend *be, const struct peers_group *group, struct peers **ret,
                      struct as_err *err);
    as_status (*exchange)(struct peers *p, const struct peers_message *messages, size_t n,
                          struct as_err *err);
    as_status (*wait)(struct peers *p, int64_t timeout_ms, struct as_err *err);
    void (*interrupt)(struct peers *p);
    void (*free)(struct peers *p);
};

struct peers { /* the plugin's own structure begins with it */
    const struct peers_ops *ops;
    struct backend *be;
    int32_t rank, n;
};

#ifdef __cplusplus
}
#endif

#endif
