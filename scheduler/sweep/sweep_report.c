/* `trial.report` of a sweep document: where a program's measurements come from, besides
 * $ASSAY_REPORT.
 *
 * An object names one source of each kind, and a list of objects names several of a kind. Both
 * become a list with one source in each object, which is what the runner reads; the list is a valid
 * document too, so the canonical document parses to itself. Patterns are compiled here only to
 * refuse those that are wrong before a trial runs. */
#include <stdio.h>
#include <string.h>

#include "base/command_line.h"
#include "base/file.h"
#include "base/metric_name.h"
#include "base/pattern.h"
#include "base/str.h"
#include "scheduler/sweep/sweep_trial_priv.h"

#define REPORT_AT "/trial/report"
#define MAX_SOURCES 16
#define MAX_PATTERNS 32
#define MAX_NAMES 256 /* of `tags` and of `groups` */
#define MAX_COLUMN 255

/* One object of `report`. */
struct source_fields {
    json_t *patterns, *groups, *tags;
    const char *csv, *json, *step, *tensorboard;
};

/* ---- names of metrics ---- */

/* Check `tags` or `groups`: {what the source calls it: metric}. */
static as_status check_names(const struct trial_reader *r, const json_t *names, const char *parent,
                             const char *field, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX], child[AS_ERR_POINTER_MAX];
    json_pointer_child(parent, field, at);
    if (json_object_size(names) > MAX_NAMES)
        return as_fail_at(err, AS_E_TOO_LARGE, at, "%s: %zu %s, at most %d are allowed", at,
                          json_object_size(names), field, MAX_NAMES);
    for (void *it = json_object_iter((json_t *)names); it;
         it = json_object_iter_next((json_t *)names, it)) {
        const char *metric = json_string_value(json_object_iter_value(it));
        as_status st = AS_OK;
        json_pointer_child(at, json_object_iter_key(it), child);
        if (!metric || !metric_name_valid(metric) || as_streq(metric, "step"))
            st = as_fail_at(err, AS_E_INVAL, child,
                            "%s: found %.60s, expected the name of a metric: " METRIC_NAME_RULE,
                            child, metric ? metric : json_type_name(json_object_iter_value(it)));
        if ((st = faults_note(r->faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- patterns ---- */

/* The patterns of one object of `report`, as they are read. */
struct pattern_list {
    const json_t *groups; /* {group: metric}; NULL: each group is a metric of its name */
    json_t *texts;        /* a list, owned */
    json_t *found;        /* the names of all groups as keys, owned */
    bool has_metric;      /* a group that is not `step` */
};

static void pattern_list_done(struct pattern_list *l)
{
    json_decref(l->texts);
    json_decref(l->found);
}

/* The metric of a group: as `groups` says, or its own name. */
static const char *metric_of_group(const struct pattern_list *l, const char *group)
{
    const char *metric = json_string_value(json_object_get(l->groups, group));
    return metric && metric_name_valid(metric) ? metric
                                               : group; /* check_names() noted the others */
}

static as_status check_groups(const struct pattern *p, const char *at, struct pattern_list *l,
                              struct as_err *err)
{
    JSON_AUTO metrics = json_object(); /* {metric: group} of this pattern */
    if (!metrics)
        return sweep_doc_no_memory(err);
    for (size_t i = 0; i < pattern_n_names(p); i++) {
        const char *name = pattern_name(p, i), *metric = metric_of_group(l, name);
        const char *other = json_string_value(json_object_get(metrics, metric));
        if (!metric_name_valid(metric)) /* PCRE2 takes letters of every alphabet */
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: the group '%.60s' cannot be a metric: expected ASCII letters, "
                              "digits and _, or its metric in groups",
                              at, name);
        if (other)
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: the groups '%.60s' and '%.60s' are both the metric '%s', "
                              "expected one group (alternatives may have the same name)",
                              at, other, name, metric);
        if (json_object_set_new(metrics, metric, json_string(name)) < 0 ||
            json_object_set_new(l->found, name, json_true()) < 0)
            return sweep_doc_no_memory(err);
        l->has_metric |= strcmp(name, "step") != 0;
    }
    if (pattern_n_names(p) == 0)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: the pattern has no named group, expected one for each metric, such "
                          "as (?P<loss>[0-9.eE+-]+)",
                          at);
    return AS_OK;
}

static as_status add_pattern(struct pattern_list *l, const json_t *text, const char *at,
                             struct as_err *err)
{
    AS_AUTO(pattern_freep) struct pattern *p = NULL;
    if (!json_is_string(text))
        return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, expected a regular expression", at,
                          json_type_name(text));
    if (strlen(json_string_value(text)) != json_string_length(text))
        return as_fail_at(err, AS_E_INVAL, at, "%s: the pattern has a NUL character", at);
    as_status st = pattern_compile(json_string_value(text), &p, NULL, err);
    if (st == AS_E_NOMEM)
        return st;
    if (st < 0) {
        char why[AS_ERR_MSG_MAX];
        (void)snprintf(why, sizeof why, "%s", err ? err->msg : "");
        return as_fail_at(err, st, at, "%s: %s", at, why);
    }
    if ((st = check_groups(p, at, l, err)) < 0)
        return st;
    return json_array_append(l->texts, (json_t *)text) < 0 ? sweep_doc_no_memory(err) : AS_OK;
}

