/* The requests of runners and the answers to them: registration, claims, heartbeats.
 *
 * Requests are read field by field, and the limits that need no database are checked here (lengths,
 * counts), so that a message names the field with its JSON pointer. Lists are copied to the arena;
 * strings stay views of the document. */
#include "api/codec/wire.h"

#include <string.h>

#include "api/codec/wire_priv.h"
#include "base/json.h"
#include "base/mem.h"

static json_t *runner_encode(const struct runner_row *r)
{
    struct out o = out_begin();
    out_str(&o, "name", r->name);
    out_str(&o, "state", r->state);
    out_str(&o, "host", r->host);
    out_str(&o, "version", r->version);
    out_i64(&o, "slots", r->slots);
    out_json(&o, "gpus", r->gpus ? r->gpus : "[]");
    out_json(&o, "gpu_faults", r->gpu_faults ? r->gpu_faults : "[]");
    if (r->cpus)
        out_i64(&o, "cpus", r->cpus);
    else
        out_null(&o, "cpus");
    if (r->memory_bytes)
        out_i64(&o, "memory_bytes", r->memory_bytes);
    else
        out_null(&o, "memory_bytes");
    out_i64(&o, "used_cpus", r->cpus_used);
    out_i64(&o, "used_memory_bytes", r->memory_used);
    out_str(&o, "machine", r->machine);
    out_str(&o, "job", r->job);
    out_str(&o, "fleet", r->fleet);
    out_json(&o, "walls", r->walls ? r->walls : "null");
    out_bool(&o, "draining", r->is_draining);
    out_i64(&o, "running", r->running);
    out_i64(&o, "used_slots", r->used);
    out_i64(&o, "epoch", r->epoch);
    out_time(&o, "registered_at", r->registered_ms);
    if (r->seen_ms)
        out_time(&o, "seen_at", r->seen_ms);
    return out_end(&o);
}

json_t *runner_page_encode(const struct runner_page *p)
{
    json_t *items = json_array();
    for (size_t i = 0; i < p->n; i++)
        items = list_add(items, runner_encode(&p->rows[i]));
    return page_end(items, p->next_cursor);
}

static json_t *kind_encode(const struct demand_kind *k)
{
    struct out o = out_begin();
    out_i64(&o, "slots", k->slots);
    out_i64(&o, "ranks", k->ranks);
    out_i64(&o, "gpus", k->gpus);
    out_i64(&o, "cpus", k->cpus);
    out_i64(&o, "memory_bytes", k->memory_bytes);
    out_bool(&o, "exclusive", k->is_exclusive);
    out_i64(&o, "sweeps", k->sweeps);
    out_time(&o, "since", k->since_ms);
    return out_end(&o);
}

json_t *demand_encode(const struct demand *d)
{
    struct out o = out_begin();
    json_t *kinds = json_array();
    for (size_t i = 0; i < d->n; i++)
        kinds = list_add(kinds, kind_encode(&d->kinds[i]));
    out_time(&o, "as_of", d->now_ms);
    out_i64(&o, "slots", d->slots);
    out_time(&o, "since", d->since_ms);
    out_i64(&o, "runners", d->runners);
    out_i64(&o, "free_slots", d->free_slots);
    out_child(&o, "kinds", kinds);
    return out_end(&o);
}

static json_t *directive_encode(const struct directive_row *r)
{
    struct out o = out_begin();
    out_str(&o, "sweep", r->ref.sweep);
    out_i64(&o, "number", r->ref.number);
    out_i64(&o, "attempt", r->ref.attempt);
    if (r->is_rank)
        out_i64(&o, "seat", r->seat);
    out_str(&o, "action", directive_action_words[r->action]);
    out_str(&o, "reason", r->reason);
    return out_end(&o);
}

json_t *directives_encode(const struct directive_list *l)
{
    json_t *list = json_array();
    for (size_t i = 0; i < l->n; i++)
        list = list_add(list, directive_encode(&l->rows[i]));
    return list;
}

json_t *registration_encode(const char *name, const char *secret, const struct registration *r)
{
    struct out o = out_begin();
    out_str(&o, "name", name);
    out_i64(&o, "epoch", r->epoch);
    if (secret)
        out_str(&o, "secret", secret);
    out_i64(&o, "lease_ms", r->lease_ms);
    out_i64(&o, "heartbeat_ms", r->heartbeat_ms);
    out_child(&o, "directives", directives_encode(&r->directives));
    return out_end(&o);
}

