/* A sweep whose latest results are in no bound gets one of them all between two scheduled counts,
 * once it has ended or no result has come for a moment. While results come, nothing is computed
 * between the counts.
 *
 * A bound is computed outside of any transaction, from a history of its own that is cut at the
 * place where the trial completed that made it due. Then one short transaction holds the sweep's
 * row, keeps the bound if it is still the next one, and ends the sweep by the rule that all ends
 * share. Two servers may compute the same bound: the second one finds that it is kept.
 *
 * Only the computation has the lowest priority, in a thread of its own: a busy machine may leave
 * such a thread waiting for long between two round trips, and claims would wait for the row that it
 * holds. */
#include "scheduler/services/regret_checks.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/services/bound_share.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/regret_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/suggester/sweep_history.h"
#include "search/incumbent.h"
#include "search/regret_bound.h"

#define HISTORIES_MAX 8
#define LOWEST 19                            /* of a thread's priority */
#define HISTORY_BYTES_MAX ((size_t)32 << 20) /* a larger one is read again each time */
/* Bounds that may be late share a hundredth of a processor while results come, so that the first
 * thousands of trials of a fast sweep do not pay for them, and a thirtieth when they have paused.
 * With what is saved for small sweeps that pause at the same time, both are a twentieth of any ten
 * seconds, beside the bound that these begin with. */
#define BUSY_REST 99
#define QUIET_REST 29
#define QUIET_SAVED_NS (2 * NS_PER_S)
#define STATEMENTS_NS (2 * NS_PER_MS) /* of PostgreSQL for a bound, of 40 trials as measured */
/* As measured; what is expected while this server has computed none. */
#define FIRST_COST ((struct bound_cost){.completed = 64, .took_ns = 2 * NS_PER_MS})

/* A look at all sweeps that live takes 8 ms where there are 2,000: it is not repeated for so many
 * times as long as it took, and for 10 s at most, should the database have stood still. */
#define REST_OF_LOOK 99
#define REST_OF_LOOK_MAX_NS (10 * NS_PER_S)

/* A live sweep is quiet when as many trials had completed so long before. */
#define QUIET_NS (400 * NS_PER_MS)

/* A live sweep whose latest results are in no bound. */
struct behind {
    int64_t key, completed;
    int64_t since_ns; /* by clock_mono_ns() */
};

/* A sweep of which a bound may be computed in this round. */
struct candidate {
    struct regret_due due;
    bool is_quiet; /* it lives, and its results have paused */
};

struct kept_history {
    int64_t key;
    struct sweep_history *history; /* owned; NULL: the place is free */
    int64_t used;                  /* the round of its last use */
};

struct regret_checks {
    struct store *db;
    struct kept_history kept[HISTORIES_MAX];
    int64_t n_used;
    struct bound_cost costs[HISTORIES_MAX]; /* of bounds that may be late; end_ns 0: free */
    struct bound_cost latest;               /* of them all */
    struct behind behind[REGRET_DUE_MAX];   /* at the last look at sweeps that live */
    size_t n_behind;
    bool rests;
    bool saves;                     /* in this round a bound waits for the share of busy sweeps */
    struct bound_share busy, quiet; /* of bounds that may be late */
    int64_t look_at_ns;             /* when sweeps that live are looked at again */
};

struct regret_checks *regret_checks_create(struct store *db, bool rests)
{
    struct regret_checks *c = as_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    int64_t now = clock_mono_ns();
    c->db = db;
    c->rests = rests;
    c->latest = FIRST_COST;
    c->busy = (struct bound_share){.rest = BUSY_REST, .free_ns = now};
    c->quiet = (struct bound_share){
        .rest = QUIET_REST, .saved_ns = QUIET_SAVED_NS, .free_ns = now - QUIET_SAVED_NS};
    return c;
}

static void forget(struct kept_history *k)
{
    sweep_history_free(k->history);
    *k = (struct kept_history){0};
}

void regret_checks_free(struct regret_checks *c)
{
    for (size_t i = 0; c && i < HISTORIES_MAX; i++)
        forget(&c->kept[i]);
    free(c);
}

/* The place of the sweep's history, or the place of the one that was not used for longest. */
static struct kept_history *place_of(struct regret_checks *c, int64_t key)
{
    struct kept_history *oldest = &c->kept[0];
    for (size_t i = 0; i < HISTORIES_MAX; i++) {
        if (c->kept[i].history && c->kept[i].key == key)
            return &c->kept[i];
        if (c->kept[i].used < oldest->used)
            oldest = &c->kept[i];
    }
    forget(oldest);
    return oldest;
}

