/* Counters in memory: one cell for each row of the route table, and one for each method of requests
 * whose path is no route.
 *
 * Labels come from the table and from fixed lists, never from the text of a request. Otherwise a
 * client could create any number of series in the monitoring system by making up paths, methods or
 * status codes. One lock guards all cells: a count takes less than a microsecond, and a database
 * query costs much more. */
#include "api/server/http_metrics.h"

#include <pthread.h>
#include <string.h>

/* Upper bounds in seconds. Long-polls fall into the last ones. */
static const double bounds[] = {0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60};
#define N_BOUNDS AS_ARRAY_LEN(bounds)

static const int codes[] = {200, 201, 204, 206, 304, 400, 401, 403, 404, 405,
                            409, 413, 414, 415, 416, 422, 429, 431, 500, 503};
#define N_CODES (AS_ARRAY_LEN(codes) + 1) /* one more for all others */

static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
#define N_METHODS (AS_ARRAY_LEN(methods) + 1)

struct cell {
    uint64_t by_code[N_CODES];
    uint64_t by_bound[N_BOUNDS]; /* not cumulative; write_times() adds them up */
    uint64_t n;
    double seconds;
};

struct http_metrics {
    const struct route *routes;
    size_t n_routes;
    pthread_mutex_t lock; /* guards the cells and the parts */
    uint64_t parts;
    size_t n_cells; /* of the routes, then of requests without a route, by method */
    struct cell *cells;
};

struct http_metrics *http_metrics_create(const struct route *routes, size_t n)
{
    struct http_metrics *m = as_calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->routes = routes;
    m->n_routes = n;
    m->n_cells = n + N_METHODS;
    m->cells = as_calloc(m->n_cells, sizeof *m->cells);
    if (!m->cells) {
        free(m);
        return NULL;
    }
    (void)pthread_mutex_init(&m->lock, NULL); /* cannot fail with default attributes on Linux */
    return m;
}

void http_metrics_free(struct http_metrics *m)
{
    if (!m)
        return;
    (void)pthread_mutex_destroy(&m->lock);
    free(m->cells);
    free(m);
}

static size_t index_of_code(int status)
{
    size_t i = 0;
    while (i < AS_ARRAY_LEN(codes) && codes[i] != status)
        i++;
    return i;
}

static size_t index_of_method(const char *method)
{
    size_t i = 0;
    while (i < AS_ARRAY_LEN(methods) && !as_streq(methods[i], method))
        i++;
    return i;
}

void http_metrics_count(struct http_metrics *m, const struct route *route, const char *method,
                        int status, int64_t duration_ns)
{
    size_t at = route ? (size_t)(route - m->routes) : m->n_routes + index_of_method(method);
    double seconds = (double)duration_ns / 1e9;
    size_t b = 0;
    while (b < N_BOUNDS && seconds > bounds[b])
        b++;
    pthread_mutex_lock(&m->lock);
    struct cell *c = &m->cells[at];
    c->by_code[index_of_code(status)]++;
    if (b < N_BOUNDS)
        c->by_bound[b]++;
    c->n++;
    c->seconds += seconds;
    pthread_mutex_unlock(&m->lock);
}

void http_metrics_count_parts(struct http_metrics *m, size_t n)
{
    pthread_mutex_lock(&m->lock);
    m->parts += n;
    pthread_mutex_unlock(&m->lock);
}

struct labels {
    const char *route, *method;
};

static struct labels labels_of(const struct http_metrics *m, size_t at)
{
    if (at < m->n_routes)
        return (struct labels){m->routes[at].path, m->routes[at].method};
    at -= m->n_routes;
    return (struct labels){"none", at < AS_ARRAY_LEN(methods) ? methods[at] : "other"};
}

static void write_counts(const struct http_metrics *m, struct str *out)
{
    str_puts(out, "# HELP assay_http_requests_total Requests answered.\n"
                  "# TYPE assay_http_requests_total counter\n");
    for (size_t at = 0; at < m->n_cells; at++) {
        struct labels l = labels_of(m, at);
        for (size_t i = 0; i < N_CODES; i++) {
            if (!m->cells[at].by_code[i])
                continue;
            str_printf(out, "assay_http_requests_total{route=\"%s\",method=\"%s\",code=\"", l.route,
                       l.method);
            if (i < AS_ARRAY_LEN(codes))
                str_printf(out, "%d", codes[i]);
            else
                str_puts(out, "other");
            str_printf(out, "\"} %llu\n", (unsigned long long)m->cells[at].by_code[i]);
        }
    }
}

static void write_parts(const struct http_metrics *m, struct str *out)
{
    str_printf(out,
               "# HELP assay_http_batch_parts_total Ends and measurements in requests of many.\n"
               "# TYPE assay_http_batch_parts_total counter\n"
               "assay_http_batch_parts_total %llu\n",
               (unsigned long long)m->parts);
}

static void write_times(const struct http_metrics *m, struct str *out)
{
    const char *name = "assay_http_request_duration_seconds";
    str_printf(out, "# HELP %s From the request line to the answer.\n# TYPE %s histogram\n", name,
               name);
    for (size_t at = 0; at < m->n_cells; at++) {
        const struct cell *c = &m->cells[at];
        struct labels l = labels_of(m, at);
        uint64_t sum = 0;
        if (!c->n)
            continue;
        for (size_t i = 0; i < N_BOUNDS; i++) {
            sum += c->by_bound[i];
            str_printf(out, "%s_bucket{route=\"%s\",method=\"%s\",le=\"%g\"} %llu\n", name, l.route,
                       l.method, bounds[i], (unsigned long long)sum);
        }
        str_printf(out, "%s_bucket{route=\"%s\",method=\"%s\",le=\"+Inf\"} %llu\n", name, l.route,
                   l.method, (unsigned long long)c->n);
        str_printf(out, "%s_sum{route=\"%s\",method=\"%s\"} %.9g\n", name, l.route, l.method,
                   c->seconds);
        str_printf(out, "%s_count{route=\"%s\",method=\"%s\"} %llu\n", name, l.route, l.method,
                   (unsigned long long)c->n);
    }
}

/* Writes a copy: whoever counts, an I/O thread among them, waits for no text to be formatted. */
void http_metrics_write(struct http_metrics *m, struct str *out)
{
    struct http_metrics copy = {
        .routes = m->routes, .n_routes = m->n_routes, .n_cells = m->n_cells};
    AS_AUTO(as_freep) struct cell *cells = as_calloc(m->n_cells, sizeof *cells);
    if (!cells) {
        out->failed = true;
        return;
    }
    pthread_mutex_lock(&m->lock);
    memcpy(cells, m->cells, m->n_cells * sizeof *cells);
    copy.parts = m->parts;
    pthread_mutex_unlock(&m->lock);
    copy.cells = cells;
    write_counts(&copy, out);
    write_parts(&copy, out);
    write_times(&copy, out);
}
