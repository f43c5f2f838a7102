/* Turns a claim into something that can be started.
 *
 * The attempt's folder is created from nothing each time, also if a claim came twice: files of an
 * earlier try must not mix with those of this one. Data sets are links into the cache; checkpoints
 * are downloaded for this attempt, because the trial will change them.
 *
 * Parameters are substituted in the document's texts by base/trial_template.h and not by a shell,
 * so a parameter's value can never be run as a command. The runner's own variables are set after
 * the document's, so that a document cannot change which trial the process is. */
#include "trial-runner/delivery/prepare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/host_id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/trial_template.h"
#include "base/trial_name.h"
#include "trial-runner/delivery/cache.h"
#include "trial-runner/delivery/outbox.h"
#include "trial-runner/collect/collector.h"
#include "trial-runner/process/container.h"
#include "trial-runner/group/group_process.h"
#include "trial-runner/process/own_folder.h"
#include "trial-runner/process/param_env.h"
#include "trial-runner/rank/rank.h"
#include "trial-runner/process/environment.h"

static const struct client_opts patient = {.retry_ms = CLIENT_RETRY_FOREVER};
/* Of files in the attempt's folder: a later attempt makes its own. */
static const struct client_opts for_attempt = {.retry_ms = CLIENT_RETRY_FOREVER,
                                               .is_temporary = true};