/* The history of a sweep as it is now. *ret is a view of c. */
static as_status load_history(struct regret_checks *c, int64_t key, struct kept_history **ret,
                              struct as_err *err)
{
    struct kept_history *k = place_of(c, key);
    if (!k->history)
        k->history = sweep_history_create(key);
    if (!k->history)
        return as_fail_nomem(err);
    k->key = key;
    k->used = ++c->n_used;
    as_status st = sweep_history_load(c->db, k->history, err);
    if (st != AS_OK)
        forget(k);
    *ret = k;
    return st;
}

static as_status read_next(struct store *db, int64_t key, struct regret_next *ret,
                           struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_regret_next(run.tx, key, ret, err);
    return run.status;
}

/* ret->seq stays 0 if so many trials have not completed. */
static as_status compute(struct sweep_history *h, int64_t completed, struct regret_check *ret,
                         struct as_err *err)
{
    struct regret_bound b;
    struct incumbent best;
    int64_t seq = 0;
    as_status st = sweep_history_completion(h, completed, &seq, err);
    if (st != AS_OK || seq == 0)
        return st;
    if ((st = sweep_history_cut(h, seq, err)) != AS_OK)
        return st;
    struct history view = sweep_history_view(h);
    if ((st = regret_bound_compute(sweep_history_spec(h), &view, &b, err)) != AS_OK ||
        (st = incumbent_find(sweep_history_spec(h), &view, &best, err)) != AS_OK)
        return st;
    *ret = (struct regret_check){.completed = completed,
                                 .seq = seq,
                                 .bound = b.is_known ? b.bound : NAN,
                                 .relative = b.is_known && isfinite(b.relative) ? b.relative : NAN,
                                 .enough = b.is_enough,
                                 .has_best = best.is_by_model,
                                 .best = (int64_t)best.number,
                                 .best_mean = best.mean,
                                 .best_deviation = best.deviation,
                                 .best_noise = best.noise};
    return AS_OK;
}

/* Whoever watches the sweep hears that there is a new bound. */
static as_status tell(struct tx *t, int64_t key, const struct regret_added *added,
                      struct as_err *err)
{
    const struct event_new e = {
        .type = "sweep.changed", .sweep_key = key, .sweep = added->sweep, .state = added->state};
    return store_event_add(t, &e, err);
}

/* The count after which the next bound is scheduled, once x is kept. */
static int64_t next_due(const struct regret_check *x, int64_t due)
{
    return x->completed < due ? due : (int64_t)regret_bound_next((size_t)x->completed);
}

/* A sweep without a limit is held by three statements only. */
static as_status keep(struct tx *t, struct arena *a, int64_t key, int64_t due,
                      const struct regret_check *x, struct regret_report *ret, struct as_err *err)
{
    struct regret_added added;
    bool has_ended = false;
    int64_t next = next_due(x, due);
    *ret = (struct regret_report){0};
    as_status st = store_regret_add(t, a, key, due, x, next, &added, err);
    if (st == AS_OK && added.is_kept)
        st = tell(t, key, &added, err);
    if (st == AS_OK && added.is_kept && added.may_end)
        st = sweep_settle(t, a, key, &has_ended, err);
    if (st == AS_OK)
        *ret = (struct regret_report){.kept = added.is_kept, .sweeps_ended = has_ended};
    return st;
}

/* A bound that is being computed. */
struct computation {
    struct regret_checks *c;
    int64_t key, completed;
    struct regret_check ret;
    int64_t took_ns; /* of a processor */
    as_status status;
    struct as_err err;
};

/* Processor time of this thread. */
static int64_t used_ns(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void *run_computation(void *arg)
{
    struct computation *x = arg;
    struct kept_history *k = NULL;
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), LOWEST); /* Linux: of this thread alone */
    x->status = load_history(x->c, x->key, &k, &x->err);
    if (x->status == AS_OK) {
        x->status = compute(k->history, x->completed, &x->ret, &x->err);
        if (sweep_history_bytes(k->history) > HISTORY_BYTES_MAX)
            forget(k);
    }
    x->took_ns = used_ns();
    return NULL;
}

static as_status compute_apart(struct regret_checks *c, int64_t key, int64_t completed,
                               struct regret_check *ret, int64_t *ret_took_ns, struct as_err *err)
{
    struct computation x = {.c = c, .key = key, .completed = completed};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_computation, &x) != 0)
        return as_fail(err, AS_E_NOMEM, "cannot start a thread for the bound");
    (void)pthread_join(thread, NULL);
    *ret_took_ns = x.took_ns;
    if (x.status != AS_OK)
        return as_fail_at(err, x.status, x.err.pointer, "%s", x.err.msg);
    *ret = x.ret;
    return AS_OK;
}

/* May a sweep leave out the bounds that it is late with? */
static bool may_leave_out(bool may_end, int64_t completed)
{
    return !may_end && completed > REGRET_BOUND_EACH;
}

