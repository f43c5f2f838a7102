/* The variables of several launchers side by side: programs read those that they know. A node is a
 * runner in all of them, because a runner's ranks see its GPUs together (decision 7008). */
#include "trial-runner/rank/rank_env.h"

#include <stdio.h>
#include <string.h>

struct place {
    int64_t rank, local_rank, local_size, group_rank, groups;
    int64_t cross_rank, cross_size; /* Horovod's: its runner among those that have its local rank */
};

static bool same_runner(const struct rank_world *w, size_t a, size_t b)
{
    return strcmp(w->members[a].runner, w->members[b].runner) == 0;
}

static int64_t local_rank(const struct rank_world *w, size_t rank)
{
    int64_t n = 0;
    for (size_t i = 0; i < rank; i++)
        n += same_runner(w, i, rank);
    return n;
}

static struct place find_place(const struct rank_world *w, size_t rank)
{
    struct place p = {.rank = (int64_t)rank};
    for (size_t i = 0; i < w->n; i++) {
        bool first = true; /* of its runner */
        for (size_t k = 0; k < i && first; k++)
            first = !same_runner(w, k, i);
        if (same_runner(w, i, rank)) {
            p.group_rank = first ? p.groups : p.group_rank;
            p.local_size++;
        }
        p.groups += first;
    }
    p.local_rank = local_rank(w, rank);
    for (size_t i = 0; i < w->n; i++) {
        bool across = local_rank(w, i) == p.local_rank;
        p.cross_rank += across && i < rank;
        p.cross_size += across;
    }
    return p;
}

static as_status set_number(struct child_env *e, const char *name, int64_t v, struct as_err *err)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)v);
    return child_env_set(e, name, text, err);
}

struct numbered {
    const char *name;
    int64_t value;
};

static as_status set_numbers(struct child_env *e, const struct numbered *list, size_t n,
                             struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < n; i++)
        st = set_number(e, list[i].name, list[i].value, err);
    return st;
}

static as_status set_unless_there(struct child_env *e, const char *name, const char *text,
                                  struct as_err *err)
{
    return child_env_get(e, name) ? AS_OK : child_env_set(e, name, text, err);
}

/* Where rank 0's runner serves what horovodrun serves (rendezvous.h). Its processes know their
 * machine by HOROVOD_HOSTNAME: here it is the runner, as for LOCAL_RANK. */
static as_status set_rendezvous(struct child_env *e, const struct rank_world *w, size_t rank,
                                struct as_err *err)
{
    const struct gang_member *first = &w->members[0];
    const char *meet = strstr(first->endpoint, RANK_ENV_MEET);
    as_status st;
    if (!meet)
        return AS_OK;
    if ((st = set_unless_there(e, "HOROVOD_CONTROLLER", "gloo", err)) < 0 ||
        (st = set_unless_there(e, "HOROVOD_CPU_OPERATIONS", "gloo", err)) < 0 ||
        (st = set_unless_there(e, "HOROVOD_HOSTNAME", w->members[rank].runner, err)) < 0 ||
        (st = child_env_set(e, "HOROVOD_GLOO_RENDEZVOUS_ADDR", first->address, err)) < 0)
        return st;
    return child_env_set(e, "HOROVOD_GLOO_RENDEZVOUS_PORT", meet + strlen(RANK_ENV_MEET), err);
}

/* The ranks that `horovodrun` would set. */
static as_status set_horovod(struct child_env *e, const struct rank_world *w, const struct place *p,
                             int64_t n, struct as_err *err)
{
    const struct numbered numbers[] = {
        {"HOROVOD_RANK", p->rank},
        {"HOROVOD_SIZE", n},
        {"HOROVOD_LOCAL_RANK", p->local_rank},
        {"HOROVOD_LOCAL_SIZE", p->local_size},
        {"HOROVOD_CROSS_RANK", p->cross_rank},
        {"HOROVOD_CROSS_SIZE", p->cross_size},
    };
    as_status st = set_numbers(e, numbers, AS_ARRAY_LEN(numbers), err);
    return st < 0 ? st : set_rendezvous(e, w, (size_t)p->rank, err);
}

as_status rank_env_set(struct child_env *e, const struct rank_world *w, const struct attempt_id *id,
                       const char *hostfile, bool launched, struct as_err *err)
{
    int64_t rank = rank_world_rank(w, id->seat), n = (int64_t)w->n;
    AS_AUTO(str_done) struct str run = {0};
    as_status st;
    if (rank < 0)
        return as_fail(err, AS_E_INVAL, "seat %lld is not a member of the gang",
                       (long long)id->seat);
    if (!*w->members[0].address || w->members[0].port == 0)
        return as_fail(err, AS_E_INVAL, "rank 0 of the gang has no address and port");
    struct place p = find_place(w, (size_t)rank);
    const struct numbered numbers[] = {
        {"RANK", rank},
        {"LOCAL_RANK", p.local_rank},
        {"WORLD_SIZE", n},
        {"LOCAL_WORLD_SIZE", p.local_size},
        {"GROUP_RANK", p.group_rank},
        {"GROUP_WORLD_SIZE", p.groups},
        {"ROLE_RANK", rank},
        {"ROLE_WORLD_SIZE", n},
        {"MASTER_PORT", w->members[0].port},
        {"TORCHELASTIC_RESTART_COUNT", w->restarts},
        {"TORCHELASTIC_MAX_RESTARTS", w->max_restarts},
        {"ASSAY_RANK", rank},
        {"ASSAY_RANKS", n},
    };
    str_printf(&run, "%s/%lld.%lld", id->sweep, (long long)id->number, (long long)id->attempt);
    if ((st = str_check(&run, err)) < 0 ||
        (st = set_numbers(e, numbers, AS_ARRAY_LEN(numbers), err)) < 0 ||
        (!launched && (st = set_horovod(e, w, &p, n, err)) < 0) ||
        (st = child_env_set(e, "ROLE_NAME", "default", err)) < 0 ||
        (st = child_env_set(e, "MASTER_ADDR", w->members[0].address, err)) < 0 ||
        (st = child_env_set(e, "TORCHELASTIC_RUN_ID", run.s, err)) < 0)
        return st;
    return child_env_set(e, "ASSAY_HOSTFILE", hostfile, err);
}

static const char *host_of(const struct gang_member *m)
{
    return *m->host ? m->host : m->address;
}

void rank_env_hostfile(const struct rank_world *w, struct str *ret)
{
    for (size_t i = 0; i < w->n; i++) {
        size_t slots = 0;
        bool first = true;
        for (size_t k = 0; k < w->n; k++)
            if (strcmp(host_of(&w->members[k]), host_of(&w->members[i])) == 0) {
                first = first && k >= i;
                slots++;
            }
        if (first)
            str_printf(ret, "%s slots=%zu\n", host_of(&w->members[i]), slots);
    }
}