static as_status make_folders(const struct attempt *a, struct as_err *err)
{
    static const char *const names[] = {"checkpoints", "artifacts", "data"};
    as_status st = file_remove_tree(a->dir, err); /* it exists if a claim came twice */
    if (st < 0)
        return st;
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
        AS_AUTO(as_freep) char *path = file_join(a->dir, names[i]);
        st = path ? file_mkdirs(path, 0700, err) : as_fail_nomem(err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

/* A file of the checkpoint, which this runner may have kept. *ret_lost: the server does not have
 * it, or another content, and never will: no other attempt would get it either. */
static as_status fetch_checkpoint(struct attempt *a, const json_t *file, const char *path,
                                  bool *ret_lost, struct as_err *err)
{
    const char *sha = json_string_value(json_object_get(file, "sha256"));
    bool found = false;
    as_status st = cache_copy(a->options->cache, sha, path, &found, err);
    if (st < 0)
        log_write(LOG_WARN, "a checkpoint in the cache cannot be used", "%s error=\"%s\"", a->label,
                  err->msg);
    if (found)
        return AS_OK;
    st = client_download_blob(a->fetch, sha, path, 0, &for_attempt, err);
    *ret_lost = st == AS_E_NOT_FOUND ||
                (st == AS_E_INTERNAL && !*client_problem_code(a->fetch)); /* its digest is wrong */
    return st;
}

static as_status restore_files(struct attempt *a, const char *dir, bool *ret_lost,
                               struct as_err *err)
{
    size_t i;
    json_t *f;
    json_array_foreach(a->claimed.files, i, f)
    {
        const char *rel = json_string_value(json_object_get(f, "path"));
        AS_AUTO(as_freep) char *path = file_join(dir, rel);
        AS_AUTO(as_freep) char *parent = as_strdup(path);
        if (!path || !parent)
            return as_fail_nomem(err);
        *strrchr(parent, '/') = '\0';
        as_status st = file_mkdirs(parent, 0700, err);
        if (st == AS_OK)
            st = fetch_checkpoint(a, f, path, ret_lost, err);
        if (st < 0)
            return as_err_prefix(err, st, "checkpoint %s", rel);
    }
    return AS_OK;
}

/* The checkpoint of an earlier attempt. If it is lost, the trial begins again from nothing: half a
 * checkpoint is none. */
static as_status restore_checkpoints(struct attempt *a, struct as_err *err)
{
    AS_AUTO(as_freep) char *dir = file_join(a->dir, "checkpoints");
    bool lost = false;
    if (!dir)
        return as_fail_nomem(err);
    as_status st = restore_files(a, dir, &lost, err);
    if (st == AS_OK || !lost)
        return st;
    log_write(LOG_WARN, "a checkpoint is lost: its trial begins again", "%s error=\"%s\"", a->label,
              err->msg);
    attempt_note(a, "the trial begins again, because its checkpoint is lost: %s", err->msg);
    a->lost = as_strdup(err->msg);
    if (!a->lost)
        return as_fail_nomem(err);
    st = file_remove_tree(dir, err);
    return st < 0 ? st : file_mkdirs(dir, 0700, err);
}

static as_status add_decoded(const struct attempt *a, json_t *paths, struct as_err *err)
{
    const char *sha = json_string_value(json_object_get(a->claimed.dataset, "sha256"));
    AS_AUTO(str_done) struct str path = {0};
    if (!sha)
        return AS_OK; /* without a digest the copy has no name */
    as_status st = cache_decoded_path(a->options->cache, sha, &path, err);
    if (st < 0)
        return as_err_prefix(err, st, "data set");
    return json_object_set_new(paths, "decoded", json_string(path.s)) < 0 ? as_fail_nomem(err)
                                                                          : AS_OK;
}

/* Fetch the files of the data set. *ret is {role: absolute path}, with the path of the decoded
 * copy: a new reference. */
static as_status fetch_dataset(struct attempt *a, json_t **ret, struct as_err *err)
{
    JSON_AUTO paths = json_object();
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(a->claimed.dataset, "files"), i, f)
    {
        const char *role = json_string_value(json_object_get(f, "role"));
        const char *sha = json_string_value(json_object_get(f, "sha256"));
        int64_t size = json_integer_value(json_object_get(f, "size"));
        AS_AUTO(str_done) struct str dest = {0};
        if (!role || !claimed_name_safe(role) || !sha || !sha256_hex_valid(sha))
            return as_fail(err, AS_E_INVAL, "file %zu of the data set has no role and digest", i);
        str_printf(&dest, "%s/data/%s", a->dir, role);
        as_status st = str_check(&dest, err);
        if (st == AS_OK)
            st = cache_get(a->options->cache, a->options->cache_max_bytes, a->fetch, sha, size,
                           dest.s, &patient, err);
        if (st < 0)
            return as_err_prefix(err, st, "data set, %s", role);
        if (json_object_set_new(paths, role, json_string(dest.s)) < 0)
            return as_fail_nomem(err);
    }
    if (!paths)
        return as_fail_nomem(err);
    as_status st = add_decoded(a, paths, err);
    if (st < 0)
        return st;
    *ret = as_steal(paths);
    return AS_OK;
}

/* What the trainer keeps for forks. */
static as_status add_forks(const struct attempt *a, json_t *job, struct as_err *err)
{
    const json_t *forks = a->claimed.forks.json;
    return !forks || json_object_set(job, "forks", (json_t *)forks) == 0 ? AS_OK
                                                                         : as_fail_nomem(err);
}

/* Build the job of a member, whose process is the group's (group_process.h). */
static as_status member_job(struct attempt *a, json_t *train, json_t *dataset, struct as_err *err)
{
    char id[GROUP_MEMBER_ID_SIZE];
    const struct child_env *e = &a->launch.spec.env;
    group_process_member_id(a, id);
    a->launch.job = json_pack("{s:O,s:O,s:{s:s,s:O,s:s,s:s,s:s,s:s}}", "dataset", dataset, "metric",
                              a->claimed.metric, "member", "id", id, "train", train, "seed",
                              a->claimed.seed, "report", child_env_get(e, "ASSAY_REPORT"),
                              "checkpoints", child_env_get(e, "ASSAY_CHECKPOINTS"), "artifacts",
                              child_env_get(e, "ASSAY_ARTIFACTS"));
    if (!a->launch.job)
        return as_fail_nomem(err);
    return add_forks(a, json_object_get(a->launch.job, "member"), err);
}

/* An elastic rank listens on this address. */
static as_status add_listen(const struct rank *r, json_t *job, struct as_err *err)
{
    char address[RANK_ADDRESS_MAX];
    as_status st = rank_own_address(r, address, err);
    if (st < 0)
        return st;
    return json_object_set_new(job, "listen", json_string(address)) < 0 ? as_fail_nomem(err)
                                                                        : AS_OK;
}

/* The artifacts that a trial has left. *ret is a new reference. */
static as_status list_artifacts(struct attempt *a, const char *sweep, int64_t trial, json_t **ret,
                                struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    str_puts(&path, "/v1/sweeps");
    client_path_add(&path, sweep);
    str_puts(&path, "/trials");
    client_path_add_i64(&path, trial);
    str_puts(&path, "/artifacts");
    as_status st = str_check(&path, err);
    return st < 0 ? st : client_call(a->fetch, "GET", path.s, NULL, NULL, &patient, ret, NULL, err);
}

/* Download one of them to `dest`. */
static as_status fetch_artifact(struct attempt *a, const json_t *list, const char *name,
                                const char *dest, struct as_err *err)
{
    const char *sha = NULL;
    size_t i;
    json_t *f;
    json_array_foreach(json_object_get(list, "items"), i, f)
    {
        if (as_streq(json_string_value(json_object_get(f, "path")), name))
            sha = json_string_value(json_object_get(f, "sha256"));
    }
    return sha ? client_download_blob(a->fetch, sha, dest, 0, &for_attempt, err)
               : as_fail(err, AS_E_NOT_FOUND, "it has left no %s", name);
}

/* Fetch what a trial of the layer before has left. */
static as_status fetch_trial(struct attempt *a, const struct trial_name *trial, size_t i,
                             json_t *list, struct as_err *err)
{
    AS_AUTO(str_done) struct str model = {0};
    AS_AUTO(str_done) struct str predictions = {0};
    JSON_AUTO files = NULL;
    str_printf(&model, "%s/data/stack-%zu.safetensors", a->dir, i);
    str_printf(&predictions, "%s/data/stack-%zu.npy", a->dir, i);
    as_status st = str_check(&model, err);
    if (st == AS_OK)
        st = str_check(&predictions, err);
    if (st == AS_OK)
        st = list_artifacts(a, trial->sweep, trial->number, &files, err);
    if (st == AS_OK)
        st = fetch_artifact(a, files, "model.safetensors", model.s, err);
    if (st == AS_OK)
        st = fetch_artifact(a, files, "predictions.npy", predictions.s, err);
    if (st < 0)
        return st;
    json_t *item =
        json_pack("{s:s, s:I, s:s, s:s}", "sweep", trial->sweep, "trial", (json_int_t)trial->number,
                  "model", model.s, "predictions", predictions.s);
    return json_array_append_new(list, item) == 0 ? AS_OK : as_fail_nomem(err);
}

/* A trial of a further layer sees what others predicted, and has their models in its own. */
static as_status add_stack(struct attempt *a, const json_t *train, json_t *job, struct as_err *err)
{
    const json_t *trials = json_object_get(train, "stack");
    JSON_AUTO list = json_array();
    if (!trials)
        return AS_OK;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const char *text = json_string_value(json_array_get(trials, i));
        struct trial_name trial;
        as_status st = trial_name_parse(text, &trial, err);
        if (st == AS_OK)
            st = fetch_trial(a, &trial, i, list, err);
        if (st < 0)
            return as_err_prefix(err, st, "train.stack: trial %s", text ? text : "?");
    }
    return json_object_set(job, "stack", list) == 0 ? AS_OK : as_fail_nomem(err);
}

