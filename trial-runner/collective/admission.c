#include "trial-runner/collective/admission.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

uint64_t admission_origin(const struct sockaddr_storage *from)
{
    uint64_t first = 0;
    if (from->ss_family == AF_INET)
        return UINT64_C(1) << 32 | ((const struct sockaddr_in *)from)->sin_addr.s_addr;
    if (from->ss_family == AF_INET6)
        memcpy(&first, &((const struct sockaddr_in6 *)from)->sin6_addr, sizeof first);
    return first;
}

/* By origin; of one origin the connections first, by their age. */
static int compare(const void *a, const void *b)
{
    const struct admission_entry *x = a, *y = b;
    if (x->origin != y->origin)
        return x->origin < y->origin ? -1 : 1;
    if (x->is_expected != y->is_expected)
        return x->is_expected - y->is_expected;
    return (x->since_ns > y->since_ns) - (x->since_ns < y->since_ns);
}

size_t admission_victim(struct admission_entry *entries, size_t n)
{
    const struct admission_entry *victim = NULL;
    int64_t most = 0;
    qsort(entries, n, sizeof *entries, compare);
    for (size_t i = 0; i < n;) {
        const struct admission_entry *first = &entries[i];
        int64_t beyond = 0;
        for (; i < n && entries[i].origin == first->origin; i++)
            beyond += entries[i].is_expected ? -1 : 1;
        if (!first->is_expected && (!victim || beyond > most)) {
            victim = first;
            most = beyond;
        }
    }
    return victim->place;
}
