/* Makes the trial that runs from the trial of a document: the server calls it to check documents
 * and to show a trial, the runner to start one, so that both agree on every text.
 *
 * Names of files are known before their texts are made, because the text of one file may name
 * another. What cannot be known yet (the folder of a trial that has not begun) stays as it is. */
#include "base/trial_template.h"

#include "base/command_line.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/template.h"

struct applying {
    const struct trial_values *values;
    json_t *names; /* the parameters, "file:path" of each file, and trial_dir */
};

/* ---- the names ---- */

static bool is_parameter(const struct trial_values *v, const char *name)
{
    for (size_t i = 0; i < json_array_size(v->inactive); i++)
        if (as_streq(json_string_value(json_array_get(v->inactive, i)), name))
            return true;
    return json_object_get(v->params, name) != NULL;
}

static as_status name_files(const struct trial_values *v, const json_t *files, json_t *names,
                            struct as_err *err)
{
    const char *path;
    json_t *text;
    json_object_foreach((json_t *)files, path, text)
    {
        AS_AUTO(str_done) struct str at = {0};
        str_printf(&at, v->files ? "%s/%s" : "%s%s}", v->files ? v->files : "${file:", path);
        as_status st = str_check(&at, err);
        if (st < 0 || (st = template_name_file(names, path, at.s, err)) < 0)
            return st;
    }
    return AS_OK;
}

static as_status collect_names(const struct trial_values *v, const json_t *files, json_t **ret,
                               struct as_err *err)
{
    JSON_AUTO names = json_clone_flat(v->params);
    const char *dir = v->trial_dir ? v->trial_dir : "${" TRIAL_DIR_NAME "}";
    as_status st = names ? name_files(v, files, names, err) : as_fail_nomem(err);
    if (st < 0)
        return st;
    if (!is_parameter(v, TRIAL_DIR_NAME) &&
        json_object_set_new(names, TRIAL_DIR_NAME, json_string(dir)) < 0)
        return as_fail_nomem(err);
    *ret = as_steal(names);
    return AS_OK;
}

/* ---- the fields ---- */

typedef as_status apply_fn(const struct applying *a, const json_t *field, json_t **ret,
                           struct as_err *err);

static as_status apply_tree(const struct applying *a, const json_t *field, json_t **ret,
                            struct as_err *err)
{
    return template_apply(field, a->names, ret, err);
}

/* A text with references, or a number, as a text. */
static as_status apply_text(const struct applying *a, const json_t *field, json_t **ret,
                            struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    JSON_AUTO number = json_is_number(field) ? json_pack("{s:O}", "v", field) : NULL;
    if (!json_is_string(field) && !json_is_number(field))
        return as_fail(err, AS_E_INVAL, "found %s, expected text", json_type_name(field));
    if (json_is_number(field) && !number)
        return as_fail_nomem(err);
    as_status st = number ? template_apply_text("${v}", number, &text, err)
                          : template_apply_text(json_string_value(field), a->names, &text, err);
    if (st < 0)
        return st;
    *ret = json_string(text);
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status apply_texts(const struct applying *a, const json_t *field, json_t **ret,
                             struct as_err *err)
{
    JSON_AUTO out = json_object();
    const char *name;
    json_t *value;
    if (!out)
        return as_fail_nomem(err);
    json_object_foreach((json_t *)field, name, value)
    {
        json_t *text = NULL;
        as_status st = apply_text(a, value, &text, err);
        if (st < 0)
            return as_err_prefix(err, st, "'%.80s'", name);
        if (json_object_set_new(out, name, text) < 0)
            return as_fail_nomem(err);
    }
    *ret = as_steal(out);
    return AS_OK;
}

static as_status apply_command(const struct applying *a, const json_t *field, json_t **ret,
                               struct as_err *err)
{
    return command_line_expand(field, a->values->params, a->values->inactive, a->names, ret, err);
}

static as_status apply_source(const struct applying *a, json_t *source, struct as_err *err)
{
    static const char *const paths[] = {"csv", "json", "tensorboard"};
    for (size_t i = 0; i < AS_ARRAY_LEN(paths); i++) {
        const json_t *path = json_object_get(source, paths[i]);
        json_t *text = NULL;
        as_status st = path ? apply_text(a, path, &text, err) : AS_OK;
        if (st < 0)
            return as_err_prefix(err, st, "the path of %s", paths[i]);
        if (text && json_object_set_new(source, paths[i], text) < 0)
            return as_fail_nomem(err);
    }
    return AS_OK;
}

static as_status apply_report(const struct applying *a, const json_t *field, json_t **ret,
                              struct as_err *err)
{
    JSON_AUTO sources = json_clone(field);
    size_t i;
    json_t *source;
    if (!sources)
        return as_fail_nomem(err);
    json_array_foreach(sources, i, source)
    {
        as_status st = apply_source(a, source, err);
        if (st < 0)
            return st;
    }
    *ret = as_steal(sources);
    return AS_OK;
}

as_status trial_template_apply(const json_t *trial, const struct trial_values *values, json_t **ret,
                               struct as_err *err)
{
    static const struct {
        const char *name;
        apply_fn *apply;
        bool has_pointer; /* its errors name the field by themselves */
    } fields[] = {
        {"train", apply_tree, false},     {"command", apply_command, true},
        {"env", apply_texts, false},      {"files", apply_texts, false},
        {"directory", apply_text, false}, {"venv", apply_text, false},
        {"env_file", apply_text, false},  {"container", apply_tree, false},
        {"report", apply_report, false},
    };
    JSON_AUTO names = NULL;
    JSON_AUTO out = json_clone_flat(trial);
    struct applying a = {.values = values};
    as_status st = out ? collect_names(values, json_object_get(trial, "files"), &names, err)
                       : as_fail_nomem(err);
    a.names = names;
    for (size_t i = 0; st == AS_OK && i < AS_ARRAY_LEN(fields); i++) {
        const json_t *field = json_object_get(trial, fields[i].name);
        json_t *applied = NULL;
        if (!field)
            continue;
        st = fields[i].apply(&a, field, &applied, err);
        if (st < 0 && !fields[i].has_pointer)
            return as_err_prefix(err, st, "trial.%s", fields[i].name);
        if (st == AS_OK && json_object_set_new(out, fields[i].name, applied) < 0)
            st = as_fail_nomem(err);
    }
    if (st < 0)
        return st;
    *ret = as_steal(out);
    return AS_OK;
}
