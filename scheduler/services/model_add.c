/* Making a version of a model: from one trial, or from an ensemble (model_choice.c).
 *
 * Three steps. One transaction reads what the version is made of (state, attempts, digests of
 * files, metrics, the ensemble's weights). Then, without a transaction, the files are copied,
 * composed into one, and stored as content; that takes seconds. The last transaction gives the
 * content a number, under the lock of the model's row. Whatever stops the server in between leaves
 * content that nothing refers to, which is removed (content_gc.c), and no version.
 *
 * The file depends on its content alone, so the same trials make the same digest, and a version
 * that exists is found by it: a request that is repeated, or two at once, add one version. */
#include "scheduler/services/models.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/temp_file.h"
#include "model/file/model_file.h"
#include "scheduler/content/blob_file.h"
#include "scheduler/content/blobs.h"
#include "scheduler/lifecycle/ensemble_result.h"
#include "scheduler/services/model_schema.h"
#include "scheduler/services/trial_test.h"
#include "scheduler/services/models_priv.h"
#include "scheduler/store/ensemble_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/model_store.h"
#include "scheduler/store/sweep_row_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_row_store.h"

#define MODEL_FILE_NAME "model.safetensors" /* as the trainer calls it */

/* One member of the version. */
struct part {
    struct trial_row trial;
    const struct model_choice_member *of;
    const char *sweep; /* its id, if that is not the one of the version; else NULL */
    struct file_row file;
    struct file_list files; /* all artifacts */
    struct blob_file copy;  /* owned */
    char seed[24];
};

struct making {
    struct store *db;
    struct arena *a;
    const char *model;
    const struct model_request *q;
    int64_t sweep_key;
    struct sweep_row sweep;
    struct model_choice choice; /* owned */
    struct part *parts;         /* of choice.members */
    size_t n;
    struct sweep_row others[ENSEMBLE_SWEEPS_MAX]; /* sweeps of members beside `sweep` */
    size_t n_others;
    json_t *metrics; /* owned */
    const char *measured_on;
    struct blob_file whole; /* owned: the composed file */
    struct model_version_row v;
};

static void making_done(struct making *m)
{
    for (size_t i = 0; m->parts && i < m->n; i++)
        blob_file_done(&m->parts[i].copy);
    blob_file_done(&m->whole);
    model_choice_done(&m->choice);
    json_decref(m->metrics);
}

/* ---- what it is made of ---- */

#define MEASURED_ON_TEST "; test_…: the rows of the test set"

/* Add what the test rows say, as test_NAME. */
static as_status add_test_metric(struct making *m, const char *name, json_t *value,
                                 struct as_err *err)
{
    AS_AUTO(str_done) struct str own = {0};
    str_printf(&own, "test_%s", name);
    as_status st = str_check(&own, err);
    return st == AS_OK && json_object_set(m->metrics, own.s, value) != 0 ? as_fail_nomem(err) : st;
}

/* The test.json of a trial. */
static as_status trial_test_metrics(struct making *m, struct as_err *err)
{
    JSON_AUTO test = NULL;
    const char *text = NULL, *name;
    json_t *value;
    as_status st = trial_test_read(m->db, m->a, &m->parts[0].files, &text, err);
    if (st != AS_OK || !text || !as_streq(m->choice.kind, "trial"))
        return st;
    st = json_parse(text, strlen(text), &test, err);
    json_object_foreach(json_object_get(test, "metrics"), name, value)
    {
        if (st == AS_OK)
            st = add_test_metric(m, name, value, err);
    }
    m->measured_on = "held-out rows" MEASURED_ON_TEST;
    return st;
}

/* The metrics of a trial that say how good its model is: those of rows that it did not train on. */
static as_status trial_metrics(struct making *m, const struct trial_row *t, struct as_err *err)
{
    JSON_AUTO all = NULL;
    const char *name;
    json_t *value;
    as_status st = json_parse_reals(t->metrics, strlen(t->metrics), &all, err);
    json_decref(m->metrics);
    m->metrics = json_object();
    if (st != AS_OK)
        return st;
    json_object_foreach(all, name, value)
    {
        if (!as_starts_with(name, "val_") && !as_streq(name, m->sweep.metric))
            continue;
        if (json_object_set(m->metrics, name, value) != 0)
            return as_fail_nomem(err);
    }
    m->measured_on = "held-out rows";
    return m->metrics ? AS_OK : as_fail_nomem(err);
}

