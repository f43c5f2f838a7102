/* Stacking in layers: the field `stacks` of a manifest's `combine`, and what members of a further
 * layer see of a row.
 *
 * Inputs and what they see are a graph without circles. The depth of an input is the number of the
 * layer that it is in, from 0: who predicts goes from layer to layer. */
#include <stdio.h>

#include "base/json.h"
#include "data/dataset_view.h"
#include "model/file/model_file_priv.h"

size_t model_stacked_width(const struct dataset_info *info)
{
    bool two = info->task == DATASET_CLASSIFICATION && info->n_outputs == 2;
    return two ? 1 : info->n_outputs;
}

void model_stacked_values(const struct dataset_info *info, const float *predicted, float *ret)
{
    size_t n = model_stacked_width(info);
    for (size_t i = 0; i < n; i++)
        ret[i] = predicted[n == 1 ? info->n_outputs - 1 : i];
}

/* The columns are "stack.0.0", …: the place of the input and of the output. */
as_status model_stacked_info(const struct dataset_info *info, size_t n, struct dataset_info *ret,
                             struct as_err *err)
{
    enum { NAME_BYTES = 48 };
    size_t width = model_stacked_width(info);
    AS_AUTO(as_freep) char *texts = as_calloc(n * width, NAME_BYTES);
    AS_AUTO(as_freep) const char **names = as_calloc(n * width, sizeof *names);
    if (!texts || !names)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n * width; i++) {
        char *name = texts + i * NAME_BYTES;
        (void)snprintf(name, NAME_BYTES, "stack.%zu.%zu", i / width, i % width);
        names[i] = name;
    }
    return dataset_info_with(info, names, n * width, ret, err);
}

/* ---- reading ---- */

/* Read a list of inputs. ret: [its items]. */
static as_status read_inputs(const json_t *list, const char *pointer, const struct model_file *file,
                             size_t *ret, struct as_err *err)
{
    json_int_t n = (json_int_t)file->combine.n_inputs;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(pointer, i, at);
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= n)
            return as_fail_at(err, AS_E_INVAL, at, "%s: expected the index of an input, 0 to %lld",
                              at, (long long)n - 1);
        ret[i] = (size_t)json_integer_value(v);
    }
    return AS_OK;
}

/* The inputs that see stack s. */
static as_status place_inputs(const json_t *list, const char *pointer, struct model_file *file,
                              size_t s, struct as_err *err)
{
    AS_AUTO(as_freep) size_t *inputs = as_calloc(json_array_size(list), sizeof *inputs);
    as_status st = inputs ? read_inputs(list, pointer, file, inputs, err) : as_fail_nomem(err);
    for (size_t i = 0; st == AS_OK && i < json_array_size(list); i++) {
        size_t *stack = &file->combine_stack[inputs[i]];
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(pointer, i, at);
        if (*stack != MODEL_NO_STACK || file->combine_sums[inputs[i]])
            return as_fail_at(err, AS_E_INVAL, at, "%s: found %zu, which %s", at, inputs[i],
                              *stack != MODEL_NO_STACK ? "is in a stack already" : "is a sum");
        *stack = s;
    }
    return st;
}

static as_status read_stack(const json_t *obj, struct model_file *file, size_t s,
                            struct as_err *err)
{
    struct json_fields f;
    struct stack_own *own = &file->stacks_own[s];
    json_t *of = NULL, *inputs = NULL;
    char pointer[AS_ERR_POINTER_MAX], child[AS_ERR_POINTER_MAX];
    json_pointer_index("/combine/stacks", s, pointer);
    as_status st = json_fields_init(&f, obj, pointer, err);
    if (st == AS_OK)
        st = json_fields_array(&f, "of", JSON_REQUIRED, &of, err);
    if (st == AS_OK)
        st = json_fields_array(&f, "inputs", JSON_REQUIRED, &inputs, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    size_t n = json_array_size(of);
    if (n == 0 || n > file->combine.n_inputs || json_array_size(inputs) == 0)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found %zu `of` and %zu `inputs`, expected 1 to %zu of each", pointer,
                          n, json_array_size(inputs), file->combine.n_inputs);
    own->of = as_calloc(n, sizeof *own->of);
    if (!own->of)
        return as_fail_nomem(err);
    json_pointer_child(pointer, "of", child);
    st = read_inputs(of, child, file, own->of, err);
    json_pointer_child(pointer, "inputs", child);
    if (st == AS_OK)
        st = place_inputs(inputs, child, file, s, err);
    if (st == AS_OK)
        st = model_stacked_info(&file->info, n, &own->info, err);
    file->combine_stacks[s] = (struct model_stack){own->of, n, &own->info};
    return st == AS_OK ? AS_OK : as_err_prefix(err, st, "%s", pointer);
}

