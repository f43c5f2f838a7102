/* The list of attempts and groups that this runner holds, and what each of them takes: slots and
 * GPUs.
 *
 * A slot and its GPUs become free when the process has ended (slot_free), before the attempt leaves
 * the list: its result is still on its way to the server then. So an attempt is in one of two
 * counts, taken or ending (agent_slots_free_locked), and the heartbeat keeps its lease in both.
 *
 * An attempt is added in one critical section (hold_locked). If a step fails after its group was
 * created, the group has no member, and main drops it. */
#include "trial-runner/agent/agent.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "trial-runner/delivery/delivery.h"
#include "trial-runner/delivery/prepare.h"
#include "trial-runner/attempt/directive.h"
#include "trial-runner/attempt/identity.h"
#include "trial-runner/rank/rank.h"

as_status agent_init(struct agent *a, const struct options *o, struct as_err *err)
{
    pthread_mutex_init(&a->lock, NULL);
    clock_cond_init(&a->changed);
    clock_cond_init(&a->room);
    a->options = o;
    a->heartbeat_ms = 10000;
    a->lease_ms = 60000;
    a->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (a->wake_fd < 0)
        return as_fail(err, AS_E_IO, "eventfd: %s", strerror(errno));
    as_status st = identity_client(o, &a->claim_client, err);
    if (st < 0 || (st = identity_client(o, &a->beat_client, err)) < 0)
        return st;
    if (folder_watch_create(&a->watch, err) < 0)
        log_write(LOG_WARN, "report files are looked at, because writes to them are not heard",
                  "error=\"%s\"", err->msg);
    return sender_create(o, &a->sender, err);
}

void agent_done(struct agent *a)
{
    while (a->n)
        agent_release(a, a->attempts[a->n - 1]);
    agent_drop_groups(a);
    free(a->attempts);
    free(a->groups);
    for (size_t i = 0; i < GPUS_MAX; i++)
        free(a->gpu_fault[i]);
    group_sizes_done(&a->sizes);
    sender_free(a->sender);
    folder_watch_free(a->watch);
    client_free(a->claim_client);
    client_free(a->beat_client);
    if (a->wake_fd > 0)
        close(a->wake_fd);
    pthread_cond_destroy(&a->changed);
    pthread_cond_destroy(&a->room);
    pthread_mutex_destroy(&a->lock);
}

void agent_give_up(struct agent *a)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n; i++)
        attempt_give_up(a->attempts[i]);
    pthread_mutex_unlock(&a->lock);
    if (a->sender) /* agent_init() may have failed */
        sender_wake(a->sender);
}

void agent_wake(struct agent *a)
{
    uint64_t one = 1;
    ssize_t n = write(a->wake_fd, &one, sizeof one); /* EAGAIN: it is readable already */
    (void)n;
}

void agent_changed_locked(struct agent *a)
{
    pthread_cond_broadcast(&a->changed);
    pthread_cond_signal(&a->room);
}

void agent_fail(struct agent *a, const struct as_err *err)
{
    pthread_mutex_lock(&a->lock);
    if (a->fatal.code == AS_OK)
        a->fatal = *err;
    agent_changed_locked(a);
    pthread_mutex_unlock(&a->lock);
    agent_wake(a);
}

bool agent_wait_locked(struct agent *a, int64_t ms)
{
    return clock_cond_wait(&a->changed, &a->lock, clock_mono_ns() + ms * NS_PER_MS);
}

static bool is_held_locked(const struct agent *a, const struct attempt_id *id)
{
    for (size_t i = 0; i < a->n; i++)
        if (attempt_is(a->attempts[i], id))
            return true;
    return false;
}

static bool is_usable_locked(const struct agent *a, size_t gpu)
{
    return !a->gpu_busy[gpu] && !a->gpu_fault[gpu];
}

