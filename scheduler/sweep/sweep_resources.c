/* What the trials of a sweep need, and its place among other sweeps: the section `resources`, and
 * `priority`.
 *
 * Needs are for each trial; of a trial with several ranks, for each rank. `cpus` and `memory` of 0
 * mean that nothing was said: the trial takes a slot and no more. Canonical documents leave such
 * fields out, because a later version may have other means to find the needs of a trial. */
#include "scheduler/sweep/sweep_resources_priv.h"

#include <inttypes.h>

#include "base/str.h"

#define MAX_GPUS 64
#define RESOURCES_AT "/resources"

/* The ranks of a command are fixed, because it cannot be notified that their number has changed. */
static as_status check_ranks(const struct json_fields *doc, const struct sweep_doc *d,
                             struct as_err *err)
{
    if (d->ranks > 0 && d->min_ranks > d->ranks)
        return as_fail_at(err, AS_E_INVAL, "/resources/min_ranks",
                          "/resources/min_ranks: found %" PRId64
                          ", expected at most resources.ranks, which is %" PRId64,
                          d->min_ranks, d->ranks);
    if (d->ranks > 1 && d->stopping.method == STOP_PBT)
        return as_fail_at(err, AS_E_INVAL, "/resources/ranks",
                          "/resources/ranks: found %" PRId64
                          " with early_stopping.method pbt, whose trials have one process; leave "
                          "out one of them",
                          d->ranks);
    if (d->ranks > 1 && json_object_get(d->trial.environment, "container"))
        return as_fail_at(err, AS_E_INVAL, "/trial/container",
                          "/trial/container: not with resources.ranks above 1; let the command "
                          "start the containers");
    if (d->ranks == 0 || d->min_ranks == 0 || d->min_ranks == d->ranks ||
        d->trial.kind != TRIAL_COMMAND || sweep_trial_is_unclear(doc, d))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/resources/min_ranks",
                      "/resources/min_ranks: found %" PRId64 ", expected %" PRId64
                      ", as resources.ranks: the ranks of trial.command cannot change",
                      d->min_ranks, d->ranks);
}

/* One rank that was asked for adds up micro-batches in the order in which several ranks do, so that
 * 1, 2 and 3 ranks give the same bits. The plain trainer adds them one after another. Canonical
 * documents say `ranks: 1` for both; min_ranks distinguishes them. */
static bool is_lone_rank(const struct json_fields *doc, const struct sweep_doc *d)
{
    const json_t *j = json_object_get(doc->obj, "resources");
    bool is_sent = doc->faults != NULL;
    return d->ranks == 1 && d->trial.kind == TRIAL_TRAIN && d->group <= 1 &&
           (d->min_ranks == 1 || (is_sent && json_object_get(j, "ranks") &&
                                  json_object_get(d->trial.train, "micro_batch")));
}

/* What follows from the number of ranks, once it is known to be right. */
static void settle_ranks(const struct json_fields *doc, struct sweep_doc *d)
{
    d->ranks = d->ranks > 0 ? d->ranks : 1;
    d->is_gang = d->ranks > 1 || is_lone_rank(doc, d);
    if (d->min_ranks == 0)
        d->min_ranks = d->trial.kind == TRIAL_COMMAND ? d->ranks : 1;
    if (d->ranks > 1 && d->trial.kind == TRIAL_COMMAND && d->trial.launch == LAUNCH_DEFAULT)
        d->trial.launch = LAUNCH_ALL;
}

static as_status check_group(const struct json_fields *doc, const struct sweep_doc *d,
                             struct as_err *err)
{
    if (d->group > 1 && d->ranks > 1)
        return as_fail_at(err, AS_E_INVAL, "/resources/group",
                          "/resources/group: %" PRId64 ": a trial of %" PRId64
                          " ranks shares no process with others; leave it "
                          "out or use 1",
                          d->group, d->ranks);
    if (d->group <= 1 || d->trial.kind == TRIAL_TRAIN || sweep_trial_is_unclear(doc, d))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/resources/group",
                      "/resources/group: %" PRId64
                      ": only trials of trial.train run in groups; leave it out or use 1",
                      d->group);
}

/* Ranks of one trial would need machines that are empty at the same time. */
static as_status check_exclusive(const struct sweep_doc *d, struct as_err *err)
{
    if (!d->exclusive || !d->is_gang)
        return AS_OK;
    return as_fail_at(err, AS_E_UNSUPPORTED, RESOURCES_AT "/exclusive",
                      RESOURCES_AT "/exclusive: trials with ranks cannot have their machines to "
                                   "themselves in this version; leave it or ranks out");
}