/* May the bound of this sweep wait? */
static bool may_be_late(const struct regret_due *due)
{
    return !due->has_ended && (due->is_between || !due->may_end);
}

static struct bound_share *share_of(struct regret_checks *c, const struct candidate *x)
{
    return x->is_quiet ? &c->quiet : &c->busy;
}

/* The cost of the sweep's latest bound, or the place of the oldest one. */
static struct bound_cost *cost_of(struct regret_checks *c, int64_t key)
{
    struct bound_cost *oldest = &c->costs[0];
    for (size_t i = 0; i < HISTORIES_MAX; i++) {
        if (c->costs[i].key == key)
            return &c->costs[i];
        if (c->costs[i].end_ns < oldest->end_ns)
            oldest = &c->costs[i];
    }
    return oldest;
}

/* After a bound that may be late. */
static void spend(struct regret_checks *c, const struct candidate *x, int64_t took_ns)
{
    int64_t now = clock_mono_ns();
    bound_share_spend(share_of(c, x), took_ns + STATEMENTS_NS, now);
    c->latest = (struct bound_cost){x->due.key, x->due.completed, took_ns, now};
    *cost_of(c, x->due.key) = c->latest;
}

/* The share of busy sweeps is saved up for the one that is most behind, also where bounds of those
 * after it cost less: all of them would come before it for as long as it is busy. A bound of a
 * sweep that has paused waits for no dearer one. */
static bool must_wait(struct regret_checks *c, const struct candidate *x)
{
    const struct bound_cost *last = cost_of(c, x->due.key);
    if (!c->rests)
        return false;
    if (last->key != x->due.key)
        last = &c->latest;
    int64_t expected_ns = bound_cost_expected(last, x->due.completed) + STATEMENTS_NS;
    bool waits = (!x->is_quiet && c->saves) ||
                 !bound_share_covers(share_of(c, x), expected_ns, clock_mono_ns());
    c->saves = c->saves || (waits && !x->is_quiet);
    return waits;
}

/* The count of completed trials of the bound that comes next; 0: none does now. */
static int64_t count_of_next(const struct regret_next *next, bool is_between)
{
    if (next->due == 0 || (next->completed < next->due && !is_between))
        return 0;
    if (next->completed < next->due)
        return next->completed;
    int64_t latest = (int64_t)regret_bound_latest((size_t)next->completed);
    bool skips = may_leave_out(next->may_end, next->completed) && latest > next->due;
    return skips ? latest : next->due;
}

/* The next bound of one sweep. *ret_more: it was kept, and is not of all results. */
static as_status check_next(struct regret_checks *c, struct arena *a,
                            const struct candidate *candidate, struct regret_report *ret,
                            bool *ret_more, struct as_err *err)
{
    const struct regret_due *due = &candidate->due;
    *ret_more = false;
    struct regret_check x = {0};
    struct regret_report one = {0};
    struct regret_next next = {0};
    int64_t took_ns = 0;
    if (may_be_late(due) && must_wait(c, candidate))
        return AS_OK;
    as_status st = read_next(c->db, due->key, &next, err);
    int64_t count = count_of_next(&next, due->is_between || candidate->is_quiet);
    if (st != AS_OK || count == 0)
        return st;
    st = compute_apart(c, due->key, count, &x, &took_ns, err);
    if (may_be_late(due))
        spend(c, candidate, took_ns);
    if (st != AS_OK || x.seq == 0)
        return st;
    struct tx_run run = tx_run_start(c->db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = keep(run.tx, a, due->key, next.due, &x, &one, err);
    if (run.status != AS_OK)
        return run.status;
    ret->kept += one.kept;
    ret->sweeps_ended += one.sweeps_ended;
    *ret_more = one.kept && count < next.completed;
    return AS_OK;
}

/* The next bound of one sweep; of one that has paused also those after it, up to that of all
 * results, as far as there is rest for them: the next look at sweeps that live may be far. */
static as_status check_sweep(struct regret_checks *c, struct arena *a, const atomic_bool *stopping,
                             const struct candidate *x, struct regret_report *ret,
                             struct as_err *err)
{
    bool more = false;
    as_status st;
    do {
        st = check_next(c, a, x, ret, &more, err);
    } while (st == AS_OK && more && x->is_quiet && !(stopping && atomic_load(stopping)));
    return st;
}

static const struct behind *behind_before(const struct regret_checks *c,
                                          const struct regret_due *due)
{
    for (size_t i = 0; i < c->n_behind; i++)
        if (c->behind[i].key == due->key && c->behind[i].completed == due->completed)
            return &c->behind[i];
    return NULL;
}

/* Of sweeps that live: those whose bound may come now. Notes since when each has as many trials. */
static void wait_for_quiet(struct regret_checks *c, const struct regret_due *due, size_t n,
                           struct candidate *ret, size_t *ret_n)
{
    struct behind behind[REGRET_DUE_MAX];
    int64_t now = clock_mono_ns();
    *ret_n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct behind *before = behind_before(c, &due[i]);
        behind[i] = before ? *before : (struct behind){due[i].key, due[i].completed, now};
        bool is_quiet = before && now - before->since_ns >= (c->rests ? QUIET_NS : 0);
        if (!due[i].is_between || is_quiet)
            ret[(*ret_n)++] = (struct candidate){due[i], is_quiet};
    }
    memcpy(c->behind, behind, n * sizeof *behind);
    c->n_behind = n;
}

