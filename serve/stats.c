/* Counters of models. Labels are the names of models, which come from the command line, a folder or
 * the registry, never from a request: a client cannot make new series. */
#include "serve/stats.h"

#include <stdio.h>
#include <string.h>

#include "serve/infer_answer.h"

#define PREFIX "assay_serve_"

static const int codes[] = {200, 400, 413, 415, 500, 503}; /* and all others */

static const double times[STATS_TIMES] = {0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.003, 0.005,
                                          0.01,   0.025,   0.05,   0.1,   0.5,   2.5,   10};

static void add(atomic_uint_fast64_t *to, uint64_t n)
{
    (void)atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

static unsigned long long get(const atomic_uint_fast64_t *from)
{
    return atomic_load_explicit((atomic_uint_fast64_t *)from, memory_order_relaxed);
}

void stats_request(struct stats *s, int status, int64_t ns)
{
    size_t code = 0, bound = 0;
    while (code < AS_ARRAY_LEN(codes) && codes[code] != status)
        code++;
    while (bound < STATS_TIMES && (double)ns / 1e9 > times[bound])
        bound++;
    add(&s->by_code[code], 1);
    add(&s->by_time[bound], 1);
    add(&s->time_us, (uint64_t)(ns / 1000));
}

void stats_batch(struct stats *s, size_t rows, int64_t ns)
{
    size_t bound = 0;
    while (bound < STATS_BATCHES && rows > (size_t)1 << bound)
        bound++;
    add(&s->rows, rows);
    add(&s->by_batch[bound], 1);
    add(&s->batch_rows, rows);
    add(&s->compute_us, (uint64_t)(ns / 1000));
}

static void write_label(struct str *out, const char *name)
{
    str_puts(out, "{model=");
    infer_text_write(out, name, strlen(name));
}

static void write_head(struct str *out, const char *name, const char *type, const char *help)
{
    str_printf(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void write_one(struct str *out, const char *metric, const char *name, double v)
{
    str_printf(out, PREFIX "%s", metric);
    write_label(out, name);
    str_printf(out, "} %.15g\n", v);
}

static void write_bucket(struct str *out, const char *metric, const char *name, const char *le,
                         unsigned long long n)
{
    str_printf(out, PREFIX "%s_bucket", metric);
    write_label(out, name);
    str_printf(out, ",le=\"%s\"} %llu\n", le, n);
}

static void write_requests(const struct stats_of *m, size_t n, struct str *out)
{
    write_head(out, "requests_total", "counter", "Inference requests answered.");
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < STATS_CODES; c++) {
            unsigned long long count = get(&m[i].stats->by_code[c]);
            if (!count)
                continue;
            str_puts(out, PREFIX "requests_total");
            write_label(out, m[i].name);
            if (c < AS_ARRAY_LEN(codes))
                str_printf(out, ",code=\"%d\"} %llu\n", codes[c], count);
            else
                str_printf(out, ",code=\"other\"} %llu\n", count);
        }
}

static void write_times(const struct stats_of *m, size_t n, struct str *out)
{
    const char *metric = "request_duration_seconds";
    char le[32];
    write_head(out, metric, "histogram", "From the request line to the answer.");
    for (size_t i = 0; i < n; i++) {
        unsigned long long sum = 0;
        for (size_t b = 0; b <= STATS_TIMES; b++) {
            sum += get(&m[i].stats->by_time[b]);
            (void)snprintf(le, sizeof le, "%g", b < STATS_TIMES ? times[b] : 0.0);
            write_bucket(out, metric, m[i].name, b < STATS_TIMES ? le : "+Inf", sum);
        }
        write_one(out, "request_duration_seconds_sum", m[i].name,
                  (double)get(&m[i].stats->time_us) / 1e6);
        write_one(out, "request_duration_seconds_count", m[i].name, (double)sum);
    }
}

static void write_batches(const struct stats_of *m, size_t n, struct str *out)
{
    const char *metric = "batch_rows";
    char le[32];
    write_head(out, metric, "histogram", "Rows that were computed together.");
    for (size_t i = 0; i < n; i++) {
        unsigned long long sum = 0;
        for (size_t b = 0; b <= STATS_BATCHES; b++) {
            sum += get(&m[i].stats->by_batch[b]);
            (void)snprintf(le, sizeof le, "%llu", 1ULL << b);
            write_bucket(out, metric, m[i].name, b < STATS_BATCHES ? le : "+Inf", sum);
        }
        write_one(out, "batch_rows_sum", m[i].name, (double)get(&m[i].stats->batch_rows));
        write_one(out, "batch_rows_count", m[i].name, (double)sum);
    }
}

static void write_info(const struct stats_of *m, size_t n, struct str *out)
{
    write_head(out, "model_info", "gauge", "1 for the version that is served.");
    for (size_t i = 0; i < n; i++) {
        if (!*m[i].version)
            continue;
        str_puts(out, PREFIX "model_info");
        write_label(out, m[i].name);
        str_puts(out, ",version=");
        infer_text_write(out, m[i].version, strlen(m[i].version));
        str_puts(out, "} 1\n");
    }
}

void stats_write(const struct stats_of *models, size_t n, struct str *out)
{
    static const struct {
        const char *metric, *type, *help;
        size_t at;
        double scale;
    } plain[] = {
        {"rows_total", "counter", "Rows predicted.", offsetof(struct stats, rows), 1},
        {"compute_seconds_total", "counter", "Time spent predicting.",
         offsetof(struct stats, compute_us), 1e-6},
        {"queue_requests", "gauge", "Requests that wait to be computed.",
         offsetof(struct stats, queued), 1},
        {"loads_total", "counter", "Versions that were loaded.", offsetof(struct stats, loads), 1},
        {"load_failures_total", "counter", "Versions that could not be loaded; the log says why.",
         offsetof(struct stats, load_failures), 1},
    };
    write_info(models, n, out);
    write_requests(models, n, out);
    write_times(models, n, out);
    write_batches(models, n, out);
    for (size_t k = 0; k < AS_ARRAY_LEN(plain); k++) {
        write_head(out, plain[k].metric, plain[k].type, plain[k].help);
        for (size_t i = 0; i < n; i++)
            write_one(
                out, plain[k].metric, models[i].name,
                (double)get(
                    (const atomic_uint_fast64_t *)(const void *)((const char *)models[i].stats +
                                                                 plain[k].at)) *
                    plain[k].scale);
    }
}
