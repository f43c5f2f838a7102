/* Reads JOB.json.
 *
 * The list `members` tells the two forms apart. In the single form the job has one member, which is
 * built from the document and the environment; the rest of the trainer knows groups only.
 *
 * The data set's record is the API's Dataset object with the paths of local files added. Its form
 * is checked here; the files are checked against it when they are loaded (data/dataset_read.h). */
#include "trial-runner/train/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/dataset_json.h"
#include "base/file.h"
#include "base/json.h"

#define JOB_MAX_BYTES ((size_t)64 << 20)

void job_done(struct job *job)
{
    dataset_info_done(&job->info);
    free(job->table);
    free(job->features);
    free(job->targets);
    free(job->decoded);
    free(job->test);
    free(job->test_features);
    free(job->test_targets);
    for (size_t i = 0; i < AS_ARRAY_LEN(job->held); i++)
        if (job->held[i] > 0)
            (void)close(job->held[i]);
    free(job->members);
    json_decref(job->doc);
    *job = (struct job){0};
}

static as_status hold_file(char **path, int *ret, struct as_err *err)
{
    char name[40];
    if (!*path)
        return AS_OK;
    *ret = open(*path, O_RDONLY | O_CLOEXEC);
    if (*ret < 0)
        return as_fail(err, AS_E_IO, "test rows: cannot open %s: %s", *path, strerror(errno));
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", *ret);
    char *held = as_strdup(name);
    if (!held)
        return as_fail_nomem(err);
    free(*path);
    *path = held;
    return AS_OK;
}

as_status job_hold_test(struct job *job, struct as_err *err)
{
    char **const paths[] = {&job->test, &job->test_features, &job->test_targets};
    as_status st = AS_OK;
    for (size_t i = 0; i < AS_ARRAY_LEN(paths) && job->group && st == AS_OK; i++)
        st = hold_file(paths[i], &job->held[i], err);
    return st;
}

struct dataset_paths job_paths(const struct job *job)
{
    return (struct dataset_paths){job->table, job->features, job->targets, job->decoded};
}

/* ---- the data set ---- */

