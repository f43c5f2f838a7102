/* The environment of a program: where it finds its interpreter, its libraries and its variables.
 *
 * They are fields of `trial` beside `command`. Only the runner can say whether a folder, a file, a
 * module or an engine is there, so a document is checked for its form alone, and a trial fails with
 * the name of the field. Values of an env_file are never here: the runner reads the file. */
#include "scheduler/sweep/sweep_environment_priv.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/command_line.h"
#include "base/host_id.h"

#define ENVIRONMENT_AT "/trial/environment"
#define MODULES_AT "/trial/modules"
#define CONTAINER_AT "/trial/container"
#define MAX_PATH 1024
#define MAX_VARIABLE 65536
#define MAX_MODULES 64
#define MAX_MODULE 200
#define MAX_OPTIONS 64

static const char *const field_names[] = {"environment", "venv", "env_file", "modules",
                                          "container"};
/* What `assay run` may take from a shell. No others, because they may be secrets. */
static const char *const shell_variables[] = {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX", NULL};
static const char *const engines[] = {"podman", "apptainer", NULL};

as_status sweep_environment_read(struct json_fields *f, json_t **ret, struct as_err *err)
{
    JSON_AUTO given = json_object();
    as_status st = given ? AS_OK : sweep_doc_no_memory(err);
    for (size_t i = 0; st == AS_OK && i < AS_ARRAY_LEN(field_names); i++) {
        json_t *value = NULL;
        st = json_fields_any(f, field_names[i], JSON_OPTIONAL, &value, err);
        if (st == AS_OK && value && json_object_set(given, field_names[i], value) < 0)
            st = sweep_doc_no_memory(err);
    }
    if (st < 0)
        return st;
    *ret = json_object_size(given) ? as_steal(given) : NULL;
    return AS_OK;
}

static as_status set(json_t *out, const char *name, json_t *value, struct as_err *err)
{
    return json_object_set_new(out, name, value) < 0 ? sweep_doc_no_memory(err) : AS_OK;
}

/* A text of 1 to max bytes without control characters. */
static as_status check_plain(const json_t *j, size_t max, const char *at, const char *what,
                             struct as_err *err)
{
    const char *text = json_string_value(j);
    size_t n = json_string_length(j);
    if (!text)
        return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, expected %s", at, json_type_name(j),
                          what);
    if (n == 0 || n > max || strlen(text) != n)
        return as_fail_at(err, AS_E_INVAL, at, "%s: expected %s of 1 to %zu bytes", at, what, max);
    for (; *text; text++)
        if (iscntrl((unsigned char)*text))
            return as_fail_at(err, AS_E_INVAL, at, "%s: found a control character, expected %s", at,
                              what);
    return AS_OK;
}

/* ---- environment ---- */

static bool is_host_id(const char *s)
{
    return s && strlen(s) == HOST_ID_SIZE - 1 && strspn(s, "0123456789abcdef") == strlen(s);
}

static bool is_word(const char *s, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(s, *words) == 0)
            return true;
    return false;
}

