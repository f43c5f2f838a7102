/* A member is made from its documents before it gets a slot, so whatever is wrong with them ends it
 * before it trains. The fingerprint has what its bits depend on: the train document, the record of
 * the data set, the digest of its files without test rows (decision 1007), the seed. A checkpoint
 * with another fingerprint is of another training and refused, unless the job names the fields in
 * which its document may differ, and nothing else does. */
#include "trial-runner/train/member.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/document/train_vary.h"
#include "model/plan/plan_check.h"
#include "model/plan/plan.h"
#include "model/plan/signature.h"
#include "data/dataset_json.h"
#include "base/file.h"
#include "base/json.h"

void member_free(struct member *m)
{
    if (!m)
        return;
    free(m->id);
    free(m->train_text);
    train_spec_done(&m->spec);
    net_plan_free(m->plan);
    free(m->signature);
    report_file_done(&m->report);
    free(m->checkpoint);
    free(m->artifacts);
    str_done(&m->last_report);
    best_done(&m->best);
    snapshots_done(&m->snapshots);
    free(m);
}

/* The server handles the metric. The trainer only checks that it will report it. */
static as_status check_metric(struct member *m, const struct job *job, struct as_err *err)
{
    if (!job->metric)
        return AS_OK;
    dataset_task task = train_spec_task(&m->spec, job->info.task);
    if (train_spec_can_report(task, job->metric) && train_spec_request(&m->spec, job->metric))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/metric/name",
                      "/metric/name: found '%.60s', which the trainer does not report for %s",
                      job->metric, dataset_task_name(task));
}

/* What `patience` looks at. A sweep by the learning rate has no better report. */
static as_status set_patience(struct member *m, const struct job *job, struct as_err *err)
{
    bool usable = job->metric && !as_streq(job->metric, "lr");
    m->judged_by = usable ? job->metric : "val_loss";
    m->maximizes = usable && job->maximize;
    if (m->spec.patience == 0 || !job->listen)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/train/patience",
                      "/train/patience: found in a trial of several ranks, which cannot end early");
}

static as_status check_snapshots(const struct member *m, const struct job *job, struct as_err *err)
{
    if (train_spec_snapshots(&m->spec) == 0 || !job->listen)
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/train/schedule/snapshots",
                      "/train/schedule/snapshots: found in a trial of several ranks");
}

/* Its steps are those of a gang, if only of one rank. */
static as_status check_lbfgs(const struct member *m, const struct job *job, struct as_err *err)
{
    if (job->listen || !train_spec_is_lbfgs(&m->spec))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/train/optimizer/kind",
                      "/train/optimizer/kind: found lbfgs in a trial without ranks, expected "
                      "resources.ranks: 1 or more");
}

static as_status check_cocoa(const struct member *m, const struct job *job, struct as_err *err)
{
    if (job->listen || !train_spec_is_cocoa(&m->spec))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/train/model/solver",
                      "/train/model/solver: found cocoa in a trial without ranks, expected "
                      "resources.ranks: 1 or more");
}

/* A stage after the first has a process of its own (boost.h). */
static as_status check_boost(const struct member *m, const struct job *job, struct as_err *err)
{
    if (m->spec.boost.stage == 0 || !(job->group || job->listen))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/train/boost/stage",
                      "/train/boost/stage: found in a %s, expected a trial of its own",
                      job->group ? "group" : "trial of several ranks");
}

/* Folds are trainings of a process of their own (folds.h). */
static as_status check_folds(const struct member *m, const struct job *job, struct as_err *err)
{
    if (m->spec.folds == 0 || !(job->group || job->listen))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/train/validation/folds",
                      "/train/validation/folds: found in a %s, expected a trial of its own",
                      job->group ? "group" : "trial of several ranks");
}