json_t *heartbeat_encode(int64_t lease_ms, const struct directive_list *l)
{
    struct out o = out_begin();
    out_i64(&o, "lease_ms", lease_ms);
    out_bool(&o, "drain", l->drain);
    out_child(&o, "directives", directives_encode(l));
    return out_end(&o);
}

as_status drain_decode(const json_t *doc, bool *ret, struct as_err *err)
{
    struct json_fields f;
    bool is_draining = true;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = json_fields_bool(&f, "draining", JSON_OPTIONAL, &is_draining, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    *ret = is_draining;
    return AS_OK;
}

/* A write of an attempt that is not current is answered as stale, and has no directive. */
json_t *report_encode(int64_t recorded, const struct directive_row *directive)
{
    struct out o = out_begin();
    json_t *list = json_array();
    if (directive)
        list = list_add(list, directive_encode(directive));
    out_i64(&o, "recorded", recorded);
    out_child(&o, "directives", list);
    return out_end(&o);
}

static json_t *group_encode(const struct claimed_row *r)
{
    struct out o = out_begin();
    out_str(&o, "id", r->group);
    out_str(&o, "shape", r->shape);
    out_i64(&o, "bytes_per_member", r->bytes_per_member);
    out_i64(&o, "max_members", r->max_members);
    return out_end(&o);
}

static json_t *rank_encode(const struct claimed_row *r)
{
    struct out o = out_begin();
    out_i64(&o, "seat", r->seat);
    out_i64(&o, "ranks", r->ranks);
    out_i64(&o, "min_ranks", r->min_ranks);
    out_bool(&o, "elastic", r->elastic);
    out_str(&o, "launch", r->launch);
    return out_end(&o);
}

/* What is kept for forks of the trial. */
static json_t *forks_encode(const struct claimed_row *r)
{
    struct out o = out_begin();
    out_i64(&o, "every", r->keep_every);
    out_i64(&o, "until", r->keep_until);
    out_json(&o, "may_differ", r->may_differ);
    return out_end(&o);
}

static json_t *claimed_encode(const struct claimed_row *r)
{
    struct out o = out_begin(), metric = out_begin();
    json_t *inactive = json_array(), *files = file_list_encode(&r->files);
    for (size_t i = 0; i < r->n_inactive; i++)
        inactive = list_add(inactive, json_string(r->inactive[i]));
    out_str(&metric, "name", r->metric);
    out_str(&metric, "goal", r->maximize ? "maximize" : "minimize");
    out_str(&o, "sweep", r->sweep);
    out_i64(&o, "number", r->number);
    out_i64(&o, "attempt", r->attempt);
    out_decimal(&o, "seed", r->seed);
    out_json(&o, "params", r->params);
    out_child(&o, "inactive", inactive);
    out_json(&o, "trial", r->trial);
    out_child(&o, "metric", out_end(&metric));
    out_i64(&o, "gpus", r->gpus);
    if (r->cpus)
        out_i64(&o, "cpus", r->cpus);
    else
        out_null(&o, "cpus");
    out_child(&o, "dataset", r->dataset ? dataset_encode(r->dataset) : json_null());
    out_child(&o, "files", json_incref(json_object_get(files, "items")));
    if (r->timeout_ms)
        out_i64(&o, "timeout_ms", r->timeout_ms);
    else
        out_null(&o, "timeout_ms");
    out_i64(&o, "grace_ms", r->grace_ms);
    out_bool(&o, "early_stopping", r->early_stopping);
    out_bool(&o, "gives_ahead", r->gives_ahead);
    out_child(&o, "group", r->group ? group_encode(r) : json_null());
    out_child(&o, "gang", r->is_rank ? rank_encode(r) : json_null());
    out_child(&o, "forks", r->keep_every ? forks_encode(r) : json_null());
    out_str(&o, "token", r->token);
    json_decref(files);
    return out_end(&o);
}

json_t *claims_encode(const struct claim_list *l)
{
    struct out o = out_begin();
    json_t *trials = json_array();
    for (size_t i = 0; i < l->n; i++)
        trials = list_add(trials, claimed_encode(&l->rows[i]));
    out_child(&o, "trials", trials);
    out_bool(&o, "pending", l->n == 0 && (l->is_preparing || l->awaits_ends));
    return out_end(&o);
}

/* ---- requests ---- */

/* The attempts of a list, and what the runner says about some of them. Ranks of gangs are a list of
 * their own. */
struct held {
    struct attempt_ref *refs;
    struct attempt_said *said; /* NULL: the list has no phases */
    struct seat_said *seats;
    size_t n, n_said, n_seats;
};

/* Read `phase` and `ran_ms`, and the progress of a rank, if they are there. A duration means
 * nothing without a phase. */
static as_status said_decode(struct json_fields *f, struct seat_said *ret, struct as_err *err)
{
    int phase = -1;
    ret->step = ret->sent_bytes = -1;
    as_status st = json_fields_word(f, "phase", JSON_OPTIONAL, run_phase_words, &phase, err);
    if (st < 0 ||
        (st = json_fields_i64(f, "ran_ms", JSON_OPTIONAL, 0, RUN_MAX_MS, &ret->ran_ms, err)) < 0 ||
        (st = json_fields_i64(f, "step", JSON_OPTIONAL, 0, INT64_MAX, &ret->step, err)) < 0 ||
        (st = json_fields_i64(f, "sent_bytes", JSON_OPTIONAL, 0, INT64_MAX, &ret->sent_bytes,
                              err)) < 0)
        return st;
    ret->has_phase = phase >= 0;
    ret->phase = phase >= 0 ? (run_phase)phase : RUN_PREPARING;
    ret->has_step = ret->step >= 0;
    ret->has_sent = ret->sent_bytes >= 0;
    return AS_OK;
}

/* Put an item into its list. */
static as_status take_item(struct held *h, const struct seat_said *item, const char *pointer,
                           struct as_err *err)
{
    if (item->ref.seat >= 0) {
        h->seats[h->n_seats++] = *item;
        return AS_OK;
    }
    if (item->has_step || item->has_sent)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: step and sent_bytes are for ranks of gangs, which have a seat",
                          pointer);
    h->refs[h->n++] = item->ref.attempt;
    if (item->has_phase)
        h->said[h->n_said++] = (struct attempt_said){
            .ref = item->ref.attempt, .phase = item->phase, .ran_ms = item->ran_ms};
    return AS_OK;
}

