/* `trial` of a sweep document as a program of the user's: command, env, files, directory, report
 * (sweep_report.c).
 *
 * References are checked against the document's parameters, not against the space, because a fault
 * in one parameter must not hide the faults of the command. What runs but is hardly meant is
 * refused only in a document that is sent: documents that are stored must stay readable. */
#include "scheduler/sweep/sweep_trial_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/command_line.h"
#include "base/env_file.h"
#include "base/file.h"
#include "base/param_name.h"
#include "base/trial_template.h"
#include "base/utf8.h"
#include "scheduler/sweep/sweep_environment_priv.h"

#define TRIAL_AT "/trial"
#define COMMAND_AT TRIAL_AT "/command"
#define ENV_AT TRIAL_AT "/env"
#define FILES_AT TRIAL_AT "/files"
#define FOLDER_AT "/trial/folder"
#define DIRECTORY_AT TRIAL_AT "/directory"
#define MAX_ENV 256
#define MAX_FILES 64
#define MAX_FILE_BYTES (1 << 20) /* of all files together */

/* ---- what is known of a name ---- */

static const json_t *parameter_of(const struct trial_reader *r, const char *name)
{
    return json_object_get(r->parameters, name);
}

static bool is_known(const void *arg, const char *name)
{
    const struct trial_reader *r = arg;
    const char *file = template_file_path(name);
    if (file)
        return json_object_get(r->d->trial.files, file);
    return !r->parameters || parameter_of(r, name) || as_streq(name, TRIAL_DIR_NAME);
}

static bool is_conditional(const void *arg, const char *name)
{
    const json_t *when = json_object_get(parameter_of(arg, name), "when");
    return when && !json_is_null(when);
}

static bool is_boolean(const void *arg, const char *name)
{
    const struct trial_reader *r = arg;
    const json_t *p = parameter_of(r, name), *values = json_object_get(p, "values");
    if (!r->parameters || as_streq(json_string_value(json_object_get(p, "type")), "bool"))
        return true;
    for (size_t i = 0; i < json_array_size(values); i++)
        if (!json_is_boolean(json_array_get(values, i)))
            return false;
    return json_array_size(values) > 0;
}

struct command_rules sweep_program_rules(const struct trial_reader *r)
{
    return (struct command_rules){
        .known = is_known, .conditional = is_conditional, .boolean = is_boolean, .arg = r};
}

as_status sweep_program_check_text(const struct trial_reader *r, const json_t *text,
                                   const char *pointer, struct as_err *err)
{
    const struct command_rules rules = sweep_program_rules(r);
    return command_text_check(text, pointer, &rules, r->faults != NULL, err);
}

/* A program that reads the variable of two parameters would find nothing, because nobody can say
 * which one it means. One that is spelled as the variable has it (param_env.h). */
static as_status check_variables(const struct trial_reader *r, struct as_err *err)
{
    JSON_AUTO taken = json_object();
    AS_AUTO(str_done) struct str variable = {0};
    const char *name;
    json_t *p;
    as_status st = taken ? AS_OK : sweep_doc_no_memory(err);
    json_object_foreach((json_t *)r->parameters, name, p)
    {
        str_clear(&variable);
        if (st == AS_OK && param_name_valid(name))
            param_name_variable(name, &variable);
        if (st < 0 || !variable.len)
            continue;
        const char *spelled = variable.s + strlen(PARAM_VARIABLE_PREFIX);
        const char *other = json_string_value(json_object_get(taken, variable.s));
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child("/parameters", name, at);
        if (other && !parameter_of(r, spelled))
            st = as_fail_at(err, AS_E_INVAL, at,
                            "%s: '%s' and '%s' would both be the variable %s of the command, "
                            "expected names that differ in letters or digits",
                            at, other, name, variable.s);
        else if (json_object_set_new(taken, variable.s, json_string(name)) < 0)
            st = sweep_doc_no_memory(err);
        st = faults_note(r->faults, st, err);
    }
    return st < 0 ? st : str_check(&variable, err);
}

/* ---- parsing ---- */

/* A string unchanged, or a number written out. NULL: it is neither, or memory is out. */
static json_t *text_of(const json_t *j)
{
    char buf[32];
    if (json_is_string(j))
        return json_string(json_string_value(j));
    if (json_is_real(j))
        return json_string(as_format_double(json_real_value(j), buf, sizeof buf));
    if (!json_is_integer(j))
        return NULL;
    (void)snprintf(buf, sizeof buf, "%" JSON_INTEGER_FORMAT, json_integer_value(j));
    return json_string(buf);
}