/* A stage of boosting goes on from the trial before it. The trainer checks that this is the stage
 * before. */
static as_status add_base(struct attempt *a, const json_t *train, json_t *job, struct as_err *err)
{
    const json_t *boost = json_object_get(train, "boost");
    int64_t stage = json_integer_value(json_object_get(boost, "stage")), from = a->id.number - 1;
    AS_AUTO(as_freep) char *path = file_join(a->dir, "base.safetensors");
    JSON_AUTO list = NULL;
    if (stage <= 0)
        return AS_OK;
    if (from < 0)
        return as_fail(err, AS_E_INVAL,
                       "boost.stage: found %" PRId64 " in the first trial of a sweep, expected 0",
                       stage);
    as_status st = path ? list_artifacts(a, a->sweep, from, &list, err) : as_fail_nomem(err);
    if (st == AS_OK)
        st = fetch_artifact(a, list, "model.safetensors", path, err);
    if (st < 0)
        return as_err_prefix(err, st, "boost.stage %" PRId64 " goes on from trial %" PRId64, stage,
                             from);
    return json_object_set_new(job, "base", json_string(path)) == 0 ? AS_OK : as_fail_nomem(err);
}

static as_status prepare_train(struct attempt *a, json_t *train, struct as_err *err)
{
    JSON_AUTO paths = NULL;
    AS_AUTO(as_freep) char *job_path = file_join(a->dir, "job.json");
    if (!a->claimed.dataset)
        return as_fail(err, AS_E_INVAL, "trial.train came without its data set");
    as_status st = fetch_dataset(a, &paths, err);
    if (st < 0)
        return st;
    JSON_AUTO dataset = json_copy(a->claimed.dataset);
    if (!job_path || !dataset || json_object_set(dataset, "paths", paths) < 0)
        return as_fail_nomem(err);
    if (a->group)
        return member_job(a, train, dataset, err);
    JSON_AUTO job =
        json_pack("{s:O,s:O,s:O}", "train", train, "dataset", dataset, "metric", a->claimed.metric);
    if (!job)
        return as_fail_nomem(err);
    if (a->rank && (st = add_listen(a->rank, job, err)) < 0)
        return st;
    if ((st = add_base(a, train, job, err)) < 0 || (st = add_stack(a, train, job, err)) < 0 ||
        (st = add_forks(a, job, err)) < 0 ||
        (st = result_journal_write_json(a->dir, "job.json", job, err)) < 0)
        return st;
    const char *args[] = {a->options->trainer, job_path};
    return child_spec_set_argv(&a->launch.spec, args, 2, err);
}

