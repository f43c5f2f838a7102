/* Broadcast and barrier. */
#include "trial-runner/collective/exchange.h"

#define PEERS_MAX 16 /* log2 of WORLD_MAX_RANKS, and more */

as_status binomial_broadcast(struct mesh *m, struct coll_id id, int32_t root, void *data,
                             size_t bytes, struct as_err *err)
{
    struct exchange x;
    struct transfer t[PEERS_MAX];
    int32_t size = mesh_size(m), place = (mesh_rank(m) - root + size) % size;
    int32_t bit = 1;
    const size_t *ready = NULL;
    exchange_init(&x, m, id, t, AS_ARRAY_LEN(t));
    /* Place p receives from p without its lowest bit, and sends to p + lower bits. */
    while (bit < size && !(place & bit))
        bit *= 2;
    if (place > 0) {
        int32_t from = (place - bit + root) % size;
        ready = &exchange_receive(&x, from, data, bytes, NULL, NULL)->done;
    }
    for (bit /= 2; bit > 0; bit /= 2)
        if (place + bit < size)
            exchange_send(&x, (place + bit + root) % size, data, bytes, ready);
    return exchange_wait(&x, err);
}

as_status dissemination_barrier(struct mesh *m, struct coll_id id, struct as_err *err)
{
    struct exchange x;
    struct transfer t[2];
    int32_t rank = mesh_rank(m), size = mesh_size(m);
    char out = 1, in = 0;
    exchange_init(&x, m, id, t, AS_ARRAY_LEN(t));
    for (int32_t k = 1; k < size; k *= 2) {
        exchange_send(&x, (rank + k) % size, &out, 1, NULL);
        exchange_receive(&x, (rank + size - k) % size, &in, 1, NULL, NULL);
        as_status st = exchange_wait(&x, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}
