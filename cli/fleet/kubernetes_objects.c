/* Each runner, or each gang, is a Job of its own, not a replica of a Deployment: a runner that
 * leaves when it is idle is not started again, and one that is idle can be ended without a choice
 * of the cluster. A pod has no rights in the cluster (no token of a service account), is not root,
 * and writes to volumes alone. */
#include "cli/fleet/kubernetes_objects.h"

#include <stdio.h>

#include "base/json.h"
#include "base/mem.h"

#define TOKEN_MOUNT "/var/run/assay"
#define WORK_MOUNT "/var/lib/assay"
#define USER 10001          /* any but root; the image need not know it */
#define LEAVE_S 90          /* from SIGTERM to SIGKILL: a grace period, and time to deliver */
#define FINISHED_KEEP_S 600 /* a job that ended stays so long, so that its log can be read */
#define MODE_0440 288

const char *kubernetes_namespace(const struct fleet_spec *spec)
{
    return spec->namespace ? spec->namespace : "default";
}

static json_t *labels(const struct fleet_spec *s)
{
    return json_pack("{s:s, s:s, s:s}", "app.kubernetes.io/name", "assay-runner",
                     KUBERNETES_FLEET_LABEL, s->name, "app.kubernetes.io/managed-by",
                     "assay-launch");
}

/* "assay-NAME" and what is behind it. */
static json_t *metadata(const struct fleet_spec *s, const char *separator, const char *id)
{
    return json_pack("{s:o, s:s, s:o}", "name",
                     json_sprintf("assay-%s%s%s", s->name, separator, id), "namespace",
                     kubernetes_namespace(s), "labels", labels(s));
}

static json_t *variable(const char *name, const char *value)
{
    return json_pack("{s:s, s:s}", "name", name, "value", value);
}

static json_t *variable_of_field(const char *name, const char *field)
{
    return json_pack("{s:s, s:{s:{s:s}}}", "name", name, "valueFrom", "fieldRef", "fieldPath",
                     field);
}

static json_t *environment(const struct fleet_spec *s)
{
    json_t *list = json_array();
    int bad = list ? 0 : 1;
    bad |= json_array_append_new(list, variable("ASSAY_SERVER", s->server));
    bad |= json_array_append_new(list, variable("ASSAY_TOKEN_FILE", TOKEN_MOUNT "/token"));
    bad |= json_array_append_new(list, variable("ASSAY_RUNNER_FLEET", s->name));
    bad |= json_array_append_new(list, variable_of_field("POD_NAME", "metadata.name"));
    bad |= json_array_append_new(list, variable_of_field("POD_NAMESPACE", "metadata.namespace"));
    if (!bad)
        return list;
    json_decref(list);
    return NULL;
}

static int add_number(json_t *args, const char *option, int64_t v, const char *unit)
{
    return v > 0 ? json_array_append_new(args, json_string(option)) |
                       json_array_append_new(args, json_sprintf("%lld%s", (long long)v, unit))
                 : 0;
}

/* $(POD_NAME) is replaced by the cluster. */
static json_t *arguments(const struct fleet_spec *s)
{
    json_t *args = json_pack("[s, s, s, s, s, s]", "--name", "$(POD_NAME)", "--work",
                             WORK_MOUNT "/work", "--cache", WORK_MOUNT "/cache");
    int bad = args ? 0 : 1;
    bad |= add_number(args, "--slots", s->slots, "");
    bad |= add_number(args, "--cpus", s->cpus, "");
    bad |= add_number(args, "--memory", s->memory_bytes, "");
    bad |= add_number(args, "--idle-exit", s->idle_exit_ms, "ms");
    bad |= add_number(args, "--until", s->time_ms, "ms");
    if (s->gpus == 0)
        bad |= json_array_append_new(args, json_string("--gpus")) |
               json_array_append_new(args, json_string("none"));
    if (!bad)
        return args;
    json_decref(args);
    return NULL;
}

/* Requests and limits are equal, so that a trial's memory is the pod's own. */
static json_t *resources(const struct fleet_spec *s)
{
    json_t *of = json_object(), *both = NULL;
    int bad = of ? 0 : 1;
    if (s->cpus > 0)
        bad |= json_object_set_new(of, "cpu", json_sprintf("%lld", (long long)s->cpus));
    if (s->memory_bytes > 0)
        bad |= json_object_set_new(of, "memory", json_sprintf("%lld", (long long)s->memory_bytes));
    if (s->gpus > 0)
        bad |= json_object_set_new(of, "nvidia.com/gpu", json_sprintf("%lld", (long long)s->gpus));
    if (!bad)
        both = json_pack("{s:O, s:O}", "requests", of, "limits", of);
    json_decref(of);
    return both;
}

static json_t *mount(const char *name, const char *path, bool read_only)
{
    return json_pack("{s:s, s:s, s:b}", "name", name, "mountPath", path, "readOnly", read_only);
}