static as_status write_file(const char *folder, const char *name, const char *text,
                            struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(folder, name);
    if (!file_path_is_inner(name))
        return as_fail(err, AS_E_INVAL, "trial.files: '%.80s' is not a path below a folder", name);
    char *last = path ? strrchr(path, '/') : NULL;
    if (!last)
        return as_fail_nomem(err);
    *last = '\0';
    as_status st = file_mkdirs(path, 0700, err);
    *last = '/';
    return st < 0 ? st : file_replace(path, text, strlen(text), 0644, err);
}

static as_status write_files(const char *folder, json_t *files, struct as_err *err)
{
    const char *name;
    json_t *text;
    json_object_foreach(files, name, text)
    {
        as_status st = write_file(folder, name, json_string_value(text), err);
        if (st < 0)
            return as_err_prefix(err, st, "trial.files");
    }
    return AS_OK;
}

/* *ret: `trial` with the parameters and the paths of this attempt in it, a new reference. Its files
 * are written. */
static as_status make_trial(const struct attempt *a, json_t **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *files = file_join(a->dir, "files");
    AS_AUTO(as_freep) char *artifacts = file_join(a->dir, "artifacts");
    const struct trial_values values = {.params = a->claimed.params,
                                        .inactive = json_object_get(a->claimed.json, "inactive"),
                                        .files = files,
                                        .trial_dir = artifacts};
    JSON_AUTO trial = NULL;
    if (!files || !artifacts)
        return as_fail_nomem(err);
    as_status st = trial_template_apply(a->claimed.trial, &values, &trial, err);
    if (st == AS_OK)
        st = write_files(files, json_object_get(trial, "files"), err);
    if (st < 0)
        return st;
    *ret = as_steal(trial);
    return AS_OK;
}

static as_status prepare_command(struct attempt *a, const json_t *args, struct as_err *err)
{
    json_t *inactive = json_object_get(a->claimed.json, "inactive");
    as_status st = param_env_set(&a->launch.spec.env, a->claimed.params, inactive, err);
    size_t n = json_array_size(args);
    if (st < 0)
        return st;
    if (n == 0)
        return as_fail(err, AS_E_INVAL, "trial.command names no program");
    a->launch.spec.argv = as_calloc(n + 1, sizeof *a->launch.spec.argv);
    if (!a->launch.spec.argv)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        if (!(a->launch.spec.argv[i] = as_strdup(json_string_value(json_array_get(args, i)))))
            return as_fail_nomem(err);
    return AS_OK;
}