/* How deep an input is, as far as the depths of what it sees are known. Returns whether it changed.
 */
static bool deepen(struct model_file *file, size_t input)
{
    size_t s = file->combine_stack[input], most = 0;
    if (s == MODEL_NO_STACK)
        return false;
    for (size_t i = 0; i < file->combine_stacks[s].n_of; i++) {
        size_t below = file->combine_depth[file->combine_stacks[s].of[i]];
        most = below > most ? below : most;
    }
    bool changes = file->combine_depth[input] != most + 1;
    file->combine_depth[input] = most + 1;
    return changes;
}

/* Without a circle depths are known after as many turns as there are inputs. */
static as_status find_depths(struct model_file *file, struct as_err *err)
{
    bool changes = true;
    for (size_t turn = 0; changes && turn <= file->combine.n_inputs; turn++) {
        changes = false;
        for (size_t i = 0; i < file->combine.n_inputs; i++)
            changes = deepen(file, i) || changes;
    }
    return !changes ? AS_OK
                    : as_fail_at(err, AS_E_INVAL, "/combine/stacks",
                                 "/combine/stacks: an input sees what itself predicts");
}

/* Does another input see this one? */
static bool is_seen(const struct model_file *file, size_t input)
{
    for (size_t s = 0; s < file->combine.n_stacks; s++)
        for (size_t i = 0; i < file->combine_stacks[s].n_of; i++)
            if (file->combine_stacks[s].of[i] == input)
                return true;
    return false;
}

static as_status check_weights(const struct model_file *file, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    for (size_t i = 0; file->combine.weights && i < file->combine.n_inputs; i++) {
        json_pointer_index("/combine/weights", i, at);
        if (file->combine.weights[i] == 0 && !is_seen(file, i))
            return as_fail_at(err, AS_E_INVAL, at,
                              "%s: found 0, expected another number: no other input sees it", at);
    }
    return AS_OK;
}

as_status model_manifest_stacks(struct json_fields *f, struct model_file *file, struct as_err *err)
{
    json_t *list = NULL;
    size_t n_inputs = file->combine.n_inputs;
    as_status st = AS_OK;
    if (model_has_inputs(&file->combine))
        st = json_fields_array(f, "stacks", JSON_OPTIONAL, &list, err);
    size_t n = json_array_size(list);
    if (st == AS_OK && list && (n == 0 || n > n_inputs))
        return as_fail_at(err, AS_E_INVAL, "/combine/stacks",
                          "/combine/stacks: found %zu, expected 1 to %zu", n, n_inputs);
    file->combine_stack = as_calloc(n_inputs, sizeof *file->combine_stack);
    file->combine_depth = as_calloc(n_inputs, sizeof *file->combine_depth);
    file->combine_stacks = as_calloc(n, sizeof *file->combine_stacks);
    file->stacks_own = as_calloc(n, sizeof *file->stacks_own);
    if (!file->combine_stack || !file->combine_depth || !file->combine_stacks || !file->stacks_own)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n_inputs; i++)
        file->combine_stack[i] = MODEL_NO_STACK;
    file->combine.n_stacks = n;
    file->combine.stacks = file->combine_stacks;
    file->combine.stack = file->combine_stack;
    file->combine.depth = file->combine_depth;
    for (size_t s = 0; st == AS_OK && s < n; s++)
        st = read_stack(json_array_get(list, s), file, s, err);
    if (st == AS_OK)
        st = find_depths(file, err);
    return st == AS_OK ? check_weights(file, err) : st;
}