static as_status ref_decode(const json_t *j, const char *pointer, struct held *h,
                            struct as_err *err)
{
    struct json_fields f;
    struct seat_said item = {.ref.seat = -1};
    struct attempt_ref *r = &item.ref.attempt;
    as_status st = json_fields_init(&f, j, pointer, err);
    if (st < 0 || (st = json_fields_str(&f, "sweep", JSON_REQUIRED, &r->sweep, err)) < 0 ||
        (st = json_fields_i64(&f, "number", JSON_REQUIRED, 0, INT32_MAX, &r->number, err)) < 0 ||
        (st = json_fields_i64(&f, "attempt", JSON_REQUIRED, 1, INT32_MAX, &r->attempt, err)) < 0 ||
        (st = json_fields_i64(&f, "seat", JSON_OPTIONAL, 0, INT32_MAX, &item.ref.seat, err)) < 0 ||
        (h->said && (st = said_decode(&f, &item, err)) < 0) || (st = json_fields_end(&f, err)) < 0)
        return st;
    return take_item(h, &item, pointer, err);
}

static as_status refs_decode(struct json_fields *f, const char *name, json_need need,
                             bool with_phases, struct arena *a, struct held *ret,
                             struct as_err *err)
{
    json_t *list = NULL;
    char pointer[AS_ERR_POINTER_MAX], item[AS_ERR_POINTER_MAX];
    struct held h = {0};
    as_status st = json_fields_array(f, name, need, &list, err);
    size_t n = json_array_size(list);
    if (st < 0)
        return st;
    json_pointer_child(f->pointer, name, pointer);
    if (n > RUNNER_HELD_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, pointer, "%zu attempts, at most %d", n,
                          RUNNER_HELD_MAX);
    h.refs = arena_alloc(a, n ? n : 1, sizeof *h.refs);
    h.said = with_phases ? arena_alloc(a, n ? n : 1, sizeof *h.said) : NULL;
    h.seats = arena_alloc(a, n ? n : 1, sizeof *h.seats);
    if (!h.refs || !h.seats || (with_phases && !h.said))
        return as_fail(err, AS_E_NOMEM, "out of memory for the attempts");
    for (size_t i = 0; i < n; i++) {
        json_pointer_index(pointer, i, item);
        st = ref_decode(json_array_get(list, i), item, &h, err);
        if (st != AS_OK)
            return st;
    }
    *ret = h;
    return AS_OK;
}