static as_status set_path(struct attempt *a, const char *name, const char *leaf, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(a->dir, leaf);
    return path ? child_env_set(&a->launch.spec.env, name, path, err) : as_fail_nomem(err);
}

static as_status set_env_of_trial(struct attempt *a, json_t *env, struct as_err *err)
{
    const char *name;
    json_t *text;
    json_object_foreach(env, name, text)
    {
        as_status st = child_env_set(&a->launch.spec.env, name, json_string_value(text), err);
        if (st < 0)
            return as_err_prefix(err, st, "trial.env");
    }
    return AS_OK;
}

/* A trial that has GPUs gets a file to report a broken one in, and the built-in trainer must use
 * its GPU: it must not train on the CPU while it holds a GPU, unless the document or the operator
 * has named a back end. */
static as_status require_gpu(struct attempt *a, struct as_err *err)
{
    struct child_env *e = &a->launch.spec.env;
    if (a->claimed.gpus == 0)
        return AS_OK;
    const char *backend = child_env_get(e, "ASSAY_BACKEND");
    as_status st = set_path(a, "ASSAY_DEVICE_FAULT", DEVICE_FAULT_NAME, err);
    if (st < 0 || (backend && *backend))
        return st;
    return json_is_object(json_object_get(a->claimed.trial, "train"))
               ? child_env_set(e, "ASSAY_BACKEND", "cuda", err)
               : AS_OK;
}

static struct environment environment_of(const struct attempt *a, const json_t *trial,
                                         const char *host)
{
    return (struct environment){.trial = trial, .folder = a->launch.spec.directory, .host = host};
}

/* The environment that a program begins with; of one in a container it is empty. */
static as_status set_environment(struct attempt *a, const json_t *trial, struct as_err *err)
{
    static char *const nothing[] = {NULL};
    char host[HOST_ID_SIZE] = "";
    bool contained = json_object_get(trial, "container"), foreign = false;
    as_status st = child_env_init(&a->launch.spec.env, contained ? nothing : environ, err);
    if (st < 0)
        return st;
    (void)!host_id_read(host, NULL); /* unknown: as if it were another machine */
    const struct environment s = environment_of(a, trial, host);
    st = environment_set(&s, &a->launch.spec.env, &foreign, err);
    if (st == AS_OK && foreign)
        attempt_note(a, "trial.environment comes from another machine and is not applied here; "
                        "trial.venv, trial.modules and trial.container are for several machines");
    return st;
}

/* Where the API is, and the token of this attempt, for a program. The built-in trainer needs
 * neither. */
static as_status set_api(struct attempt *a, struct as_err *err)
{
    struct child_env *e = &a->launch.spec.env;
    if (!a->claimed.token || !json_is_array(json_object_get(a->claimed.trial, "command")))
        return AS_OK;
    as_status st = child_env_set(e, "ASSAY_SERVER", a->options->server, err);
    if (st == AS_OK && a->options->ca_file)
        st = child_env_set(e, "ASSAY_CA_FILE", a->options->ca_file, err);
    return st < 0 ? st : child_env_set(e, "ASSAY_TOKEN", a->claimed.token, err);
}

/* A folder for temporary files, of this attempt alone. What says where they are, stays; a container
 * has its own. */
static as_status set_tmp(struct attempt *a, struct as_err *err)
{
    struct child_env *e = &a->launch.spec.env;
    if (!a->options->confinement || !json_is_array(json_object_get(a->claimed.trial, "command")) ||
        json_object_get(a->claimed.trial, "container") || child_env_get(e, "TMPDIR"))
        return AS_OK;
    as_status st = confinement_tmp(a->options->confinement, &a->tmp, err);
    return st < 0 || !a->tmp ? st : child_env_set(e, "TMPDIR", a->tmp, err);
}