static json_t *container(const struct fleet_spec *s)
{
    json_t *c = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:[o, o, o, o], s:{s:b, s:b, s:{s:[s]}}}", "name", "runner",
        "image", s->image, "args", arguments(s), "env", environment(s), "resources", resources(s),
        "volumeMounts", mount("token", TOKEN_MOUNT, true), mount("work", WORK_MOUNT, false),
        mount("tmp", "/tmp", false), mount("shm", "/dev/shm", false), "securityContext",
        "allowPrivilegeEscalation", 0, "readOnlyRootFilesystem", 1, "capabilities", "drop", "ALL");
    if (c && s->program && json_object_set_new(c, "command", json_pack("[s]", s->program)) != 0) {
        json_decref(c);
        return NULL;
    }
    return c;
}

static json_t *volumes(const struct fleet_spec *s)
{
    return json_pack("[{s:s, s:{s:o, s:i}}, {s:s, s:{}}, {s:s, s:{}}, {s:s, s:{s:s}}]", "name",
                     "token", "secret", "secretName", json_sprintf("assay-%s", s->name),
                     "defaultMode", MODE_0440, "name", "work", "emptyDir", "name", "tmp",
                     "emptyDir", "name", "shm", "emptyDir", "medium", "Memory");
}

static json_t *pod(const struct fleet_spec *s)
{
    json_t *p =
        json_pack("{s:s, s:b, s:b, s:i, s:{s:b, s:i, s:i, s:{s:s}}, s:[o], s:o}", "restartPolicy",
                  "Never", "automountServiceAccountToken", 0, "enableServiceLinks", 0,
                  "terminationGracePeriodSeconds", LEAVE_S, "securityContext", "runAsNonRoot", 1,
                  "runAsUser", USER, "fsGroup", USER, "seccompProfile", "type", "RuntimeDefault",
                  "containers", container(s), "volumes", volumes(s));
    if (p && s->pull_secret &&
        json_object_set_new(p, "imagePullSecrets", json_pack("[{s:s}]", "name", s->pull_secret)) !=
            0) {
        json_decref(p);
        return NULL;
    }
    return p;
}

/* No retries: whoever asked for the job sees that it failed, and asks for another one, or waits. */
static json_t *job_spec(const struct fleet_spec *s)
{
    json_t *spec =
        json_pack("{s:s, s:I, s:I, s:i, s:i, s:{s:{s:o}, s:o}}", "completionMode", "Indexed",
                  "completions", (json_int_t)s->ranks, "parallelism", (json_int_t)s->ranks,
                  "backoffLimit", 0, "ttlSecondsAfterFinished", FINISHED_KEEP_S, "template",
                  "metadata", "labels", labels(s), "spec", pod(s));
    if (spec && s->time_ms > 0 &&
        json_object_set_new(spec, "activeDeadlineSeconds",
                            json_integer((json_int_t)(s->time_ms + 999) / 1000)) != 0) {
        json_decref(spec);
        return NULL;
    }
    return spec;
}

as_status kubernetes_job(const struct fleet_spec *s, const char *id, json_t **ret,
                         struct as_err *err)
{
    JSON_AUTO job = json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "batch/v1", "kind", "Job",
                              "metadata", metadata(s, "-", id), "spec", job_spec(s));
    if (!job)
        return as_fail_nomem(err);
    json_t *of = json_object_get(json_object_get(job, "metadata"), "labels");
    if (s->queue &&
        json_object_set_new(of, "kueue.x-k8s.io/queue-name", json_string(s->queue)) != 0)
        return as_fail_nomem(err);
    *ret = as_steal(job);
    return AS_OK;
}

as_status kubernetes_secret(const struct fleet_spec *s, const char *token, json_t **ret,
                            struct as_err *err)
{
    json_t *secret =
        json_pack("{s:s, s:s, s:o, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Secret", "metadata",
                  metadata(s, "", ""), "type", "Opaque", "stringData", "token", token);
    if (!secret)
        return as_fail_nomem(err);
    *ret = secret;
    return AS_OK;
}

as_status kubernetes_network_policy(const struct fleet_spec *s, json_t **ret, struct as_err *err)
{
    json_t *policy =
        json_pack("{s:s, s:s, s:o, s:{s:{s:o}, s:[s], s:[{s:[{s:{s:o}}]}]}}", "apiVersion",
                  "networking.k8s.io/v1", "kind", "NetworkPolicy", "metadata", metadata(s, "", ""),
                  "spec", "podSelector", "matchLabels", labels(s), "policyTypes", "Ingress",
                  "ingress", "from", "podSelector", "matchLabels", labels(s));
    if (!policy)
        return as_fail_nomem(err);
    *ret = policy;
    return AS_OK;
}
