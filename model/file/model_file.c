/* Reads model files.
 *
 * Both formats become a manifest: that of a model file is in its metadata, and for a trial's own
 * model.safetensors one is made of its metadata. From there on they differ in the prefix of their
 * tensors only.
 *
 * The checksum is required. Writers of other programs add none, but a file that they changed is no
 * longer the model whose metrics its manifest tells. */
#include "model/file/model_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "model/file/model_file_priv.h"

#define TENSOR_NAME_MAX 256
#define PREFIX "members/"

void model_file_free(struct model_file *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->n; i++) {
        train_spec_done(&f->specs[i]);
        preprocess_done(&f->fits[i]);
    }
    free(f->combine_weights);
    free(f->combine_biases);
    free(f->class_weights);
    free(f->combine_sums);
    free(f->combine_buckets);
    free(f->bucket_features);
    for (size_t i = 0; f->stacks_own && i < f->combine.n_stacks; i++) {
        free(f->stacks_own[i].of);
        dataset_info_done(&f->stacks_own[i].info);
    }
    free(f->stacks_own);
    free(f->combine_stacks);
    free(f->combine_stack);
    free(f->combine_depth);
    free(f->first);
    free(f->n_tensors);
    free(f->members);
    free(f->specs);
    free(f->fits);
    dataset_info_done(&f->info);
    dataset_info_done(&f->residual);
    json_decref(f->manifest);
    safetensors_free(f->tensors);
    free(f);
}

/* ---- the manifest ---- */

/* A JSON document in a text of the metadata. */
static as_status metadata_json(const struct safetensors *s, const char *key, json_t **ret,
                               struct as_err *err)
{
    const char *text = safetensors_metadata(s, key);
    if (!text)
        return as_fail(err, AS_E_INVAL, "its metadata has no '%s'", key);
    as_status st = json_parse_file(text, strlen(text), ret, err);
    return st == AS_OK ? AS_OK : as_err_prefix(err, st, "'%s' in its metadata", key);
}

