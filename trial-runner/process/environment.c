/* Sets the environment of a user's program.
 *
 * Variables are set in the order shell, file, venv; trial.env and the runner's own come after them.
 * Modules are loaded by the process of the trial itself, in a shell that then becomes the program:
 * so a module that hangs ends with the trial, its messages are in the trial's log, and only the
 * main thread forks (child.h). They come last, and only the venv's folder is put before theirs
 * again. */
#include "trial-runner/process/environment.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env_file.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

#define ENV_FILE_MAX (1 << 20)

/* A field as a path from the root or from the runner's folder. *ret: owned by the caller; NULL when
 * there is no such field. */
static as_status find_path(const struct environment *s, const char *field, char **ret,
                           struct as_err *err)
{
    const char *path = json_string_value(json_object_get(s->trial, field));
    *ret = NULL;
    if (!path)
        return AS_OK;
    *ret = *path == '/' || !s->folder ? as_strdup(path) : file_join(s->folder, path);
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* ---- the shell in which the sweep was created ---- */

static as_status set_shell(const struct environment *s, struct child_env *e, bool *ret_foreign,
                           struct as_err *err)
{
    static const char *const names[] = {"PATH", "VIRTUAL_ENV", "CONDA_PREFIX"};
    const json_t *given = json_object_get(s->trial, "environment");
    const json_t *variables = json_object_get(given, "variables");
    if (!given)
        return AS_OK;
    if (!*s->host || !as_streq(s->host, json_string_value(json_object_get(given, "host")))) {
        *ret_foreign = true;
        return AS_OK;
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
        const char *value = json_string_value(json_object_get(variables, names[i]));
        as_status st = AS_OK;
        if (value)
            st = child_env_set(e, names[i], value, err);
        else if (strcmp(names[i], "PATH") != 0)
            child_env_unset(e, names[i]);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

/* ---- env_file ---- */

static as_status set_from_file(void *arg, const char *name, const char *value, struct as_err *err)
{
    if (as_starts_with(name, "ASSAY_"))
        return as_fail(err, AS_E_INVAL, "names that begin with ASSAY_ are set by the runner");
    return child_env_set(arg, name, value, err);
}

static as_status read_regular(const char *path, char **ret, size_t *ret_len, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    as_status st = file_open_regular(path, &fd, err); /* a pipe would be waited for without end */
    return st < 0 ? st : file_read(path, ENV_FILE_MAX, ret, ret_len, err);
}

static as_status set_env_file(const struct environment *s, struct child_env *e, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = NULL;
    AS_AUTO(as_freep) char *text = NULL;
    size_t len;
    as_status st = find_path(s, "env_file", &path, err);
    if (st < 0 || !path)
        return st;
    if ((st = read_regular(path, &text, &len, err)) < 0)
        return as_err_prefix(err, st, "trial.env_file");
    st = env_file_parse(text, len, set_from_file, e, err);
    return st < 0 ? as_err_prefix(err, st, "trial.env_file: %s", path) : AS_OK;
}

/* ---- venv ---- */

static as_status set_venv(const struct environment *s, struct child_env *e, struct as_err *err)
{
    AS_AUTO(as_freep) char *venv = NULL;
    AS_AUTO(str_done) struct str python = {0}, path = {0};
    as_status st = find_path(s, "venv", &venv, err);
    if (st < 0 || !venv)
        return st;
    str_printf(&python, "%s/bin/python", venv);
    const char *old = child_env_get(e, "PATH");
    str_printf(&path, "%s/bin%s%s", venv, old ? ":" : "", old ? old : "");
    if ((st = str_check(&python, err)) < 0 || (st = str_check(&path, err)) < 0)
        return st;
    if (access(python.s, X_OK) < 0)
        return as_fail(err, AS_E_NOT_FOUND,
                       "trial.venv: %s is not on this machine, or cannot be run; expected a "
                       "virtual environment of Python",
                       python.s);
    child_env_unset(e, "PYTHONHOME"); /* as its own `activate` does */
    st = child_env_set(e, "VIRTUAL_ENV", venv, err);
    return st < 0 ? st : child_env_set(e, "PATH", path.s, err);
}

as_status environment_set(const struct environment *s, struct child_env *e, bool *ret_foreign,
                          struct as_err *err)
{
    bool foreign = false;
    as_status st = set_shell(s, e, &foreign, err);
    if (st < 0 || (st = set_env_file(s, e, err)) < 0 || (st = set_venv(s, e, err)) < 0)
        return st;
    *ret_foreign = foreign;
    return AS_OK;
}

/* ---- modules ---- */

/* $1: the venv's folder or nothing; $2: how many modules follow; then the program. */
static const char load_script[] =
    "venv=$1; n=$2; shift 2\n"
    "if [ -n \"$LMOD_CMD\" ] && [ -x \"$LMOD_CMD\" ]; then\n"
    "  module() { eval \"$(\"$LMOD_CMD\" sh \"$@\")\"; }\n"
    "else\n"
    "  for init in \"$LMOD_PKG/init/sh\" \"$MODULESHOME/init/sh\" /usr/share/modules/init/sh \\\n"
    "      /usr/share/lmod/lmod/init/sh /etc/profile.d/lmod.sh /etc/profile.d/z00_lmod.sh \\\n"
    "      /etc/profile.d/modules.sh; do\n"
    "    if [ -r \"$init\" ]; then . \"$init\"; break; fi\n"
    "  done\n"
    "fi\n"
    "if ! type module >/dev/null 2>&1; then\n"
    "  echo 'trial.modules: this machine has no Lmod and no Environment Modules (LMOD_CMD and'\\\n"
    "    'MODULESHOME are not set)' >&2; exit 1\n"
    "fi\n"
    "while [ \"$n\" -gt 0 ]; do\n"
    "  module load \"$1\" || { echo \"trial.modules: cannot load '$1'\" >&2; exit 1; }\n"
    "  shift; n=$((n - 1))\n"
    "done\n"
    "if [ -n \"$venv\" ]; then PATH=$venv/bin:$PATH; export PATH; fi\n"
    "exec \"$@\"\n";

static size_t count_args(char *const *argv)
{
    size_t n = 0;
    while (argv && argv[n])
        n++;
    return n;
}

as_status environment_load_modules(const struct environment *s, struct child_spec *spec,
                                   struct as_err *err)
{
    const json_t *modules = json_object_get(s->trial, "modules");
    AS_AUTO(as_freep) char *venv = NULL;
    AS_AUTO(as_freep) const char **args = NULL;
    size_t n = json_array_size(modules), n_old = count_args(spec->argv), at = 0;
    char count[24];
    if (n == 0)
        return AS_OK;
    as_status st = find_path(s, "venv", &venv, err);
    if (st < 0)
        return st;
    if (!(args = as_calloc(6 + n + n_old, sizeof *args)))
        return as_fail_nomem(err);
    (void)snprintf(count, sizeof count, "%zu", n);
    args[at++] = "/bin/sh";
    args[at++] = "-c";
    args[at++] = load_script;
    args[at++] = "trial.modules";
    args[at++] = venv ? venv : "";
    args[at++] = count;
    for (size_t i = 0; i < n; i++)
        args[at++] = json_string_value(json_array_get(modules, i));
    for (size_t i = 0; i < n_old; i++)
        args[at++] = spec->argv[i];
    for (size_t i = 0; i < at; i++)
        if (!args[i])
            return as_fail(err, AS_E_INVAL, "trial.modules: found a name that is no text");
    return child_spec_replace_argv(spec, args, at, err);
}