static as_status read_spec(struct member *m, const struct job *job, const json_t *train,
                           struct as_err *err)
{
    struct str signature = {0};
    as_status st = train_spec_parse(train, "/train", &m->spec, err);
    if (st != AS_OK)
        return st;
    st = train_spec_check(&m->spec, &job->info, "/train", err);
    if (st != AS_OK)
        return st;
    st = check_metric(m, job, err);
    if (st != AS_OK)
        return st;
    st = check_folds(m, job, err);
    if (st == AS_OK)
        st = set_patience(m, job, err);
    if (st == AS_OK)
        st = check_snapshots(m, job, err);
    if (st == AS_OK)
        st = check_boost(m, job, err);
    if (st == AS_OK)
        st = check_lbfgs(m, job, err);
    if (st == AS_OK)
        st = check_cocoa(m, job, err);
    if (st != AS_OK)
        return st;
    if (job->listen && !train_model_takes_ranks(&m->spec.model))
        return as_fail_at(
            err, AS_E_INVAL, "/train/model/kind",
            "/train/model/kind: found %s, which trains in one process and not as ranks",
            train_model_name(&m->spec.model));
    const struct net_data data = net_data_for(&job->info, &m->spec);
    if (train_model_is_network(&m->spec.model))
        st = net_plan_create(&m->spec, &data, "/train", &m->plan, err);
    if (st != AS_OK)
        return st;
    net_signature(&m->spec, &data, &signature);
    m->signature = str_take(&signature);
    return m->signature ? AS_OK : as_fail_nomem(err);
}

/* The digest of what a training's bits depend on. */
static as_status identify(const struct member *m, const struct job *job, const json_t *train,
                          char ret[SHA256_HEX_SIZE], struct as_err *err)
{
    char seed[24];
    (void)snprintf(seed, sizeof seed, "%" PRIu64, m->seed);
    JSON_AUTO info = dataset_info_to_json(&job->info);
    JSON_AUTO id = json_pack("{s:O, s:O, s:s, s:s}", "train", train, "dataset", info, "sha256",
                             job->digest, "seed", seed);
    AS_AUTO(as_freep) char *text = id ? json_format(id) : NULL;
    return text ? sha256_of(text, strlen(text), ret, err) : as_fail_nomem(err);
}

static as_status set_fingerprint(struct member *m, const struct job *job,
                                 const struct control_member *from, struct as_err *err)
{
    JSON_AUTO common = NULL;
    m->train_text = json_format(from->train);
    if (!m->train_text)
        return as_fail_nomem(err);
    as_status st = identify(m, job, from->train, m->fingerprint, err);
    if (st != AS_OK || from->forks.every == 0)
        return st;
    m->keep_every = from->forks.every;
    m->keep_until = from->forks.until;
    st = train_without(from->train, from->forks.may_differ, &common, err);
    return st == AS_OK ? identify(m, job, common, m->kin, err) : st;
}

static as_status make_places(struct member *m, const struct control_member *from,
                             struct as_err *err)
{
    m->id = as_strdup(from->id);
    m->artifacts = as_strdup(from->artifacts);
    if (!m->id || (from->artifacts && !m->artifacts))
        return as_fail_nomem(err);
    as_status st = report_file_init(&m->report, from->report, err);
    if (st != AS_OK)
        return st;
    if (m->artifacts)
        st = file_mkdirs(m->artifacts, 0777, err);
    if (st != AS_OK || !from->checkpoints)
        return st;
    m->checkpoint = file_join(from->checkpoints, CHECKPOINT_NAME);
    if (!m->checkpoint)
        return as_fail_nomem(err);
    return file_mkdirs(from->checkpoints, 0777, err);
}

as_status member_create(const struct job *job, const struct control_member *from,
                        struct member **ret, struct as_err *err)
{
    AS_AUTO(member_freep) struct member *m = as_calloc(1, sizeof *m);
    if (!m)
        return as_fail_nomem(err);
    m->report.fd = -1;
    m->seed = from->seed;
    m->task = job->info.task;
    m->tabled = -1;
    as_status st = read_spec(m, job, from->train, err);
    if (st != AS_OK)
        return st;
    m->task = train_spec_task(&m->spec, job->info.task);
    const struct distributed_spec *d = &m->spec.distributed;
    m->divides_moments = (job->listen && d->strategy == DISTRIBUTED_ALLREDUCE && d->shard_state) ||
                         m->spec.optimizer.kind == TRAIN_LBFGS || train_spec_is_cocoa(&m->spec);
    m->divides_layers = job->listen && d->strategy == DISTRIBUTED_MODEL_PARALLEL;
    st = set_fingerprint(m, job, from, err);
    if (st != AS_OK)
        return st;
    st = make_places(m, from, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(m);
    return AS_OK;
}

bool member_holds_partitions(const struct member *m, const struct job *job)
{
    return job->listen && m->spec.distributed.lineage;
}

void member_end(struct member *m, int exit, const struct as_err *err)
{
    if (m->ended)
        return;
    m->ended = true;
    m->exit = exit;
    if (err)
        m->error = *err;
}
