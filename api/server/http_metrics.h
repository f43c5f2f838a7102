/* Counts and times of requests, for /metrics. Functions may be called from any thread. */
#ifndef ASSAY_API_SERVER_HTTP_METRICS_H
#define ASSAY_API_SERVER_HTTP_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "api/server/route.h"
#include "base/mem.h"
#include "base/str.h"

struct http_metrics;

/* Create counters for the n rows of `routes` (borrowed for the life of the metrics). NULL when
 * memory is out. */
struct http_metrics *http_metrics_create(const struct route *routes, size_t n);
void http_metrics_free(struct http_metrics *m);
AS_DEFINE_FREEP(struct http_metrics, http_metrics_free)

/* Count one answered request. `route` is a row of the table, or NULL for a path without a route (a
 * file, or nothing). `method` NULL is counted as "other". */
void http_metrics_count(struct http_metrics *m, const struct route *route, const char *method,
                        int status, int64_t duration_ns);

/* Count the ends and measurements of one request of many. */
void http_metrics_count_parts(struct http_metrics *m, size_t n);

/* Append assay_http_requests_total, assay_http_batch_parts_total and
 * assay_http_request_duration_seconds in Prometheus text format. Call str_check() afterwards:
 * memory may have run out. */
void http_metrics_write(struct http_metrics *m, struct str *out);

#endif
