/* Kubernetes, through `kubectl … --raw`: kubectl knows the cluster of the user and signs in there,
 * and a raw request is sent as it is, so what is submitted is what --print shows. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/fleet/command.h"
#include "cli/fleet/engine.h"
#include "cli/fleet/kubernetes_objects.h"

#define PATIENCE_MS 60000
#define ID_BYTES 4

/* kubectl [--context C] VERB --raw PATH [-f -] */
static as_status request(const struct fleet_spec *s, const char *verb, const char *path,
                         const json_t *body, struct str *out, struct as_err *err)
{
    const char *argv[9] = {"kubectl"};
    size_t n = 1;
    AS_AUTO(as_freep) char *text = body ? json_format(body) : NULL;
    if (body && !text)
        return as_fail_nomem(err);
    if (s->context) {
        argv[n++] = "--context";
        argv[n++] = s->context;
    }
    argv[n++] = verb;
    argv[n++] = "--raw";
    argv[n++] = path;
    if (body) {
        argv[n++] = "-f";
        argv[n++] = "-";
    }
    argv[n] = NULL;
    return command_run(argv, text, PATIENCE_MS, out, err);
}

static void put_path(const struct fleet_spec *s, const char *group, const char *kind, struct str *b)
{
    str_printf(b, "/%s/namespaces/%s/%s", group, kubernetes_namespace(s), kind);
}

static as_status create(const struct fleet_spec *s, const char *group, const char *kind,
                        const json_t *object, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    AS_AUTO(str_done) struct str out = {0};
    put_path(s, group, kind, &path);
    as_status st = str_check(&path, err);
    return st < 0 ? st : request(s, "create", path.s, object, &out, err);
}

/* Create it, or replace the one that is there. */
static as_status put(const struct fleet_spec *s, const char *group, const char *kind,
                     const json_t *object, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    AS_AUTO(str_done) struct str out = {0};
    as_status st = create(s, group, kind, object, err);
    if (st != AS_E_CONFLICT || (err && !strstr(err->msg, "already exists")))
        return st;
    put_path(s, group, kind, &path);
    str_printf(&path, "/assay-%s", s->name);
    st = str_check(&path, err);
    return st < 0 ? st : request(s, "replace", path.s, object, &out, err);
}

static as_status new_job(const struct fleet_spec *s, json_t **ret, struct as_err *err)
{
    uint8_t bytes[ID_BYTES];
    char id[2 * ID_BYTES + 1];
    random_bytes(bytes, sizeof bytes);
    hex_format(bytes, sizeof bytes, id);
    return kubernetes_job(s, id, ret, err);
}

static as_status put_document(const json_t *object, struct str *b, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = json_dumps(object, JSON_INDENT(2));
    if (!text)
        return as_fail_nomem(err);
    str_printf(b, "%s%s\n", b->len ? "---\n" : "", text);
    return str_check(b, err);
}

/* JSON is YAML, so the output is for `kubectl apply -f -`. */
static as_status print(const struct fleet_spec *s, int64_t n, struct str *b, struct as_err *err)
{
    JSON_AUTO policy = NULL;
    as_status st = kubernetes_network_policy(s, &policy, err);
    if (st == AS_OK)
        st = put_document(policy, b, err);
    for (int64_t i = 0; st == AS_OK && i < n; i++) {
        JSON_AUTO job = NULL;
        char id[24];
        (void)snprintf(id, sizeof id, "%lld", (long long)i);
        st = kubernetes_job(s, id, &job, err);
        if (st == AS_OK)
            st = put_document(job, b, err);
    }
    return st;
}

static as_status submit(const struct fleet_spec *s, int64_t n, const char *token,
                        struct as_err *err)
{
    JSON_AUTO secret = NULL;
    JSON_AUTO policy = NULL;
    as_status st = kubernetes_secret(s, token, &secret, err);
    if (st == AS_OK)
        st = kubernetes_network_policy(s, &policy, err);
    if (st == AS_OK)
        st = put(s, "api/v1", "secrets", secret, err);
    if (st == AS_OK)
        st = put(s, "apis/networking.k8s.io/v1", "networkpolicies", policy, err);
    for (int64_t i = 0; st == AS_OK && i < n; i++) {
        JSON_AUTO job = NULL;
        st = new_job(s, &job, err);
        if (st == AS_OK)
            st = create(s, "apis/batch/v1", "jobs", job, err);
    }
    return st;
}

static bool has_ended(const json_t *status)
{
    size_t i;
    const json_t *c;
    json_array_foreach(json_object_get(status, "conditions"), i, c)
    {
        const char *type = json_string_value(json_object_get(c, "type"));
        const char *is = json_string_value(json_object_get(c, "status"));
        if (as_streq(is, "True") && (as_streq(type, "Complete") || as_streq(type, "Failed")))
            return true;
    }
    return false;
}

static as_status read_job(const json_t *job, struct fleet_units *ret, struct as_err *err)
{
    const json_t *meta = json_object_get(job, "metadata"), *status = json_object_get(job, "status");
    const char *name = json_string_value(json_object_get(meta, "name"));
    bool is_ready = json_integer_value(json_object_get(status, "ready")) > 0;
    if (!name || has_ended(status))
        return AS_OK;
    unit_state is = json_object_get(meta, "deletionTimestamp") ? UNIT_ENDING
                    : is_ready                                 ? UNIT_RUNNING
                                                               : UNIT_PENDING;
    return fleet_units_add(ret, name, is, "", err);
}

static as_status list(const struct fleet_spec *s, struct fleet_units *ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    AS_AUTO(str_done) struct str out = {0};
    JSON_AUTO answer = NULL;
    size_t i;
    const json_t *job;
    put_path(s, "apis/batch/v1", "jobs", &path);
    str_printf(&path,
               "?labelSelector=app.kubernetes.io%%2Fname%%3Dassay-runner,"
               "app.kubernetes.io%%2Finstance%%3D%s",
               s->name);
    as_status st = str_check(&path, err);
    if (st == AS_OK)
        st = request(s, "get", path.s, NULL, &out, err);
    if (st == AS_OK)
        st = json_parse(str_cstr(&out), out.len, &answer, err);
    if (st < 0)
        return st;
    json_array_foreach(json_object_get(answer, "items"), i, job)
    {
        st = read_job(job, ret, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status stop(const struct fleet_spec *s, const char *const *ids, size_t n,
                      struct as_err *err)
{
    for (size_t i = 0; i < n; i++) {
        AS_AUTO(str_done) struct str path = {0};
        AS_AUTO(str_done) struct str out = {0};
        put_path(s, "apis/batch/v1", "jobs", &path);
        str_printf(&path, "/%s?propagationPolicy=Foreground", ids[i]);
        as_status st = str_check(&path, err);
        if (st == AS_OK)
            st = request(s, "delete", path.s, NULL, &out, err);
        if (st < 0 && !(st == AS_E_CONFLICT && err && strstr(err->msg, "not found")))
            return st;
    }
    return AS_OK;
}

/* Pods of a job are named JOB-INDEX-….  */
static bool is_of(const char *job, const struct fleet_spec *s, const char *unit)
{
    AS_AUTO(str_done) struct str prefix = {0};
    str_printf(&prefix, "kubernetes/%s/%s-", kubernetes_namespace(s), unit);
    return !prefix.failed && as_starts_with(job, prefix.s);
}

const struct engine_ops engine_kubernetes = {print, submit, list, stop, is_of, .needs_token = true};
