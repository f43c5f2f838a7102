/* Writes model files: the members of other files, under one manifest.
 *
 * The bytes must depend on the content alone, because a model is known by its digest. So the
 * manifest is written with sorted keys and the shortest numbers (json_format), and tensors stand in
 * the order of members, and of their own files within a member. Tensors of bytes come last: the
 * others then stay aligned to their size, for programs that map the file. */
#include "model/file/model_file.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "data/dataset_json.h"
#include "model/file/model_file_priv.h"

/* An input of the composition: a whole source, or of a source of several layers one of its inputs.
 */
struct unit {
    size_t source;
    bool whole;
    size_t input; /* of the source, if it is not whole */
    double weight;
    size_t *of; /* [n_of] the units whose predictions it sees; owned, NULL: none */
    size_t n_of;
};

/* Sources, their members one after another, and what is written of them. */
struct composition {
    const struct model_source *sources;
    size_t n;
    struct model_file **files; /* [n]; owned, each owned */
    model_combine_kind kind;
    bool has_inputs;    /* each unit is one input */
    bool stacks_first;  /* the first source sees what the others predict, which have no weight */
    struct unit *units; /* [n_units]; owned. The first n are of the sources, in their order */
    size_t n_units;
    size_t **place; /* [n]: of each member of a source its place in the file, SIZE_MAX: it has none;
                     * owned, each owned */
    size_t skip, take; /* of a single source: the members after `skip`, so many; take 0: all */
    json_t *members;   /* of the manifest; owned */
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
    for (size_t i = 0; c->place && i < c->n; i++)
        free(c->place[i]);
    for (size_t i = 0; c->units && i < c->n_units; i++)
        free(c->units[i].of);
    free(c->place);
    free(c->units);
    free(c->files);
    free(c->names);
    free(c->tensors);
    json_decref(c->members);
}

/* ---- reading the sources ---- */

/* The source whose data set is that of the composition. */
static const struct model_file *data_of(const struct composition *c)
{
    return c->files[c->stacks_first ? c->n - 1 : 0];
}

/* Is a model of several layers one input, and others that it sees? */
static bool is_layered(const struct model_file *f)
{
    const struct model_combine *own = &f->combine;
    size_t n = 0;
    for (size_t i = 0; own->kind == MODEL_MEAN && own->weights && i < own->n_inputs; i++)
        n += own->weights[i] != 0;
    return own->n_stacks > 0 && n == 1;
}

/* What source i must have been trained on. A new reference; NULL: memory is out. */
static json_t *expected_data(const struct composition *c, size_t i)
{
    AS_AUTO(dataset_info_done) struct dataset_info residual = {0};
    const struct model_file *first = data_of(c);
    if (c->stacks_first && i == 0)
        return model_stacked_info(model_file_data(first), c->n - 1, &residual, NULL) == AS_OK
                   ? dataset_info_to_json(&residual)
                   : NULL;
    if (c->kind != MODEL_SUM || i == 0)
        return json_incref(json_object_get(model_file_manifest(first), "dataset"));
    return model_residual_info(model_file_data(first), &residual, NULL) == AS_OK
               ? dataset_info_to_json(&residual)
               : NULL;
}

/* May what source i is be a part of the composition? Beside a mean, a sum may be an input, or the
 * beginning of a longer sum. */
static as_status check_kind(const struct composition *c, size_t i, struct as_err *err)
{
    static const char *const names[] = {[MODEL_MEAN] = "a mean of several models",
                                        [MODEL_LINEAR] = "a stacked ensemble",
                                        [MODEL_SUM] = "a model of boosting",
                                        [MODEL_BY] = "an ensemble by a column"};
    const struct model_combine *own = &c->files[i]->combine;
    bool is_calibrated =
        own->calibration.slope != 0 || !isnan(own->threshold) || own->class_weights;
    bool plain = own->kind == MODEL_MEAN && !own->weights;
    bool fits = plain || own->kind == MODEL_SUM || is_layered(c->files[i]);
    if (c->kind == MODEL_SUM)
        fits = (plain && c->files[i]->n == 1) || (own->kind == MODEL_SUM && i == 0);
    if (fits && !is_calibrated)
        return AS_OK;
    return as_fail(err, AS_E_UNSUPPORTED, "%.150s: %s cannot be a member of another ensemble",
                   c->sources[i].path, fits ? "a calibrated model" : names[own->kind]);
}

