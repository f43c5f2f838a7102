/* Changes of a sweep: a merge patch of its limits, priority, tags and remarks, then of its state,
 * in one transaction.
 *
 * The transaction holds the sweep's row, as every claim, ask and end of a trial does. So a change
 * comes before or after each of them, on any number of servers, and no limit is exceeded in
 * between. The stored document is patched and parsed again; it always holds the limits in force.
 *
 * Suggestions do not depend on limits, so a changed sweep can be replayed. Whether a sweep that has
 * ended runs on is decided by the rule that ends it (sweep_end.h): it must not end again at once.
 */
#include "scheduler/services/sweep_change.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/sweep_change_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/sweep_row_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/sweep/stored_doc.h"
#include "scheduler/sweep/sweep_doc.h"

static const struct {
    const char *name;
    bool is_duration;
} limit_names[] = {{"max_trials", false},
                   {"max_concurrent_trials", false},
                   {"max_failed_trials", false},
                   {"max_restarts", false},
                   {"max_steps", false},
                   {"target", false},
                   {"stop_when", false},
                   {"trial_timeout", true},
                   {"on_timeout", false},
                   {"wall_time", true},
                   {"grace", true}};

/* The patch. */

as_status sweep_patch_parse(const json_t *doc, struct sweep_patch *ret, struct as_err *err)
{
    static const char *const words[] = {"running", "paused", "cancelled", NULL};
    static const sweep_state states[] = {SWEEP_RUNNING, SWEEP_PAUSED, SWEEP_CANCELLED};
    struct sweep_limits checked;
    struct json_fields f;
    int word = -1;
    int64_t priority = INT64_MIN;
    json_t *limits = NULL, *tags = NULL;
    const char *remarks = NULL; /* null and no text remove them */
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = json_fields_word(&f, "state", JSON_OPTIONAL, words, &word, err)) < 0 ||
        (st = json_fields_object(&f, "limits", JSON_OPTIONAL, &limits, err)) < 0 ||
        (st = json_fields_i64(&f, "priority", JSON_OPTIONAL, -SWEEP_MAX_PRIORITY,
                              SWEEP_MAX_PRIORITY, &priority, err)) < 0 ||
        (st = json_fields_array(&f, "tags", JSON_OPTIONAL, &tags, err)) < 0 ||
        (st = json_fields_text(&f, "remarks", JSON_OPTIONAL, 0, SWEEP_REMARKS_MAX, &remarks, err)) <
            0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (limits && (st = sweep_limits_parse(limits, &checked, err)) < 0)
        return st;
    if (json_is_null(json_object_get(limits, "max_trials")))
        return as_fail_at(err, AS_E_INVAL, "/limits/max_trials",
                          "/limits/max_trials: found null, expected a number; this limit cannot be "
                          "removed");
    struct sweep_patch p = {.state = word >= 0 ? &states[word] : NULL,
                            .limits = json_object_size(limits) > 0 ? limits : NULL,
                            .has_priority = priority != INT64_MIN,
                            .tags = tags};
    p.priority = p.has_priority ? priority : 0;
    p.has_remarks = json_object_get(doc, "remarks") != NULL;
    p.remarks = remarks && *remarks ? remarks : NULL;
    if (!p.state && !p.limits && !p.has_priority && !p.tags && !p.has_remarks)
        return as_fail(err, AS_E_INVAL,
                       "the patch changes nothing: expected state, limits, priority, tags or "
                       "remarks");
    *ret = p;
    return AS_OK;
}

/* A change in progress. */
struct change {
    struct tx *t;
    struct arena *a;
    const struct sweep_patch *patch;
    const char *by;
    struct sweep_head before, now; /* now: with the new limits */
    json_t *what;                  /* owned: {"max_trials": {"from": 40, "to": 200}, …} */
    struct str words;              /* owned: the changes of limits, for people */
    int64_t listed;                /* the configurations of an enumeration; else 0 */
    bool moved;                    /* a transition wrote its event */
    struct sweep_changed *ret;
};

static void change_done(struct change *x)
{
    json_decref(x->what);
    str_done(&x->words);
}

static void add_note(struct change *x, const char *note)
{
    if (note && x->ret->n_notes < SWEEP_NOTES_MAX)
        x->ret->notes[x->ret->n_notes++] = note;
}