/* The manifest of a trial's own file. */
static as_status trial_manifest(const struct safetensors *s, json_t **ret, struct as_err *err)
{
    JSON_AUTO train = NULL;
    JSON_AUTO dataset = NULL;
    JSON_AUTO record = NULL;
    as_status st = metadata_json(s, "train", &train, err);
    if (st != AS_OK)
        return st;
    st = metadata_json(s, "dataset", &dataset, err);
    if (st != AS_OK)
        return st;
    st = metadata_json(s, "preprocessing", &record, err);
    if (st != AS_OK)
        return st;
    *ret = json_pack("{s:O, s:{s:s}, s:[{s:f, s:O, s:O}]}", "dataset", dataset, "combine", "kind",
                     "mean", "members", "weight", 1.0, "train", train, "preprocessing", record);
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status find_manifest(struct model_file *f, json_t **ret, struct as_err *err)
{
    const char *format = safetensors_metadata(f->tensors, "format");
    const char *version = safetensors_metadata(f->tensors, "version");
    f->of_trial = as_streq(format, MODEL_FILE_TRIAL_FORMAT);
    if (!f->of_trial && !as_streq(format, MODEL_FILE_FORMAT))
        return as_fail(err, AS_E_INVAL,
                       "not a model: found the format '%.60s' in its metadata, expected "
                       "'" MODEL_FILE_FORMAT "'",
                       format ? format : "");
    if (!f->of_trial && !as_streq(version, MODEL_FILE_VERSION))
        return as_fail(err, AS_E_UNSUPPORTED,
                       "a model of version '%.20s', this program knows version " MODEL_FILE_VERSION,
                       version ? version : "");
    if (!safetensors_metadata(f->tensors, SAFETENSORS_CHECKSUM))
        return as_fail(err, AS_E_INVAL,
                       "its metadata has no " SAFETENSORS_CHECKSUM
                       ": another program changed the model");
    return f->of_trial ? trial_manifest(f->tensors, ret, err)
                       : metadata_json(f->tensors, "model", ret, err);
}

/* ---- tensors ---- */

void model_file_prefix(size_t member, char ret[MODEL_FILE_PREFIX_MAX])
{
    (void)snprintf(ret, MODEL_FILE_PREFIX_MAX, PREFIX "%zu/", member);
}

bool model_file_owner(const char *name, size_t *ret_member, const char **ret_rest)
{
    char prefix[MODEL_FILE_PREFIX_MAX];
    size_t member = 0;
    if (!as_starts_with(name, PREFIX))
        return false;
    for (const char *p = name + strlen(PREFIX); *p >= '0' && *p <= '9'; p++)
        if (member < MODEL_FILE_MAX_MEMBERS)
            member = member * 10 + (size_t)(*p - '0');
    model_file_prefix(member, prefix); /* refuses 01, and no digit at all */
    if (!as_starts_with(name, prefix))
        return false;
    *ret_member = member;
    *ret_rest = name + strlen(prefix);
    return true;
}

/* Each tensor belongs to a member: count them. */
static as_status check_owners(struct model_file *f, struct as_err *err)
{
    f->n_tensors = as_calloc(f->n, sizeof *f->n_tensors);
    if (!f->n_tensors)
        return as_fail_nomem(err);
    for (size_t i = 0; i < safetensors_count(f->tensors); i++) {
        const char *name = safetensors_at(f->tensors, i)->name, *rest = name;
        size_t member = 0;
        if (!f->of_trial && (!model_file_owner(name, &member, &rest) || member >= f->n))
            return as_fail(
                err, AS_E_INVAL,
                "tensor '%.80s' belongs to none of the %zu members, expected a name that "
                "begins with members/ and a member's index",
                name, f->n);
        f->n_tensors[member] += !model_file_is_moment(rest);
    }
    return AS_OK;
}

static as_status read_tensors(struct model_file *f, struct as_err *err)
{
    JSON_AUTO manifest = NULL;
    as_status st = find_manifest(f, &manifest, err);
    if (st != AS_OK)
        return st;
    st = model_manifest_read(manifest, f, err);
    if (st != AS_OK)
        return st;
    st = check_owners(f, err);
    return st == AS_OK ? model_file_moments(f, err) : st;
}

static as_status parse_tensors(struct model_file *f, as_status st, struct model_file **ret,
                               struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *owned = f;
    if (st == AS_OK)
        st = read_tensors(owned, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(owned);
    return AS_OK;
}

as_status model_file_parse(char *bytes, size_t len, struct model_file **ret, struct as_err *err)
{
    struct model_file *f = as_calloc(1, sizeof *f);
    if (!f) {
        free(bytes);
        return as_fail_nomem(err);
    }
    return parse_tensors(f, safetensors_parse(bytes, len, &f->tensors, err), ret, err);
}

as_status model_file_parse_image(struct file_image *image, struct model_file **ret,
                                 struct as_err *err)
{
    struct model_file *f = as_calloc(1, sizeof *f);
    if (!f) {
        file_image_done(image);
        return as_fail_nomem(err);
    }
    return parse_tensors(f, safetensors_parse_image(image, &f->tensors, err), ret, err);
}

as_status model_file_read(const char *path, size_t max_bytes, struct model_file **ret,
                          struct as_err *err)
{
    struct file_image image = {0};
    as_status st = file_image_read(path, max_bytes, &image, err);
    if (st != AS_OK)
        return st;
    st = model_file_parse_image(&image, ret, err);
    return st == AS_OK ? AS_OK : as_err_prefix(err, st, "%.200s", path);
}

const json_t *model_file_manifest(const struct model_file *f)
{
    return f->manifest;
}

size_t model_combine_class(const struct model_combine *c, const float *p, size_t classes)
{
    size_t best = 0;
    if (!isnan(c->threshold))
        return (double)p[1] > c->threshold;
    const double *w = c->class_weights;
    for (size_t i = 1; i < classes; i++)
        if (w ? (double)p[i] * w[i] > (double)p[best] * w[best] : p[i] > p[best])
            best = i;
    return best;
}

const struct model_combine *model_file_combine(const struct model_file *f)
{
    return &f->combine;
}

const struct dataset_info *model_file_data(const struct model_file *f)
{
    return &f->info;
}

size_t model_file_n_members(const struct model_file *f)
{
    return f->n;
}

const struct model_member *model_file_member(const struct model_file *f, size_t i)
{
    return &f->members[i];
}

size_t model_file_input(const struct model_file *f, size_t input, size_t *ret_first)
{
    *ret_first = f->first[input];
    return f->first[input + 1] - f->first[input];
}

size_t model_file_n_tensors(const struct model_file *f, size_t member)
{
    return f->n_tensors[member];
}

const struct safetensors_tensor *model_file_find(const struct model_file *f, size_t member,
                                                 const char *name)
{
    char full[TENSOR_NAME_MAX] = "";
    if (f->of_trial)
        return safetensors_get(f->tensors, name);
    model_file_prefix(member, full);
    size_t len = strlen(full);
    if (strlen(name) >= sizeof full - len)
        return NULL;
    memcpy(full + len, name, strlen(name) + 1);
    return safetensors_get(f->tensors, full);
}

as_status model_file_tensor(const struct model_file *f, size_t member, const char *name,
                            safetensors_type type, size_t n, void *ret, struct as_err *err)
{
    const struct safetensors_tensor *t = model_file_find(f, member, name);
    if (!t)
        return as_fail(err, AS_E_INVAL, "member %zu has no tensor '%.80s'", member, name);
    return safetensors_copy(f->tensors, t->name, type, n, ret, err);
}
