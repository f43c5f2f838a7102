/* The items of a cnn's `model.layers` (train_spec.h: struct train_block).
 *
 * An item has exactly one of the fields conv, pool, residual, dense and dropout, which decides its
 * kind. The list becomes a flat array: a residual block is followed by the blocks of its branch,
 * and counts them in `inner`. The array can be copied with the spec, and has a fixed limit.
 *
 * Only what the document alone shows is checked here. Whether a window fits its image depends on
 * the data set, and model/plan/plan_cnn.c checks it. */
#include <stdio.h>
#include <string.h>

#include "model/document/train_spec_priv.h"

#define MAX_KERNEL 64
#define MAX_STRIDE 16

static as_status fail_too_many(const char *pointer, struct as_err *err)
{
    return as_fail_at(err, AS_E_INVAL, pointer,
                      "%s: found more than %d layers, expected at most %d", pointer,
                      TRAIN_MAX_BLOCKS, TRAIN_MAX_BLOCKS);
}

static as_status add_block(struct train_model_spec *m, const struct train_block *b,
                           const char *pointer, struct as_err *err)
{
    if (m->n_blocks == TRAIN_MAX_BLOCKS)
        return fail_too_many(pointer, err);
    m->blocks[m->n_blocks++] = *b;
    return AS_OK;
}

/* Read `norm` (none, batch) and `activation` (none, or the name of the model's activation). */
static as_status parse_norm(struct json_fields *f, const struct train_model_spec *m,
                            struct train_block *b, struct as_err *err)
{
    static const char *const norms[] = {"none", "batch", NULL};
    const char *own = train_activation_words[m->activation];
    const char *const acts[] = {own, "none", NULL};
    int norm = 0, act = 0;
    as_status st = json_fields_word(f, "norm", JSON_OPTIONAL, norms, &norm, err);
    if (st != AS_OK)
        return st;
    st = json_fields_word(f, "activation", JSON_OPTIONAL, acts, &act, err);
    b->batch_norm = norm == 1;
    b->linear = act == 1;
    return st;
}

/* Read `padding`: "same" (if allowed), "valid" or a number up to `max`. */
static as_status parse_padding(struct json_fields *f, int64_t max, bool may_same, int64_t *ret,
                               struct as_err *err)
{
    json_t *j = NULL;
    as_status st = json_fields_any(f, "padding", JSON_OPTIONAL, &j, err);
    if (st < 0 || !j)
        return st;
    if (json_is_integer(j) && json_integer_value(j) >= 0 && json_integer_value(j) <= max) {
        *ret = json_integer_value(j);
        return AS_OK;
    }
    if (may_same && as_streq(json_string_value(j), "same")) {
        *ret = -1;
        return AS_OK;
    }
    if (as_streq(json_string_value(j), "valid")) {
        *ret = 0;
        return AS_OK;
    }
    char expected[64];
    (void)snprintf(expected, sizeof expected, "%svalid, or a whole number from 0 to %d",
                   may_same ? "same, " : "", (int)max);
    return train_spec_wrong(f->pointer, "padding", j, expected, err);
}

static as_status parse_conv(struct json_fields *f, const struct train_model_spec *m,
                            struct train_block *b, struct as_err *err)
{
    *b = (struct train_block){.kind = BLOCK_CONV, .kernel = 3, .stride = 1, .padding = -1};
    as_status st = json_fields_bool(f, "depthwise", JSON_OPTIONAL, &b->depthwise, err);
    const struct train_integer sizes[] = {
        {"conv", b->depthwise ? 0 : 1, TRAIN_MAX_WIDTH, &b->out},
        {"kernel", 1, MAX_KERNEL, &b->kernel},
        {"stride", 1, MAX_STRIDE, &b->stride},
    };
    if (st != AS_OK)
        return st;
    st = train_spec_integers(f, sizes, AS_ARRAY_LEN(sizes), err);
    if (st != AS_OK)
        return st;
    const bool is_sized =
        !f->is_faulty; /* else the kernel may be at fault, and bounds the padding */
    st = parse_padding(f, is_sized ? b->kernel - 1 : MAX_KERNEL, true, &b->padding, err);
    if (st != AS_OK)
        return st;
    if (is_sized && b->padding < 0 && b->kernel % 2 == 0) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f->pointer, "padding", at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found same with a kernel of %d, expected an odd kernel, valid or a "
                          "number",
                          at, (int)b->kernel);
    }
    return parse_norm(f, m, b, err);
}

