/* What the trials of a sweep need, and its place among other sweeps: the section `resources`, and
 * `priority`.
 *
 * Needs are for each trial; of a trial with several ranks, for each rank. `cpus` and `memory` of 0
 * mean that nothing was said: the trial takes a slot and no more. Canonical documents leave such
 * fields out, because a later version may have other means to find the needs of a trial. */
#include "scheduler/sweep/sweep_resources_priv.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/param_name.h"
#include "base/str.h"

#define MAX_GPUS 64
#define RESOURCES_AT "/resources"
#define RANKS_AT "/resources/ranks"

static bool has_ranks(const struct sweep_doc *d)
{
    return d->ranks > 1 || d->searches_ranks;
}

static as_status check_ranks(const struct sweep_doc *d, struct as_err *err)
{
    if (d->ranks > 0 && d->min_ranks > d->least_ranks)
        return as_fail_at(err, AS_E_INVAL, "/resources/min_ranks",
                          "/resources/min_ranks: found %" PRId64
                          ", expected at most resources.ranks, which is %" PRId64 "%s",
                          d->min_ranks, d->least_ranks, d->searches_ranks ? " in some trials" : "");
    if (has_ranks(d) && d->stopping.method == STOP_PBT)
        return as_fail_at(err, AS_E_INVAL, "/resources/ranks",
                          "/resources/ranks: found %" PRId64
                          " with early_stopping.method pbt, whose trials have one process; leave "
                          "out one of them",
                          d->ranks);
    if (has_ranks(d) && d->trial.launch == LAUNCH_FIRST &&
        json_object_get(d->trial.environment, "container"))
        return as_fail_at(err, AS_E_INVAL, "/trial/container",
                          "/trial/container: not with resources.ranks above 1 and trial.launch: "
                          "first, because a launcher starts processes outside of its container; "
                          "use launch: all, or let the command start the containers");
    return AS_OK;
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

/* Programs for several processes keep their checkpoints in the folder where they run, and trials of
 * a sweep would take each other's. Documents that were stored without the field mean the shared
 * one. A launcher starts processes on other hosts, where there may be no such folder, and a
 * container has what is mounted. */
static void settle_folder(const struct json_fields *doc, struct sweep_doc *d)
{
    struct sweep_trial *t = &d->trial;
    bool is_sent = doc->faults != NULL;
    if (t->has_folder || !is_sent || !d->is_gang || t->kind != TRIAL_COMMAND ||
        t->launch != LAUNCH_ALL || json_object_get(t->environment, "container"))
        return;
    t->has_folder = true;
    t->folder = FOLDER_AUTO;
}

/* What follows from the number of ranks, once it is known to be right. */
static void settle_ranks(const struct json_fields *doc, struct sweep_doc *d)
{
    d->ranks = d->ranks > 0 ? d->ranks : 1;
    d->least_ranks = d->searches_ranks ? d->least_ranks : d->ranks;
    d->is_gang = d->ranks > 1 || d->searches_ranks || is_lone_rank(doc, d);
    if (d->min_ranks == 0)
        d->min_ranks = d->trial.kind == TRIAL_COMMAND ? d->least_ranks : 1;
    if (d->is_gang && d->trial.kind == TRIAL_COMMAND && d->trial.launch == LAUNCH_DEFAULT)
        d->trial.launch = LAUNCH_ALL;
    settle_folder(doc, d);
}

static as_status check_group(const struct json_fields *doc, const struct sweep_doc *d,
                             struct as_err *err)
{
    if (d->group > 1 && has_ranks(d))
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

/* ---- ranks that the search chooses ---- */

/* The value of choice k; 0: it is no whole number. */
static int64_t choice_of(const struct space_param *p, size_t k)
{
    const json_t *v = json_array_get(p->values, k);
    return json_is_integer(v) ? json_integer_value(v) : 0;
}

static void range_of(const struct space_param *p, int64_t *ret_min, int64_t *ret_max)
{
    *ret_min = p->kind == PARAM_INT ? p->integer.min : INT64_MAX;
    *ret_max = p->kind == PARAM_INT ? p->integer.max : 0;
    for (size_t k = 0; param_is_choice(p) && k < p->n_values; k++) {
        *ret_min = as_min_i64(*ret_min, choice_of(p, k));
        *ret_max = as_max_i64(*ret_max, choice_of(p, k));
    }
}

static as_status take_parameter(struct sweep_doc *d, size_t i, struct as_err *err)
{
    const struct space_param *p = &d->space->params[i];
    int64_t min, max;
    range_of(p, &min, &max);
    if (p->n_conds > 0)
        return as_fail_at(err, AS_E_INVAL, RANKS_AT,
                          RANKS_AT ": '%.64s' has a condition (when), and every trial has ranks",
                          p->name);
    if (min < 1 || max < min || max > SWEEP_MAX_RANKS)
        return as_fail_at(err, AS_E_INVAL, RANKS_AT,
                          RANKS_AT ": '%.64s' is not always a whole number from 1 to %d", p->name,
                          SWEEP_MAX_RANKS);
    d->searches_ranks = true;
    d->ranks_param = i;
    d->least_ranks = min;
    d->ranks = max;
    return AS_OK;
}

/* ${name}. A parameter that the space lacks may be one at fault, which was noted. */
static as_status read_reference(const struct json_fields *doc, const char *text,
                                struct sweep_doc *d, struct as_err *err)
{
    char name[PARAM_NAME_BYTES + 1] = "";
    size_t len = strlen(text);
    if (len < 4 || len - 3 >= sizeof name || strncmp(text, "${", 2) != 0 || text[len - 1] != '}')
        return as_fail_at(err, AS_E_INVAL, RANKS_AT,
                          RANKS_AT ": found '%.64s', expected a whole number from 1 to %d, {min, "
                                   "max}, or ${parameter}",
                          text, SWEEP_MAX_RANKS);
    memcpy(name, text + 2, len - 3);
    int i = d->space ? space_find(d->space, name) : -1;
    if (i >= 0)
        return take_parameter(d, (size_t)i, err);
    if (json_object_get(json_object_get(doc->obj, "parameters"), name))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, RANKS_AT, RANKS_AT ": there is no parameter '%.64s'", name);
}

static as_status read_ranks(const struct json_fields *doc, struct json_fields *f,
                            struct sweep_doc *d, struct as_err *err)
{
    json_t *j = json_object_get(f->obj, "ranks");
    as_status st = AS_OK;
    if (json_is_object(j) && doc->faults &&
        doc->faults->n > 0) /* a range at fault, which ranks_rule_apply() found */
        return json_fields_any(f, "ranks", JSON_OPTIONAL, &j, err);
    if (!json_is_string(j))
        st = json_fields_i64(f, "ranks", JSON_OPTIONAL, 1, SWEEP_MAX_RANKS, &d->ranks, err);
    else if ((st = json_fields_any(f, "ranks", JSON_OPTIONAL, &j, err)) == AS_OK)
        st = json_fields_note(f, read_reference(doc, json_string_value(j), d, err), err);
    if (!d->searches_ranks)
        d->least_ranks = d->ranks;
    return st;
}

int64_t sweep_resources_ranks(const struct sweep_doc *d, const struct config *c)
{
    if (!d->searches_ranks)
        return d->ranks;
    const struct space_param *p = &d->space->params[d->ranks_param];
    const union param_value v = c->entries[d->ranks_param].value;
    return p->kind == PARAM_INT ? v.integer : choice_of(p, v.choice);
}

static as_status read_numbers(const struct json_fields *doc, struct json_fields *f,
                              struct sweep_doc *d, struct as_err *err)
{
    as_status st = json_fields_i64(f, "gpus", JSON_OPTIONAL, 0, MAX_GPUS, &d->gpus, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "cpus", JSON_OPTIONAL, 1, SWEEP_MAX_CPUS, &d->cpus, err);
    if (st == AS_OK)
        st = json_fields_note(f, read_memory(f, &d->memory_bytes, err), err);
    if (st == AS_OK)
        st = json_fields_bool(f, "exclusive", JSON_OPTIONAL, &d->exclusive, err);
    if (st == AS_OK)
        st = read_ranks(doc, f, d, err);
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
    if (st != AS_OK || (st = read_numbers(doc, &f, d, err)) != AS_OK)
        return st;
    if (json_fields_lack(&f, "ranks"))
        d->ranks = d->least_ranks = 1; /* else 0 is a fault of the field itself, which is noted */
    if ((st = json_fields_note(&f, check_ranks(d, err), err)) != AS_OK)
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
    JSON_AUTO ranks = d->searches_ranks
                          ? json_sprintf("${%s}", d->space->params[d->ranks_param].name)
                          : json_integer(d->ranks);
    JSON_AUTO r = json_pack("{s:I, s:O}", "gpus", (json_int_t)d->gpus, "ranks", ranks);
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
