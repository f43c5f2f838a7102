/* Writes model files: the members of other files, under one manifest.
 *
 * The bytes must depend on the content alone, because a model is known by its digest. So the
 * manifest is written with sorted keys and the shortest numbers (json_format), and tensors stand in
 * the order of members, and of their own files within a member. Tensors of bytes come last: the
 * others then stay aligned to their size, for programs that map the file. */
#include "model/file/model_file.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "data/dataset_json.h"
#include "model/file/model_file_priv.h"

/* Sources, their members one after another, and what is written of them. */
struct composition {
    const struct model_source *sources;
    size_t n;
    struct model_file **files; /* [n]; owned, each owned */
    model_combine_kind kind;   /* linear: sources are inputs of it */
    json_t *members;           /* of the manifest; owned */
    size_t n_members, n_tensors;
    struct safetensors_tensor *tensors; /* owned */
    char **names;                       /* [n_tensors]; owned, each owned */
};

static void composition_done(struct composition *c)
{
    for (size_t i = 0; c->files && i < c->n; i++)
        model_file_free(c->files[i]);
    for (size_t i = 0; c->names && i < c->n_tensors; i++)
        free(c->names[i]);
    free(c->files);
    free(c->names);
    free(c->tensors);
    json_decref(c->members);
}

/* ---- reading the sources ---- */

/* What source i must have been trained on. A new reference; NULL: memory is out. */
static json_t *expected_data(const struct composition *c, size_t i)
{
    AS_AUTO(dataset_info_done) struct dataset_info residual = {0};
    const struct model_file *first = c->files[0];
    if (c->kind != MODEL_SUM || i == 0)
        return json_incref(json_object_get(model_file_manifest(first), "dataset"));
    return model_residual_info(model_file_data(first), &residual, NULL) == AS_OK
               ? dataset_info_to_json(&residual)
               : NULL;
}

/* May what source i is be a part of the composition? Another one has its own place for it: a sum is
 * the beginning of a longer sum, or alone. */
static as_status check_kind(const struct composition *c, size_t i, struct as_err *err)
{
    model_combine_kind kind = c->files[i]->combine.kind;
    bool begins = kind == MODEL_SUM && c->kind == MODEL_SUM && i == 0;
    bool single = c->kind != MODEL_SUM || c->files[i]->n == 1;
    if (begins || (kind == MODEL_MEAN && single))
        return AS_OK;
    return as_fail(err, AS_E_UNSUPPORTED, "%.150s: %s cannot be a member of another ensemble",
                   c->sources[i].path,
                   kind == MODEL_LINEAR ? "a stacked ensemble"
                   : kind == MODEL_SUM  ? "a model of boosting"
                                        : "a mean of several models");
}

static as_status check_source(const struct composition *c, size_t i, struct as_err *err)
{
    const json_t *own = json_object_get(model_file_manifest(c->files[i]), "dataset");
    JSON_AUTO expected = expected_data(c, i);
    if (!expected)
        return as_fail_nomem(err);
    if (!json_equal(expected, own))
        return as_fail(err, AS_E_INVAL,
                       "%.150s and %.150s were trained on different data sets: their columns, "
                       "classes or numbers of rows differ",
                       c->sources[0].path, c->sources[i].path);
    return check_kind(c, i, err);
}

/* Without `combine` one source keeps its own: that of a trial may be a sum. */
static model_combine_kind kind_of(const json_t *combine, const struct composition *c)
{
    const char *kind = json_string_value(json_object_get(combine, "kind"));
    if (!combine && c->n == 1 && c->files[0]->combine.kind == MODEL_SUM)
        return MODEL_SUM;
    return as_streq(kind, "linear") ? MODEL_LINEAR : as_streq(kind, "sum") ? MODEL_SUM : MODEL_MEAN;
}