static as_status parse_pool(struct json_fields *f, struct train_block *b, struct as_err *err)
{
    static const char *const words[] = {"max", "avg", "global", NULL};
    static const train_block_kind kinds[] = {BLOCK_POOL_MAX, BLOCK_POOL_AVG, BLOCK_POOL_GLOBAL};
    int kind = 0;
    as_status st = json_fields_word(f, "pool", JSON_REQUIRED, words, &kind, err);
    *b = (struct train_block){.kind = kinds[kind]};
    if (st < 0 || b->kind == BLOCK_POOL_GLOBAL)
        return st;
    b->kernel = 2;
    const struct train_integer size = {"size", 1, MAX_KERNEL, &b->kernel};
    st = train_spec_integers(f, &size, 1, err);
    b->stride = b->kernel < MAX_STRIDE ? b->kernel : MAX_STRIDE;
    const struct train_integer stride = {"stride", 1, MAX_STRIDE, &b->stride};
    if (st != AS_OK)
        return st;
    st = train_spec_integers(f, &stride, 1, err);
    if (st != AS_OK)
        return st;
    return parse_padding(f, f->is_faulty ? MAX_KERNEL : b->kernel / 2, false, &b->padding, err);
}

static as_status parse_dense(struct json_fields *f, const struct train_model_spec *m,
                             struct train_block *b, struct as_err *err)
{
    *b = (struct train_block){.kind = BLOCK_DENSE};
    const struct train_integer units = {"dense", 1, TRAIN_MAX_WIDTH, &b->out};
    as_status st = train_spec_integers(f, &units, 1, err);
    if (st != AS_OK)
        return st;
    return parse_norm(f, m, b, err);
}

static as_status parse_dropout(struct json_fields *f, struct train_block *b, struct as_err *err)
{
    bool on = false;
    *b = (struct train_block){.kind = BLOCK_DROPOUT};
    as_status st = json_fields_bool(f, "dropout", JSON_REQUIRED, &on, err);
    if (st != AS_OK)
        return st;
    if (!on)
        return train_spec_wrong(f->pointer, "dropout", json_object_get(f->obj, "dropout"),
                                "true (the rate is model.dropout)", err);
    return AS_OK;
}

/* The index of the field that decides the kind of the item; -1 if it has none or several. */
static int find_kind(const json_t *item)
{
    static const char *const words[] = {"conv", "pool", "residual", "dense", "dropout"};
    int found = -1;
    for (int i = 0; i < (int)AS_ARRAY_LEN(words); i++)
        if (json_object_get(item, words[i]) && !json_is_null(json_object_get(item, words[i]))) {
            if (found >= 0)
                return -1;
            found = i;
        }
    return found;
}

static as_status parse_item(const json_t *item, const char *pointer, struct faults *faults,
                            struct train_model_spec *m, bool in_branch, struct as_err *err);

static as_status parse_residual(struct json_fields *f, struct train_model_spec *m,
                                struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX], inner[AS_ERR_POINTER_MAX];
    json_t *list = NULL;
    struct train_block b = {.kind = BLOCK_RESIDUAL};
    size_t self = m->n_blocks;
    as_status st = json_fields_array(f, "residual", JSON_REQUIRED, &list, err);
    json_pointer_child(f->pointer, "residual", at);
    if (st != AS_OK || !list)
        return st;
    if (json_array_size(list) == 0)
        return as_fail_at(err, AS_E_INVAL, at, "%s: found no layers, expected the branch's", at);
    st = add_block(m, &b, at, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_pointer_index(at, i, inner);
        st = parse_item(json_array_get(list, i), inner, f->faults, m, true, err);
        if ((st = json_fields_note(f, st, err)) != AS_OK)
            return st;
    }
    m->blocks[self].inner = m->n_blocks - self - 1;
    return AS_OK;
}

static bool fits_branch(const struct train_block *b)
{
    return b->kind != BLOCK_POOL_GLOBAL && b->kind != BLOCK_DENSE;
}

static as_status parse_item(const json_t *item, const char *pointer, struct faults *faults,
                            struct train_model_spec *m, bool in_branch, struct as_err *err)
{
    struct json_fields f;
    struct train_block b = {0};
    as_status st = json_fields_init(&f, item, pointer, err);
    f.faults = faults;
    if (st != AS_OK)
        return st;
    int kind = find_kind(item);
    if (kind < 0 || (kind == 2 && in_branch))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: expected one of conv, pool, dropout%s",
                          pointer, in_branch ? " in a residual branch" : ", residual, dense");
    if (kind == 2)
        st = parse_residual(&f, m, err);
    else if (kind == 0)
        st = parse_conv(&f, m, &b, err);
    else if (kind == 1)
        st = parse_pool(&f, &b, err);
    else
        st = kind == 3 ? parse_dense(&f, m, &b, err) : parse_dropout(&f, &b, err);
    if ((st = json_fields_note(&f, st, err)) != AS_OK)
        return st;
    st = json_fields_end(&f, err);
    if (st != AS_OK)
        return st;
    if (in_branch && !fits_branch(&b))
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: expected one of conv, pool (max, avg), dropout in a residual branch",
                          pointer);
    return st < 0 || kind == 2 ? st : add_block(m, &b, pointer, err);
}

as_status train_spec_parse_blocks(const json_t *list, const char *pointer, struct faults *faults,
                                  struct train_model_spec *m, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    m->n_blocks = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_pointer_index(pointer, i, at);
        as_status st = parse_item(json_array_get(list, i), at, faults, m, false, err);
        if ((st = faults_note(faults, st, err)) != AS_OK)
            return st;
    }
    return AS_OK;
}