static as_status gpus_decode(struct json_fields *f, struct arena *a, struct runner_register *r,
                             struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, "gpus", JSON_OPTIONAL, &list, err);
    size_t n = json_array_size(list);
    if (st < 0 || n == 0)
        return st;
    if (n > 64)
        return as_fail_at(err, AS_E_TOO_LARGE, "/gpus", "%zu GPUs, at most 64", n);
    const char **gpus = arena_alloc(a, n, sizeof *gpus);
    if (!gpus)
        return as_fail(err, AS_E_NOMEM, "out of memory for the GPUs");
    for (size_t i = 0; i < n; i++) {
        char pointer[AS_ERR_POINTER_MAX];
        const json_t *item = json_array_get(list, i);
        json_pointer_index("/gpus", i, pointer);
        if (!json_is_string(item))
            return as_fail_at(err, AS_E_INVAL, pointer, "is %s, expected a string",
                              json_type_name(item));
        gpus[i] = json_string_value(item);
    }
    r->gpus = gpus;
    r->n_gpus = n;
    return AS_OK;
}

static as_status fault_decode(const json_t *j, const char *pointer, struct as_err *err)
{
    struct json_fields f;
    const char *gpu = NULL, *reason = NULL;
    as_status st = json_fields_init(&f, j, pointer, err);
    if (st < 0 || (st = json_fields_text(&f, "gpu", JSON_REQUIRED, 1, 96, &gpu, err)) < 0 ||
        (st = json_fields_text(&f, "reason", JSON_REQUIRED, 1, 400, &reason, err)) < 0)
        return st;
    return json_fields_end(&f, err);
}

/* *ret is the list as JSON in the arena, or NULL if the field is absent. */
static as_status faults_decode(struct json_fields *f, struct arena *a, const char **ret,
                               struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, "gpu_faults", JSON_OPTIONAL, &list, err);
    if (st < 0 || !list)
        return st;
    size_t n = json_array_size(list);
    if (n > 64)
        return as_fail_at(err, AS_E_TOO_LARGE, "/gpu_faults", "%zu GPUs, at most 64", n);
    for (size_t i = 0; i < n; i++) {
        char pointer[AS_ERR_POINTER_MAX];
        json_pointer_index("/gpu_faults", i, pointer);
        st = fault_decode(json_array_get(list, i), pointer, err);
        if (st < 0)
            return st;
    }
    AS_AUTO(as_freep) char *text = json_format(list);
    const char *kept = text ? arena_strdup(a, text) : NULL;
    if (!kept)
        return as_fail(err, AS_E_NOMEM, "out of memory for the GPUs");
    *ret = kept;
    return AS_OK;
}

#define WALLS_MAX 32
#define WALL_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_"

/* *ret is the list as JSON in the arena, or NULL if the field is absent. A later runner may know
 * words that this server does not. */
static as_status walls_decode(struct json_fields *f, struct arena *a, const char **ret,
                              struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, "walls", JSON_OPTIONAL, &list, err);
    if (st < 0 || !list)
        return st;
    if (json_array_size(list) > WALLS_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/walls", "%zu words, at most %d",
                          json_array_size(list), WALLS_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        char pointer[AS_ERR_POINTER_MAX];
        const char *word = json_string_value(json_array_get(list, i));
        size_t len = word ? strlen(word) : 0;
        json_pointer_index("/walls", i, pointer);
        if (len < 1 || len > 40 || word[0] < 'a' || strspn(word, WALL_CHARS) != len)
            return as_fail_at(err, AS_E_INVAL, pointer,
                              "expected [a-z][a-z0-9_]*, at most 40 characters");
    }
    AS_AUTO(as_freep) char *text = json_format(list);
    *ret = text ? arena_strdup(a, text) : NULL;
    return *ret ? AS_OK : as_fail_nomem(err);
}

