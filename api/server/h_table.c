/* Handlers of what shows all trials of a sweep at once. The files are of columns, not of JSON, so
 * they are compressed here: once for all who ask, by the cache that keeps them. */
#include "api/server/handlers.h"

#include <string.h>

#include "api/http/http_content.h"
#include "api/server/call.h"
#include "base/metric_name.h"
#include "scheduler/services/points_table.h"
#include "scheduler/services/table_export.h"

#define COLUMNS_TYPE "application/vnd.assay.columns"
#define PACK_LEVEL 1 /* numbers of measurements hardly shrink more at higher levels */

static as_status pack_columns(const void *bytes, size_t len, struct str *ret, struct as_err *err)
{
    return http_gzip(bytes, len, PACK_LEVEL, ret, err);
}

static as_status pack_planes(const void *bytes, size_t len, struct str *ret, struct as_err *err)
{
    return http_gzip_planes(bytes, len, PACK_LEVEL, ret, err);
}

/* What all tables share: `precision`, `layout`, `since`, and the answer. */
static as_status answer_table(struct call *c, struct table_request *q, struct as_err *err)
{
    static const char *const precisions[] = {"double", "single", NULL};
    struct table_answer out;
    static const char *const layouts[] = {"values", "planes", NULL};
    int precision = 0, layout = 0;
    q->sweep = call_param(c, "sweep");
    q->since = -1;
    as_status st = call_query_word(c, "precision", precisions, &precision, err);
    if (st == AS_OK)
        st = call_query_word(c, "layout", layouts, &layout, err);
    if (st == AS_OK)
        st = call_query_i64(c, "since", 0, INT64_MAX, &q->since, err);
    if (st < 0)
        return st;
    q->is_single = precision == 1;
    q->is_planar = layout == 1;
    q->has_since = q->since >= 0;
    if (http_accepts_gzip(c->x->head.accept_encoding))
        q->pack = q->is_planar ? pack_planes : pack_columns;
    st = table_export(c->db, c->tables, c->arena, q, &out, err);
    return st < 0 ? st
                  : call_content(c, COLUMNS_TYPE, out.bytes, out.len, q->pack != NULL, out.etag);
}

as_status h_sweep_table(struct call *c, struct as_err *err)
{
    struct table_request q = {.kind = &table_of_trials, .columns = call_query(c, "columns")};
    return answer_table(c, &q, err);
}

as_status h_sweep_points(struct call *c, struct as_err *err)
{
    struct table_request q = {.kind = &table_of_points, .metric = call_query(c, "metric")};
    int64_t max_points = POINTS_LINE_DEFAULT;
    if (q.metric && !metric_name_valid(q.metric))
        return as_fail(err, AS_E_INVAL, "parameter metric is '%.80s', expected " METRIC_NAME_RULE,
                       q.metric);
    as_status st =
        call_query_i64(c, "max_points", POINTS_LINE_MIN, POINTS_LINE_MAX, &max_points, err);
    if (st < 0)
        return st;
    q.max_points = (size_t)max_points;
    return answer_table(c, &q, err);
}

as_status h_sweep_attempts(struct call *c, struct as_err *err)
{
    struct table_request q = {.kind = &table_of_attempts};
    return answer_table(c, &q, err);
}