/* The ensemble's own figure is cross-fitted: no row was predicted by a choice that had seen it. */
static as_status ensemble_metrics(struct making *m, struct as_err *err)
{
    const json_t *ensemble = m->choice.ensemble;
    const char *metric = json_string_value(json_object_get(ensemble, "metric"));
    json_t *value = json_object_get(ensemble, "value");
    json_decref(m->metrics);
    m->metrics = json_object();
    if (!m->metrics || (metric && value && json_object_set(m->metrics, metric, value) != 0))
        return as_fail_nomem(err);
    m->measured_on = "held-out rows, cross-fitted";
    const json_t *test = json_object_get(json_object_get(ensemble, "test"), "ensemble");
    if (!metric || !test)
        return AS_OK;
    m->measured_on = "held-out rows, cross-fitted" MEASURED_ON_TEST;
    return add_test_metric(m, metric, json_object_get(test, "value"), err);
}

/* The sweep of a part, which may be another one than that of the version. */
static as_status note_sweep(struct tx *t, struct making *m, struct part *p, struct as_err *err)
{
    p->sweep = p->of->sweep_key == m->sweep_key ? NULL : p->of->sweep;
    for (size_t i = 0; p->sweep && i < m->n_others; i++)
        if (as_streq(m->others[i].id, p->sweep))
            return AS_OK;
    if (!p->sweep)
        return AS_OK;
    if (m->n_others == ENSEMBLE_SWEEPS_MAX)
        return as_fail(err, AS_E_INTERNAL, "an ensemble of more than %d sweeps",
                       ENSEMBLE_SWEEPS_MAX);
    return store_sweep_get(t, m->a, p->of->sweep_key, &m->others[m->n_others++], err);
}

static as_status find_file(struct tx *t, struct making *m, struct part *p, struct as_err *err)
{
    struct file_list *files = &p->files;
    as_status st =
        store_file_list(t, m->a, p->of->sweep_key, p->of->number, "artifact", files, err);
    for (size_t i = 0; st == AS_OK && i < files->n; i++) {
        if (!as_streq(files->rows[i].path, MODEL_FILE_NAME))
            continue;
        p->file = files->rows[i];
        return AS_OK;
    }
    if (st != AS_OK)
        return st;
    return as_fail(err, AS_E_UNSUPPORTED,
                   "trial %.80s/%lld stored no " MODEL_FILE_NAME
                   ": only trials of the built-in trainer leave a model that can be kept",
                   p->of->sweep, (long long)p->of->number);
}

static as_status read_part(struct tx *t, struct making *m, struct part *p, struct as_err *err)
{
    as_status st = store_trial_get(t, m->a, p->of->sweep_key, p->of->number, &p->trial, err);
    if (st == AS_OK)
        st = note_sweep(t, m, p, err);
    if (st != AS_OK)
        return st;
    if (p->trial.state != TRIAL_COMPLETED)
        return as_fail(err, AS_E_CONFLICT,
                       "trial %.80s/%lld is %s: only completed trials make a model", p->of->sweep,
                       (long long)p->trial.number, trial_state_format(p->trial.state));
    (void)snprintf(p->seed, sizeof p->seed, "%lld", (long long)p->trial.seed);
    return find_file(t, m, p, err);
}

