/* assay-serve: answers predictions over HTTP, in the Open Inference Protocol. It needs no database:
 * models come from files, a folder, or the registry of a server.
 *
 * The socket is bound first, so that a wrong address fails at once; then the files that were named
 * are loaded, and a damaged one fails the start. Models of a server may come later: the program
 * listens, and /v2/health/ready says when all are there. Signals are blocked in every thread that
 * we start, and read by sigwait() in the main thread; with TLS, SIGHUP reads the certificate again.
 *
 * Exit codes: 0 ended on request; 1 failed; 64 usage; 66 a model file cannot be read; 70 a bug in
 * assay-serve; 73 a file cannot be written, or the port is taken; 77 not allowed; 78
 * configuration. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "api/http/http_tls.h"
#include "api/http/listen.h"
#include "api/client/client.h"
#include "base/private_env.h"
#include "base/file.h"
#include "base/log.h"
#include "base/notify.h"
#include "base/opt.h"
#include "base/str.h"
#include "serve/options/serve_options.h"
#include "serve/service.h"
#include "serve/source_files.h"
#include "serve/source_server.h"

#define STOP_WAIT_MS 5000
#define EXIT_USAGE 64
#define EXIT_NO_INPUT 66
#define TOKEN_MAX 4096

struct config {
    struct serve_options options;
    const char *server, *token_file, *ca_file;
    const char *models[SERVE_MODELS_MAX]; /* views of argv */
    size_t n_models;
    bool die_with_parent, version, help;
};

struct daemon {
    struct config config;
    struct http_tls *tls; /* NULL: plain HTTP */
    int listen_fd;
    struct listener_address address;
    struct host_names hosts;
    struct model_cache *cache;
    struct batcher *batcher;
    struct source_files *files;
    struct source_server *server;
    struct service *service;
    bool is_input_bad; /* a model file that was named cannot be served */
    sigset_t signals;
};

static void print_help(const struct opt *table)
{
    (void)puts("usage: assay-serve [NAME=]FILE… [--dir DIR] [options]\n"
               "       assay-serve --server URL [NAME=]MODEL[@ALIAS]… [options]\n");
    opt_help(table, stdout);
    (void)puts(
        "\nFILE is a model file (assay models get) or a trial's model.safetensors. With "
        "--server, an argument\nwithout a slash that does not end in .safetensors is a model "
        "of the server's registry.\n\n"
        "exit codes: 0 ended as asked; 1 failed; 64 usage; 66 a model file cannot be read;\n"
        "70 internal; 73 a file cannot be written, or the port is taken; 77 not allowed; 78 "
        "configuration");
}

static as_status parse_options(struct config *c, int argc, char **argv, struct as_err *err)
{
    const struct opt table[] = {
        {"server", 0, OPT_STRING, &c->server, "URL", "ASSAY_SERVER",
         "take the models from this server's registry"},
        {"token-file", 0, OPT_STRING, &c->token_file, "PATH", "ASSAY_TOKEN_FILE",
         "a file with a token of the server"},
        {"ca-file", 0, OPT_STRING, &c->ca_file, "PATH", "ASSAY_CA_FILE",
         "trust these authorities for the server's https, and no others"},
        SERVE_OPTS(&c->options),
        {"die-with-parent", 0, OPT_FLAG, &c->die_with_parent, NULL, NULL,
         "end when the program that started this one ends"},
        {"version", 'V', OPT_FLAG, &c->version, NULL, NULL, "print the version"},
        {"help", 'h', OPT_FLAG, &c->help, NULL, NULL, "print this"},
        {0},
    };
    int n_args = 0;
    as_status st = opt_parse(table, argc, argv, &n_args, err);
    if (st < 0)
        return st;
    if (c->help)
        print_help(table);
    if (c->help || c->version)
        return AS_OK;
    st = serve_options_check(&c->options, (size_t)n_args, err);
    if (st < 0)
        return st;
    for (int i = 0; i < n_args; i++)
        c->models[c->n_models++] = argv[i + 1];
    return AS_OK;
}

static int exit_code(const struct daemon *d, as_status st)
{
    switch (st) {
    case AS_OK:
        return 0;
    case AS_E_INTERNAL:
        return 70;
    case AS_E_DENIED:
        return 77;
    default:
        if (d->is_input_bad)
            return EXIT_NO_INPUT;
        return st == AS_E_IO || st == AS_E_CONFLICT ? 73 : st == AS_E_INVAL ? 78 : 1;
    }
}