static as_status check_source(const struct composition *c, size_t i, struct as_err *err)
{
    const json_t *own = json_object_get(model_file_manifest(c->files[i]), "dataset");
    JSON_AUTO expected = expected_data(c, i);
    if (!expected)
        return as_fail_nomem(err);
    if (!json_equal(expected, own) && c->stacks_first)
        return as_fail(err, AS_E_INVAL,
                       "%.150s was not trained on the columns of its data set and the predictions "
                       "of %zu models of the layer before it",
                       c->sources[0].path, c->n - 1);
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
    static const char *const names[] = {
        [MODEL_MEAN] = "mean", [MODEL_LINEAR] = "linear", [MODEL_SUM] = "sum", [MODEL_BY] = "by"};
    const char *kind = json_string_value(json_object_get(combine, "kind"));
    if (!combine && c->n == 1 && c->files[0]->combine.kind == MODEL_SUM)
        return MODEL_SUM;
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        if (as_streq(kind, names[i]))
            return (model_combine_kind)i;
    return MODEL_MEAN;
}

/* Sources are inputs where the formula needs them, or where one is a sum and others are not. */
static bool needs_inputs(const struct composition *c)
{
    bool needs = c->kind == MODEL_LINEAR || c->kind == MODEL_BY;
    for (size_t i = 0; c->kind == MODEL_MEAN && i < c->n; i++)
        needs = needs || c->files[i]->combine.kind == MODEL_SUM || is_layered(c->files[i]);
    return needs || c->stacks_first;
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
        st = c->stacks_first ? AS_OK : check_source(c, i, err);
        if (st != AS_OK)
            return st;
    }
    for (size_t i = 0; c->stacks_first && i < c->n; i++) { /* the last one has the data set */
        as_status st = check_source(c, i, err);
        if (st != AS_OK)
            return st;
    }
    c->has_inputs = needs_inputs(c);
    return AS_OK;
}

/* ---- units ---- */

/* The member that a tensor belongs to, and the rest of its name. */
static size_t owner_of(const struct model_file *file, const char *name, const char **ret_rest)
{
    size_t member = 0;
    *ret_rest = name;
    if (!file->of_trial)
        (void)model_file_owner(name, &member, ret_rest); /* true: it was checked */
    return member;
}

static bool takes(const struct composition *c, size_t member)
{
    return c->take == 0 || (member >= c->skip && member < c->skip + c->take);
}

/* The members of a unit in its source. */
static size_t members_of(const struct composition *c, const struct unit *u, size_t *ret_first)
{
    *ret_first = 0;
    return u->whole ? c->files[u->source]->n
                    : model_file_input(c->files[u->source], u->input, ret_first);
}

static bool equal_tensors(const struct model_file *a, size_t m, const struct model_file *b,
                          size_t k)
{
    for (size_t i = 0; i < safetensors_count(a->tensors); i++) {
        const struct safetensors_tensor *x = safetensors_at(a->tensors, i), *y;
        const char *rest;
        if (owner_of(a, x->name, &rest) != m)
            continue;
        y = model_file_find(b, k, rest);
        if (!y || y->type != x->type || y->size_bytes != x->size_bytes ||
            memcmp(x->data, y->data, x->size_bytes) != 0)
            return false;
    }
    return true;
}

/* Do two members predict the same? Equal ones may be of files that say more and less of where they
 * come from. */
