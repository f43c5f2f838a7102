#include "serve/options/serve_options.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

void serve_options_init(struct serve_options *o)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *o = (struct serve_options){.listen = "127.0.0.1:7118",
                                .log_level = "info",
                                .workers = cores > 0 ? cores : 1,
                                .io_threads = 2,
                                .batch_rows = 256,
                                .max_rows = 65536,
                                .max_bytes = 32 << 20,
                                .queue = 1024,
                                .deadline_ms = 10000,
                                .poll_ms = 1000,
                                .max_connections = 4096,
                                .max_per_address = 1024};
}

as_status serve_options_check(const struct serve_options *o, size_t n_models, struct as_err *err)
{
    const struct opt_range ranges[] = {
        {"workers", o->workers, 1, 256},
        {"io-threads", o->io_threads, 1, 64},
        {"batch-rows", o->batch_rows, 1, 65536},
        {"max-rows", o->max_rows, 1, 10000000},
        {"max-bytes", o->max_bytes, 1024, (int64_t)2 << 30},
        {"queue", o->queue, 1, 1000000},
        {"max-connections", o->max_connections, 1, 65536},
        {"max-connections-per-address", o->max_per_address, 0, 65536},
    };
    log_level level;
    as_status st = log_level_parse(o->log_level, &level, err);
    if (st == AS_OK)
        st = opt_check_ranges(ranges, AS_ARRAY_LEN(ranges), err);
    if (st < 0)
        return st;
    if (!o->certificate != !o->key)
        return as_fail(err, AS_E_INVAL, "--tls-certificate and --tls-key are given together");
    if (o->poll_ms < 10 || o->deadline_ms < 1)
        return as_fail(err, AS_E_INVAL, "--poll must be 10ms or more, and --deadline 1ms or more");
    if (n_models > SERVE_MODELS_MAX)
        return as_fail(err, AS_E_INVAL, "%zu models are named, expected at most %d: use --dir",
                       n_models, SERVE_MODELS_MAX);
    if (n_models == 0 && o->dirs.n == 0)
        return as_fail(
            err, AS_E_INVAL,
            "nothing to serve: name model files, a folder (--dir), or models of a server "
            "(--server)");
    return AS_OK;
}

bool serve_names_file(const char *argument)
{
    return strchr(argument, '/') || as_ends_with(argument, SERVE_FILE_SUFFIX);
}
