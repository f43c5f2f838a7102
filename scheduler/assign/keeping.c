#include "scheduler/assign/keeping.h"

#include "base/json.h"
#include "scheduler/sweep/fork_fields.h"
#include "scheduler/sweep/stored_doc.h"

as_status keeping_fill(struct arena *a, const json_t *document, struct claimed_row *row,
                       struct as_err *err)
{
    AS_AUTO(fork_rule_done) struct fork_rule rule = {0};
    as_status st = fork_rule_read(document, &rule, err);
    if (st != AS_OK)
        return stored_doc_failed(st, err);
    row->keep_every = rule.every;
    row->keep_until = rule.until;
    if (!rule.may_differ)
        return AS_OK;
    AS_AUTO(as_freep) char *text = json_format(rule.may_differ);
    row->may_differ = text ? arena_strdup(a, text) : NULL;
    return row->may_differ ? AS_OK : as_fail_nomem(err);
}