static as_status record(struct change *x, const char *name, json_t *from, json_t *to,
                        struct as_err *err)
{
    json_t *pair = json_pack("{s:o?, s:o?}", "from", from, "to", to); /* NULL: null */
    return json_object_set_new(x->what, name, pair) == 0 ? AS_OK : as_fail_nomem(err);
}

/* Limits. */

/* The one that is given. */
static void add_stop_when_words(struct str *b, const json_t *v)
{
    const json_t *regret = json_object_get(v, "regret");
    const json_t *given = regret ? regret : json_object_get(v, "relative");
    char number[32];
    str_printf(b, "%s %s after %" JSON_INTEGER_FORMAT " trials", regret ? "regret" : "relative",
               as_format_double(json_number_value(given), number, sizeof number),
               json_integer_value(json_object_get(v, "min_trials")));
}

static void add_limit_words(struct str *b, const json_t *v, bool is_duration)
{
    char number[32];
    if (!v)
        str_puts(b, "none");
    else if (json_is_object(v))
        add_stop_when_words(b, v);
    else if (is_duration)
        str_printf(b, "%.15g s", json_number_value(v));
    else if (json_is_real(v))
        str_puts(b, as_format_double(json_number_value(v), number, sizeof number));
    else if (json_is_string(v))
        str_puts(b, json_string_value(v));
    else
        str_printf(b, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
}

/* Record the limits that differ. */
static as_status record_limits(struct change *x, const struct sweep_doc *old,
                               const struct sweep_doc *doc, struct as_err *err)
{
    const json_t *from = json_object_get(old->canonical, "limits");
    const json_t *to = json_object_get(doc->canonical, "limits");
    for (size_t i = 0; i < AS_ARRAY_LEN(limit_names); i++) {
        const char *name = limit_names[i].name;
        json_t *a = json_object_get(from, name), *b = json_object_get(to, name);
        if (a == b || (a && b && json_equal(a, b)))
            continue;
        as_status st = record(x, name, json_incref(a), json_incref(b), err);
        if (st != AS_OK)
            return st;
        str_printf(&x->words, "%s%s ", x->words.len ? "; " : "", name);
        add_limit_words(&x->words, a, limit_names[i].is_duration);
        str_puts(&x->words, " -> ");
        add_limit_words(&x->words, b, limit_names[i].is_duration);
    }
    return str_check(&x->words, err);
}

/* The document with the patch merged into its limits. */
static as_status patch_document(const json_t *limits, const char *text, struct sweep_doc **ret_old,
                                struct sweep_doc **ret, struct as_err *err)
{
    JSON_AUTO tree = NULL;
    const char *name;
    json_t *v;
    as_status st = stored_doc_read(text, &tree, ret_old, err);
    if (st != AS_OK)
        return st;
    if (!json_object_get(tree, "limits") && json_object_set_new(tree, "limits", json_object()) != 0)
        return as_fail_nomem(err);
    json_t *all = json_object_get(tree, "limits");
    json_object_foreach((json_t *)limits, name, v)
    {
        if (json_is_null(v))
            (void)json_object_del(all, name); /* it may be absent */
        else if (json_object_set(all, name, v) != 0)
            return as_fail_nomem(err);
    }
    return sweep_doc_parse(tree, 0, ret, err); /* the document contains its seed */
}

static void note_limits(struct change *x, const struct sweep_doc *doc)
{
    const int64_t own = x->before.counts.total - x->before.known;
    const int64_t running = x->before.counts.by_state[TRIAL_RUNNING];
    const int64_t queued = x->before.counts.by_state[TRIAL_QUEUED];
    const json_t *wanted = json_object_get(x->patch->limits, "max_trials");
    if (wanted && doc->limits.max_trials < own)
        add_note(x, arena_printf(x->a,
                                 "there are %lld trials already: no more are made; the %lld that "
                                 "run and the %lld that are queued go on",
                                 (long long)own, (long long)running, (long long)queued));
    if (doc->n_listed > 0 && json_integer_value(wanted) > doc->limits.max_trials)
        add_note(x, arena_printf(x->a,
                                 "the grid has %lld cells, and each runs once: max_trials is %lld",
                                 (long long)doc->n_listed, (long long)doc->limits.max_trials));
    if (doc->limits.max_concurrent_trials > 0 && running > doc->limits.max_concurrent_trials)
        add_note(x, arena_printf(x->a,
                                 "%lld trials run, and go on: none begins until fewer than "
                                 "%lld run",
                                 (long long)running, (long long)doc->limits.max_concurrent_trials));
    if (running > 0 &&
        (json_object_get(x->what, "trial_timeout") || json_object_get(x->what, "grace")))
        add_note(x, "runners apply trial_timeout and grace to attempts that begin from now on; the "
                    "server ends running trials that exceed a lower trial_timeout");
}

static as_status change_limits(struct change *x, struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *old = NULL;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    const char *text = NULL;
    as_status st = store_sweep_document(x->t, x->a, x->before.key, &text, err);
    if (st != AS_OK)
        return st;
    if ((st = patch_document(x->patch->limits, text, &old, &doc, err)) != AS_OK)
        return st;
    if ((st = record_limits(x, old, doc, err)) != AS_OK)
        return st;
    note_limits(x, doc);
    AS_AUTO(as_freep) char *document = sweep_doc_format(doc);
    if (!document)
        return as_fail_nomem(err);
    bool set_max = json_object_get(x->patch->limits, "max_trials") != NULL;
    st = store_sweep_limit(x->t, x->before.key, document, &doc->limits, set_max, err);
    if (st != AS_OK)
        return st;
    return store_sweep_lock(x->t, x->a, x->before.key, &x->now, err);
}

/* Priority, tags and remarks. */

static void add_word(struct change *x, const char *word)
{
    str_printf(&x->words, "%s%s", x->words.len ? "; " : "", word);
}

/* The stored document with another value of a field, checked; owned by the caller, as *ret_from,
 * the old value (NULL: it had none). Takes `to`. The document that is stored holds what is in
 * force. */
static as_status replace_field(struct change *x, const char *name, json_t *to, char **ret_document,
                               json_t **ret_from, struct as_err *err)
{
    JSON_AUTO tree = NULL;
    JSON_AUTO value = to;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    const char *text = NULL;
    as_status st = store_sweep_document(x->t, x->a, x->before.key, &text, err);
    if (st == AS_OK)
        st = stored_doc_read(text, &tree, NULL, err);
    if (st != AS_OK)
        return st;
    JSON_AUTO from = json_incref(json_object_get(tree, name));
    if (!value || json_object_set(tree, name, value) != 0)
        return as_fail_nomem(err);
    if ((st = sweep_doc_parse(tree, 0, &doc, err)) != AS_OK)
        return st;
    *ret_document = sweep_doc_format(doc);
    if (!*ret_document)
        return as_fail_nomem(err);
    *ret_from = as_steal(from);
    return AS_OK;
}

static as_status change_priority(struct change *x, struct as_err *err)
{
    const int64_t from = x->now.priority, to = x->patch->priority;
    AS_AUTO(as_freep) char *document = NULL;
    JSON_AUTO old = NULL;
    if (from == to)
        return AS_OK;
    as_status st = replace_field(x, "priority", json_integer(to), &document, &old, err);
    if (st == AS_OK)
        st = store_sweep_prioritize(x->t, x->before.key, document, to, err);
    if (st != AS_OK)
        return st;
    str_printf(&x->words, "%spriority %" PRId64 " -> %" PRId64, x->words.len ? "; " : "", from, to);
    x->now.priority = to;
    st = record(x, "priority", json_integer(from), json_integer(to), err);
    return st == AS_OK ? str_check(&x->words, err) : st;
}

/* A text for the record, which is read in long lists: its first RECORD_CHARS characters. NULL for
 * none; new reference. */
#define RECORD_CHARS 200
static json_t *record_text(const char *text)
{
    if (!text || !*text)
        return NULL;
    size_t n = as_utf8_prefix(text, RECORD_CHARS);
    AS_AUTO(str_done) struct str b = {0};
    str_add(&b, text, n);
    str_puts(&b, text[n] ? " ..." : "");
    return json_string(str_cstr(&b));
}

/* Tags as people read them: "a, b". */
static json_t *record_tags(const json_t *tags)
{
    AS_AUTO(str_done) struct str b = {0};
    for (size_t i = 0; i < json_array_size(tags); i++)
        str_printf(&b, "%s%s", i ? ", " : "", json_string_value(json_array_get(tags, i)));
    return record_text(str_cstr(&b));
}

static as_status change_tags(struct change *x, struct as_err *err)
{
    AS_AUTO(as_freep) char *document = NULL;
    JSON_AUTO old = NULL;
    as_status st =
        replace_field(x, "tags", json_incref((json_t *)x->patch->tags), &document, &old, err);
    if (st != AS_OK || json_equal(old, x->patch->tags))
        return st;
    if ((st = store_sweep_tag(x->t, x->before.key, document, err)) != AS_OK)
        return st;
    add_word(x, "other tags");
    return record(x, "tags", record_tags(old), record_tags(x->patch->tags), err);
}

static as_status change_remarks(struct change *x, struct as_err *err)
{
    const char *old = NULL;
    as_status st = store_sweep_remarks(x->t, x->a, x->before.key, &old, err);
    if (st != AS_OK || as_streq(old, x->patch->remarks))
        return st;
    if ((st = store_sweep_remark(x->t, x->before.key, x->patch->remarks, err)) != AS_OK)
        return st;
    add_word(x, "other remarks");
    return record(x, "remarks", record_text(old), record_text(x->patch->remarks), err);
}

/* States. */

static as_status move(struct change *x, sweep_event ev, struct as_err *err)
{
    struct sweep_head after;
    const char *reason = NULL;
    if (x->words.len > 0 && ev == SWEEP_EV_REOPEN)
        reason = arena_printf(x->a, "it runs on: %s", str_cstr(&x->words));
    as_status st = sweep_transition(x->t, x->a, &x->now, ev, reason, err);
    if (st != AS_OK)
        return st;
    st = store_sweep_lock(x->t, x->a, x->now.key, &after, err);
    if (st != AS_OK)
        return st;
    x->moved = true;
    return record(x, "state", json_string(sweep_state_format(x->now.state)),
                  json_string(sweep_state_format(after.state)), err);
}

static bool is_live(sweep_state s)
{
    return s == SWEEP_RUNNING || s == SWEEP_PAUSED;
}

/* Let a sweep that has ended run on, if its limits leave it work. *ret_why: why not; else NULL. */
static as_status reopen(struct change *x, const char **ret_why, struct as_err *err)
{
    const struct sweep_standing standing = sweep_standing_of(&x->now);
    sweep_end end = sweep_end_of(&standing);
    *ret_why = NULL;
    if (end == SWEEP_GOES_ON)
        return move(x, SWEEP_EV_REOPEN, err);
    *ret_why = sweep_end_advice(x->a, &standing, end);
    return *ret_why ? AS_OK : as_fail_nomem(err);
}

static as_status change_state(struct change *x, sweep_state want, struct as_err *err)
{
    const char *why = NULL;
    if (x->now.state == want)
        return AS_OK;
    if (want == SWEEP_RUNNING && !is_live(x->now.state)) {
        as_status st = reopen(x, &why, err);
        if (st != AS_OK || !why)
            return st;
        return as_fail(err, AS_E_CONFLICT, "the sweep '%s' is %s and cannot become running: %s",
                       x->now.id, sweep_state_format(x->now.state), why);
    }
    as_status st = move(x,
                        want == SWEEP_RUNNING  ? SWEEP_EV_RESUME
                        : want == SWEEP_PAUSED ? SWEEP_EV_PAUSE
                                               : SWEEP_EV_CANCEL,
                        err);
    if (st == AS_E_CONFLICT)
        return as_fail(err, st, "the sweep '%s' is %s and cannot become %s", x->now.id,
                       sweep_state_format(x->now.state), sweep_state_format(want));
    return st;
}

/* After other limits, and without a word about the state. */
static as_status run_on(struct change *x, struct as_err *err)
{
    const char *why = NULL;
    if (is_live(x->now.state))
        return AS_OK;
    if (x->now.state == SWEEP_CANCELLED) {
        add_note(x, "the sweep stays cancelled: resume it to run on");
        return AS_OK;
    }
    as_status st = reopen(x, &why, err);
    if (st == AS_OK && why)
        add_note(
            x, arena_printf(x->a, "the sweep stays %s: %s", sweep_state_format(x->now.state), why));
    return st;
}

/* Keep what was changed, and write an event of it unless a transition did. */
static as_status keep_record(struct change *x, struct as_err *err)
{
    if (json_object_size(x->what) == 0)
        return AS_OK;
    AS_AUTO(as_freep) char *text = json_format_ordered(x->what);
    if (!text)
        return as_fail_nomem(err);
    as_status st = store_sweep_change_add(x->t, x->now.key, x->by, text, err);
    if (st != AS_OK || x->moved)
        return st;
    struct event_new e = {.type = "sweep.changed",
                          .sweep_key = x->now.key,
                          .sweep = x->now.id,
                          .state = sweep_state_format(x->now.state),
                          .reason = str_cstr(&x->words)};
    return store_event_add(x->t, &e, err);
}

/* Is the sweep as the patch says that it must be? The caller holds its row. */
static as_status check_expected(const struct change *x, const char *id, struct as_err *err)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *doc = NULL;
    const struct sweep_patch *p = x->patch;
    const char *text = NULL;
    if (p->if_state && x->before.state != *p->if_state)
        return as_fail(err, AS_E_CONFLICT, "the sweep '%s' is %s, not %s: nothing was changed", id,
                       sweep_state_format(x->before.state), sweep_state_format(*p->if_state));
    if (p->if_max_trials == 0)
        return AS_OK;
    as_status st = store_sweep_document(x->t, x->a, x->before.key, &text, err);
    if (st == AS_OK)
        st = stored_doc_read(text, NULL, &doc, err);
    if (st != AS_OK || doc->limits.max_trials == p->if_max_trials)
        return st;
    return as_fail(err, AS_E_CONFLICT,
                   "the sweep '%s' has max_trials %lld, not %lld: nothing was changed", id,
                   (long long)doc->limits.max_trials, (long long)p->if_max_trials);
}