static as_status add_text(json_t *list, const json_t *item, const char *at, struct as_err *err)
{
    if (!json_is_string(item) && !json_is_number(item))
        return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, expected a string or a number", at,
                          json_type_name(item));
    return json_array_append_new(list, text_of(item)) < 0 ? sweep_doc_no_memory(err) : AS_OK;
}

/* Elements that are left out together. */
static as_status add_list(json_t *command, const json_t *list, const char *at, struct as_err *err)
{
    char inner[AS_ERR_POINTER_MAX];
    JSON_AUTO out = json_array();
    as_status st = out ? AS_OK : sweep_doc_no_memory(err);
    for (size_t i = 0; st == AS_OK && i < json_array_size(list); i++) {
        json_pointer_index(at, i, inner);
        st = add_text(out, json_array_get(list, i), inner, err);
    }
    if (st < 0)
        return st;
    return json_array_append(command, out) < 0 ? sweep_doc_no_memory(err) : AS_OK;
}

static as_status add_element(const struct trial_reader *r, const json_t *item, size_t i,
                             struct as_err *err)
{
    const struct command_rules rules = sweep_program_rules(r);
    json_t *command = r->d->trial.command;
    char at[AS_ERR_POINTER_MAX];
    json_pointer_index(COMMAND_AT, i, at);
    if (i == 0 && json_is_string(item) && json_string_length(item) == 0)
        return as_fail_at(err, AS_E_INVAL, at, "%s: the program's name is empty", at);
    if (i == 0 && json_is_array(item))
        return as_fail_at(err, AS_E_INVAL, at, "%s: found a list, expected the program's name", at);
    if (!json_is_string(item) && !json_is_number(item) && !json_is_array(item))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %s, expected a string, a number or a list of these", at,
                          json_type_name(item));
    as_status st =
        json_is_array(item) ? add_list(command, item, at, err) : add_text(command, item, at, err);
    return st < 0 ? st : command_line_check(item, at, &rules, r->faults != NULL, err);
}