int64_t agent_gpus_free_locked(const struct agent *a, int64_t *ret_least_bytes)
{
    int64_t n = 0, least = INT64_MAX;
    for (size_t i = 0; i < a->options->gpus.n; i++) {
        int64_t bytes = a->options->gpus.v[i].memory_bytes;
        if (!is_usable_locked(a, i))
            continue;
        n++;
        least = bytes < least ? bytes : least;
    }
    *ret_least_bytes = n > 0 ? least : 0;
    return n;
}

static void set_aside_locked(struct agent *a, size_t gpu, const char *reason)
{
    if (a->gpu_fault[gpu])
        return;
    a->gpu_fault[gpu] = as_strdup(reason);
    if (!a->gpu_fault[gpu]) {
        log_write(LOG_WARN, "out of memory: a broken GPU stays in use", "gpu=%s",
                  a->options->gpus.v[gpu].id);
        return;
    }
    a->faults++;
    log_write(LOG_WARN, "a GPU is set aside until this runner starts again", "gpu=%s reason=\"%s\"",
              a->options->gpus.v[gpu].id, reason);
}

static bool has_gpus(const bool taken[GPUS_MAX])
{
    bool any = false;
    for (size_t i = 0; i < GPUS_MAX; i++)
        any = any || taken[i];
    return any;
}

void agent_note_fault(struct agent *a, const bool taken[GPUS_MAX], const char *dir)
{
    AS_AUTO(str_done) struct str reason = {0};
    AS_AUTO(as_freep) char *path = file_join(dir, DEVICE_FAULT_NAME);
    bool all = false;
    if (!has_gpus(taken) || !path || !gpus_read_fault(path, &reason, &all))
        return;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->options->gpus.n; i++)
        if (all || taken[i])
            set_aside_locked(a, i, reason.s);
    agent_changed_locked(a);
    pthread_mutex_unlock(&a->lock);
}

json_t *agent_faults_json(struct agent *a)
{
    json_t *list = json_array();
    bool ok = list != NULL;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; ok && i < a->options->gpus.n; i++)
        if (a->gpu_fault[i])
            ok = json_array_append_new(list, json_pack("{s:s,s:s}", "gpu", a->options->gpus.v[i].id,
                                                       "reason", a->gpu_fault[i])) == 0;
    pthread_mutex_unlock(&a->lock);
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

/* Choose `want` free GPUs: mark them in `taken` and append their names to `list`. */
static as_status choose_gpus_locked(const struct agent *a, int64_t want, bool *taken,
                                    struct str *list, struct as_err *err)
{
    int64_t got = 0;
    for (size_t i = 0; i < a->options->gpus.n && got < want; i++) {
        if (!is_usable_locked(a, i))
            continue;
        taken[i] = true;
        str_printf(list, "%s%s", got ? "," : "", a->options->gpus.v[i].id);
        got++;
    }
    if (got < want)
        return as_fail(err, AS_E_EXHAUSTED, "the trial needs %lld GPUs, %lld are free",
                       (long long)want, (long long)got);
    return str_check(list, err);
}

int64_t agent_slots_free_locked(const struct agent *a)
{
    int64_t taken = 0, ending = 0, slots = a->options->slots;
    for (size_t i = 0; i < a->n_groups; i++)
        *(a->groups[i]->slot_free ? &ending : &taken) += 1;
    for (size_t i = 0; i < a->n; i++)
        if (!a->attempts[i]->group && !a->attempts[i]->hold.waits)
            *(a->attempts[i]->hold.slot_free ? &ending : &taken) += 1;
    return slots - taken - (ending > slots ? ending - slots : 0);
}

/* Hold cores for a trial that asks for some. If too few are free, it runs on any. */
static void take_cores(const struct agent *a, const struct claimed *c, struct core_hold *h)
{
    const struct options *o = a->options;
    if (c->cpus == 0 || o->no_affinity)
        return;
    if (!core_hold_take(h, &o->machine.cores, c->cpus))
        log_write(LOG_INFO, "a trial is not bound to cores: too few are free",
                  "trial=%s/%lld cpus=%lld", c->sweep, (long long)c->number, (long long)c->cpus);
}