as_status runner_register_decode(const json_t *doc, struct arena *a, struct runner_register *ret,
                                 struct as_err *err)
{
    struct json_fields f;
    struct runner_register r = {0};
    struct held resume = {0};
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = json_fields_str(&f, "name", JSON_REQUIRED, &r.name, err)) < 0 ||
        (st = json_fields_i64(&f, "slots", JSON_REQUIRED, 1, 1024, &r.slots, err)) < 0 ||
        (st = gpus_decode(&f, a, &r, err)) < 0 ||
        (st = faults_decode(&f, a, &r.gpu_faults, err)) < 0 ||
        (st = json_fields_i64(&f, "cpus", JSON_OPTIONAL, 1, RUNNER_CPUS_MAX, &r.cpus, err)) < 0 ||
        (st = json_fields_i64(&f, "memory_bytes", JSON_OPTIONAL, 1, RUNNER_MEMORY_MAX,
                              &r.memory_bytes, err)) < 0 ||
        (st = json_fields_text(&f, "machine", JSON_OPTIONAL, 1, 128, &r.machine, err)) < 0 ||
        (st = json_fields_bool(&f, "shares_machine", JSON_OPTIONAL, &r.shares, err)) < 0 ||
        (st = json_fields_text(&f, "job", JSON_OPTIONAL, 1, RUNNER_JOB_MAX, &r.job, err)) < 0 ||
        (st = json_fields_text(&f, "fleet", JSON_OPTIONAL, 1, 63, &r.fleet, err)) < 0 ||
        (st = walls_decode(&f, a, &r.walls, err)) < 0 ||
        (st = json_fields_text(&f, "host", JSON_OPTIONAL, 0, 255, &r.host, err)) < 0 ||
        (st = json_fields_text(&f, "version", JSON_OPTIONAL, 0, 40, &r.version, err)) < 0 ||
        (st = refs_decode(&f, "resume", JSON_OPTIONAL, true, a, &resume, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (!as_slug_valid(r.name))
        return as_fail_at(
            err, AS_E_INVAL, "/name",
            "'%.80s' is not a name: expected [a-z0-9][a-z0-9._-]*, at most 63 characters", r.name);
    r.resume = resume.refs;
    r.n_resume = resume.n;
    r.said = resume.said;
    r.n_said = resume.n_said;
    r.seats = resume.seats;
    r.n_seats = resume.n_seats;
    *ret = r;
    return AS_OK;
}

static as_status fit_decode(struct json_fields *parent, struct group_limits *r, struct as_err *err)
{
    struct json_fields f;
    json_t *j = NULL;
    as_status st = json_fields_object(parent, "fit", JSON_OPTIONAL, &j, err);
    if (st < 0 || !j)
        return st;
    st = json_fields_init(&f, j, "/fit", err);
    if (st < 0 ||
        (st = json_fields_text(&f, "group", JSON_REQUIRED, 1, 128, &r->fit.group, err)) < 0 ||
        (st = json_fields_i64(&f, "members", JSON_REQUIRED, 1, 64, &r->fit.members, err)) < 0)
        return st;
    return json_fields_end(&f, err);
}

static as_status measured_decode(const json_t *j, const char *pointer, struct measured_shape *ret,
                                 struct as_err *err)
{
    struct json_fields f;
    as_status st = json_fields_init(&f, j, pointer, err);
    if (st < 0 ||
        (st = json_fields_text(&f, "shape", JSON_REQUIRED, 1, 1024, &ret->shape, err)) < 0 ||
        (st = json_fields_i64(&f, "members", JSON_REQUIRED, 1, 64, &ret->members, err)) < 0)
        return st;
    return json_fields_end(&f, err);
}

static as_status measures_decode(struct json_fields *f, struct arena *a, struct group_limits *r,
                                 struct as_err *err)
{
    json_t *list = NULL;
    as_status st = json_fields_array(f, "measured", JSON_OPTIONAL, &list, err);
    size_t n = json_array_size(list);
    if (st < 0 || n == 0)
        return st;
    if (n > CLAIM_MEASURED_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/measured", "%zu shapes, at most %d", n,
                          CLAIM_MEASURED_MAX);
    struct measured_shape *rows = arena_alloc(a, n, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory for the measured shapes");
    for (size_t i = 0; i < n; i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index("/measured", i, at);
        st = measured_decode(json_array_get(list, i), at, &rows[i], err);
        if (st != AS_OK)
            return st;
    }
    r->measured = rows;
    r->n_measured = n;
    return AS_OK;
}

/* The seats of a list, without what is said about them. NULL: out of memory. */
static struct seat_ref *seat_refs(struct arena *a, const struct held *h)
{
    struct seat_ref *refs = arena_alloc(a, h->n_seats + 1, sizeof *refs);
    for (size_t i = 0; refs && i < h->n_seats; i++)
        refs[i] = h->seats[i].ref;
    return refs;
}

as_status claim_decode(const json_t *doc, struct arena *a, struct claim_request *ret,
                       int64_t *ret_wait_ms, struct as_err *err)
{
    struct json_fields f;
    struct claim_request r = {.max_trials = 1, .groups.members = 1};
    struct held ending = {0};
    int64_t wait_ms = 20000;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 ||
        (st = json_fields_i64(&f, "epoch", JSON_REQUIRED, 1, INT64_MAX, &r.epoch, err)) < 0 ||
        (st = json_fields_text(&f, "claim_id", JSON_REQUIRED, 1, 64, &r.claim_id, err)) < 0 ||
        (st = json_fields_i64(&f, "max_trials", JSON_OPTIONAL, 1, 64, &r.max_trials, err)) < 0 ||
        (st = json_fields_i64(&f, "seats", JSON_OPTIONAL, 0, 64, &r.seats, err)) < 0 ||
        (st = json_fields_i64(&f, "gpus", JSON_OPTIONAL, 0, 1024, &r.gpus, err)) < 0 ||
        (st = json_fields_i64(&f, "members", JSON_OPTIONAL, 1, 64, &r.groups.members, err)) < 0 ||
        (st = json_fields_i64(&f, "memory_bytes", JSON_OPTIONAL, 1, INT64_MAX,
                              &r.groups.memory_bytes, err)) < 0 ||
        (st = json_fields_i64(&f, "gpu_memory_bytes", JSON_OPTIONAL, 1, INT64_MAX,
                              &r.groups.gpu_memory_bytes, err)) < 0 ||
        (st = fit_decode(&f, &r.groups, err)) < 0 ||
        (st = measures_decode(&f, a, &r.groups, err)) < 0 ||
        (st = refs_decode(&f, "ending", JSON_OPTIONAL, false, a, &ending, err)) < 0 ||
        (st = json_fields_bool(&f, "ahead", JSON_OPTIONAL, &r.is_ahead, err)) < 0 ||
        (st = json_fields_i64(&f, "wait_ms", JSON_OPTIONAL, 0, 60000, &wait_ms, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (r.seats > r.max_trials)
        return as_fail_at(err, AS_E_INVAL, "/seats",
                          "/seats: found %lld, expected at most max_trials, which is %lld",
                          (long long)r.seats, (long long)r.max_trials);
    r.ending = ending.refs;
    r.n_ending = ending.n;
    r.ending_seats = seat_refs(a, &ending);
    r.n_ending_seats = ending.n_seats;
    if (!r.ending_seats)
        return as_fail(err, AS_E_NOMEM, "out of memory for the attempts");
    r.wait_ms = wait_ms;
    *ret = r;
    *ret_wait_ms = wait_ms;
    return AS_OK;
}

as_status heartbeat_decode(const json_t *doc, struct arena *a, struct heartbeat *ret,
                           struct as_err *err)
{
    struct json_fields f;
    struct heartbeat r = {0};
    struct held held = {0};
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 ||
        (st = json_fields_i64(&f, "epoch", JSON_REQUIRED, 1, INT64_MAX, &r.epoch, err)) < 0 ||
        (st = refs_decode(&f, "attempts", JSON_REQUIRED, true, a, &held, err)) < 0 ||
        (st = faults_decode(&f, a, &r.gpu_faults, err)) < 0 || (st = json_fields_end(&f, err)) < 0)
        return st;
    r.attempts = held.refs;
    r.n = held.n;
    r.said = held.said;
    r.n_said = held.n_said;
    r.seats = held.seats;
    r.n_seats = held.n_seats;
    *ret = r;
    return AS_OK;
}

as_status leave_decode(const json_t *doc, int64_t *ret_epoch, struct as_err *err)
{
    struct json_fields f;
    int64_t epoch = 0;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 ||
        (st = json_fields_i64(&f, "epoch", JSON_REQUIRED, 1, INT64_MAX, &epoch, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    *ret_epoch = epoch;
    return AS_OK;
}
