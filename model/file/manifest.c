/* The manifest of a model file: checks it and reads what it says.
 *
 * The writer calls this, too, for what it is about to write: a file that was written is a file that
 * can be read. The manifest is trusted in nothing: each member's document and preprocessing are
 * parsed by the rooms that own them, against the record of the data set, once. What is computed
 * with a member later makes its layers and compares the sizes of its tensors, and no more. */
#include "base/json.h"
#include "base/str.h"
#include "data/dataset_json.h"
#include "data/preprocess/record.h"
#include "model/file/model_file_priv.h"

/* Only k-means predicts clusters, and nothing else: its outputs are two, whatever a target has. */
static as_status check_clusters(const struct train_spec *spec, const struct dataset_info *info,
                                const char *pointer, struct as_err *err)
{
    bool kmeans = train_model_is_kmeans(&spec->model);
    if (kmeans == (info->task == DATASET_CLUSTERING))
        return AS_OK;
    return as_fail_at(err, AS_E_INVAL, "/dataset/task",
                      "/dataset/task: found %s, expected %s: so says %s/model/kind (%s)",
                      dataset_task_name(info->task), kmeans ? "clustering" : "a task with a target",
                      pointer, train_model_name(&spec->model));
}

static as_status read_document(struct json_fields *f, struct train_spec *ret,
                               struct model_member *m, struct as_err *err)
{
    json_t *train = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    as_status st = json_fields_object(f, "train", JSON_REQUIRED, &train, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(f->pointer, "train", pointer);
    st = train_spec_parse(train, pointer, ret, err);
    if (st != AS_OK)
        return st;
    st = check_clusters(ret, m->info, pointer, err);
    if (st == AS_OK)
        st = train_spec_check_task(ret, m->info, pointer, err);
    if (st != AS_OK)
        return st;
    m->train = train;
    m->spec = ret;
    return AS_OK;
}

as_status model_manifest_against(as_status st, const char *other, struct as_err *err)
{
    if (st == AS_E_NOMEM || !err)
        return st;
    return as_fail_at(err, st, err->pointer, "%.200s (by %s)", err->msg, other);
}

static as_status read_fit(struct json_fields *f, const struct model_file *file,
                          struct preprocess *ret, struct model_member *m, struct as_err *err)
{
    json_t *record = NULL;
    char pointer[AS_ERR_POINTER_MAX];
    as_status st = json_fields_object(f, "preprocessing", JSON_REQUIRED, &record, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(f->pointer, "preprocessing", pointer);
    st = preprocess_from_json(record, pointer, m->info, ret, err);
    if (st != AS_OK)
        return model_manifest_against(
            st,
            m->info == &file->residual   ? "/dataset and the sum of /combine"
            : file->combine.n_stacks > 0 ? "/dataset and the stacks of /combine"
                                         : "/dataset",
            err);
    m->fit = ret;
    return AS_OK;
}

/* Where a member comes from. A trial with folds numbers them, for people. */
static as_status read_origin(struct json_fields *f, struct model_member *m, struct as_err *err)
{
    int64_t fold = 0;
    as_status st = json_fields_i64(f, "fold", JSON_OPTIONAL, 0, TRAIN_MAX_FOLDS - 1, &fold, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "trial", JSON_OPTIONAL, 1, INT64_MAX, &m->trial, err);
    if (st != AS_OK)
        return st;
    st = json_fields_i64(f, "attempt", JSON_OPTIONAL, 1, INT64_MAX, &m->attempt, err);
    if (st != AS_OK)
        return st;
    st = json_fields_text(f, "seed", JSON_OPTIONAL, 1, 20, &m->seed, err);
    if (st != AS_OK)
        return st;
    return json_fields_text(f, "sweep", JSON_OPTIONAL, 1, 80, &m->sweep, err);
}

/* Which input of the combination a member belongs to. Where there is only one, members say
 * nothing. */
static as_status read_input(struct json_fields *f, const struct model_combine *combine,
                            struct model_member *m, struct as_err *err)
{
    int64_t input = 0;
    if (!model_has_inputs(combine))
        return AS_OK;
    as_status st =
        json_fields_i64(f, "input", JSON_REQUIRED, 0, (int64_t)combine->n_inputs - 1, &input, err);
    m->input = (size_t)input;
    return st == AS_OK ? AS_OK : model_manifest_against(st, "the inputs of /combine", err);
}

static as_status read_weight(struct json_fields *f, bool is_sum, struct model_member *m,
                             struct as_err *err)
{
    double most = is_sum ? MODEL_FILE_RATE_MAX : 1 + MODEL_FILE_WEIGHT_SLACK;
    as_status st = json_fields_double(f, "weight", JSON_REQUIRED, 0, most, &m->weight, err);
    if (st != AS_OK || m->weight > 0)
        return st;
    return as_fail_at(err, AS_E_INVAL, f->pointer, "%s/weight: found %g, expected more than 0",
                      f->pointer, m->weight);
}

static as_status read_member(const json_t *obj, const char *pointer, struct model_file *file,
                             size_t i, struct as_err *err)
{
    struct json_fields f;
    struct model_member *m = &file->members[i];
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st == AS_OK)
        st = read_input(&f, &file->combine, m, err);
    if (st != AS_OK)
        return st;
    bool is_sum = file->combine.sums[m->input];
    bool is_later = i > 0 && file->members[i - 1].input == m->input;
    size_t stack = file->combine.stack[m->input];
    m->info = stack != MODEL_NO_STACK ? file->combine.stacks[stack].info
              : is_sum && is_later    ? &file->residual
                                      : &file->info;
    st = read_weight(&f, is_sum, m, err);
    if (st != AS_OK)
        return st;
    st = read_document(&f, &file->specs[i], m, err);
    if (st != AS_OK)
        return st;
    st = read_fit(&f, file, &file->fits[i], m, err);
    if (st == AS_OK)
        st = model_manifest_fit(m, pointer, err);
    if (st != AS_OK)
        return st;
    st = read_origin(&f, m, err);
    if (st != AS_OK)
        return st;
    return json_fields_end(&f, err);
}

static as_status read_members(const json_t *list, struct model_file *file, struct as_err *err)
{
    size_t n = json_array_size(list);
    if (n == 0)
        return as_fail_at(err, AS_E_INVAL, "/members", "/members: found none, expected at least 1");
    if (n > MODEL_FILE_MAX_MEMBERS)
        return as_fail_at(err, AS_E_TOO_LARGE, "/members", "/members: found %zu, at most %zu", n,
                          MODEL_FILE_MAX_MEMBERS);
    if (file->info.task == DATASET_CLUSTERING && n != 1)
        return as_fail_at(err, AS_E_INVAL, "/members",
                          "/members: found %zu, expected 1: clusters of different models are not "
                          "the same (/dataset/task)",
                          n);
    file->members = as_calloc(n, sizeof *file->members);
    file->specs = as_calloc(n, sizeof *file->specs);
    file->fits = as_calloc(n, sizeof *file->fits);
    if (!file->members || !file->specs || !file->fits)
        return as_fail_nomem(err);
    file->n = n;
    for (size_t i = 0; i < n; i++) {
        char pointer[AS_ERR_POINTER_MAX];
        json_pointer_index("/members", i, pointer);
        as_status st = read_member(json_array_get(list, i), pointer, file, i, err);
        if (st != AS_OK)
            return st;
    }
    return model_manifest_inputs(file, err);
}

/* What is kept for people and not used for predicting. */
static as_status check_about(struct json_fields *f, struct as_err *err)
{
    json_t *unused = NULL;
    const char *text = NULL;
    as_status st = json_fields_object(f, "metrics", JSON_OPTIONAL, &unused, err);
    if (st != AS_OK)
        return st;
    st = json_fields_str(f, "measured_on", JSON_OPTIONAL, &text, err);
    if (st != AS_OK)
        return st;
    return json_fields_object(f, "lineage", JSON_OPTIONAL, &unused, err);
}

as_status model_manifest_read(json_t *manifest, struct model_file *file, struct as_err *err)
{
    struct json_fields f;
    json_t *dataset = NULL, *combine = NULL, *members = NULL;
    file->manifest = json_incref(manifest);
    as_status st = json_fields_init(&f, manifest, "", err);
    if (st != AS_OK)
        return st;
    st = json_fields_object(&f, "dataset", JSON_REQUIRED, &dataset, err);
    if (st != AS_OK)
        return st;
    st = json_fields_object(&f, "combine", JSON_REQUIRED, &combine, err);
    if (st != AS_OK)
        return st;
    st = json_fields_array(&f, "members", JSON_REQUIRED, &members, err);
    if (st != AS_OK)
        return st;
    st = check_about(&f, err);
    if (st != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    st = dataset_info_from_json(dataset, "/dataset", &file->info, err);
    if (st != AS_OK)
        return st;
    st = model_manifest_combine(combine, members, file, err);
    if (st != AS_OK)
        return st;
    return read_members(members, file, err);
}
