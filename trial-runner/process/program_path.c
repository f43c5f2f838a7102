#include "trial-runner/process/program_path.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char shell[] = "/bin/sh"; /* execve() takes texts that it could change */

#define SYSTEM_PATH "/bin:/usr/bin" /* confstr(_CS_PATH) of the GNU library */

as_status program_path_init(struct program_path *p, char *const *argv, char *const *env,
                            const char *path, struct as_err *err)
{
    size_t n = 1;
    while (argv[n])
        n++;
    *p = (struct program_path){.argv = argv, .env = env, .path = path ? path : SYSTEM_PATH};
    p->for_shell = as_calloc(n + 2, sizeof *p->for_shell);
    if (!p->for_shell)
        return as_fail_nomem(err);
    p->for_shell[0] = shell;
    memcpy(p->for_shell + 2, argv + 1, (n - 1) * sizeof *argv);
    return AS_OK;
}

void program_path_done(struct program_path *p)
{
    free(p->for_shell);
    *p = (struct program_path){0};
}

static void exec_file(const struct program_path *p, char *file)
{
    execve(file, p->argv, p->env);
    if (errno != ENOEXEC)
        return;
    p->for_shell[1] = file;
    execve(p->for_shell[0], p->for_shell, p->env);
}

/* Is the failure about this folder alone, so that the next one is tried? As in execvp(). */
static bool is_of_folder(int failure)
{
    switch (failure) {
    case EACCES:
    case ENAMETOOLONG:
    case ENODEV:
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
    case ETIMEDOUT:
        return true;
    default:
        return false;
    }
}

/* Try the file `name` in a folder of n bytes; of none, in the current one. */
static void exec_in(const struct program_path *p, const char *dir, size_t n, const char *name)
{
    char file[PATH_MAX];
    size_t length = strlen(name), slash = n > 0;
    if (n + slash + length >= sizeof file) {
        errno = ENAMETOOLONG;
        return;
    }
    memcpy(file, dir, n);
    file[n] = '/';
    memcpy(file + n + slash, name, length + 1);
    exec_file(p, file);
}

void program_path_exec(const struct program_path *p)
{
    char *name = p->argv[0];
    bool was_denied = false;
    if (!*name || strchr(name, '/')) {
        exec_file(p, name);
        return;
    }
    for (const char *dir = p->path, *end; dir; dir = *end ? end + 1 : NULL) {
        end = dir + strcspn(dir, ":");
        exec_in(p, dir, (size_t)(end - dir), name);
        if (!is_of_folder(errno))
            return;
        was_denied = was_denied || errno == EACCES;
    }
    if (was_denied)
        errno = EACCES;
}