/* ---- models ---- */

/* "NAME=REST": the name, owned by the caller, or NULL; *ret_rest is a view of `text`. A path may
 * hold '=' behind a slash. */
static char *split_name(const char *text, const char **ret_rest)
{
    const char *equals = strchr(text, '=');
    const char *slash = strchr(text, '/');
    bool has_name = equals && (!slash || equals < slash);
    *ret_rest = has_name ? equals + 1 : text;
    return has_name ? strndup(text, (size_t)(equals - text)) : NULL;
}

/* The name of a file without folders and suffix. */
static char *name_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = as_strdup(slash ? slash + 1 : path);
    size_t len = name ? strlen(name) : 0, suffix = strlen(SERVE_FILE_SUFFIX);
    if (len > suffix && as_ends_with(name, SERVE_FILE_SUFFIX))
        name[len - suffix] = '\0';
    return name;
}

static as_status add_file(struct daemon *d, const char *argument, struct as_err *err)
{
    const char *path;
    AS_AUTO(as_freep) char *name = split_name(argument, &path);
    if (!name)
        name = name_of_file(path);
    as_status st = name ? source_files_add(d->files, name, path, err) : as_fail_nomem(err);
    d->is_input_bad |= st < 0;
    return st;
}

static as_status read_token(const struct config *c, char **ret, struct as_err *err)
{
    size_t len = 0;
    const char *given = getenv("ASSAY_TOKEN");
    if (!c->token_file) {
        *ret = as_strdup(given ? given : "");
        return *ret ? AS_OK : as_fail_nomem(err);
    }
    as_status st = file_read_input(c->token_file, TOKEN_MAX, ret, &len, err);
    if (st == AS_OK)
        (*ret)[strcspn(*ret, "\r\n")] = '\0';
    return st;
}

/* Does the argument name a file? Without a server all do. */
static bool is_file(const struct config *c, const char *argument)
{
    return !c->server || serve_names_file(argument);
}

static as_status add_models_of_server(struct daemon *d, struct as_err *err)
{
    AS_AUTO(as_freep) char *token = NULL;
    as_status st = read_token(&d->config, &token, err);
    if (st == AS_OK)
        st = client_trust(d->config.ca_file, err);
    if (st == AS_OK)
        st = source_server_create(d->cache, d->config.server, token, &d->server, err);
    for (size_t i = 0; i < d->config.n_models && st == AS_OK; i++) {
        const char *reference;
        if (is_file(&d->config, d->config.models[i]))
            continue;
        AS_AUTO(as_freep) char *name = split_name(d->config.models[i], &reference);
        st = source_server_add(d->server, name, reference, err);
    }
    return st == AS_OK ? source_server_start(d->server, d->config.options.poll_ms, err) : st;
}

static as_status add_models(struct daemon *d, struct as_err *err)
{
    const struct config *c = &d->config;
    as_status st = source_files_create(d->cache, &d->files, err);
    size_t n_files = 0;
    for (size_t i = 0; i < c->n_models && st == AS_OK; i++) {
        if (!is_file(c, c->models[i]))
            continue;
        n_files++;
        st = add_file(d, c->models[i], err);
    }
    for (size_t i = 0; i < c->options.dirs.n && st == AS_OK; i++) {
        st = source_files_add_folder(d->files, c->options.dirs.values[i], err);
        d->is_input_bad |= st < 0;
    }
    if (st == AS_OK)
        st = source_files_start(d->files, c->options.poll_ms, err);
    if (st == AS_OK && n_files < c->n_models)
        st = add_models_of_server(d, err);
    return st;
}

/* ---- the run ---- */

static as_status start_serving(struct daemon *d, struct as_err *err)
{
    const struct serve_options *c = &d->config.options;
    const struct service_options opts = {
        .listen_fd = d->listen_fd,
        .tls = d->tls,
        .io_threads = (unsigned)c->io_threads,
        .max_connections = (unsigned)c->max_connections,
        .max_per_address = (unsigned)c->max_per_address,
        .max_rows = (size_t)c->max_rows,
        .max_bytes = c->max_bytes,
        .deadline_ms = c->deadline_ms,
        .host_names = c->insecure_http ? NULL : d->hosts.names,
        .version = ASSAY_VERSION,
    };
    d->listen_fd = -1; /* the service takes it */
    as_status st = service_start(&opts, d->cache, d->batcher, &d->service, err);
    if (st < 0)
        return st;
    st = listener_address_write(&d->address, c->address_file, err);
    log_write(LOG_INFO, "serving", "url=%s version=%s", d->address.url, ASSAY_VERSION);
    return st;
}