static as_status parse_command(const struct trial_reader *r, const json_t *j, struct as_err *err)
{
    size_t n = json_array_size(j);
    if (n == 0)
        return as_fail_at(err, AS_E_INVAL, COMMAND_AT,
                          COMMAND_AT ": the list is empty, expected a program and its arguments");
    if (n > SWEEP_MAX_COMMAND)
        return as_fail_at(err, AS_E_TOO_LARGE, COMMAND_AT,
                          COMMAND_AT ": %zu elements, at most %d are allowed", n,
                          SWEEP_MAX_COMMAND);
    r->d->trial.command = json_array();
    if (!r->d->trial.command)
        return sweep_doc_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        as_status st = add_element(r, json_array_get(j, i), i, err);
        if ((st = faults_note(r->faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status check_env_name(const char *name, const char *at, struct as_err *err)
{
    if (!env_name_valid(name))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: '%.60s' is no name for a variable; expected letters, digits and _",
                          at, name);
    if (as_starts_with(name, "ASSAY_"))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: names that begin with ASSAY_ are set by the runner", at);
    return AS_OK;
}

static as_status add_variable(const struct trial_reader *r, const char *name, const json_t *value,
                              struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(ENV_AT, name, at);
    as_status st = check_env_name(name, at, err);
    if (st < 0)
        return st;
    if (!json_is_string(value) && !json_is_number(value))
        return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, expected a string or a number", at,
                          json_type_name(value));
    if (json_object_set_new(r->d->trial.env, name, text_of(value)) < 0)
        return sweep_doc_no_memory(err);
    return sweep_program_check_text(r, value, at, err);
}

static as_status parse_env(const struct trial_reader *r, const json_t *j, struct as_err *err)
{
    r->d->trial.env = json_object();
    if (!r->d->trial.env)
        return sweep_doc_no_memory(err);
    if (json_object_size(j) > MAX_ENV)
        return as_fail_at(err, AS_E_TOO_LARGE, ENV_AT,
                          ENV_AT ": %zu variables, at most %d are allowed", json_object_size(j),
                          MAX_ENV);
    for (void *it = json_object_iter((json_t *)j); it;
         it = json_object_iter_next((json_t *)j, it)) {
        as_status st = add_variable(r, json_object_iter_key(it), json_object_iter_value(it), err);
        if ((st = faults_note(r->faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status add_file(const struct trial_reader *r, const char *path, const json_t *text,
                          size_t *total, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child(FILES_AT, path, at);
    if (!file_path_is_inner(path) || !as_utf8_valid(path, strlen(path)) || strchr(path, '}'))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: expected a relative path of at most 255 bytes, without '.' and '..' "
                          "and }",
                          at);
    if (!json_is_string(text))
        return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, expected the file's text", at,
                          json_type_name(text));
    *total += json_string_length(text);
    if (*total > MAX_FILE_BYTES)
        return as_fail_at(err, AS_E_TOO_LARGE, at,
                          "%s: %zu bytes with the files before it, at most %d are allowed", at,
                          *total, MAX_FILE_BYTES);
    return sweep_program_check_text(r, text, at, err);
}

/* Is `path` a folder of another file's path? Both cannot be written. */
static const char *file_below(const json_t *files, const char *path)
{
    size_t n = strlen(path);
    for (void *it = json_object_iter((json_t *)files); it;
         it = json_object_iter_next((json_t *)files, it)) {
        const char *other = json_object_iter_key(it);
        if (as_starts_with(other, path) && other[n] == '/')
            return other;
    }
    return NULL;
}

static as_status parse_files(const struct trial_reader *r, json_t *j, struct as_err *err)
{
    size_t total = 0;
    if (json_object_size(j) > MAX_FILES)
        return as_fail_at(err, AS_E_TOO_LARGE, FILES_AT,
                          FILES_AT ": %zu files, at most %d are allowed", json_object_size(j),
                          MAX_FILES);
    for (void *it = json_object_iter(j); it; it = json_object_iter_next(j, it)) {
        const char *path = json_object_iter_key(it), *below = file_below(j, path);
        as_status st = add_file(r, path, json_object_iter_value(it), &total, err);
        if (st == AS_OK && below)
            st = as_fail_at(err, AS_E_INVAL, FILES_AT,
                            FILES_AT ": '%.60s' is a file and the folder of '%.80s'", path, below);
        if ((st = faults_note(r->faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}

static as_status parse_directory(const struct trial_reader *r, const char *directory,
                                 struct as_err *err)
{
    if (!directory)
        return AS_OK;
    if (!*directory || strlen(directory) > 1024)
        return as_fail_at(err, AS_E_INVAL, DIRECTORY_AT,
                          DIRECTORY_AT ": expected a path of 1 to 1024 bytes");
    r->d->trial.directory = as_strdup(directory);
    JSON_AUTO text = json_string(directory);
    if (!r->d->trial.directory || !text)
        return sweep_doc_no_memory(err);
    return sweep_program_check_text(r, text, DIRECTORY_AT, err);
}

const char *const sweep_launch_words[] = {"all", "first", NULL};
const char *const sweep_folder_words[] = {"shared", "auto", "own", NULL};

as_status sweep_program_parse(const struct trial_reader *r, const struct trial_parts *p,
                              struct as_err *err)
{
    r->d->trial.kind = TRIAL_COMMAND;
    r->d->trial.checkpoints = p->checkpoints;
    r->d->trial.launch = p->launch < 0    ? LAUNCH_DEFAULT
                         : p->launch == 0 ? LAUNCH_ALL
                                          : LAUNCH_FIRST;
    r->d->trial.has_folder = p->folder >= 0;
    r->d->trial.folder = p->folder >= 0 ? (trial_folder)p->folder : FOLDER_SHARED;
    r->d->trial.files = json_clone(p->files); /* first: the others may name them */
    if (p->files && !r->d->trial.files)
        return sweep_doc_no_memory(err);
    as_status st = p->files ? parse_files(r, p->files, err) : AS_OK;
    if ((st = faults_note(r->faults, st, err)) != AS_OK)
        return st;
    if (r->faults && (st = check_variables(r, err)) != AS_OK)
        return st;
    if ((st = faults_note(r->faults, parse_command(r, p->command, err), err)) != AS_OK)
        return st;
    if ((st = faults_note(r->faults, parse_env(r, p->env, err), err)) != AS_OK)
        return st;
    if ((st = faults_note(r->faults, parse_directory(r, p->directory, err), err)) != AS_OK)
        return st;
    if (p->folder > FOLDER_SHARED && json_object_get(p->environment, "container"))
        st = as_fail_at(err, AS_E_INVAL, FOLDER_AT,
                        FOLDER_AT ": found %s with a container, expected shared: a container has "
                                  "what is mounted; ${trial_dir} is a folder of the trial there",
                        sweep_folder_words[p->folder]);
    if ((st = faults_note(r->faults, st, err)) != AS_OK)
        return st;
    if (p->report)
        st = sweep_report_parse(r, p->fields, p->report, &r->d->trial.report, err);
    if ((st = faults_note(r->faults, st, err)) < 0 || !p->environment)
        return st;
    return sweep_environment_parse(r, p->environment, &r->d->trial.environment, err);
}