/* Bytes as a number, or a text such as "4GiB". */
static as_status read_memory(struct json_fields *f, int64_t *ret, struct as_err *err)
{
    json_t *j = NULL;
    int64_t bytes = 0;
    as_status st = json_fields_any(f, "memory", JSON_OPTIONAL, &j, err);
    if (st < 0 || !j)
        return st;
    if (json_is_integer(j))
        bytes = json_integer_value(j);
    else if (!json_is_string(j) || as_parse_size(json_string_value(j), &bytes, NULL) < 0)
        bytes = 0;
    if (bytes < 1 || bytes > SWEEP_MAX_MEMORY)
        return as_fail_at(err, AS_E_INVAL, RESOURCES_AT "/memory",
                          RESOURCES_AT
                          "/memory: found %s, expected a size such as 4GiB or 500M, or a "
                          "number of bytes, above 0",
                          json_is_string(j) ? json_string_value(j) : json_type_name(j));
    *ret = bytes;
    return AS_OK;
}

static as_status read_numbers(struct json_fields *f, struct sweep_doc *d, struct as_err *err)
{
    as_status st = json_fields_i64(f, "gpus", JSON_OPTIONAL, 0, MAX_GPUS, &d->gpus, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "cpus", JSON_OPTIONAL, 1, SWEEP_MAX_CPUS, &d->cpus, err);
    if (st == AS_OK)
        st = json_fields_note(f, read_memory(f, &d->memory_bytes, err), err);
    if (st == AS_OK)
        st = json_fields_bool(f, "exclusive", JSON_OPTIONAL, &d->exclusive, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "ranks", JSON_OPTIONAL, 1, SWEEP_MAX_RANKS, &d->ranks, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "min_ranks", JSON_OPTIONAL, 1, SWEEP_MAX_RANKS, &d->min_ranks, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "group", JSON_OPTIONAL, 1, SWEEP_MAX_GROUP, &d->group, err);
    return st;
}

as_status sweep_resources_parse(struct json_fields *doc, struct sweep_doc *d, struct as_err *err)
{
    struct json_fields f;
    json_t *j = NULL;
    as_status st = json_fields_i64(doc, "priority", JSON_OPTIONAL, -SWEEP_MAX_PRIORITY,
                                   SWEEP_MAX_PRIORITY, &d->priority, err);
    if (st == AS_OK)
        st = json_fields_object(doc, "resources", JSON_OPTIONAL, &j, err);
    if (st < 0 || !j) {
        settle_ranks(doc, d);
        return st;
    }
    st = json_fields_under(&f, doc, j, RESOURCES_AT, err);
    if (st != AS_OK || (st = read_numbers(&f, d, err)) != AS_OK)
        return st;
    if (json_fields_lack(&f, "ranks"))
        d->ranks = 1; /* else 0 is a fault of the field itself, which is noted */
    if ((st = json_fields_note(&f, check_ranks(doc, d, err), err)) != AS_OK)
        return st;
    settle_ranks(doc, d);
    if ((st = json_fields_note(&f, check_group(doc, d, err), err)) != AS_OK)
        return st;
    if ((st = json_fields_note(&f, check_exclusive(d, err), err)) != AS_OK)
        return st;
    return json_fields_end(&f, err);
}

int sweep_resources_to_json(const struct sweep_doc *d, json_t *j)
{
    JSON_AUTO r =
        json_pack("{s:I, s:I}", "gpus", (json_int_t)d->gpus, "ranks", (json_int_t)d->ranks);
    int bad = 0;
    if (d->cpus > 0)
        bad |= json_object_set_new(r, "cpus", json_integer(d->cpus));
    if (d->memory_bytes > 0)
        bad |= json_object_set_new(r, "memory", json_integer(d->memory_bytes));
    if (d->exclusive)
        bad |= json_object_set_new(r, "exclusive", json_true());
    if (d->is_gang)
        bad |= json_object_set_new(r, "min_ranks", json_integer(d->min_ranks));
    if (d->group > 0)
        bad |= json_object_set_new(r, "group", json_integer(d->group));
    if (d->priority != 0)
        bad |= json_object_set_new(j, "priority", json_integer(d->priority));
    return bad | json_object_set(j, "resources", r);
}