/* Free these GPUs and clear `taken`. */
static void free_gpus_locked(struct agent *a, bool taken[GPUS_MAX])
{
    for (size_t i = 0; i < GPUS_MAX; i++) {
        a->gpu_busy[i] &= !taken[i];
        taken[i] = false;
    }
}

void agent_free_slots(struct agent *a)
{
    bool any = false;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n; i++) {
        struct attempt *t = a->attempts[i];
        if (t->hold.slot_free || attempt_phase_get(t) < ATTEMPT_ENDED)
            continue;
        t->hold.slot_free = any = true;
        t->hold.waits = false;
        free_gpus_locked(a, t->hold.gpu_taken);
        core_hold_done(&t->hold.cores);
    }
    for (size_t i = 0; i < a->n_groups; i++) {
        struct group_process *g = a->groups[i];
        if (g->slot_free || !g->over)
            continue;
        g->slot_free = any = true;
        free_gpus_locked(a, g->gpu_taken);
        core_hold_done(&g->cores);
    }
    ahead_hand_on_locked(a);
    if (any)
        pthread_cond_signal(&a->room);
    pthread_mutex_unlock(&a->lock);
}

void agent_free_slot_early(struct agent *a, struct attempt *t)
{
    if (t->rank || t->group || has_gpus(t->hold.gpu_taken))
        return;
    pthread_mutex_lock(&a->lock);
    t->hold.slot_free = true;
    core_hold_done(&t->hold.cores);
    ahead_note_locked(a, t);
    ahead_hand_on_locked(a);
    if (agent_slots_free_locked(a) > 0) {
        attempt_precedes(t, true);
        pthread_cond_signal(&a->room);
    }
    pthread_mutex_unlock(&a->lock);
}

struct group_process *agent_group_find_locked(const struct agent *a, const char *id)
{
    for (size_t i = 0; i < a->n_groups; i++)
        if (strcmp(a->groups[i]->id, id) == 0)
            return a->groups[i];
    return NULL;
}

struct group_process *agent_group_to_fill_locked(const struct agent *a)
{
    for (size_t i = 0; i < a->n_groups; i++)
        if (!a->groups[i]->closed && a->groups[i]->held < a->groups[i]->most_held)
            return a->groups[i];
    return NULL;
}

static as_status add_group_locked(struct agent *a, const struct claimed *c,
                                  struct group_process **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str gpus = {0};
    AS_AUTO(group_process_freep) struct group_process *g = NULL;
    bool taken[GPUS_MAX] = {false};
    as_status st = choose_gpus_locked(a, c->gpus, taken, &gpus, err);
    if (st < 0)
        return st;
    st = group_process_create(a->options, &c->group, str_cstr(&gpus), &g, err);
    if (st < 0)
        return st;
    st = as_reserve_one(&a->groups, a->n_groups, &a->cap_groups, sizeof *a->groups, err);
    if (st < 0)
        return st;
    memcpy(g->gpu_taken, taken, sizeof taken);
    take_cores(a, c, &g->cores);
    g->asked_for = group_sizes_next(&a->sizes, g->shape);
    for (size_t i = 0; i < GPUS_MAX; i++)
        a->gpu_busy[i] |= taken[i];
    *ret = a->groups[a->n_groups++] = as_steal(g);
    return AS_OK;
}

/* Find or create the group of a claimed attempt. *ret is NULL if it has none. */
static as_status join_locked(struct agent *a, const struct claimed *c, hold_kind kind,
                             struct group_process **ret, struct as_err *err)
{
    struct group_process *g = c->group.max_members ? agent_group_find_locked(a, c->group.id) : NULL;
    *ret = g;
    if (!c->group.max_members)
        return AS_OK;
    if (g ? g->closed || g->held >= (size_t)g->max_members : kind == HOLD_IN_GROUP)
        return as_fail(err, AS_E_EXHAUSTED, "its group takes no more trials");
    return g ? AS_OK : add_group_locked(a, c, ret, err);
}