static bool equal_members(const struct model_file *a, size_t m, const struct model_file *b,
                          size_t k)
{
    static const char *const same[] = {"train", "preprocessing"};
    const json_t *x = json_array_get(json_object_get(a->manifest, "members"), m);
    const json_t *y = json_array_get(json_object_get(b->manifest, "members"), k);
    for (size_t i = 0; i < AS_ARRAY_LEN(same); i++)
        if (!json_equal(json_object_get(x, same[i]), json_object_get(y, same[i])))
            return false;
    return a->members[m].weight == b->members[k].weight &&
           model_file_n_tensors(a, m) == model_file_n_tensors(b, k) && equal_tensors(a, m, b, k);
}

static bool equal_units(const struct composition *c, const struct unit *a, const struct unit *b)
{
    const struct model_file *x = c->files[a->source], *y = c->files[b->source];
    size_t m, k, n = members_of(c, a, &m);
    if (members_of(c, b, &k) != n || a->n_of != b->n_of ||
        (a->n_of > 0 && memcmp(a->of, b->of, a->n_of * sizeof *a->of) != 0) ||
        x->combine.sums[a->whole ? 0 : a->input] != y->combine.sums[b->whole ? 0 : b->input])
        return false;
    for (size_t i = 0; i < n; i++)
        if (!equal_members(x, m + i, y, k + i))
            return false;
    return true;
}

static as_status settle_unit(struct composition *c, struct unit *u, struct as_err *err);

/* The unit of an input that another one sees: one that is there already, or a new one without
 * weight. */
static as_status find_unit(struct composition *c, size_t source, size_t input, size_t *ret,
                           struct as_err *err)
{
    struct unit u = {.source = source, .input = input};
    as_status st = settle_unit(c, &u, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < c->n_units; i++)
        if (c->units[i].n_of == u.n_of && equal_units(c, &c->units[i], &u)) {
            free(u.of);
            *ret = i;
            return AS_OK;
        }
    if (c->n_units == MODEL_FILE_MAX_MEMBERS) {
        free(u.of);
        return as_fail(err, AS_E_TOO_LARGE, "more than %zu inputs", MODEL_FILE_MAX_MEMBERS);
    }
    c->units[c->n_units] = u;
    *ret = c->n_units++;
    return AS_OK;
}

/* Find the units that a unit of a source of several layers sees. */
static as_status settle_unit(struct composition *c, struct unit *u, struct as_err *err)
{
    const struct model_combine *own = &c->files[u->source]->combine;
    size_t s = u->whole ? MODEL_NO_STACK : own->stack[u->input];
    if (s == MODEL_NO_STACK)
        return AS_OK;
    u->of = as_calloc(own->stacks[s].n_of, sizeof *u->of);
    if (!u->of)
        return as_fail_nomem(err);
    u->n_of = own->stacks[s].n_of;
    for (size_t i = 0; i < u->n_of; i++) {
        as_status st = find_unit(c, u->source, own->stacks[s].of[i], &u->of[i], err);
        if (st != AS_OK) {
            free(u->of);
            u->of = NULL;
            return st;
        }
    }
    return AS_OK;
}

/* The first source sees the units of all others. */
static as_status stack_first(struct composition *c, struct as_err *err)
{
    struct unit *u = &c->units[0];
    u->of = as_calloc(c->n - 1, sizeof *u->of);
    if (!u->of)
        return as_fail_nomem(err);
    u->n_of = c->n - 1;
    for (size_t i = 0; i < u->n_of; i++)
        u->of[i] = i + 1;
    return AS_OK;
}

/* Those of the sources come first and keep their order, in which predictions are added. */
static as_status make_units(struct composition *c, struct as_err *err)
{
    as_status st = AS_OK;
    c->units = as_calloc(c->n + MODEL_FILE_MAX_MEMBERS, sizeof *c->units);
    if (!c->units)
        return as_fail_nomem(err);
    c->n_units = c->n;
    for (size_t i = 0; i < c->n; i++) {
        const struct model_combine *own = &c->files[i]->combine;
        struct unit *u = &c->units[i];
        *u = (struct unit){.source = i, .whole = !is_layered(c->files[i])};
        while (!u->whole && own->weights[u->input] == 0)
            u->input++;
        u->weight = c->stacks_first ? i == 0 : c->sources[i].weight;
    }
    if (c->stacks_first)
        st = stack_first(c, err);
    for (size_t i = c->stacks_first; st == AS_OK && i < c->n; i++)
        st = settle_unit(c, &c->units[i], err);
    return st;
}