static as_status read_origin(struct tx *t, struct making *m, struct as_err *err)
{
    int64_t bytes = 0;
    as_status st = store_sweep_key(t, m->q->sweep, &m->sweep_key, err);
    if (st == AS_OK)
        st = store_sweep_get(t, m->a, m->sweep_key, &m->sweep, err);
    if (st == AS_OK)
        st = model_choose(t, m->a, m->q, &m->sweep, &m->choice, err);
    if (st != AS_OK)
        return st;
    m->n_others = 0;
    m->n = m->choice.n;
    m->parts = arena_alloc(m->a, m->n, sizeof *m->parts);
    if (!m->parts)
        return as_fail_nomem(err);
    for (size_t i = 0; st == AS_OK && i < m->n; i++) {
        m->parts[i].of = &m->choice.members[i];
        st = read_part(t, m, &m->parts[i], err);
        bytes += m->parts[i].file.size;
    }
    if (st == AS_OK)
        st = as_streq(m->choice.kind, "trial") ? trial_metrics(m, &m->parts[0].trial, err)
                                               : ensemble_metrics(m, err);
    if (st == AS_OK && bytes > MODEL_CONTENT_MAX)
        return as_fail(err, AS_E_TOO_LARGE,
                       "the files of the %zu members have %lld bytes, expected at most %lld", m->n,
                       (long long)bytes, (long long)MODEL_CONTENT_MAX);
    return st;
}

/* ---- the file ---- */

/* Messages of the file's reader name the trial, not a temporary file. */
static as_status name_trial(const struct making *m, as_status st, struct as_err *err)
{
    char msg[AS_ERR_MSG_MAX];
    for (size_t i = 0; err && i < m->n; i++) {
        const char *path = m->parts[i].copy.path, *at = *path ? strstr(err->msg, path) : NULL;
        if (!at)
            continue;
        (void)snprintf(msg, sizeof msg, "%.*s" MODEL_FILE_NAME " of trial %s/%lld%s",
                       (int)(at - err->msg), err->msg, m->parts[i].of->sweep,
                       (long long)m->parts[i].trial.number, at + strlen(path));
        (void)snprintf(err->msg, sizeof err->msg, "%s", msg);
    }
    /* the content is at fault, not the request */
    return st == AS_E_INVAL ? as_err_prefix(err, AS_E_UNSUPPORTED, "%.80s", m->q->sweep) : st;
}