static as_status read_path(struct json_fields *f, const char *name, char **ret, struct as_err *err)
{
    const char *s = NULL;
    as_status st = json_fields_str(f, name, JSON_OPTIONAL, &s, err);
    if (st != AS_OK || !s)
        return st;
    *ret = as_strdup(s);
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* The record of the test rows: {rows, train_sha256}. With them, checkpoints and models belong to
 * the digest of the other rows: other test rows change nothing of a training. */
static as_status read_test(const json_t *obj, struct job *job, struct as_err *err)
{
    json_t *test = json_object_get(obj, "test");
    struct json_fields f;
    int64_t rows = 0;
    const char *digest = NULL;
    if (!test)
        return AS_OK;
    as_status st = json_fields_init(&f, test, "/dataset/test", err);
    if (st == AS_OK)
        st = json_fields_i64(&f, "rows", JSON_REQUIRED, 1, (int64_t)DATASET_MAX_ROWS, &rows, err);
    if (st == AS_OK)
        st = json_fields_str(&f, "train_sha256", JSON_OPTIONAL, &digest, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    job->test_rows = (size_t)rows;
    job->digest = digest ? digest : job->digest;
    return st;
}

static as_status check_test(const struct job *job, struct as_err *err)
{
    bool is_one = job->test && !job->test_features && !job->test_targets;
    bool is_pair = !job->test && job->test_features && job->test_targets;
    bool fits = job->table ? is_one : is_pair;
    bool any = job->test || job->test_features || job->test_targets;
    if (job->test_rows > 0 ? fits : !any)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/dataset/paths",
                      "/dataset/paths: expected %s for the %zu test rows, as for the others",
                      job->table ? "test" : "test_features and test_targets", job->test_rows);
}

static as_status read_dataset(const json_t *obj, struct job *job, struct as_err *err)
{
    const char *digest = json_string_value(json_object_get(obj, "sha256"));
    job->digest = digest ? digest : "";
    as_status st = read_test(obj, job, err);
    if (st != AS_OK)
        return st;
    st = dataset_info_from_json(obj, "/dataset", &job->info, err);
    if (st != AS_OK)
        return st;
    struct json_fields f;
    st = json_fields_init(&f, json_object_get(obj, "paths"), "/dataset/paths", err);
    if (st != AS_OK)
        return st;
    st = read_path(&f, "table", &job->table, err);
    if (st != AS_OK)
        return st;
    st = read_path(&f, "features", &job->features, err);
    if (st != AS_OK)
        return st;
    st = read_path(&f, "targets", &job->targets, err);
    if (st != AS_OK)
        return st;
    st = read_path(&f, "decoded", &job->decoded, err);
    if (st == AS_OK)
        st = read_path(&f, "test", &job->test, err);
    if (st == AS_OK)
        st = read_path(&f, "test_features", &job->test_features, err);
    if (st == AS_OK)
        st = read_path(&f, "test_targets", &job->test_targets, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    return st == AS_OK ? check_test(job, err) : st;
}

/* ---- members ---- */

static const char *env_or_null(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

static as_status read_single(const json_t *train, const json_t *forks, struct job *job,
                             struct as_err *err)
{
    struct control_member m = {.id = "",
                               .train = train,
                               .report = env_or_null("ASSAY_REPORT"),
                               .checkpoints = env_or_null("ASSAY_CHECKPOINTS"),
                               .artifacts = env_or_null("ASSAY_ARTIFACTS")};
    const char *seed = env_or_null("ASSAY_SEED");
    as_status st = forks ? control_forks_parse(forks, "/forks", &m.forks, err) : AS_OK;
    if (st != AS_OK)
        return st;
    if (seed) {
        char *end;
        errno = 0;
        m.seed = strtoull(seed, &end, 10);
        if (errno || *end || seed[strspn(seed, "0123456789")])
            return as_fail(err, AS_E_INVAL,
                           "ASSAY_SEED: found '%.60s', expected a whole number >= 0", seed);
    }
    job->members = as_calloc(1, sizeof *job->members);
    if (!job->members)
        return as_fail_nomem(err);
    job->members[0] = m;
    job->n_members = job->slots = 1;
    return AS_OK;
}

static as_status check_ids(const struct job *job, struct as_err *err)
{
    for (size_t i = 0; i < job->n_members; i++)
        for (size_t k = 0; k < i; k++)
            if (as_streq(job->members[i].id, job->members[k].id))
                return as_fail(err, AS_E_INVAL, "/members/%zu/id: '%s' is given twice", i,
                               job->members[i].id);
    return AS_OK;
}

static as_status read_group(const json_t *list, int64_t slots, struct job *job, struct as_err *err)
{
    job->group = true;
    job->slots = (size_t)slots;
    job->n_members = json_array_size(list);
    if (job->n_members > job->slots)
        return as_fail_at(err, AS_E_INVAL, "/members",
                          "/members: found %zu, expected at most %zu (slots)", job->n_members,
                          job->slots);
    job->members = as_calloc(job->n_members, sizeof *job->members);
    if (!job->members)
        return as_fail_nomem(err);
    for (size_t i = 0; i < job->n_members; i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index("/members", i, at);
        as_status st = control_member_parse(json_array_get(list, i), at, &job->members[i], err);
        if (st != AS_OK)
            return st;
    }
    return check_ids(job, err);
}

static as_status read_document(struct job *job, struct as_err *err)
{
    struct json_fields f;
    json_t *train = NULL, *dataset = NULL, *metric = NULL, *members = NULL, *forks = NULL;
    json_t *stack = NULL;
    int64_t slots = 1;
    bool group = json_object_get(job->doc, "members") != NULL;
    as_status st = json_fields_init(&f, job->doc, "", err);
    if (st != AS_OK)
        return st;
    if (!group)
        st = json_fields_object(&f, "train", JSON_REQUIRED, &train, err);
    if (st != AS_OK)
        return st;
    if (group)
        st = json_fields_array(&f, "members", JSON_REQUIRED, &members, err);
    if (st != AS_OK)
        return st;
    if (group)
        st = json_fields_i64(&f, "slots", JSON_REQUIRED, 1, CONTROL_MAX_SLOTS, &slots, err);
    if (st != AS_OK)
        return st;
    if (!group)
        st = json_fields_text(&f, "listen", JSON_OPTIONAL, 1, 63, &job->listen, err);
    if (st != AS_OK)
        return st;
    if (!group)
        st = json_fields_text(&f, "base", JSON_OPTIONAL, 1, 4096, &job->base, err);
    if (st == AS_OK && !group)
        st = json_fields_array(&f, "stack", JSON_OPTIONAL, &stack, err);
    if (st == AS_OK && !group)
        st = json_fields_object(&f, "forks", JSON_OPTIONAL, &forks, err);
    if (st != AS_OK)
        return st;
    st = json_fields_object(&f, "dataset", JSON_REQUIRED, &dataset, err);
    if (st != AS_OK)
        return st;
    st = json_fields_object(&f, "metric", JSON_OPTIONAL, &metric, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    job->stack = stack;
    st = read_dataset(dataset, job, err);
    if (st != AS_OK)
        return st;
    job->metric = json_string_value(json_object_get(metric, "name"));
    if (metric && !job->metric)
        return as_fail_at(err, AS_E_INVAL, "/metric/name", "/metric/name: expected text");
    const char *goal = json_string_value(json_object_get(metric, "goal"));
    job->maximize =
        goal ? as_streq(goal, "maximize") : job->metric && train_spec_is_maximized(job->metric);
    return group ? read_group(members, slots, job, err) : read_single(train, forks, job, err);
}

as_status job_read(const char *path, struct job *ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    as_status st = file_read(path, JOB_MAX_BYTES, &text, &len, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(job_done) struct job job = {0};
    st = json_parse_file(text, len, &job.doc, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "%.200s", path);
    st = read_document(&job, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "%.200s", path);
    *ret = job;
    job = (struct job){0};
    return AS_OK;
}