static as_status read_sources(struct composition *c, const json_t *combine, struct as_err *err)
{
    size_t left = MODEL_FILE_MAX_BYTES;
    c->files = as_calloc(c->n, sizeof *c->files);
    if (!c->files)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n; i++) {
        as_status st = model_file_read(c->sources[i].path, left, &c->files[i], err);
        if (st != AS_OK)
            return st;
        const struct safetensors *s = c->files[i]->tensors;
        for (size_t t = 0; t < safetensors_count(s); t++)
            left -= safetensors_at(s, t)->size_bytes;
        c->n_tensors += safetensors_count(s);
        c->kind = kind_of(combine, c);
        st = check_source(c, i, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

/* ---- the manifest ---- */

static int set_number(json_t *obj, const char *name, int64_t v)
{
    return v == 0 ? 0 : json_object_set_new(obj, name, json_integer((json_int_t)v));
}

/* Add member k of source i. */
static as_status add_member(struct composition *c, size_t i, size_t k, struct as_err *err)
{
    const struct model_source *source = &c->sources[i];
    const struct model_file *file = c->files[i];
    const struct model_member *m = model_file_member(file, k);
    const json_t *from = json_array_get(json_object_get(file->manifest, "members"), k);
    double weight = c->kind == MODEL_LINEAR ? m->weight : source->weight * m->weight;
    JSON_AUTO obj = json_pack("{s:f, s:O, s:O, s:s*, s:s*}", "weight", weight, "train", m->train,
                              "preprocessing", json_object_get(from, "preprocessing"), "seed",
                              source->seed ? source->seed : m->seed, "sweep",
                              source->sweep ? source->sweep : m->sweep);
    if (obj && c->kind == MODEL_LINEAR &&
        json_object_set_new(obj, "input", json_integer((json_int_t)i)) != 0)
        return as_fail_nomem(err);
    if (!obj || set_number(obj, "trial", source->trial ? source->trial : m->trial) != 0 ||
        set_number(obj, "attempt", source->attempt ? source->attempt : m->attempt) != 0 ||
        json_array_append(c->members, obj) != 0)
        return as_fail(err, AS_E_NOMEM, "out of memory, or a weight is not finite");
    c->n_members++;
    return AS_OK;
}

static as_status add_members(struct composition *c, struct as_err *err)
{
    c->members = json_array();
    if (!c->members)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->files[i]->n; k++) {
            as_status st = add_member(c, i, k, err);
            if (st != AS_OK)
                return st;
        }
    return AS_OK;
}

/* The manifest's `combine`. */
static as_status make_combine(const struct composition *c, const json_t *combine, json_t **ret,
                              struct as_err *err)
{
    bool is_linear = c->kind == MODEL_LINEAR;
    const json_t *own = json_object_get(model_file_manifest(c->files[0]), "combine");
    JSON_AUTO j = json_copy((json_t *)(combine ? combine : own));
    JSON_AUTO weights = is_linear ? json_array() : NULL;
    for (size_t i = 0; is_linear && i < c->n; i++)
        if (json_array_append_new(weights, json_real(c->sources[i].weight)) != 0)
            return as_fail(err, AS_E_NOMEM, "out of memory, or a weight is not finite");
    if (json_object_get(j, "weights"))
        return as_fail(err, AS_E_INVAL, "/combine/weights: they follow from the sources");
    if (!j || (is_linear && json_object_set(j, "weights", weights) != 0))
        return as_fail_nomem(err);
    *ret = as_steal(j);
    return AS_OK;
}

/* The manifest, checked as a reader will check it. */
static as_status make_manifest(const struct composition *c, const json_t *combine,
                               const json_t *about, json_t **ret, struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *check = as_calloc(1, sizeof *check);
    JSON_AUTO made = NULL;
    JSON_AUTO manifest = about ? json_copy((json_t *)about) : json_object();
    const json_t *dataset = json_object_get(model_file_manifest(c->files[0]), "dataset");
    static const char *const own[] = {"dataset", "combine", "members"};
    for (size_t i = 0; i < AS_ARRAY_LEN(own); i++)
        if (json_object_get(manifest, own[i]))
            return as_fail(err, AS_E_INVAL, "/%s: it follows from the members", own[i]);
    as_status st = make_combine(c, combine, &made, err);
    if (st != AS_OK)
        return st;
    if (!check || !manifest || json_object_set(manifest, "dataset", (json_t *)dataset) != 0 ||
        json_object_set(manifest, "combine", made) != 0 ||
        json_object_set(manifest, "members", c->members) != 0)
        return as_fail_nomem(err);
    st = model_manifest_read(manifest, check, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(manifest);
    return AS_OK;
}

/* ---- tensors ---- */

static size_t width_of(safetensors_type type)
{
    return type == SAFETENSORS_F64 || type == SAFETENSORS_I64 ? 8 : type == SAFETENSORS_U8 ? 1 : 4;
}

/* The new name of a tensor of a source whose first member becomes member `first`. Owned by the
 * caller; NULL when memory is out. */
static char *new_name(const struct model_file *file, size_t first, const char *name)
{
    AS_AUTO(str_done) struct str b = {0};
    char prefix[MODEL_FILE_PREFIX_MAX];
    size_t member = 0;
    if (!file->of_trial)
        (void)model_file_owner(name, &member, &name); /* true: it was checked */
    model_file_prefix(first + member, prefix);
    str_puts(&b, prefix);
    str_puts(&b, name);
    return str_take(&b);
}

/* Append the tensors of one width. */
static as_status add_tensors(struct composition *c, size_t width, size_t *n, struct as_err *err)
{
    size_t first = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct safetensors *s = c->files[i]->tensors;
        for (size_t t = 0; t < safetensors_count(s); t++) {
            const struct safetensors_tensor *from = safetensors_at(s, t);
            if (width_of(from->type) != width)
                continue;
            c->tensors[*n] = *from;
            c->tensors[*n].name = c->names[*n] = new_name(c->files[i], first, from->name);
            if (!c->names[(*n)++])
                return as_fail_nomem(err);
        }
        first += c->files[i]->n;
    }
    return AS_OK;
}

static as_status list_tensors(struct composition *c, struct as_err *err)
{
    static const size_t widths[] = {8, 4, 1};
    size_t n = 0;
    c->tensors = as_calloc(c->n_tensors, sizeof *c->tensors);
    c->names = as_calloc(c->n_tensors, sizeof *c->names);
    if (!c->tensors || !c->names)
        return as_fail_nomem(err);
    for (size_t i = 0; i < AS_ARRAY_LEN(widths); i++) {
        as_status st = add_tensors(c, widths[i], &n, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

as_status model_file_write(const char *path, const struct model_source *sources, size_t n,
                           const json_t *combine, const json_t *about, struct as_err *err)
{
    AS_AUTO(composition_done) struct composition c = {.sources = sources, .n = n};
    JSON_AUTO manifest = NULL;
    as_status st = read_sources(&c, combine, err);
    if (st != AS_OK)
        return st;
    st = add_members(&c, err);
    if (st != AS_OK)
        return st;
    st = make_manifest(&c, combine, about, &manifest, err);
    if (st != AS_OK)
        return st;
    st = list_tensors(&c, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) char *text = json_format(manifest);
    JSON_AUTO metadata = text ? json_pack("{s:s, s:s, s:s}", "format", MODEL_FILE_FORMAT, "version",
                                          MODEL_FILE_VERSION, "model", text)
                              : NULL;
    if (!metadata)
        return as_fail_nomem(err);
    return safetensors_write(path, metadata, c.tensors, c.n_tensors, err);
}