static as_status copy_parts(struct making *m, struct as_err *err)
{
    for (size_t i = 0; i < m->n; i++) {
        as_status st = blob_file_init(m->db, m->parts[i].file.sha256, &m->parts[i].copy, err);
        if (st == AS_E_NOT_FOUND)
            return as_fail(err, AS_E_CONFLICT,
                           "the files of trial %.80s/%lld were removed meanwhile",
                           m->parts[i].of->sweep, (long long)m->parts[i].trial.number);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* The data set that the first member was trained on, with the digest that it had when the sweep was
 * created; null where that is not known. */
static as_status dataset_json(struct making *m, json_t **ret, struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    const char *sha256 = NULL;
    as_status st = model_file_read(m->parts[0].copy.path, (size_t)MODEL_CONTENT_MAX, &f, err);
    if (st != AS_OK)
        return name_trial(m, st, err);
    const char *name = model_file_member(f, 0)->spec->dataset;
    struct tx_run run = tx_run_start(m->db, TX_READ, err);
    while (tx_run_again(&run))
        run.status =
            store_model_dataset(run.tx, m->a, m->parts[0].of->sweep_key, name, &sha256, err);
    if (run.status != AS_OK)
        return run.status;
    *ret = json_pack("{s:s, s:s?}", "name", name, "sha256", sha256);
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* The sweeps of members that are not of the version's own sweep. */
static as_status sweeps_json(const struct making *m, json_t **ret, struct as_err *err)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < m->n_others; i++) {
        const struct sweep_row *s = &m->others[i];
        JSON_AUTO document = NULL;
        as_status st = json_parse(s->document, strlen(s->document), &document, err);
        if (st != AS_OK)
            return st;
        if (json_array_append_new(list, json_pack("{s:s, s:s, s:O}", "sweep", s->name, "sweep_id",
                                                  s->id, "document", document)) != 0)
            return as_fail_nomem(err);
    }
    *ret = as_steal(list);
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* What an ensemble adds to the lineage of its version. */
static as_status add_ensemble(const struct making *m, json_t *lineage, struct as_err *err)
{
    JSON_AUTO sweeps = NULL;
    if (as_streq(m->choice.kind, "trial"))
        return AS_OK;
    as_status st = sweeps_json(m, &sweeps, err);
    if (st != AS_OK)
        return st;
    if (json_object_set_new(lineage, "ensemble", model_choice_lineage(&m->choice, m->q)) != 0 ||
        (m->n_others > 0 && json_object_set(lineage, "sweeps", sweeps) != 0))
        return as_fail_nomem(err);
    return AS_OK;
}

/* What the file says beside its members. */
static as_status about_json(struct making *m, json_t **ret, struct as_err *err)
{
    JSON_AUTO dataset = NULL;
    JSON_AUTO document = NULL;
    as_status st = dataset_json(m, &dataset, err);
    if (st == AS_OK)
        st = json_parse(m->sweep.document, strlen(m->sweep.document), &document, err);
    if (st != AS_OK)
        return st;
    *ret = json_pack("{s:O, s:s, s:{s:s, s:s, s:O, s:O}}", "metrics", m->metrics, "measured_on",
                     m->measured_on, "lineage", "sweep", m->sweep.name, "sweep_id", m->sweep.id,
                     "document", document, "dataset", dataset);
    return *ret ? add_ensemble(m, json_object_get(*ret, "lineage"), err) : as_fail_nomem(err);
}

static as_status compose_file(struct making *m, const json_t *about, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    struct model_source *sources = arena_alloc(m->a, m->n, sizeof *sources);
    if (!sources)
        return as_fail_nomem(err);
    for (size_t i = 0; i < m->n; i++) {
        const struct part *p = &m->parts[i];
        sources[i] = (struct model_source){.path = p->copy.path,
                                           .weight = p->of->weight,
                                           .trial = p->trial.number,
                                           .attempt = p->trial.attempt,
                                           .seed = p->seed,
                                           .sweep = p->sweep};
    }
    as_status st = temp_file_create(m->whole.path, sizeof m->whole.path, &fd, err);
    if (st != AS_OK) {
        m->whole.path[0] = '\0';
        return st;
    }
    st = model_file_write(m->whole.path, sources, m->n, m->choice.combine, about, err);
    return st == AS_OK ? AS_OK : name_trial(m, st, err);
}

/* ---- the row ---- */

static as_status keep_json(struct arena *a, json_t *j, const char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = j ? json_format_ordered(j) : NULL;
    json_decref(j);
    *ret = arena_strdup(a, text);
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* A trial of several folds is several members of the file, which follow each other. */
static const struct model_member *member_of(const struct part *p, const struct model_file *f)
{
    for (size_t i = 0; i < model_file_n_members(f); i++) {
        const struct model_member *m = model_file_member(f, i);
        if (m->trial == p->trial.number && as_streq(m->sweep, p->sweep))
            return m;
    }
    return model_file_member(f, 0);
}

static json_t *members_json(const struct making *m, const struct model_file *f)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < m->n; i++) {
        const struct part *p = &m->parts[i];
        const char *kind = train_model_name(&member_of(p, f)->spec->model);
        json_t *j = json_pack("{s:s*, s:I, s:I, s:s, s:f, s:s}", "sweep", p->sweep, "trial",
                              (json_int_t)p->trial.number, "attempt", (json_int_t)p->trial.attempt,
                              "seed", p->seed, "weight", p->of->weight, "kind", kind);
        if (json_array_append_new(list, j) != 0)
            return NULL;
    }
    return as_steal(list);
}

/* Read the composed file again: what is stored was checked whole. */
static as_status describe(struct making *m, struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *f = NULL;
    struct model_version_row *v = &m->v;
    as_status st = model_file_read(m->whole.path, MODEL_FILE_MAX_BYTES, &f, err);
    if (st == AS_E_NOMEM)
        return st;
    if (st != AS_OK)
        return as_err_prefix(err, AS_E_INTERNAL, "a model file that was written here");
    const struct dataset_info *info = model_file_data(f);
    const json_t *lineage = json_object_get(model_file_manifest(f), "lineage");
    v->model = m->model;
    v->kind = m->choice.kind;
    v->task = dataset_task_name(info->task);
    v->input = dataset_input_name(info->input);
    v->measured_on = m->measured_on;
    v->created_by = m->q->by;
    if ((st = keep_json(m->a, model_inputs_json(info), &v->inputs, err)) == AS_OK &&
        (st = keep_json(m->a, model_outputs_json(info), &v->outputs, err)) == AS_OK &&
        (st = keep_json(m->a, members_json(m, f), &v->members, err)) == AS_OK &&
        (st = keep_json(m->a, json_incref(m->metrics), &v->metrics, err)) == AS_OK)
        st = keep_json(m->a, json_incref((json_t *)lineage), &v->lineage, err);
    return st;
}

static as_status store_file(struct making *m, struct as_err *err)
{
    AS_AUTO(blob_put_freep) struct blob_put *put = NULL;
    AS_AUTO(as_freep) char *buf = as_calloc(BLOB_CHUNK_BYTES, 1);
    AS_AUTO(file_closep) int fd = open(m->whole.path, O_RDONLY | O_CLOEXEC);
    char *hex = arena_alloc(m->a, SHA256_HEX_SIZE, 1);
    bool created = false;
    if (!hex || !buf)
        return as_fail_nomem(err);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "a temporary file cannot be read");
    as_status st = sha256_of_file(m->whole.path, hex, &m->v.size, err);
    if (st == AS_OK)
        st = blob_put_create(hex, &put, err);
    for (ssize_t n = 1; st == AS_OK && n > 0;) {
        n = read(fd, buf, BLOB_CHUNK_BYTES);
        st = n < 0 ? as_fail(err, AS_E_IO, "a temporary file cannot be read")
                   : blob_put_add(put, buf, (size_t)n, err);
    }
    m->v.sha256 = hex;
    return st == AS_OK ? blob_put_commit(m->db, put, &created, err) : st;
}