/* Set the environment. The runner's variables come last, so that a document cannot change them. */
static as_status prepare_env(struct attempt *a, const json_t *trial, struct as_err *err)
{
    struct child_env *e = &a->launch.spec.env;
    char name[128], attempt[24];
    as_status st = set_environment(a, trial, err);
    snprintf(name, sizeof name, "%s/%lld", a->sweep, (long long)a->id.number);
    snprintf(attempt, sizeof attempt, "%lld", (long long)a->id.attempt);
    if (st < 0 || (st = set_env_of_trial(a, json_object_get(trial, "env"), err)) < 0 ||
        (st = child_env_set(e, "ASSAY_SWEEP", a->sweep, err)) < 0 ||
        (st = child_env_set(e, "ASSAY_TRIAL", name, err)) < 0 ||
        (st = child_env_set(e, "ASSAY_ATTEMPT", attempt, err)) < 0 ||
        (st = child_env_set(e, "ASSAY_SEED", a->claimed.seed, err)) < 0 ||
        (st = set_path(a, "ASSAY_PARAMS", "params.json", err)) < 0 ||
        (st = set_path(a, "ASSAY_REPORT", REPORT_NAME, err)) < 0 ||
        (st = set_path(a, "ASSAY_CHECKPOINTS", "checkpoints", err)) < 0 ||
        (st = set_path(a, "ASSAY_ARTIFACTS", "artifacts", err)) < 0)
        return st;
    if ((st = child_env_set(e, "CUDA_VISIBLE_DEVICES", a->gpus, err)) < 0 ||
        (st = require_gpu(a, err)) < 0 || (st = set_api(a, err)) < 0 || (st = set_tmp(a, err)) < 0)
        return st;
    a->launch.spec.confinement = a->options->confinement;
    a->launch.spec.cpus = a->options->no_affinity ? 0 : a->claimed.cpus;
    return child_env_set_threads(e, a->claimed.cpus, a->options->slots, err);
}

static void note_to_log(void *arg, const char *text)
{
    attempt_note(arg, "%s", text);
}

static void wake_main(void *arg)
{
    struct attempt *a = arg;
    pthread_mutex_lock(&a->lock);
    attempt_wake_locked(a);
    pthread_mutex_unlock(&a->lock);
}

/* Does what this process reports count? Of several ranks only the first one's does. */
static bool is_first(const struct attempt *a)
{
    return !a->rank || a->claimed.gang.seat == 0;
}

/* The thread that reads the sources of trial.report. Last: from now on what appears is the
 * program's. */
static as_status start_collector(struct attempt *a, json_t *report, struct as_err *err)
{
    if (json_array_size(report) == 0 || !is_first(a))
        return AS_OK;
    const struct collector_owner owner = {
        .note = note_to_log, .wake = wake_main, .arg = a, .watch = a->watch};
    return collector_start(a->dir, report, a->launch.spec.directory, &owner, &a->launch.collector,
                           err);
}

static as_status find_directory(struct attempt *a, const json_t *trial, struct as_err *err)
{
    const char *dir = json_string_value(json_object_get(trial, "directory"));
    a->launch.spec.directory = as_strdup(dir);
    return dir && !a->launch.spec.directory ? as_fail_nomem(err) : AS_OK;
}

/* Find what runs trial.container, before a rank lets the others of its gang wait. attempt_start()
 * makes the command line, when all variables and GPUs are known. */
static as_status find_container(struct attempt *a, json_t *container, struct as_err *err)
{
    AS_AUTO(child_env_done) struct child_env e = {0};
    const char *dir = a->launch.spec.directory;
    if (!container)
        return AS_OK;
    a->launch.container = json_incref(container);
    a->launch.folder = dir && *dir == '/' ? as_strdup(dir) : realpath(dir ? dir : ".", NULL);
    if (!a->launch.folder)
        return as_fail(err, AS_E_NOT_FOUND, "trial.directory: '%.200s' is not on this machine",
                       dir ? dir : ".");
    as_status st = child_env_init(&e, environ, err);
    return st < 0 ? st : container_engine(container, &e, &a->launch.engine, err);
}

