#include "api/server/handlers.h"

#include <string.h>

#include "api/server/codec_priv.h"
#include "api/server/openapi_json.h"
#include "api/server/server_priv.h"
#include "base/str.h"
#include "scheduler/metrics.h"
#include "scheduler/migrate.h"

static json_t *health_encode(const char *status)
{
    struct out o = out_begin();
    out_str(&o, "status", status);
    out_str(&o, "version", ASSAY_VERSION);
    return out_end(&o);
}

as_status h_health(struct call *c, struct as_err *err)
{
    return call_ok(c, health_encode("ok"), err);
}

as_status h_readiness(struct call *c, struct as_err *err)
{
    if (c->is_draining)
        return as_fail(err, AS_E_UNAVAILABLE, "the server drains");
    as_status st = migrate_check(c->db, err);
    if (st < 0) /* also a schema of another version: not now, and not by trying again here */
        return as_fail(err, AS_E_UNAVAILABLE, "%s", err->msg);
    return call_ok(c, health_encode("ready"), err);
}

as_status h_openapi(struct call *c, struct as_err *err)
{
    (void)err;
    return call_bytes(c, "application/json", (const char *)openapi_json, openapi_json_len);
}

/* The server's own figures. */
static void write_own(struct server *s, struct str *out)
{
    str_printf(out,
               "# HELP assay_build_info The version that runs.\n# TYPE assay_build_info gauge\n"
               "assay_build_info{version=\"%s\"} 1\n"
               "# HELP assay_event_streams Open event streams.\n# TYPE assay_event_streams gauge\n"
               "assay_event_streams %zu\n"
               "# HELP assay_lease_expirations_total Runners whose lease ran out.\n"
               "# TYPE assay_lease_expirations_total counter\n"
               "assay_lease_expirations_total %ld\n",
               ASSAY_VERSION, hub_streams(s->hub), atomic_load(&s->lease_expirations));
    http_metrics_write(s->metrics, out);
}

as_status h_metrics(struct call *c, struct as_err *err)
{
    struct str out = {0};
    write_own(c->server, &out);
    as_status st = metrics_write(c->db, &out, err);
    if (st == AS_OK)
        st = str_check(&out, err);
    const char *kept = st == AS_OK ? arena_strdup(c->arena, str_cstr(&out)) : NULL;
    size_t len = out.len;
    str_done(&out);
    if (st == AS_OK && !kept)
        st = as_fail(err, AS_E_NOMEM, "out of memory for the metrics");
    return st < 0 ? st : call_bytes(c, "text/plain; version=0.0.4; charset=utf-8", kept, len);
}
