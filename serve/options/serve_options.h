/* The options of assay-serve that do not say where models come from: one table, which `assay serve`
 * has as well, and what their values may be. */
#ifndef ASSAY_SERVE_OPTIONS_SERVE_OPTIONS_H
#define ASSAY_SERVE_OPTIONS_SERVE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/opt.h"
#include "base/status.h"

#define SERVE_MODELS_MAX 256             /* arguments of one command line */
#define SERVE_FILE_SUFFIX ".safetensors" /* of model files */

struct serve_options {
    const char *listen, *public_host, *address_file, *log_level; /* views of argv */
    const char *certificate, *key;                               /* the same; NULL: plain HTTP */
    struct opt_list dirs;
    int64_t workers, io_threads, batch_rows, max_rows, max_bytes, queue, deadline_ms, poll_ms;
    int64_t max_connections, max_per_address;
    bool insecure_http;
};

/* The defaults. One worker for each processor. */
void serve_options_init(struct serve_options *o);

/* The rows of an option table. */
/* clang-format off */
#define SERVE_OPTS(o) \
    {"listen", 'l', OPT_STRING, &(o)->listen, "HOST:PORT", "ASSAY_SERVE_LISTEN", \
     "where to listen; port 0: any free one (127.0.0.1:7118)"}, \
    {"dir", 'd', OPT_LIST, &(o)->dirs, "DIR", NULL, \
     "serve the files NAME.safetensors of this folder, also new ones"}, \
    {"poll", 0, OPT_DURATION, &(o)->poll_ms, "TIME", NULL, "how often to look for new versions (1s)"}, \
    {"workers", 'w', OPT_I64, &(o)->workers, "N", NULL, "threads that predict (one per core)"}, \
    {"io-threads", 0, OPT_I64, &(o)->io_threads, "N", NULL, "threads that read requests (2)"}, \
    {"batch-rows", 0, OPT_I64, &(o)->batch_rows, "N", NULL, \
     "rows that are computed together, at most (256)"}, \
    {"max-rows", 0, OPT_I64, &(o)->max_rows, "N", NULL, "rows of one request, at most (65536)"}, \
    {"max-bytes", 0, OPT_I64, &(o)->max_bytes, "BYTES", NULL, \
     "bytes of one request, at most (33554432)"}, \
    {"queue", 0, OPT_I64, &(o)->queue, "N", NULL, \
     "requests that may wait for one model; more are answered 503 (1024)"}, \
    {"deadline", 0, OPT_DURATION, &(o)->deadline_ms, "TIME", NULL, \
     "a request that waited longer is answered 503 (10s)"}, \
    {"max-connections", 0, OPT_I64, &(o)->max_connections, "N", NULL, \
     "connections that may be open at one time (4096)"}, \
    {"max-connections-per-address", 0, OPT_I64, &(o)->max_per_address, "N", \
     "ASSAY_SERVE_MAX_CONNECTIONS_PER_ADDRESS", \
     "the same for one client address; 0: no limit, for a server behind a proxy (1024)"}, \
    {"public-host", 0, OPT_STRING, &(o)->public_host, "NAMES", NULL, \
     "further names in Host headers to answer to, with commas between them"}, \
    {"tls-certificate", 0, OPT_STRING, &(o)->certificate, "PATH", "ASSAY_SERVE_TLS_CERTIFICATE", \
     "speak TLS with this certificate and those that lead to its authority (PEM); SIGHUP reads it again"}, \
    {"tls-key", 0, OPT_STRING, &(o)->key, "PATH", "ASSAY_SERVE_TLS_KEY", "its key (PEM)"}, \
    {"insecure-http", 0, OPT_FLAG, &(o)->insecure_http, NULL, NULL, \
     "listen on an address that is not loopback, without TLS; any Host is answered"}, \
    {"address-file", 0, OPT_STRING, &(o)->address_file, "PATH", NULL, \
     "write the URL to this file when it listens"}, \
    {"log-level", 0, OPT_STRING, &(o)->log_level, "LEVEL", "ASSAY_LOG_LEVEL", \
     "debug, info, warn or error (info)"}
/* clang-format on */

/* Check the values. AS_E_INVAL names the option; also if nothing is to be served: no model among
 * the arguments, and no folder. */
AS_MUST_CHECK as_status serve_options_check(const struct serve_options *o, size_t n_models,
                                            struct as_err *err);

/* Does the argument name a file, and not a model of a server: a path with a slash, or a name that
 * ends as model files do? "NAME=" may stand before it. */
bool serve_names_file(const char *argument);

#endif
