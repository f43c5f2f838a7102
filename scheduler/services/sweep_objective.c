#include "scheduler/services/sweep_objective_priv.h"

#include "base/mem.h"
#include "base/str.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/sweep/stored_doc.h"

as_status sweep_head_find(struct store *db, struct arena *a, const char *id, int64_t *ret_key,
                          struct history_head *ret, struct as_err *err)
{
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run)) {
        run.status = store_sweep_key(run.tx, id, ret_key, err);
        if (run.status == AS_OK)
            run.status = store_history_head(run.tx, a, *ret_key, true, ret, err);
    }
    return run.status;
}

static as_status no_objective(const struct sweep_doc *doc, const char *metric, struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    for (size_t i = 0; i < doc->n_objectives; i++)
        str_printf(&names, "%s%s", i ? ", " : "", doc->objectives[i].name);
    return as_fail(err, AS_E_INVAL,
                   "parameter metric is '%.40s', expected a metric of the sweep: %s", metric,
                   str_cstr(&names));
}

as_status sweep_objective_find(struct store *db, struct arena *a, const char *id,
                               const char *metric, struct sweep_doc **ret_doc,
                               struct sweep_objective_place *ret, struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    struct history_head head = {0};
    struct sweep_objective_place place = {0};
    as_status st = sweep_head_find(db, a, id, &place.key, &head, err);
    if (st == AS_OK)
        st = stored_doc_read(head.document, NULL, &doc, err);
    if (st != AS_OK)
        return st;
    place.finish_seq = head.finish_seq;
    while (metric && place.objective < doc->n_objectives &&
           !as_streq(doc->objectives[place.objective].name, metric))
        place.objective++;
    if (place.objective == doc->n_objectives)
        return no_objective(doc, metric, err);
    place.metric = arena_strdup(a, doc->objectives[place.objective].name);
    if (!place.metric)
        return as_fail_nomem(err);
    *ret = place;
    if (ret_doc)
        *ret_doc = as_steal(doc);
    return AS_OK;
}
