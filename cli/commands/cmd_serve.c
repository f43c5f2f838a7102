/* assay serve MODEL…: starts assay-serve in the place of this process, with the same options. The
 * server and its token are found as every verb finds them; the token goes through the environment,
 * which other users cannot read, unlike the list of processes. */
#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/commands/cmd.h"
#include "cli/session/exit_code.h"
#include "cli/session/session.h"
#include "cli/up/programs.h"
#include "serve/options/serve_options.h"

#define ARGUMENTS_MAX (SERVE_MODELS_MAX + OPT_LIST_MAX + 64)

/* The command line of assay-serve. */
struct line {
    const char *argv[ARGUMENTS_MAX]; /* NULL-terminated */
    size_t n, n_owned;               /* the first n_owned are ours */
};

static void line_done(struct line *l)
{
    for (size_t i = 0; i < l->n_owned; i++)
        free((char *)l->argv[i]);
}

static as_status add_argument(void *arg, const char *argument, struct as_err *err)
{
    struct line *l = arg;
    char *copy = as_strdup(argument);
    if (!copy)
        return as_fail_nomem(err);
    l->argv[l->n++] = copy; /* ARGUMENTS_MAX is more than the options and their lists */
    l->n_owned = l->n;
    return AS_OK;
}

/* Find the server, and hand over its address and its token. */
static as_status use_server(struct session *s, struct as_err *err)
{
    AS_AUTO(as_freep) char *token = NULL;
    as_status st = session_connect(s, err);
    if (st == AS_OK)
        st = session_token(s, &token, err);
    if (st < 0)
        return st;
    assert(token);
    (void)unsetenv("ASSAY_TOKEN_FILE");
    if (setenv("ASSAY_TOKEN", token, 1) != 0 || setenv("ASSAY_SERVER", s->url, 1) != 0)
        return as_fail_nomem(err);
    return AS_OK;
}

static as_status serve(struct session *s, struct serve_options *o, char **models, int n,
                       struct as_err *err)
{
    const struct opt table[] = {SERVE_OPTS(o), {.name = NULL}};
    AS_AUTO(line_done) struct line l = {0};
    AS_AUTO(as_freep) char *program = NULL;
    bool needs_server = false;
    as_status st = program_find("assay-serve", &program, err);
    for (int i = 0; i < n; i++)
        needs_server |= !serve_names_file(models[i]);
    if (st == AS_OK && needs_server)
        st = use_server(s, err);
    if (!needs_server)
        (void)unsetenv("ASSAY_SERVER"); /* all are files */
    if (s->ca_file)
        (void)setenv("ASSAY_CA_FILE", s->ca_file, 1);
    if (st == AS_OK)
        st = add_argument(&l, program, err);
    if (st == AS_OK)
        st = opt_arguments(table, add_argument, &l, err);
    if (st < 0)
        return st;
    l.argv[l.n++] = "--";
    for (int i = 0; i < n; i++)
        l.argv[l.n++] = models[i];
    (void)execv(program, (char *const *)l.argv);
    return as_fail(err, AS_E_IO, "cannot start %s: %m", program);
}

int cmd_serve(const struct verb *v, int argc, char **argv)
{
    const char *later = "decided by the arguments";
    struct session s = {.instead = &later};
    struct serve_options o;
    struct as_err err = {0};
    int n, code;
    serve_options_init(&o);
    const struct opt table[] = {SERVE_OPTS(&o), SESSION_OPTS(&s)};
    if (session_begin(&s, v, table, argc, argv, 0, SERVE_MODELS_MAX, &n, &code)) {
        if (serve_options_check(&o, (size_t)n, &err) < 0)
            code = exit_with_usage(v->name, "%s", err.msg);
        else
            code = session_end(&s, serve(&s, &o, argv + 1, n, &err), &err);
    }
    session_done(&s);
    return code;
}
