/* assay serve MODEL…: starts assay-serve in the place of this process. The server and its token are
 * found as every verb finds them; the token goes through the environment, which other users cannot
 * read, unlike the list of processes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/cmd.h"
#include "cli/session/session.h"
#include "cli/up/programs.h"

#define PASSED_MAX 16
#define MODELS_MAX 256

struct passed {
    const char *listen, *poll, *deadline, *queue, *max_rows, *workers, *batch_rows, *public_host,
        *address_file;
    struct opt_list dirs;
    bool insecure_http;
};

/* The arguments of assay-serve; views. */
struct line {
    const char *argv[2 * PASSED_MAX + 2 * OPT_LIST_MAX + MODELS_MAX + 8];
    size_t n;
};

static void add(struct line *l, const char *option, const char *value)
{
    if (!value)
        return;
    l->argv[l->n++] = option;
    l->argv[l->n++] = value;
}

/* As assay-serve decides it (docs/serving.md). */
static bool is_file(const char *model)
{
    return strchr(model, '/') || as_ends_with(model, ".safetensors");
}

static as_status use_server(struct session *s, struct line *l, struct as_err *err)
{
    AS_AUTO(as_freep) char *token = NULL;
    as_status st = session_connect(s, err);
    if (st == AS_OK)
        st = session_token(s, &token, err);
    if (st < 0)
        return st;
    (void)unsetenv("ASSAY_TOKEN_FILE");
    if (setenv("ASSAY_TOKEN", token, 1) != 0)
        return as_fail_nomem(err);
    add(l, "--server", s->url);
    return AS_OK;
}

static void add_options(struct line *l, const struct passed *p)
{
    add(l, "--listen", p->listen);
    add(l, "--poll", p->poll);
    add(l, "--deadline", p->deadline);
    add(l, "--queue", p->queue);
    add(l, "--max-rows", p->max_rows);
    add(l, "--workers", p->workers);
    add(l, "--batch-rows", p->batch_rows);
    add(l, "--public-host", p->public_host);
    add(l, "--address-file", p->address_file);
    for (size_t i = 0; i < p->dirs.n; i++)
        add(l, "--dir", p->dirs.values[i]);
    if (p->insecure_http)
        l->argv[l->n++] = "--insecure-http";
}

static as_status serve(struct session *s, const struct passed *p, char **models, int n,
                       struct as_err *err)
{
    struct line l = {0};
    AS_AUTO(as_freep) char *program = NULL;
    bool needs_server = false;
    as_status st = program_find("assay-serve", &program, err);
    if (st < 0)
        return st;
    l.argv[l.n++] = program;
    for (int i = 0; i < n; i++)
        needs_server |= !is_file(models[i]);
    if (needs_server && (st = use_server(s, &l, err)) < 0)
        return st;
    if (!needs_server)
        (void)unsetenv("ASSAY_SERVER"); /* all are files */
    add_options(&l, p);
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
    struct as_err err = {0};
    struct passed p = {0};
    int n, code;
    const struct opt table[] = {
        {"listen", 'l', OPT_STRING, &p.listen, "HOST:PORT", NULL,
         "where to listen; port 0: any free one (127.0.0.1:7118)"},
        {"dir", 0, OPT_LIST, &p.dirs, "DIR", NULL,
         "serve the files NAME.safetensors of this folder, also new ones"},
        {"poll", 0, OPT_STRING, &p.poll, "TIME", NULL, "how often to look for new versions (1s)"},
        {"workers", 0, OPT_STRING, &p.workers, "N", NULL, "threads that predict (one per core)"},
        {"batch-rows", 0, OPT_STRING, &p.batch_rows, "N", NULL,
         "rows that are computed together, at most (256)"},
        {"max-rows", 0, OPT_STRING, &p.max_rows, "N", NULL, "rows of one request (65536)"},
        {"queue", 0, OPT_STRING, &p.queue, "N", NULL, "requests that may wait for a model (1024)"},
        {"deadline", 0, OPT_STRING, &p.deadline, "TIME", NULL,
         "a request that waited longer is answered 503 (10s)"},
        {"public-host", 0, OPT_STRING, &p.public_host, "NAMES", NULL,
         "further names in Host headers to answer to"},
        {"insecure-http", 0, OPT_FLAG, &p.insecure_http, NULL, NULL,
         "listen on an address that is not loopback, without TLS"},
        {"address-file", 0, OPT_STRING, &p.address_file, "PATH", NULL,
         "write the URL to this file when it listens"},
        SESSION_OPTS(&s),
    };
    if (session_begin(&s, v, table, argc, argv, 0, MODELS_MAX, &n, &code))
        code = session_end(&s, serve(&s, &p, argv + 1, n, &err), &err);
    session_done(&s);
    return code;
}