static as_status open_listener(struct daemon *d, struct as_err *err)
{
    const struct serve_options *c = &d->config.options;
    as_status st = c->certificate ? http_tls_create(c->certificate, c->key, &d->tls, err) : AS_OK;
    if (st < 0)
        return st == AS_E_NOT_FOUND ? as_err_prefix(err, AS_E_INVAL, "TLS") : st;
    st = listen_open(c->listen, d->tls || c->insecure_http, &d->listen_fd, &d->address, err);
    if (st == AS_OK && d->tls)
        listener_address_secure(&d->address);
    return st;
}

static as_status start_daemon(struct daemon *d, struct as_err *err)
{
    const struct serve_options *c = &d->config.options;
    const struct served_options served = {(size_t)(c->workers + c->io_threads),
                                          (size_t)c->batch_rows};
    as_status st = open_listener(d, err);
    if (st == AS_OK)
        st = host_names_init(&d->address, c->public_host, &d->hosts, err);
    if (st == AS_OK)
        st = model_cache_create(&served, &d->cache, err);
    if (st == AS_OK)
        st = batcher_create((size_t)c->workers, (size_t)c->io_threads, (size_t)c->queue,
                            &d->batcher, err);
    if (st == AS_OK)
        st = add_models(d, err);
    return st == AS_OK ? start_serving(d, err) : st;
}

/* Requests first, then what they use. */
static void stop_daemon(struct daemon *d)
{
    if (!service_stop(d->service, STOP_WAIT_MS)) {
        log_write(LOG_WARN, "stopped without waiting longer", "for=\"a request\"");
        _exit(0);
    }
    source_server_free(d->server);
    source_files_free(d->files);
    batcher_free(d->batcher);
    model_cache_free(d->cache);
    http_tls_free(d->tls);
}

static as_status run_daemon(struct daemon *d, struct as_err *err)
{
    as_status st = start_daemon(d, err);
    if (st == AS_OK) {
        notify_send("READY=1");
        int sig = http_tls_await_signal(d->tls, &d->signals);
        log_write(LOG_INFO, "stopping", "signal=%d", sig);
        notify_send("STOPPING=1");
    }
    stop_daemon(d);
    return st;
}

static pthread_t main_thread;

/* OpenBLAS starts threads before main(), which do not block signals, and a signal that one of them
 * gets would end the program in the middle of its stop. It is sent on to the main thread, which has
 * it blocked: sigwait() returns it. */
static void send_on(int sig)
{
    if (!pthread_equal(pthread_self(), main_thread))
        (void)pthread_kill(main_thread, sig);
}

static void block_signals(sigset_t *set)
{
    const struct sigaction action = {.sa_handler = send_on, .sa_flags = SA_RESTART};
    main_thread = pthread_self();
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, set, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

static int print_usage_error(const struct as_err *err)
{
    (void)fprintf(stderr, "assay-serve: %s\n", err->msg);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct as_err err = {0};
    struct daemon d = {.listen_fd = -1};
    serve_options_init(&d.config.options);
    if (private_env_hide(&err) < 0 || parse_options(&d.config, argc, argv, &err) < 0)
        return print_usage_error(&err);
    if (d.config.help)
        return 0;
    if (d.config.version)
        return puts("assay-serve " ASSAY_VERSION) < 0;
    log_level level = LOG_INFO; /* its name has been checked */
    (void)!log_level_parse(d.config.options.log_level, &level, NULL);
    log_setup("assay-serve", level);
    if (d.config.die_with_parent)
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    file_raise_limit();
    block_signals(&d.signals);
    as_status st = run_daemon(&d, &err);
    if (st < 0)
        log_write(LOG_ERROR, "cannot continue", "status=%s detail=\"%s\"", as_status_name(st),
                  err.msg);
    file_closep(&d.listen_fd);
    host_names_done(&d.hosts);
    return exit_code(&d, st);
}