static as_status check_variables(const json_t *variables, struct as_err *err)
{
    for (void *it = json_object_iter((json_t *)variables); it;
         it = json_object_iter_next((json_t *)variables, it)) {
        char at[AS_ERR_POINTER_MAX];
        const char *name = json_object_iter_key(it);
        json_pointer_child(ENVIRONMENT_AT "/variables", name, at);
        if (!is_word(name, shell_variables))
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: expected PATH, VIRTUAL_ENV or CONDA_PREFIX; others belong into "
                              "trial.env or trial.env_file",
                              at);
        as_status st =
            check_plain(json_object_iter_value(it), MAX_VARIABLE, at, "a variable's text", err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status add_environment(const struct trial_reader *r, json_t *j, json_t *out,
                                 struct as_err *err)
{
    struct json_fields f;
    const char *host = NULL;
    json_t *variables = NULL;
    (void)r;
    as_status st = json_fields_init(&f, j, ENVIRONMENT_AT, err);
    if (st < 0 || (st = json_fields_str(&f, "host", JSON_REQUIRED, &host, err)) < 0 ||
        (st = json_fields_object(&f, "variables", JSON_REQUIRED, &variables, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (!is_host_id(host))
        return as_fail_at(err, AS_E_INVAL, ENVIRONMENT_AT "/host",
                          ENVIRONMENT_AT "/host: expected 32 hexadecimal digits");
    st = check_variables(variables, err);
    return st < 0 ? st : set(out, "environment", json_clone(j), err);
}

/* ---- venv and env_file ---- */

static as_status add_path(const struct trial_reader *r, const char *name, json_t *j, json_t *out,
                          struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    json_pointer_child("/trial", name, at);
    as_status st = check_plain(j, MAX_PATH, at, "a path", err);
    if (st == AS_OK)
        st = sweep_program_check_text(r, j, at, err);
    return st < 0 ? st : set(out, name, json_clone_flat(j), err);
}

static as_status add_venv(const struct trial_reader *r, json_t *j, json_t *out, struct as_err *err)
{
    return add_path(r, "venv", j, out, err);
}

static as_status add_env_file(const struct trial_reader *r, json_t *j, json_t *out,
                              struct as_err *err)
{
    return add_path(r, "env_file", j, out, err);
}

/* ---- modules ---- */

static as_status check_module(const json_t *j, const char *at, struct as_err *err)
{
    as_status st = check_plain(j, MAX_MODULE, at, "a module's name", err);
    if (st < 0)
        return st;
    const char *s = json_string_value(j);
    if (*s == '-' || strpbrk(s, " \"'`$;&|<>()\\*?[]{}!~#"))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: expected the name of one module, such as gcc/12.2.0", at);
    return AS_OK;
}

static as_status add_modules(const struct trial_reader *r, json_t *j, json_t *out,
                             struct as_err *err)
{
    size_t n = json_array_size(j);
    (void)r;
    if (!json_is_array(j) || n == 0 || n > MAX_MODULES)
        return as_fail_at(err, AS_E_INVAL, MODULES_AT,
                          MODULES_AT ": expected a list of 1 to %d names of modules", MAX_MODULES);
    for (size_t i = 0; i < n; i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(MODULES_AT, i, at);
        as_status st = check_module(json_array_get(j, i), at, err);
        if (st < 0)
            return st;
    }
    return set(out, "modules", json_clone(j), err);
}

/* ---- container ---- */

static as_status check_image(const struct trial_reader *r, const json_t *j, const char *at,
                             struct as_err *err)
{
    as_status st = check_plain(j, MAX_PATH, at, "the name of an image", err);
    if (st < 0)
        return st;
    if (*json_string_value(j) == '-')
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: the name of an image does not begin with '-'; options of the engine "
                          "belong into " CONTAINER_AT "/options",
                          at);
    return sweep_program_check_text(r, j, at, err);
}

static as_status check_options(const json_t *options, struct as_err *err)
{
    size_t n = json_array_size(options);
    if (n > MAX_OPTIONS)
        return as_fail_at(err, AS_E_TOO_LARGE, CONTAINER_AT "/options",
                          CONTAINER_AT "/options: %zu elements, at most %d are allowed", n,
                          MAX_OPTIONS);
    for (size_t i = 0; i < n; i++) {
        char at[AS_ERR_POINTER_MAX];
        const json_t *option = json_array_get(options, i);
        json_pointer_index(CONTAINER_AT "/options", i, at);
        as_status st = check_plain(option, MAX_PATH, at, "an option", err);
        if (st < 0)
            return st;
        if (*json_string_value(option) != '-')
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: expected an option with its value, such as --network=host", at);
    }
    return AS_OK;
}

static as_status add_container(const struct trial_reader *r, json_t *j, json_t *out,
                               struct as_err *err)
{
    struct json_fields f;
    const char *image = NULL;
    json_t *options = NULL;
    int engine;
    if (json_is_string(j)) {
        as_status st = check_image(r, j, CONTAINER_AT, err);
        return st < 0 ? st : set(out, "container", json_pack("{s:O}", "image", j), err);
    }
    if (!json_is_object(j))
        return as_fail_at(err, AS_E_INVAL, CONTAINER_AT,
                          CONTAINER_AT ": found %s, expected an image or {image, engine, options}",
                          json_type_name(j));
    as_status st = json_fields_init(&f, j, CONTAINER_AT, err);
    if (st < 0 || (st = json_fields_str(&f, "image", JSON_REQUIRED, &image, err)) < 0 ||
        (st = json_fields_word(&f, "engine", JSON_OPTIONAL, engines, &engine, err)) < 0 ||
        (st = json_fields_array(&f, "options", JSON_OPTIONAL, &options, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    st = check_image(r, json_object_get(j, "image"), CONTAINER_AT "/image", err);
    if (st < 0 || (st = check_options(options, err)) < 0)
        return st;
    return set(out, "container", json_clone(j), err);
}

/* The programs of an image are its own: what points to those of the machine is of no use in it. */
static as_status check_beside_container(const json_t *given, struct as_err *err)
{
    static const char *const others[] = {"environment", "venv", "modules"};
    for (size_t i = 0; i < AS_ARRAY_LEN(others); i++) {
        char at[AS_ERR_POINTER_MAX];
        if (!json_object_get(given, others[i]))
            continue;
        json_pointer_child("/trial", others[i], at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: not beside " CONTAINER_AT ", whose image has programs of its own",
                          at);
    }
    return AS_OK;
}

as_status sweep_environment_parse(const struct trial_reader *r, const json_t *given, json_t **ret,
                                  struct as_err *err)
{
    typedef as_status add_fn(const struct trial_reader *, json_t *, json_t *, struct as_err *);
    static add_fn *const add[] = {add_environment, add_venv, add_env_file, add_modules,
                                  add_container};
    JSON_AUTO out = json_object();
    as_status st = out ? AS_OK : sweep_doc_no_memory(err);
    for (size_t i = 0; st == AS_OK && i < AS_ARRAY_LEN(field_names); i++) {
        json_t *value = json_object_get(given, field_names[i]);
        if (value)
            st = faults_note(r->faults, add[i](r, value, out, err), err);
    }
    if (st == AS_OK && json_object_get(given, "container"))
        st = faults_note(r->faults, check_beside_container(given, err), err);
    if (st < 0)
        return st;
    *ret = as_steal(out);
    return AS_OK;
}