/* ---- the manifest ---- */

static int set_number(json_t *obj, const char *name, int64_t v)
{
    return v == 0 ? 0 : json_object_set_new(obj, name, json_integer((json_int_t)v));
}

/* The weight of member m of source i. What is taken alone has the whole weight. */
static double weight_of(const struct composition *c, size_t i, const struct model_member *m)
{
    if (c->take > 0)
        return c->kind == MODEL_SUM ? m->weight : 1;
    return c->has_inputs ? m->weight : c->sources[i].weight * m->weight;
}

/* Add member k of the source of unit u. Where it comes from is said by the source for its own
 * members, and by its file for those that they see. */
static as_status add_member(struct composition *c, size_t u, size_t k, struct as_err *err)
{
    static const struct model_source seen = {0};
    size_t i = c->units[u].source;
    const struct model_source *source = u < c->n ? &c->sources[i] : &seen;
    const struct model_file *file = c->files[i];
    const struct model_member *m = model_file_member(file, k);
    const json_t *from = json_array_get(json_object_get(file->manifest, "members"), k);
    JSON_AUTO obj = json_pack("{s:f, s:O, s:O, s:s*, s:s*}", "weight", weight_of(c, i, m), "train",
                              m->train, "preprocessing", json_object_get(from, "preprocessing"),
                              "seed", source->seed ? source->seed : m->seed, "sweep",
                              source->sweep ? source->sweep : m->sweep);
    if (obj && c->has_inputs && json_object_set_new(obj, "input", json_integer((json_int_t)u)) != 0)
        return as_fail_nomem(err);
    if (!obj || set_number(obj, "trial", source->trial ? source->trial : m->trial) != 0 ||
        set_number(obj, "attempt", source->attempt ? source->attempt : m->attempt) != 0 ||
        json_array_append(c->members, obj) != 0)
        return as_fail(err, AS_E_NOMEM, "out of memory, or a weight is not finite");
    c->place[i][k] = c->n_members++;
    return AS_OK;
}

static as_status make_places(struct composition *c, struct as_err *err)
{
    c->place = as_calloc(c->n, sizeof *c->place);
    if (!c->place)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n; i++) {
        c->place[i] = as_calloc(c->files[i]->n, sizeof *c->place[i]);
        if (!c->place[i])
            return as_fail_nomem(err);
        for (size_t k = 0; k < c->files[i]->n; k++)
            c->place[i][k] = SIZE_MAX;
    }
    return AS_OK;
}

static as_status add_members(struct composition *c, struct as_err *err)
{
    as_status st = make_units(c, err);
    c->members = json_array();
    if (st == AS_OK)
        st = c->members ? make_places(c, err) : as_fail_nomem(err);
    for (size_t u = 0; st == AS_OK && u < c->n_units; u++) {
        size_t first, n = members_of(c, &c->units[u], &first);
        for (size_t k = first; st == AS_OK && k < first + n; k++)
            st = takes(c, k) ? add_member(c, u, k, err) : AS_OK;
    }
    return st;
}

/* A list of whole numbers. NULL: memory is out. */
static json_t *list_of(const size_t *v, size_t n)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_integer((json_int_t)v[i])) != 0)
            return NULL;
    return as_steal(list);
}

