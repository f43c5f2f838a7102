/* A tree is drawn row by row, depth first, forks in the order of their numbers. A fork has a higher
 * number than its parent, so lists of forks are made from the last trial to the first. */
#include "cli/view/fork_view.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/view/format.h"

#define NO_TRIAL SIZE_MAX

/* The trials as a tree; places are those in the list. */
struct tree {
    const json_t *trials;
    size_t n;
    size_t *first, *next; /* of a trial: its first fork; of a fork: the next one of its parent */
    bool *is_fork;
    size_t n_rows, n_hidden;
    struct pairs *p;
};

static void tree_done(struct tree *t)
{
    free(t->first);
    free(t->next);
    free(t->is_fork);
}

bool fork_view_forks(const json_t *sweep)
{
    const json_t *section = json_object_get(json_object_get(sweep, "document"), "early_stopping");
    return as_streq(json_string_value(json_object_get(section, "method")), "pbt");
}

static json_int_t number_of(const json_t *trial, const char *name)
{
    return json_integer_value(json_object_get(trial, name));
}

static as_status make_tree(struct tree *t, struct as_err *err)
{
    t->first = as_calloc(t->n + 1, sizeof *t->first);
    t->next = as_calloc(t->n + 1, sizeof *t->next);
    t->is_fork = as_calloc(t->n + 1, sizeof *t->is_fork);
    if (!t->first || !t->next || !t->is_fork)
        return as_fail_nomem(err);
    for (size_t i = 0; i < t->n; i++)
        t->first[i] = t->next[i] = NO_TRIAL;
    for (size_t i = t->n; i-- > 0;) {
        const json_t *parent = json_object_get(json_array_get(t->trials, i), "parent");
        size_t k = (size_t)json_integer_value(parent);
        if (!json_is_integer(parent) || k >= i)
            continue;
        t->is_fork[i] = true;
        t->next[i] = t->first[k];
        t->first[k] = i;
    }
    return AS_OK;
}

/* "lr=0.02": the parameters that are not the parent's. */
static void add_changes(const json_t *trial, const json_t *parent, struct str *b)
{
    const char *name;
    json_t *value;
    bool any = false;
    json_object_foreach(json_object_get(trial, "params"), name, value)
    {
        const json_t *theirs = json_object_get(json_object_get(parent, "params"), name);
        if (theirs && json_equal(value, theirs))
            continue;
        str_printf(b, "%s%s=", any ? " " : ": ", name);
        format_param(b, value, FORMAT_SHORT);
        any = true;
    }
}

static void add_row(struct tree *t, size_t place, const json_t *parent, const char *branch)
{
    const json_t *trial = json_array_get(t->trials, place);
    const json_t *value = json_object_get(trial, "value");
    AS_AUTO(str_done) struct str b = {0};
    if (t->n_rows == FORK_ROWS_MAX) {
        t->n_hidden++;
        return;
    }
    str_printf(&b, "%s%" JSON_INTEGER_FORMAT, branch, number_of(trial, "number"));
    if (parent)
        str_printf(&b, " from step %" JSON_INTEGER_FORMAT, number_of(trial, "fork_step"));
    add_changes(trial, parent, &b);
    str_puts(&b, json_is_number(value) ? ", " : "");
    format_value(&b, value, FORMAT_SHORT);
    str_printf(&b, ", %s", json_string_value(json_object_get(trial, "state")));
    bool is_named = t->n_rows == 0 || !t->p->terminal.tty; /* scripts look for the name */
    pairs_add(t->p, is_named ? "forks" : "", STYLE_PLAIN, str_cstr(&b));
    t->n_rows++;
}

enum { FORK, LAST, PAST };
static const char *const lines[2][3] = {{"|- ", "`- ", "|  "}, {"├─ ", "└─ ", "│  "}};

/* The forks of a trial, behind `indent`. The depth is at most the number of rungs. */
static void add_forks(struct tree *t, size_t place, const char *indent)
{
    const json_t *parent = json_array_get(t->trials, place);
    for (size_t i = t->first[place]; i != NO_TRIAL; i = t->next[i]) {
        AS_AUTO(str_done) struct str branch = {0};
        AS_AUTO(str_done) struct str below = {0};
        bool is_last = t->next[i] == NO_TRIAL;
        str_printf(&branch, "%s%s", indent, lines[t->p->terminal.unicode][is_last ? LAST : FORK]);
        str_printf(&below, "%s%s", indent, is_last ? "   " : lines[t->p->terminal.unicode][PAST]);
        add_row(t, i, parent, str_cstr(&branch));
        add_forks(t, i, str_cstr(&below));
    }
}

as_status fork_view_tree(struct pairs *p, const json_t *trials, struct as_err *err)
{
    AS_AUTO(tree_done)
    struct tree t = {.trials = trials, .n = json_array_size(trials), .p = p};
    as_status st = make_tree(&t, err);
    for (size_t i = 0; i < t.n && st == AS_OK; i++) {
        if (t.is_fork[i] || t.first[i] == NO_TRIAL)
            continue;
        add_row(&t, i, NULL, "");
        add_forks(&t, i, "");
    }
    if (t.n_hidden > 0)
        pairs_addf(p, p->terminal.tty ? "" : "forks", "and %zu more", t.n_hidden);
    return st;
}

void fork_view_trial(struct pairs *p, const json_t *trial)
{
    AS_AUTO(str_done) struct str b = {0};
    size_t i;
    json_t *fork;
    if (json_is_integer(json_object_get(trial, "parent")))
        pairs_addf(p, "parent",
                   "goes on from trial %" JSON_INTEGER_FORMAT " at step %" JSON_INTEGER_FORMAT,
                   number_of(trial, "parent"), number_of(trial, "fork_step"));
    json_array_foreach(json_object_get(trial, "forks"), i, fork)
        str_printf(&b, "%s%" JSON_INTEGER_FORMAT " from step %" JSON_INTEGER_FORMAT, i ? ", " : "",
                   number_of(fork, "number"), number_of(fork, "step"));
    pairs_add(p, "forks", STYLE_PLAIN, str_cstr(&b));
}
