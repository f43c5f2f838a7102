#include "trial-runner/train/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

#define JOB_MAX_BYTES ((size_t)16 << 20)

void job_done(struct job *job)
{
    dataset_info_done(&job->info);
    train_spec_done(&job->spec);
    free(job->table);
    free(job->features);
    free(job->targets);
    free(job->decoded);
    free(job->train_text);
    *job = (struct job){0};
}

struct dataset_paths job_paths(const struct job *job)
{
    return (struct dataset_paths){job->table, job->features, job->targets, job->decoded};
}

static const char *env_or_null(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

static as_status read_environment(struct job *job, struct as_err *err)
{
    job->report = env_or_null("ASSAY_REPORT");
    job->checkpoints = env_or_null("ASSAY_CHECKPOINTS");
    job->artifacts = env_or_null("ASSAY_ARTIFACTS");
    const char *seed = env_or_null("ASSAY_SEED");
    if (!seed)
        return AS_OK;
    char *end;
    errno = 0;
    job->seed = strtoull(seed, &end, 10);
    if (errno || *end || seed[strspn(seed, "0123456789")])
        return as_fail(err, AS_E_INVAL, "ASSAY_SEED: found '%.60s', expected a whole number >= 0",
                       seed);
    return AS_OK;
}

static as_status read_path(struct json_fields *f, const char *name, char **ret, struct as_err *err)
{
    const char *s = NULL;
    as_status st = json_fields_str(f, name, JSON_OPTIONAL, &s, err);
    if (st < 0 || !s)
        return st;
    *ret = as_strdup(s);
    return *ret ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory");
}

static as_status read_dataset(const json_t *obj, struct job *job, struct as_err *err)
{
    as_status st = dataset_info_from_json(obj, "/dataset", &job->info, err);
    if (st < 0)
        return st;
    struct json_fields f;
    st = json_fields_init(&f, json_object_get(obj, "paths"), "/dataset/paths", err);
    if (st == AS_OK)
        st = read_path(&f, "table", &job->table, err);
    if (st == AS_OK)
        st = read_path(&f, "features", &job->features, err);
    if (st == AS_OK)
        st = read_path(&f, "targets", &job->targets, err);
    if (st == AS_OK)
        st = read_path(&f, "decoded", &job->decoded, err);
    return st < 0 ? st : json_fields_end(&f, err);
}

/* The metric is the server's business; here only: can it be reported? Then it will be. */
static as_status check_metric(const json_t *obj, struct job *job, struct as_err *err)
{
    const char *name = json_string_value(json_object_get(obj, "name"));
    if (!obj || (name && train_spec_can_report(job->info.task, name) &&
                 train_spec_request(&job->spec, name)))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/metric/name",
                      "/metric/name: found '%.60s', which the trainer does not report for %s",
                      name ? name : json_type_name(obj), dataset_task_name(job->info.task));
}

static as_status fingerprint(const json_t *train, const json_t *dataset, struct job *job,
                             struct as_err *err)
{
    char seed[24];
    (void)snprintf(seed, sizeof seed, "%" PRIu64, job->seed);
    JSON_AUTO info = dataset_info_to_json(&job->info);
    const json_t *digest = json_object_get(dataset, "sha256");
    JSON_AUTO id = json_pack("{s:O, s:O, s:s, s:s}", "train", train, "dataset", info, "sha256",
                             json_is_string(digest) ? json_string_value(digest) : "", "seed", seed);
    AS_AUTO(as_freep) char *text = id ? json_format(id) : NULL;
    job->train_text = json_format(train);
    if (!text || !job->train_text)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    return sha256_of(text, strlen(text), job->fingerprint, err);
}

static as_status read_document(const json_t *doc, struct job *job, struct as_err *err)
{
    struct json_fields f;
    json_t *train = NULL, *dataset = NULL, *metric = NULL;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st == AS_OK)
        st = json_fields_object(&f, "train", JSON_REQUIRED, &train, err);
    if (st == AS_OK)
        st = json_fields_object(&f, "dataset", JSON_REQUIRED, &dataset, err);
    if (st == AS_OK)
        st = json_fields_object(&f, "metric", JSON_OPTIONAL, &metric, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    if (st == AS_OK)
        st = train_spec_parse(train, "/train", &job->spec, err);
    if (st == AS_OK)
        st = read_dataset(dataset, job, err);
    if (st == AS_OK)
        st = train_spec_check(&job->spec, &job->info, "/train", err);
    if (st == AS_OK)
        st = check_metric(metric, job, err);
    return st < 0 ? st : fingerprint(train, dataset, job, err);
}

as_status job_read(const char *path, struct job *ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    JSON_AUTO doc = NULL;
    size_t len = 0;
    as_status st = file_read(path, JOB_MAX_BYTES, &text, &len, err);
    if (st < 0)
        return st;
    struct job job = {0};
    st = read_environment(&job, err);
    if (st == AS_OK)
        st = json_parse(text, len, &doc, err);
    if (st == AS_OK)
        st = read_document(doc, &job, err);
    if (st < 0) {
        job_done(&job);
        return as_err_prefix(err, st, "%.200s", path);
    }
    *ret = job;
    return AS_OK;
}