/* The stacks of units: those that see the same share one. */
static as_status add_stacks(const struct composition *c, json_t *combine, struct as_err *err)
{
    JSON_AUTO stacks = json_array();
    int bad = stacks == NULL;
    for (size_t u = 0; u < c->n_units; u++) {
        JSON_AUTO of = list_of(c->units[u].of, c->units[u].n_of);
        json_t *stack = NULL;
        size_t i;
        if (c->units[u].n_of == 0)
            continue;
        json_array_foreach(stacks, i,
                           stack) if (json_equal(json_object_get(stack, "of"), of)) break;
        if (i == json_array_size(stacks)) {
            stack = json_pack("{s:O, s:[]}", "of", of, "inputs");
            bad |= json_array_append_new(stacks, stack);
        }
        bad |= json_array_append_new(json_object_get(stack, "inputs"), json_integer((json_int_t)u));
    }
    bad |= json_array_size(stacks) > 0 && json_object_set(combine, "stacks", stacks) != 0;
    return bad ? as_fail_nomem(err) : AS_OK;
}

static bool is_sum(const struct composition *c, const struct unit *u)
{
    const struct model_combine *own = &c->files[u->source]->combine;
    return u->whole ? own->kind == MODEL_SUM : own->sums[u->input];
}

/* The weights of units as inputs, and which of them are sums. */
static as_status add_inputs(const struct composition *c, json_t *combine, struct as_err *err)
{
    JSON_AUTO weights = json_array();
    JSON_AUTO sums = json_array();
    int bad = !weights || !sums;
    for (size_t i = 0; i < c->n_units; i++) {
        bad |= json_array_append_new(weights, json_real(c->units[i].weight));
        if (is_sum(c, &c->units[i]))
            bad |= json_array_append_new(sums, json_integer((json_int_t)i));
    }
    if (bad)
        return as_fail(err, AS_E_NOMEM, "out of memory, or a weight is not finite");
    if (c->kind != MODEL_BY)
        bad |= json_object_set(combine, "weights", weights);
    if (json_array_size(sums) > 0)
        bad |= json_object_set(combine, "sums", sums);
    return bad ? as_fail_nomem(err) : add_stacks(c, combine, err);
}