/* At most REGRET_DUE_MAX. */
static as_status look_at_live(struct regret_checks *c, struct arena *a, struct candidate *ret,
                              size_t *ret_n, struct as_err *err)
{
    int64_t begin_ns = clock_mono_ns();
    struct regret_due *due = NULL;
    size_t n = 0;
    if (c->rests && begin_ns < c->look_at_ns)
        return AS_OK;
    struct tx_run run = tx_run_start(c->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_regret_due(run.tx, a, (int64_t)regret_bound_next(0), &due, &n, err);
    if (run.status != AS_OK)
        return run.status;
    int64_t end_ns = clock_mono_ns();
    int64_t rest_ns = REST_OF_LOOK * (end_ns - begin_ns);
    c->look_at_ns = end_ns + (rest_ns < REST_OF_LOOK_MAX_NS ? rest_ns : REST_OF_LOOK_MAX_NS);
    wait_for_quiet(c, due, n, ret, ret_n);
    return AS_OK;
}

/* Leaves those in `due` of which a bound is left to compute. */
static as_status close_over(struct regret_checks *c, struct regret_due *due, size_t *n,
                            struct as_err *err)
{
    int64_t over[REGRET_DUE_MAX];
    size_t n_over = 0, n_left = 0;
    for (size_t i = 0; i < *n; i++)
        if (due[i].is_over)
            over[n_over++] = due[i].key;
        else
            due[n_left++] = due[i];
    *n = n_left;
    if (n_over == 0)
        return AS_OK;
    struct tx_run run = tx_run_start(c->db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = store_regret_close(run.tx, (int64_t)regret_bound_next(0), over, n_over, err);
    return run.status;
}

static as_status look_at_ended(struct regret_checks *c, struct arena *a, struct regret_due **ret,
                               size_t *n, struct as_err *err)
{
    struct tx_run run = tx_run_start(c->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_regret_ended(run.tx, a, (int64_t)regret_bound_next(0), ret, n, err);
    return run.status == AS_OK ? close_over(c, *ret, n, err) : run.status;
}

/* What is due: sweeps that have a limit, those that have ended, then the others. */
static as_status look(struct regret_checks *c, struct arena *a, struct candidate *ret, size_t *n,
                      struct as_err *err)
{
    struct regret_due *ended = NULL;
    struct candidate live[REGRET_DUE_MAX];
    size_t n_ended = 0, n_live = 0, i = 0;
    as_status st = look_at_ended(c, a, &ended, &n_ended, err);
    if (st == AS_OK)
        st = look_at_live(c, a, live, &n_live, err);
    if (st != AS_OK)
        return st;
    *n = 0;
    for (; i < n_live && live[i].due.may_end; i++)
        ret[(*n)++] = live[i];
    for (size_t j = 0; j < n_ended; j++)
        ret[(*n)++] = (struct candidate){.due = ended[j]};
    for (; i < n_live; i++)
        ret[(*n)++] = live[i];
    return AS_OK;
}

as_status regret_checks_round(struct regret_checks *c, const atomic_bool *stopping,
                              struct regret_report *ret, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct candidate due[2 * REGRET_DUE_MAX];
    size_t n = 0;
    *ret = (struct regret_report){0};
    c->saves = false;
    as_status st = look(c, &a, due, &n, err);
    for (size_t i = 0; i < n && st != AS_E_UNAVAILABLE; i++) {
        struct as_err why = {0};
        if (stopping && atomic_load(stopping))
            break;
        as_status one = check_sweep(c, &a, stopping, &due[i], ret, &why);
        if (one == AS_OK || one == AS_E_NOT_FOUND || (st != AS_OK && one != AS_E_UNAVAILABLE))
            continue; /* AS_E_NOT_FOUND: it was deleted */
        st = as_fail_at(err, one, why.pointer, "%s", why.msg);
    }
    return st;
}

as_status regret_checks_list(struct store *db, struct arena *a, const char *id,
                             struct regret_check_list *ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run)) {
        int64_t key = 0;
        run.status = store_sweep_key(run.tx, id, &key, err);
        if (run.status == AS_OK)
            run.status = store_regret_list(run.tx, a, key, ret, err);
    }
    return run.status;
}
