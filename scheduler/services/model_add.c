/* Making a version of a model: from one trial, or from the ensemble of a sweep.
 *
 * Three steps. One transaction reads what the version is made of (state, attempts, digests of files,
 * metrics, the ensemble's weights). Then, without a transaction, the files are copied, composed into
 * one, and stored as content; that takes seconds. The last transaction gives the content a number,
 * under the lock of the model's row. Whatever stops the server in between leaves content that
 * nothing refers to, which is removed (content_care.c), and no version.
 *
 * The file depends on its content alone, so the same trials make the same digest, and a version that
 * exists is found by it: a request that is repeated, or two at once, add one version. */
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
#include "scheduler/services/model_schema.h"
#include "scheduler/services/trial_test.h"
#include "scheduler/services/models_priv.h"
#include "scheduler/store/ensemble_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/model_store.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"

#define MODEL_FILE_NAME "model.safetensors" /* as the trainer calls it */

/* One member of the version. */
struct part {
    struct trial_row trial;
    double weight;
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
    const char *kind; /* trial, ensemble */
    struct part *parts;
    size_t n;
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
    json_decref(m->metrics);
}

/* ---- what it is made of ---- */

static as_status make_parts(struct making *m, size_t n, struct as_err *err)
{
    m->parts = arena_alloc(m->a, n, sizeof *m->parts);
    if (!m->parts)
        return as_fail_nomem(err);
    m->n = n;
    return AS_OK;
}

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