/* `groups` names groups that the patterns have. */
static as_status check_group_names(const struct trial_reader *r, const struct pattern_list *l,
                                   const char *parent, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX], child[AS_ERR_POINTER_MAX];
    json_pointer_child(parent, "groups", at);
    for (void *it = json_object_iter((json_t *)l->groups); it;
         it = json_object_iter_next((json_t *)l->groups, it)) {
        const char *name = json_object_iter_key(it);
        as_status st = AS_OK;
        json_pointer_child(at, name, child);
        if (strcmp(name, "step") == 0)
            st = as_fail_at(err, AS_E_INVAL, child, "%s: the group step is the step and no metric",
                            child);
        else if (!json_object_get(l->found, name))
            st = as_fail_at(err, AS_E_INVAL, child,
                            "%s: no pattern of stdout beside it has a group '%.60s', expected such "
                            "as (?P<%.60s>[0-9.eE+-]+)",
                            child, name, name);
        if ((st = faults_note(r->faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

/* One pattern, or a list. *ret: a list; a new reference. */
static as_status read_patterns(const struct trial_reader *r, const struct source_fields *s,
                               const char *parent, json_t **ret, struct as_err *err)
{
    AS_AUTO(pattern_list_done)
    struct pattern_list l = {.groups = s->groups, .texts = json_array(), .found = json_object()};
    const json_t *j = s->patterns;
    char at[AS_ERR_POINTER_MAX], child[AS_ERR_POINTER_MAX];
    size_t n = json_is_array(j) ? json_array_size(j) : 1, faults = r->faults ? r->faults->n : 0;
    json_pointer_child(parent, "stdout", at);
    if (!l.texts || !l.found)
        return sweep_doc_no_memory(err);
    if (n == 0 || n > MAX_PATTERNS)
        return as_fail_at(err, AS_E_INVAL, at, "%s: %zu patterns, expected 1 to %d", at, n,
                          MAX_PATTERNS);
    for (size_t i = 0; i < n; i++) {
        if (json_is_array(j))
            json_pointer_index(at, i, child);
        as_status st = add_pattern(&l, json_is_array(j) ? json_array_get(j, i) : j,
                                   json_is_array(j) ? child : at, err);
        if ((st = faults_note(r->faults, st, err)) != AS_OK)
            return st;
    }
    bool whole = !r->faults || r->faults->n == faults; /* every pattern was read */
    if (whole && !l.has_metric)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: the only named group is step, expected one for each metric, such as "
                          "(?P<loss>[0-9.eE+-]+)",
                          at);
    as_status st = whole ? check_group_names(r, &l, parent, err) : AS_OK;
    if (st < 0)
        return st;
    *ret = as_steal(l.texts);
    return AS_OK;
}

/* ---- paths ---- */

/* The path without "./" before and "/" behind it; "" for the folder itself. */
static as_status plain_path(const char *path, struct str *ret, struct as_err *err)
{
    while (as_starts_with(path, "./"))
        path += 2 + strspn(path + 2, "/");
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n == 1 && *path == '.')
        n = 0;
    str_add(ret, path, n);
    return str_check(ret, err);
}

/* With something in the place of each ${…}; the runner checks the real path again. */
static as_status check_inner(const char *path, bool *ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str s = {0};
    while (*path) {
        const char *end = as_starts_with(path, "${") ? strchr(path, '}') : NULL;
        str_putc(&s, end ? 'x' : *path);
        path = end ? end + 1 : path + 1;
    }
    *ret = file_path_is_inner(str_cstr(&s));
    return str_check(&s, err);
}

/* *ret: the path as text; a new reference. */
static as_status read_path(const struct trial_reader *r, const char *path, const char *parent,
                           const char *field, bool may_be_folder, json_t **ret, struct as_err *err)
{
    const struct command_rules rules = sweep_program_rules(r);
    AS_AUTO(str_done) struct str plain = {0};
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(parent, field, at);
    bool inner = false;
    as_status st = plain_path(path, &plain, err);
    if (st == AS_OK)
        st = check_inner(str_cstr(&plain), &inner, err);
    if (st < 0)
        return st;
    bool whole = may_be_folder && plain.len == 0 && *path;
    if (!whole && !inner)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found '%.80s', expected a path of at most 255 bytes below the "
                          "folder where the program runs, without '..'",
                          at, path);
    JSON_AUTO text = json_string(whole ? "." : str_cstr(&plain));
    if (!text)
        return sweep_doc_no_memory(err);
    if ((st = command_text_check(text, at, &rules, r->faults != NULL, err)) < 0)
        return st;
    *ret = as_steal(text);
    return AS_OK;
}

/* ---- sources ---- */

/* Append {kind: value, more_name: more} to the list of sources. `value` is taken; `more` may be
 * NULL. */
static as_status add_source(json_t *list, const char *kind, json_t *value, const char *more_name,
                            json_t *more, struct as_err *err)
{
    JSON_AUTO source = json_object();
    int bad = json_object_set_new(source, kind, value);
    if (more)
        bad |= json_object_set(source, more_name, more);
    if (bad || json_array_append(list, source) < 0)
        return sweep_doc_no_memory(err);
    return AS_OK;
}

static as_status add_sources(const struct trial_reader *r, const struct source_fields *s,
                             const char *at, json_t *list, struct as_err *err)
{
    JSON_AUTO step = s->step ? json_string(s->step) : NULL;
    json_t *value = NULL;
    as_status st = AS_OK;
    if (s->step && !step)
        return sweep_doc_no_memory(err);
    if (s->patterns) {
        if ((s->groups && (st = check_names(r, s->groups, at, "groups", err)) < 0) ||
            (st = read_patterns(r, s, at, &value, err)) < 0 ||
            (st = add_source(list, "stdout", value, "groups", s->groups, err)) < 0)
            return st;
    }
    if (s->csv) {
        if ((st = read_path(r, s->csv, at, "csv", false, &value, err)) < 0 ||
            (st = add_source(list, "csv", value, "step", step, err)) < 0)
            return st;
    }
    if (s->json) {
        if ((st = read_path(r, s->json, at, "json", false, &value, err)) < 0 ||
            (st = add_source(list, "json", value, "step", step, err)) < 0)
            return st;
    }
    if (!s->tensorboard)
        return AS_OK;
    if ((st = read_path(r, s->tensorboard, at, "tensorboard", true, &value, err)) < 0 ||
        (st = add_source(list, "tensorboard", value, "tags", s->tags, err)) < 0)
        return st;
    return s->tags ? check_names(r, s->tags, at, "tags", err) : AS_OK;
}

static as_status check_source(const struct json_fields *f, const struct source_fields *s,
                              struct as_err *err)
{
    const char *at = f->pointer;
    char child[AS_ERR_POINTER_MAX];
    bool csv = !json_fields_lack(f, "csv"), json = !json_fields_lack(f, "json"),
         board = !json_fields_lack(f, "tensorboard");
    if (!csv && !json && !board && json_fields_lack(f, "stdout"))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: expected stdout, csv, json or tensorboard, found none of them", at);
    json_pointer_child(at, "step", child);
    if (s->step && !csv && !json)
        return as_fail_at(err, AS_E_INVAL, child, "%s is a field of csv and json", child);
    if (s->step && (!*s->step || strlen(s->step) > MAX_COLUMN))
        return as_fail_at(err, AS_E_INVAL, child, "%s: expected a name of 1 to %d bytes", child,
                          MAX_COLUMN);
    json_pointer_child(at, "tags", child);
    if (s->tags && !board)
        return as_fail_at(err, AS_E_INVAL, child, "%s is a field of tensorboard", child);
    json_pointer_child(at, "groups", child);
    if (s->groups && json_fields_lack(f, "stdout"))
        return as_fail_at(err, AS_E_INVAL, child, "%s is a field of stdout", child);
    return AS_OK;
}

static as_status read_source(const struct trial_reader *r, const struct json_fields *trial,
                             const json_t *j, const char *at, json_t *list, struct as_err *err)
{
    struct json_fields f;
    struct source_fields s = {0};
    as_status st = json_fields_under(&f, trial, j, at, err);
    if (st < 0 || (st = json_fields_any(&f, "stdout", JSON_OPTIONAL, &s.patterns, err)) < 0 ||
        (st = json_fields_str(&f, "csv", JSON_OPTIONAL, &s.csv, err)) < 0 ||
        (st = json_fields_str(&f, "json", JSON_OPTIONAL, &s.json, err)) < 0 ||
        (st = json_fields_str(&f, "step", JSON_OPTIONAL, &s.step, err)) < 0 ||
        (st = json_fields_str(&f, "tensorboard", JSON_OPTIONAL, &s.tensorboard, err)) < 0 ||
        (st = json_fields_object(&f, "groups", JSON_OPTIONAL, &s.groups, err)) < 0 ||
        (st = json_fields_object(&f, "tags", JSON_OPTIONAL, &s.tags, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0 || (st = check_source(&f, &s, err)) < 0)
        return st;
    return add_sources(r, &s, at, list, err);
}

/* The runner tries all patterns of all sources with each line. */
static as_status check_numbers(const json_t *list, struct as_err *err)
{
    size_t patterns = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        patterns += json_array_size(json_object_get(json_array_get(list, i), "stdout"));
    if (patterns > MAX_PATTERNS)
        return as_fail_at(err, AS_E_TOO_LARGE, REPORT_AT,
                          REPORT_AT ": %zu patterns in all, at most %d are allowed", patterns,
                          MAX_PATTERNS);
    if (json_array_size(list) > MAX_SOURCES)
        return as_fail_at(err, AS_E_TOO_LARGE, REPORT_AT,
                          REPORT_AT ": %zu sources, at most %d are allowed", json_array_size(list),
                          MAX_SOURCES);
    return AS_OK;
}

as_status sweep_report_parse(const struct trial_reader *r, const struct json_fields *trial,
                             const json_t *j, json_t **ret, struct as_err *err)
{
    JSON_AUTO list = json_array();
    as_status st = AS_OK;
    if (!list)
        return sweep_doc_no_memory(err);
    if (!json_is_object(j) && !json_is_array(j))
        return as_fail_at(err, AS_E_INVAL, REPORT_AT,
                          REPORT_AT ": found %s, expected an object with stdout, csv, json or "
                                    "tensorboard, or a list of these",
                          json_type_name(j));
    if (json_is_object(j)) {
        st = read_source(r, trial, j, REPORT_AT, list, err);
    } else if (json_array_size(j) == 0) {
        return as_fail_at(err, AS_E_INVAL, REPORT_AT, REPORT_AT ": the list is empty");
    }
    for (size_t i = 0; st == AS_OK && json_is_array(j) && i < json_array_size(j); i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(REPORT_AT, i, at);
        st =
            faults_note(r->faults, read_source(r, trial, json_array_get(j, i), at, list, err), err);
    }
    if (st < 0 || (st = check_numbers(list, err)) < 0)
        return st;
    *ret = as_steal(list);
    return AS_OK;
}