/* Add an attempt to the list and start its delivery thread. Takes `attempt` on success only. */
static as_status enlist_locked(struct agent *a, struct attempt *attempt, struct as_err *err)
{
    as_status st = as_reserve_one(&a->attempts, a->n, &a->cap, sizeof *a->attempts, err);
    attempt->sender = a->sender;
    attempt->watch = a->watch;
    if (st < 0 || (st = delivery_start(attempt, err)) < 0)
        return st;
    a->attempts[a->n++] = attempt;
    if (attempt->group && ++attempt->group->held > attempt->group->most_held)
        attempt->group->most_held = attempt->group->held;
    for (size_t i = 0; i < GPUS_MAX; i++)
        a->gpu_busy[i] |= attempt->hold.gpu_taken[i];
    return AS_OK;
}

static as_status hold_locked(struct agent *a, struct claimed *c, hold_kind kind,
                             struct attempt **ret, struct as_err *err)
{
    struct group_process *group = NULL;
    AS_AUTO(str_done) struct str gpus = {0};
    AS_AUTO(attempt_freep) struct attempt *attempt = NULL;
    struct attempt_id id = claimed_id(c);
    AS_AUTO(core_hold_done) struct core_hold cores = {0};
    bool taken[GPUS_MAX] = {false};
    if (a->draining)
        return as_fail(err, AS_E_CONFLICT, "the runner is leaving");
    if (is_held_locked(a, &id))
        return as_fail(err, AS_E_CONFLICT, "held already");
    as_status st = join_locked(a, c, kind, &group, err);
    if (st < 0)
        return st;
    if (!group)
        st = choose_gpus_locked(a, c->gpus, taken, &gpus, err);
    if (st < 0)
        return st;
    if (!group)
        take_cores(a, c, &cores);
    st = attempt_create(a->options, &id, c, NULL, group ? group->gpus : str_cstr(&gpus), a->wake_fd,
                        &attempt, err);
    if (st == AS_OK && attempt->claimed.gang.ranks)
        st = rank_create(attempt, err);
    if (st < 0)
        return st;
    attempt->group = group;
    memcpy(attempt->hold.gpu_taken, taken, sizeof taken);
    attempt->hold.cores = cores;
    attempt->hold.waits = kind == HOLD_AHEAD && !group && agent_slots_free_locked(a) <= 0;
    attempt->hold.since_ns = clock_mono_ns();
    cores = (struct core_hold){0};
    const struct core_hold *held = group ? &group->cores : &attempt->hold.cores;
    attempt->launch.spec.cores = held->n > 0 ? &held->set : NULL;
    attempt->is_quick = prepare_is_quick(attempt);
    if ((st = enlist_locked(a, attempt, err)) == AS_OK)
        *ret = as_steal(attempt);
    return st;
}

as_status agent_hold(struct agent *a, struct claimed *claimed, hold_kind kind, struct as_err *err)
{
    struct attempt *attempt = NULL;
    pthread_mutex_lock(&a->lock);
    as_status st = hold_locked(a, claimed, kind, &attempt, err);
    pthread_mutex_unlock(&a->lock);
    if (st == AS_OK && attempt->is_quick) /* nobody frees it before */
        delivery_prepare(attempt);
    return st;
}