/* The absolute path of the folder where the program is. */
static as_status project_of(const struct attempt *a, char **ret, struct as_err *err)
{
    const char *dir = a->launch.spec.directory ? a->launch.spec.directory : ".";
    *ret = realpath(dir, NULL);
    return *ret ? AS_OK
                : as_fail(err, AS_E_NOT_FOUND, "trial.directory: '%.200s' is not on this machine",
                          dir);
}

/* Let the program run in a folder of its trial. What is below trial.directory by name (venv,
 * env_file) has been found before. */
static as_status enter_own_folder(struct attempt *a, const json_t *trial, struct as_err *err)
{
    const char *word = json_string_value(json_object_get(trial, "folder"));
    AS_AUTO(as_freep) char *project = NULL;
    AS_AUTO(as_freep) char *own = NULL;
    struct as_err why;
    if (!word || as_streq(word, "shared"))
        return AS_OK;
    as_status st = project_of(a, &project, err);
    if (st != AS_OK)
        return st;
    const struct own_folder_trial t = {.sweep = a->sweep,
                                       .number = a->id.number,
                                       .is_first = a->id.attempt == 1,
                                       .mark = a->claimed.token ? a->claimed.token : ""};
    st = own_folder_make(project, &t, &own, &why);
    if (st != AS_OK && st != AS_E_NOMEM && as_streq(word, "auto")) {
        attempt_note(a, "no folder of its own (trial.folder): %s; the program runs in %s", why.msg,
                     project);
        return AS_OK;
    }
    if (st != AS_OK)
        return as_fail_at(err, st, "/trial/folder", "trial.folder: %s", why.msg);
    free(a->launch.spec.directory);
    a->launch.spec.directory = as_steal(own);
    return child_env_set(&a->launch.spec.env, "ASSAY_PROJECT", project, err);
}

static as_status prepare_program(struct attempt *a, const json_t *trial, struct as_err *err)
{
    const struct environment s = environment_of(a, trial, "");
    as_status st = prepare_command(a, json_object_get(trial, "command"), err);
    if (st < 0 || (st = environment_load_modules(&s, &a->launch.spec, err)) < 0)
        return st;
    if ((st = enter_own_folder(a, trial, err)) < 0)
        return st;
    st = find_container(a, json_object_get(trial, "container"), err);
    return st < 0 ? st : start_collector(a, json_object_get(trial, "report"), err);
}

as_status prepare(struct attempt *a, struct as_err *err)
{
    JSON_AUTO trial = NULL;
    as_status st = make_folders(a, err);
    if (st < 0 ||
        (st = result_journal_write_json(a->dir, "params.json", a->claimed.params, err)) < 0 ||
        (st = restore_checkpoints(a, err)) < 0 || (st = make_trial(a, &trial, err)) < 0 ||
        (st = find_directory(a, trial, err)) < 0 || (st = prepare_env(a, trial, err)) < 0)
        return st;
    json_t *train = json_object_get(trial, "train");
    if (json_is_object(train))
        return prepare_train(a, train, err);
    if (json_is_array(json_object_get(trial, "command")))
        return prepare_program(a, trial, err);
    return as_fail(err, AS_E_INVAL, "the trial has neither a command nor train");
}

/* Fields of trial.command that prepare() needs no more than memory for. */
static bool is_quick_field(const char *name, const json_t *value)
{
    static const char *const quick[] = {"command", "env", "directory", "environment",
                                        "checkpoints"};
    for (size_t i = 0; i < AS_ARRAY_LEN(quick); i++)
        if (strcmp(name, quick[i]) == 0)
            return true;
    return strcmp(name, "folder") == 0 && as_streq(json_string_value(value), "shared");
}

bool prepare_is_quick(const struct attempt *a)
{
    const char *name;
    json_t *value;
    if (a->group || a->rank || json_array_size(a->claimed.files) > 0)
        return false;
    json_object_foreach(a->claimed.trial, name, value)
    {
        if (!is_quick_field(name, value))
            return false;
    }
    return true;
}
