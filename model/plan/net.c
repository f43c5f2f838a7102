#include "model/plan/net.h"

#include <stdlib.h>

void net_plan_free(struct net_plan *p)
{
    if (!p)
        return;
    free(p->nodes);
    free(p->tensors);
    free(p->states);
    free(p->slots);
    free(p);
}
