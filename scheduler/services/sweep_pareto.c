/* The front of a sweep. */
#include "scheduler/services/sweep_pareto.h"

#include <string.h>

#include "base/json.h"
#include "scheduler/sweep/sweep_doc.h"
#include "scheduler/store/history_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"
#include "search/pareto/hypervolume.h"
#include "search/pareto/pareto.h"

struct pareto_arg {
    struct arena *a;
    const char *id;
    int64_t key;
    struct sweep_row sweep;
    struct pareto_row ret;
    int64_t *numbers; /* of the completed, feasible trials */
    double *values;   /* n x n_metrics */
    size_t n;
    size_t *front; /* indices into them */
    size_t n_front;
};

static as_status tx_sweep(struct tx *t, void *p, struct as_err *err)
{
    struct pareto_arg *arg = p;
    as_status st = store_sweep_key(t, arg->id, &arg->key, err);
    return st == AS_OK ? store_sweep_get(t, arg->a, arg->key, &arg->sweep, err) : st;
}

static as_status read_metrics(struct pareto_arg *arg, struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    JSON_AUTO tree = NULL;
    struct pareto_row *r = &arg->ret;
    as_status st = json_parse(arg->sweep.document, strlen(arg->sweep.document), &tree, err);
    if (st == AS_OK)
        st = sweep_doc_parse(tree, 0, &doc, err);
    if (st != AS_OK)
        return as_err_prefix(err, st == AS_E_NOMEM ? st : AS_E_INTERNAL,
                             "the stored document cannot be read");
    r->n_metrics = doc->n_objectives;
    r->metrics = arena_alloc(arg->a, r->n_metrics, sizeof *r->metrics);
    r->maximize = arena_alloc(arg->a, r->n_metrics, sizeof *r->maximize);
    r->reference = arena_alloc(arg->a, r->n_metrics, sizeof *r->reference);
    bool full = r->metrics && r->maximize && r->reference;
    for (size_t i = 0; i < r->n_metrics && full; i++) {
        r->metrics[i] = arena_strdup(arg->a, doc->objectives[i].name);
        r->maximize[i] = doc->objectives[i].maximize;
        full = r->metrics[i] != NULL;
    }
    return full ? AS_OK : as_fail_nomem(err);
}

static as_status tx_values(struct tx *t, void *p, struct as_err *err)
{
    struct pareto_arg *arg = p;
    return store_history_values(t, arg->a, arg->key, arg->ret.metrics, arg->ret.n_metrics,
                                &arg->numbers, &arg->values, &arg->n, err);
}

static as_status find_front(struct pareto_arg *arg, struct as_err *err)
{
    struct pareto_row *r = &arg->ret;
    arg->front = arena_alloc(arg->a, arg->n + 1, sizeof *arg->front);
    if (!arg->front)
        return as_fail_nomem(err);
    as_status st = gp_pareto_front(arg->values, arg->n, r->n_metrics, r->maximize, arg->front,
                                   &arg->n_front, err);
    if (st != AS_OK || arg->n_front == 0)
        return st;
    r->has_reference = true;
    gp_pareto_reference(arg->values, arg->n, r->n_metrics, r->maximize, arg->front, arg->n_front,
                        r->reference);
    return gp_hypervolume(arg->values, arg->n, r->n_metrics, r->maximize, r->reference,
                          &r->hypervolume, err);
}

static as_status tx_rows(struct tx *t, void *p, struct as_err *err)
{
    struct pareto_arg *arg = p;
    as_status st = AS_OK;
    arg->ret.n = arg->n_front;
    arg->ret.rows = arena_alloc(arg->a, arg->n_front + 1, sizeof *arg->ret.rows);
    if (!arg->ret.rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < arg->n_front && st == AS_OK; i++)
        st = store_trial_get(t, arg->a, arg->key, arg->numbers[arg->front[i]], &arg->ret.rows[i],
                             err);
    return st;
}

as_status sweep_pareto(struct store *db, struct arena *a, const char *id, struct pareto_row *ret,
                       struct as_err *err)
{
    struct pareto_arg arg = {.a = a, .id = id};
    as_status st = store_run(db, TX_READ, tx_sweep, &arg, err);
    if (st == AS_OK)
        st = read_metrics(&arg, err);
    if (st == AS_OK)
        st = store_run(db, TX_READ, tx_values, &arg, err);
    if (st == AS_OK)
        st = find_front(&arg, err);
    if (st == AS_OK)
        st = store_run(db, TX_READ, tx_rows, &arg, err);
    if (st == AS_OK)
        *ret = arg.ret;
    return st;
}
