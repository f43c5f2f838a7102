#include "api/server/waiting_probe.h"

#include "api/server/dispatch_parts.h"
#include "api/server/waiting.h"
#include "scheduler/assign/asks.h"
#include "scheduler/assign/claims.h"
#include "scheduler/commit/committer.h"
#include "scheduler/lifecycle/gangs.h"

#define CLAIMS_QUEUED_MAX 1024 /* in the committer, when waiting claims are tried again */

/* How many waiting runners to retry: no more than the committer has room for. If the query fails,
 * all of them: each then gets the error and answers 503. */
static size_t probe_claims(const struct dispatch *d)
{
    int64_t n = 0;
    struct committer_figures f;
    if (claims_pending(d->store, d->suggester, &n, NULL) < 0)
        return SIZE_MAX;
    committer_figures_get(d->committer, &f);
    int64_t room = f.queued < CLAIMS_QUEUED_MAX ? CLAIMS_QUEUED_MAX - f.queued : 0;
    return (size_t)(n < room ? n : room);
}

/* How many clients that wait for each of these sweeps to retry: all of them, or none. */
static void probe_asks(const struct dispatch *d, const int64_t *sweeps, size_t n, size_t *ret)
{
    bool worth[WAITING_KEYS_MAX] = {false};
    bool is_known = asks_pending(d->store, d->suggester, sweeps, n, worth, NULL) == AS_OK;
    for (size_t i = 0; i < n; i++)
        ret[i] = !is_known || worth[i] ? SIZE_MAX : 0;
}

/* The same for requests that wait for the next world of a gang. */
static void probe_worlds(const struct dispatch *d, const int64_t *keys, size_t n, size_t *ret)
{
    bool changed[WAITING_KEYS_MAX] = {false};
    bool is_known = gang_changed(d->store, keys, n, changed, NULL) == AS_OK;
    for (size_t i = 0; i < n; i++)
        ret[i] = !is_known || changed[i] ? SIZE_MAX : 0;
}

void waiting_probe(void *ctx, const int64_t *keys, size_t n, size_t *ret)
{
    const struct dispatch *d = ctx;
    int64_t sweeps[WAITING_KEYS_MAX], worlds[WAITING_KEYS_MAX];
    size_t of_sweeps[WAITING_KEYS_MAX] = {0}, of_worlds[WAITING_KEYS_MAX] = {0};
    size_t n_sweeps = 0, n_worlds = 0, s = 0, w = 0;
    for (size_t i = 0; i < n; i++) {
        if (gang_is_wait_key(keys[i]))
            worlds[n_worlds++] = keys[i];
        else if (keys[i] != WAITING_CLAIMS)
            sweeps[n_sweeps++] = keys[i];
    }
    if (n_sweeps)
        probe_asks(d, sweeps, n_sweeps, of_sweeps);
    if (n_worlds)
        probe_worlds(d, worlds, n_worlds, of_worlds);
    for (size_t i = 0; i < n; i++)
        ret[i] = keys[i] == WAITING_CLAIMS   ? probe_claims(d)
                 : gang_is_wait_key(keys[i]) ? of_worlds[w++]
                                             : of_sweeps[s++];
}
