/* Reads what the claim's answer needs in the order of the trials, and keeps the sweep's document
 * and the last data set while they stay the same: trials of one sweep come one after another. A
 * data set that does not exist is no error of the claim; the runner reports it in the trial's
 * log. */
#include "scheduler/assign/claimed_priv.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/template.h"
#include "scheduler/assign/assignment_priv.h"
#include "scheduler/assign/keeping.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/sweep/doc_cache.h"

struct claim_reader {
    struct tx *t;
    struct arena *a;
    const struct group_limits *groups;
    int64_t sweep_key;           /* the sweep of the current rows */
    struct doc_ref doc;          /* its document */
    const char *trial;           /* the section `trial` of the document, in the arena */
    struct dataset_row *dataset; /* the last one that was read */
};

static void claim_reader_done(struct claim_reader *x)
{
    doc_ref_done(&x->doc);
}

/* Read the data set of that name, unless it was the last one that was read. */
static as_status read_dataset(struct claim_reader *x, const char *name, struct as_err *err)
{
    if (x->dataset && as_streq(x->dataset->name, name))
        return AS_OK;
    struct dataset_row *row = arena_alloc(x->a, 1, sizeof *row);
    if (!row)
        return as_fail_nomem(err);
    as_status st = store_dataset_get(x->t, x->a, name, false, row, err);
    if (st != AS_OK)
        return st;
    st = store_dataset_expected(x->t, x->a, x->sweep_key, row, err);
    if (st != AS_OK)
        return st;
    x->dataset = row;
    return AS_OK;
}

/* The data set that this trial's parameters name. A command has none. If the data set does not
 * exist, there is none either: the runner reports that in the trial's log, where people look. */
static as_status fill_dataset(struct claim_reader *x, const json_t *params, struct claimed_row *ret,
                              struct as_err *err)
{
    json_t *train = json_object_get(json_object_get(x->doc.tree, "trial"), "train");
    const char *text = json_string_value(json_object_get(train, "dataset"));
    if (!text)
        return AS_OK;
    AS_AUTO(as_freep) char *name = NULL;
    as_status st = template_apply_text(text, params, &name, err);
    if (st != AS_OK)
        return st;
    st = read_dataset(x, name, err);
    if (st == AS_OK)
        ret->dataset = x->dataset;
    return st == AS_E_NOT_FOUND ? AS_OK : st;
}

static as_status next_sweep(struct claim_reader *x, const struct attempt_claimed *c,
                            struct as_err *err)
{
    doc_ref_done(&x->doc);
    x->dataset = NULL;
    x->sweep_key = c->sweep_key;
    as_status st = doc_cache_read(store_docs(tx_store(x->t)), c->document, false, &x->doc, err);
    if (st != AS_OK)
        return st;
    x->trial = arena_strdup(x->a, x->doc.trial);
    return x->trial ? AS_OK : as_fail_nomem(err);
}

static as_status fill_claimed(struct claim_reader *x, const struct attempt_claimed *c,
                              struct claimed_row *ret, struct as_err *err)
{
    JSON_AUTO params = NULL;
    if (c->document) {
        as_status st = next_sweep(x, c, err);
        if (st != AS_OK)
            return st;
    }
    as_status st = json_parse(c->row.params, strlen(c->row.params), &params, err);
    if (st != AS_OK)
        return st;
    *ret = c->row;
    ret->sweep_key = c->sweep_key;
    ret->trial = x->trial;
    const struct group_rule rule = {c->max_group, c->group_given, c->row.gpus > 0};
    if (ret->group)
        ret->max_members = group_places(x->groups, rule, ret->shape, ret->bytes_per_member);
    st = inactive_names(x->a, x->doc.tree, params, &ret->inactive, &ret->n_inactive, err);
    if (st != AS_OK)
        return st;
    st = fill_dataset(x, params, ret, err);
    if (st == AS_OK)
        st = keeping_fill(x->a, x->doc.tree, ret, err);
    if (st != AS_OK || (ret->attempt <= 1 && !c->is_fork)) /* it has no files yet */
        return st;
    return store_file_list(x->t, x->a, c->sweep_key, ret->number, "checkpoint", &ret->files, err);
}

as_status claimed_read(struct tx *t, struct arena *a, const struct runner_id *runner,
                       const char *claim_id, const struct group_limits *groups,
                       struct claimed_row **ret, size_t *ret_n, struct as_err *err)
{
    AS_AUTO(claim_reader_done) struct claim_reader x = {.t = t, .a = a, .groups = groups};
    struct attempt_claimed *claimed = NULL;
    size_t n = 0;
    as_status st =
        store_attempt_claimed(t, a, runner->name, runner->epoch, claim_id, &claimed, &n, err);
    if (st != AS_OK)
        return st;
    struct claimed_row *rows = arena_alloc(a, n + 1, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        st = fill_claimed(&x, &claimed[i], &rows[i], err);
        if (st != AS_OK)
            return st;
    }
    *ret = rows;
    *ret_n = n;
    return AS_OK;
}