as_status agent_hold_result(struct agent *a, const struct attempt_id *id, struct trial_end *found,
                            struct as_err *err)
{
    AS_AUTO(attempt_freep) struct attempt *attempt = NULL;
    as_status st = attempt_create(a->options, id, NULL, found, "", a->wake_fd, &attempt, err);
    if (st < 0)
        return st;
    if (attempt->end.outcome == OUTCOME_NONE) /* the server is not told of it: it is lost */
        attempt_ask_stop(attempt, STOP_DROPPED);
    pthread_mutex_lock(&a->lock);
    if ((st = enlist_locked(a, attempt, err)) == AS_OK)
        attempt = NULL;
    pthread_mutex_unlock(&a->lock);
    return st;
}

void agent_release(struct agent *a, struct attempt *attempt)
{
    if (attempt->process.has_delivery)
        pthread_join(attempt->process.delivery, NULL);
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n; i++)
        if (a->attempts[i] == attempt) {
            a->attempts[i] = a->attempts[--a->n];
            break;
        }
    free_gpus_locked(a, attempt->hold.gpu_taken);
    if (attempt->group)
        attempt->group->held--;
    pthread_cond_signal(&a->room);
    pthread_mutex_unlock(&a->lock);
    attempt_free(attempt);
}

void agent_drop_groups(struct agent *a)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n_groups; i++) {
        struct group_process *g = a->groups[i];
        if (g->held > 0 || g->pid)
            continue;
        free_gpus_locked(a, g->gpu_taken);
        a->groups[i--] = a->groups[--a->n_groups];
        group_process_free(g);
        pthread_cond_signal(&a->room);
    }
    pthread_mutex_unlock(&a->lock);
}

static bool is_ending_locked(struct attempt *t)
{
    return t->hold.slot_free && (!t->group || t->group->slot_free);
}

typedef enum ref_kind { REFS_ALL, REFS_ENDED, REFS_ENDED_OR_SOON } ref_kind;

static json_t *list_refs(struct agent *a, ref_kind kind)
{
    bool all = kind == REFS_ALL;
    json_t *refs = json_array();
    int64_t now_ns = clock_mono_ns();
    bool ok = refs != NULL;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; ok && i < a->n; i++) {
        struct attempt *t = a->attempts[i];
        if (attempt_asked(t) == STOP_DROPPED || attempt_phase_get(t) == ATTEMPT_DELIVERED ||
            (!all && !is_ending_locked(t) && (kind == REFS_ENDED || !ahead_ends_soon_locked(a, t))))
            continue;
        if (!all)
            attempt_precedes(t, false);
        ok = json_array_append_new(refs, attempt_ref_new(t, all, now_ns)) == 0;
    }
    pthread_mutex_unlock(&a->lock);
    if (!ok) {
        json_decref(refs);
        refs = NULL;
    }
    return refs;
}

json_t *agent_refs(struct agent *a)
{
    return list_refs(a, REFS_ALL);
}

void agent_refs_heard(struct agent *a, const json_t *refs)
{
    size_t k;
    const json_t *ref;
    pthread_mutex_lock(&a->lock);
    json_array_foreach(refs, k, ref)
    {
        struct attempt_id id = attempt_id_of(ref);
        for (size_t i = 0; i < a->n; i++)
            if (attempt_is(a->attempts[i], &id))
                attempt_ref_heard(a->attempts[i], ref);
    }
    pthread_mutex_unlock(&a->lock);
}

void agent_say_again(struct agent *a)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n; i++)
        attempt_say_again(a->attempts[i]);
    pthread_mutex_unlock(&a->lock);
}

json_t *agent_ending_refs(struct agent *a, bool is_ahead)
{
    return list_refs(a, is_ahead ? REFS_ENDED_OR_SOON : REFS_ENDED);
}

void agent_tell_to_leave(struct agent *a)
{
    pthread_mutex_lock(&a->lock);
    a->told_to_leave = true;
    pthread_mutex_unlock(&a->lock);
    agent_wake(a);
}

void agent_direct(struct agent *a, const json_t *directives)
{
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n; i++)
        directives_take_one(a->attempts[i], directives);
    pthread_mutex_unlock(&a->lock);
}