static as_status add_version(struct tx *t, struct making *m, struct model_version_row *ret,
                             bool *ret_created, struct as_err *err)
{
    int64_t newest = 0, number = 0;
    as_status st = store_model_lock(t, m->model, true, &newest, err);
    if (st == AS_OK)
        st = store_model_version_of(t, m->model, m->v.sha256, &number, err);
    if (st != AS_OK)
        return st;
    *ret_created = number == 0;
    if (number == 0) {
        m->v.version = number = newest + 1;
        st = store_model_version_add(t, &m->v, err);
        if (st == AS_E_NOT_FOUND)
            return as_fail(err, AS_E_UNAVAILABLE, "its content was removed meanwhile: try again");
        if (st == AS_OK)
            st = model_note_change(t, m->model, number, err);
    }
    return st == AS_OK ? store_model_version_get(t, m->a, m->model, number, ret, err) : st;
}

static as_status make_content(struct making *m, struct as_err *err)
{
    JSON_AUTO about = NULL;
    as_status st = copy_parts(m, err);
    if (st == AS_OK)
        st = about_json(m, &about, err);
    if (st == AS_OK)
        st = compose_file(m, about, err);
    if (st == AS_OK)
        st = describe(m, err);
    return st == AS_OK ? store_file(m, err) : st;
}

as_status model_add(struct store *db, struct arena *a, const char *model,
                    const struct model_request *q, struct model_version_row *ret, bool *ret_created,
                    struct as_err *err)
{
    AS_AUTO(making_done) struct making m = {.db = db, .a = a, .model = model, .q = q};
    struct model_version_row row;
    bool created = false;
    as_status st = model_name_check(model, err);
    if (st != AS_OK)
        return st;
    struct tx_run reading = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&reading))
        reading.status = read_origin(reading.tx, &m, err);
    if (reading.status != AS_OK)
        return reading.status;
    st = trial_test_metrics(&m, err);
    if (st == AS_OK)
        st = make_content(&m, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = add_version(run.tx, &m, &row, &created, err);
    if (run.status != AS_OK)
        return run.status;
    *ret = row;
    *ret_created = created;
    return AS_OK;
}
