/* Bagging is a sweep like any other: a grid over the number of the bootstrap sample, in one group. So
 * its trials are claimed, checkpointed, retried and shown as others are, and its ensemble is measured as
 * others are. Members of a mean of all are not selected, so that figure has no bias of selection. */
#include "cli/commands/bagging.h"

#include <stdio.h>

#include "base/json.h"
#include "cli/commands/follow_up.h"

/* Trials of several ranks do not share a process. */
static int set_resources(json_t *doc, size_t samples)
{
    json_t *resources = json_object_get(doc, "resources");
    json_int_t ranks = json_integer_value(json_object_get(resources, "ranks"));
    if (ranks > 1 || samples == 1)
        return 0;
    if (!json_is_object(resources))
        return json_object_set_new(doc, "resources",
                                   json_pack("{s:I}", "group", (json_int_t)samples));
    return json_object_set_new(resources, "group", json_integer((json_int_t)samples));
}

as_status bagging_document(const json_t *sweep, size_t samples, json_t **ret, struct as_err *err)
{
    char what[64];
    JSON_AUTO doc = NULL;
    (void)snprintf(what, sizeof what, "on %zu bootstrap samples", samples);
    as_status st = follow_up_document(sweep, "-bagging", what, &doc, err);
    if (st != AS_OK)
        return st;
    json_t *train = json_object_get(json_object_get(doc, "trial"), "train");
    int bad = follow_up_search(doc, train, "resample", "resample_of_bagging", 1, samples);
    bad |= json_object_set_new(
        doc, "ensemble", json_pack("{s:s, s:I}", "method", "average", "size", (json_int_t)samples));
    bad |= set_resources(doc, samples);
    if (bad)
        return as_fail_nomem(err);
    *ret = as_steal(doc);
    return AS_OK;
}