/* Of a trial: its test.json. */
static as_status trial_test_metrics(struct making *m, struct as_err *err)
{
    JSON_AUTO test = NULL;
    const char *text = NULL, *name;
    json_t *value;
    as_status st = trial_test_read(m->db, m->a, &m->parts[0].files, &text, err);
    if (st != AS_OK || !text || !as_streq(m->kind, "trial"))
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
static as_status ensemble_metrics(struct making *m, const json_t *ensemble, struct as_err *err)
{
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

static as_status take_single(struct making *m, int64_t number, struct as_err *err)
{
    as_status st = make_parts(m, 1, err);
    if (st != AS_OK)
        return st;
    m->kind = "trial";
    m->parts[0].trial.number = number;
    m->parts[0].weight = 1;
    return AS_OK;
}

static as_status take_members(struct making *m, const json_t *ensemble, struct as_err *err)
{
    const json_t *members = json_object_get(ensemble, "members");
    const char *method = json_string_value(json_object_get(ensemble, "method"));
    if (method && !as_streq(method, "greedy") && !as_streq(method, "average"))
        return as_fail(
            err, AS_E_UNSUPPORTED,
            "the ensemble of '%.80s' is of the method %.40s, expected greedy or average: "
            "weights of predictions; name a trial instead",
            m->q->sweep, method);
    if (json_array_size(members) == 0)
        return as_fail(err, AS_E_CONFLICT, "the ensemble of '%.80s' has no members", m->q->sweep);
    as_status st = make_parts(m, json_array_size(members), err);
    for (size_t i = 0; st == AS_OK && i < m->n; i++) {
        const json_t *member = json_array_get(members, i);
        m->parts[i].trial.number = json_integer_value(json_object_get(member, "number"));
        m->parts[i].weight = json_number_value(json_object_get(member, "weight"));
    }
    m->kind = "ensemble";
    return st;
}

/* What the sweep recommends, or what the request wants of it. */
static as_status choose(struct tx *t, struct making *m, struct as_err *err)
{
    JSON_AUTO ensemble = NULL;
    const char *text = NULL;
    sweep_state state;
    as_status st = store_ensemble_get(t, m->a, m->q->sweep, &text, &state, err);
    if (st == AS_OK && !sweep_state_is_final(state))
        return as_fail(err, AS_E_CONFLICT,
                       "the sweep '%.80s' is %s: name a trial, or wait until it has ended",
                       m->q->sweep, sweep_state_format(state));
    if (st == AS_OK && text)
        st = json_parse(text, strlen(text), &ensemble, err);
    if (st != AS_OK)
        return st;
    bool is_ready = as_streq(json_string_value(json_object_get(ensemble, "state")), "ready");
    const char *wants = json_string_value(json_object_get(ensemble, "recommended"));
    bool is_ensemble = m->q->use == MODEL_ENSEMBLE ||
                       (m->q->use == MODEL_RECOMMENDED && is_ready && as_streq(wants, "ensemble"));
    if (is_ensemble && !is_ready) {
        const char *why = json_string_value(json_object_get(ensemble, "reason"));
        return as_fail(err, AS_E_CONFLICT, "the sweep '%.80s' has no ensemble: %.140s", m->q->sweep,
                       why ? why : "it did not complete");
    }
    if (is_ensemble) {
        st = take_members(m, ensemble, err);
        return st == AS_OK ? ensemble_metrics(m, ensemble, err) : st;
    }
    const json_t *single = json_object_get(json_object_get(ensemble, "best_single"), "number");
    if (!single && !m->sweep.has_best)
        return as_fail(err, AS_E_CONFLICT, "no trial of the sweep '%.80s' has completed",
                       m->q->sweep);
    return take_single(m, single ? json_integer_value(single) : m->sweep.best_number, err);
}

static as_status find_file(struct tx *t, struct making *m, struct part *p, struct as_err *err)
{
    struct file_list *files = &p->files;
    as_status st = store_file_list(t, m->a, m->sweep_key, p->trial.number, "artifact", files, err);
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
                   m->q->sweep, (long long)p->trial.number);
}

static as_status read_part(struct tx *t, struct making *m, struct part *p, struct as_err *err)
{
    as_status st = store_trial_get(t, m->a, m->sweep_key, p->trial.number, &p->trial, err);
    if (st != AS_OK)
        return st;
    if (p->trial.state != TRIAL_COMPLETED)
        return as_fail(err, AS_E_CONFLICT,
                       "trial %.80s/%lld is %s: only completed trials make a model", m->q->sweep,
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
        st = m->q->trial >= 0 ? take_single(m, m->q->trial, err) : choose(t, m, err);
    for (size_t i = 0; st == AS_OK && i < m->n; i++) {
        st = read_part(t, m, &m->parts[i], err);
        bytes += m->parts[i].file.size;
    }
    if (st == AS_OK && as_streq(m->kind, "trial"))
        st = trial_metrics(m, &m->parts[0].trial, err);
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
                       (int)(at - err->msg), err->msg, m->q->sweep,
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
                           "the files of trial %.80s/%lld were removed meanwhile", m->q->sweep,
                           (long long)m->parts[i].trial.number);
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
        run.status = store_model_dataset(run.tx, m->a, m->sweep_key, name, &sha256, err);
    if (run.status != AS_OK)
        return run.status;
    *ret = json_pack("{s:s, s:s?}", "name", name, "sha256", sha256);
    return *ret ? AS_OK : as_fail_nomem(err);
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
    return *ret ? AS_OK : as_fail_nomem(err);
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
                                           .weight = p->weight,
                                           .trial = p->trial.number,
                                           .attempt = p->trial.attempt,
                                           .seed = p->seed};
    }
    as_status st = temp_file_create(m->whole.path, sizeof m->whole.path, &fd, err);
    if (st != AS_OK) {
        m->whole.path[0] = '\0';
        return st;
    }
    st = model_file_write(m->whole.path, sources, m->n, NULL, about, err);
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

/* What a trial gave to the file: its own model, or with folds one for each, all of one kind. Returns the
 * kind, borrowed. */
static const json_t *kind_of(const struct model_file *f, int64_t trial)
{
    size_t i = 0;
    while (i + 1 < model_file_n_members(f) && model_file_member(f, i)->trial != trial)
        i++;
    return json_object_get(json_object_get(model_file_member(f, i)->train, "model"), "kind");
}

static json_t *members_json(const struct making *m, const struct model_file *f)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < m->n; i++) {
        const struct part *p = &m->parts[i];
        json_t *j = json_pack("{s:I, s:I, s:s, s:f, s:O*}", "trial", (json_int_t)p->trial.number,
                              "attempt", (json_int_t)p->trial.attempt, "seed", p->seed, "weight",
                              p->weight, "kind", kind_of(f, p->trial.number));
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
    if (st != AS_OK)
        return as_err_prefix(err, AS_E_INTERNAL, "a model file that was written here");
    const struct dataset_info *info = model_file_data(f);
    const json_t *lineage = json_object_get(model_file_manifest(f), "lineage");
    v->model = m->model;
    v->kind = m->kind;
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