static as_status change_sweep(struct change *x, const char *id, struct as_err *err)
{
    int64_t key = 0;
    x->what = json_object();
    if (!x->what)
        return as_fail_nomem(err);
    as_status st = store_sweep_key(x->t, id, &key, err);
    if (st != AS_OK)
        return st;
    if ((st = store_sweep_lock(x->t, x->a, key, &x->before, err)) != AS_OK)
        return st;
    x->now = x->before;
    if ((st = check_expected(x, id, err)) != AS_OK)
        return st;
    if (x->patch->limits && (st = change_limits(x, err)) != AS_OK)
        return st;
    if (x->patch->has_priority && (st = change_priority(x, err)) != AS_OK)
        return st;
    if (x->patch->tags && (st = change_tags(x, err)) != AS_OK)
        return st;
    if (x->patch->has_remarks && (st = change_remarks(x, err)) != AS_OK)
        return st;
    if (x->patch->state)
        st = change_state(x, *x->patch->state, err);
    else if (x->patch->limits || x->patch->has_priority)
        st = run_on(x, err);
    if (st != AS_OK)
        return st;
    if ((st = keep_record(x, err)) != AS_OK)
        return st;
    if ((st = sweep_settle(x->t, x->a, key, NULL, err)) != AS_OK)
        return st;
    return store_sweep_get(x->t, x->a, key, &x->ret->sweep, err);
}

as_status sweep_change(struct store *db, struct arena *a, const char *id,
                       const struct sweep_patch *patch, const char *by, struct sweep_changed *ret,
                       struct as_err *err)
{
    struct sweep_changed changed = {0};
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run)) {
        changed = (struct sweep_changed){0};
        AS_AUTO(change_done)
        struct change x = {.t = run.tx, .a = a, .patch = patch, .by = by, .ret = &changed};
        run.status = change_sweep(&x, id, err);
    }
    if (run.status == AS_OK)
        *ret = changed;
    return run.status;
}

/* The record. */

static as_status read_changes(struct tx *t, struct arena *a, const char *id,
                              struct sweep_change_list *ret, struct as_err *err)
{
    int64_t key = 0;
    as_status st = store_sweep_key(t, id, &key, err);
    if (st != AS_OK)
        return st;
    return store_sweep_changes(t, a, key, SWEEP_CHANGES_MAX, &ret->rows, &ret->n, err);
}

as_status sweep_changes(struct store *db, struct arena *a, const char *id,
                        struct sweep_change_list *ret, struct as_err *err)
{
    struct sweep_change_list list = {0};
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = read_changes(run.tx, a, id, &list, err);
    if (run.status == AS_OK)
        *ret = list;
    return run.status;
}