/* The manifest's `combine`. */
static as_status make_combine(const struct composition *c, const json_t *combine, json_t **ret,
                              struct as_err *err)
{
    static const char *const own[] = {"weights", "sums", "stacks"};
    const struct model_file *first = data_of(c);
    JSON_AUTO j = NULL;
    as_status st = AS_OK;
    for (size_t i = 0; i < AS_ARRAY_LEN(own); i++)
        if (json_object_get(combine, own[i]))
            return as_fail(err, AS_E_INVAL, "/combine/%s: they follow from the sources", own[i]);
    if (c->kind == MODEL_BY)
        st = model_by_tidy(&first->info, combine, &j, err);
    else if (combine)
        j = json_copy((json_t *)combine);
    else
        j = json_pack("{s:s}", "kind", c->kind == MODEL_SUM ? "sum" : "mean");
    if (st == AS_OK && j && c->has_inputs)
        st = add_inputs(c, j, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(j);
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* The manifest, checked as a reader will check it. */
static as_status make_manifest(const struct composition *c, const json_t *combine,
                               const json_t *about, json_t **ret, struct as_err *err)
{
    AS_AUTO(model_file_freep) struct model_file *check = as_calloc(1, sizeof *check);
    JSON_AUTO made = NULL;
    JSON_AUTO manifest = about ? json_copy((json_t *)about) : json_object();
    const json_t *dataset = json_object_get(model_file_manifest(data_of(c)), "dataset");
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

/* The name of a tensor of member `member`. Owned by the caller; NULL when memory is out. */
static char *new_name(size_t member, const char *name)
{
    AS_AUTO(str_done) struct str b = {0};
    char prefix[MODEL_FILE_PREFIX_MAX];
    model_file_prefix(member, prefix);
    str_puts(&b, prefix);
    str_puts(&b, name);
    return str_take(&b);
}

/* Append the tensors of one width. */
static as_status add_tensors(struct composition *c, size_t width, size_t *n, struct as_err *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct safetensors *s = c->files[i]->tensors;
        for (size_t t = 0; t < safetensors_count(s); t++) {
            const struct safetensors_tensor *from = safetensors_at(s, t);
            const char *rest;
            size_t member = owner_of(c->files[i], from->name, &rest);
            if (width_of(from->type) != width || c->place[i][member] == SIZE_MAX)
                continue;
            c->tensors[*n] = *from;
            c->tensors[*n].name = c->names[*n] = new_name(c->place[i][member], rest);
            if (!c->names[(*n)++])
                return as_fail_nomem(err);
        }
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
    c->n_tensors = n;
    return AS_OK;
}

/* Write the file of sources that were read. */
static as_status write_composition(struct composition *c, const char *path, const json_t *combine,
                                   const json_t *about, struct as_err *err)
{
    JSON_AUTO manifest = NULL;
    as_status st = add_members(c, err);
    if (st != AS_OK)
        return st;
    st = make_manifest(c, combine, about, &manifest, err);
    if (st != AS_OK)
        return st;
    st = list_tensors(c, err);
    if (st != AS_OK)
        return st;
    AS_AUTO(as_freep) char *text = json_format(manifest);
    JSON_AUTO metadata = text ? json_pack("{s:s, s:s, s:s}", "format", MODEL_FILE_FORMAT, "version",
                                          MODEL_FILE_VERSION, "model", text)
                              : NULL;
    if (!metadata)
        return as_fail_nomem(err);
    return safetensors_write(path, metadata, c->tensors, c->n_tensors, err);
}

as_status model_file_write(const char *path, const struct model_source *sources, size_t n,
                           const json_t *combine, const json_t *about, struct as_err *err)
{
    AS_AUTO(composition_done) struct composition c = {.sources = sources, .n = n};
    as_status st = read_sources(&c, combine, err);
    return st == AS_OK ? write_composition(&c, path, combine, about, err) : st;
}

as_status model_file_write_stacked(const char *path, const struct model_source *own,
                                   const struct model_source *of, size_t n, const json_t *about,
                                   struct as_err *err)
{
    AS_AUTO(as_freep) struct model_source *sources = as_calloc(n + 1, sizeof *sources);
    JSON_AUTO combine = json_pack("{s:s}", "kind", "mean");
    if (!sources || !combine)
        return as_fail_nomem(err);
    sources[0] = *own;
    memcpy(sources + 1, of, n * sizeof *of);
    AS_AUTO(composition_done)
    struct composition c = {.sources = sources, .n = n + 1, .stacks_first = true};
    as_status st = read_sources(&c, combine, err);
    return st == AS_OK ? write_composition(&c, path, combine, about, err) : st;
}

as_status model_file_write_part(const char *path, const char *from, size_t part, size_t parts,
                                struct as_err *err)
{
    const struct model_source source = {.path = from, .weight = 1};
    AS_AUTO(composition_done) struct composition c = {.sources = &source, .n = 1};
    c.files = as_calloc(1, sizeof *c.files);
    as_status st = c.files ? model_file_read(from, MODEL_FILE_MAX_BYTES, &c.files[0], err)
                           : as_fail_nomem(err);
    if (st != AS_OK)
        return st;
    const struct model_file *f = c.files[0];
    const struct model_combine *own = &f->combine;
    size_t found = own->weights ? own->n_inputs : f->n;
    if (own->kind != MODEL_MEAN || found != parts)
        return as_fail(err, AS_E_INVAL, "%.200s: expected a mean of %zu models", from, parts);
    c.skip = part;
    c.take = own->weights ? model_file_input(f, part, &c.skip) : 1;
    c.kind = own->weights && own->sums[part] ? MODEL_SUM : MODEL_MEAN;
    c.n_tensors = safetensors_count(f->tensors);
    if (c.kind == MODEL_MEAN && c.take != 1)
        return as_fail(err, AS_E_INVAL, "%.200s: expected %zu models, not means of others", from,
                       parts);
    JSON_AUTO combine = json_pack("{s:s}", "kind", c.kind == MODEL_SUM ? "sum" : "mean");
    return combine ? write_composition(&c, path, combine, NULL, err) : as_fail_nomem(err);
}
