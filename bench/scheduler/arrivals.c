#include "bench/scheduler/arrivals.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/scheduler/wire.h"

#define WAITING_MAX (1 << 20)

void arrivals_init(struct arrivals *a, double rate, int64_t now_ns, int64_t until_ns)
{
    *a = (struct arrivals){.rate = rate, .next_ns = now_ns, .until_ns = until_ns};
    a->due = malloc(WAITING_MAX * sizeof *a->due);
    if (!a->due)
        wire_give_up("load", "out of memory");
    rng_init(&a->rng, 1, 26);
}

void arrivals_done(struct arrivals *a)
{
    free(a->due);
    *a = (struct arrivals){0};
}

void arrivals_advance(struct arrivals *a, int64_t now_ns)
{
    while (a->next_ns <= now_ns && a->next_ns < a->until_ns) {
        if (a->n == WAITING_MAX)
            wire_give_up("load", "the server is far behind the rate");
        a->due[(a->first + a->n++) % WAITING_MAX] = a->next_ns;
        a->next_ns += (int64_t)(-log(1 - rng_uniform(&a->rng)) / a->rate * NS_PER_S);
    }
}

bool arrivals_take(struct arrivals *a, int64_t *ret_due_ns)
{
    if (a->n == 0)
        return false;
    *ret_due_ns = a->due[a->first];
    a->first = (a->first + 1) % WAITING_MAX;
    a->n--;
    return true;
}
