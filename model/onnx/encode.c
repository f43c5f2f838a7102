/* Preprocessing as nodes of a graph.
 *
 * All numeric columns are one tensor, so a fill, the indicators and the standardisation are a node
 * each, whatever the number of columns. Indicators stand beside their columns in the inputs of a
 * network (data/dataset.h), so a Gather brings [values, indicators] into that order.
 *
 * A category column is a LabelEncoder from text to slot. Its table has a row for each value that a
 * training row had, and for each spelling of a missing cell if the column has a slot for missing;
 * everything else is the default: other. So no text is an error, as in the trainer. */
#include "model/onnx/encode.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "data/column.h"
#include "data/preprocess/piecewise.h"

/* ---- numbers ---- */

static size_t count_missing(const struct dataset_info *info)
{
    size_t n = 0;
    for (size_t c = 0; info->columns && c < info->n_features; c++)
        n += !info->columns[c].categorical && info->columns[c].n_missing;
    return n;
}

/* The value of each input of a network: its place in [values, indicators]. */
static const char *input_order(struct onnx_graph *g, const struct dataset_info *info,
                               size_t n_columns)
{
    size_t n = dataset_numeric_inputs(info), at = 0, column = 0;
    int64_t *order = onnx_graph_memory(g, n, sizeof *order);
    for (size_t c = 0; order && c < info->n_features; c++) {
        if (info->columns[c].categorical)
            continue;
        order[at++] = (int64_t)column;
        if (info->columns[c].n_missing)
            order[at++] = (int64_t)(n_columns + column);
        column++;
    }
    return order ? onnx_graph_ints(g, "order", order, n) : NULL;
}

/* Fill missing values, and put the indicators beside their columns. A column without missing values
 * in the data set has no fill, and NaN stays NaN. */
static const char *fill_missing(struct onnx_graph *g, const struct onnx_inputs *in,
                                const struct preprocess *fit)
{
    const struct dataset_info *info = in->info;
    size_t n = 0;
    float *fill = onnx_graph_memory(g, info->n_features, sizeof *fill);
    for (size_t c = 0; fill && c < info->n_features; c++)
        if (!info->columns[c].categorical)
            fill[n++] = info->columns[c].n_missing ? fit->fill[c] : NAN;
    if (!fill || count_missing(info) == 0)
        return in->numbers;
    const char *missing = onnx_graph_unary(g, "IsNaN", in->numbers);
    const char *filled = onnx_graph_add(
        g,
        &(struct onnx_node){.op = "Where",
                            ONNX_IN(missing, onnx_graph_floats(g, "fill", fill, n), in->numbers)});
    const char *both[] = {filled, onnx_graph_cast(g, missing, ONNX_FLOAT)};
    return onnx_graph_add(
        g, &(struct onnx_node){.op = "Gather",
                               ONNX_IN(onnx_graph_concat(g, both, 2, 1), input_order(g, info, n)),
                               ONNX_ATTRS(onnx_int("axis", 1))});
}

/* (x - mean) / scale in float32, the operations of the trainer in their order. */
static const char *standardize(struct onnx_graph *g, const char *x, const struct preprocess *fit,
                               size_t n)
{
    x = onnx_graph_binary(g, "Sub", x, onnx_graph_floats(g, "mean", fit->mean, n));
    return onnx_graph_binary(g, "Div", x, onnx_graph_floats(g, "scale", fit->scale, n));
}

/* A constant for each piece: one of its numbers. */
static const char *piece_floats(struct onnx_graph *g, const char *name, const struct piece *pieces,
                                size_t n, size_t offset)
{
    float *v = onnx_graph_memory(g, n, sizeof *v);
    for (size_t i = 0; v && i < n; i++)
        memcpy(&v[i], (const char *)&pieces[i] + offset, sizeof v[i]);
    return v ? onnx_graph_floats(g, name, v, n) : NULL;
}

/* The bins of numbers, and the other inputs standardised: the operations of piecewise_apply() in
 * their order, for all values at once. */
static const char *cut(struct onnx_graph *g, const char *x, const struct dataset_info *info,
                       const struct preprocess *fit)
{
    AS_AUTO(as_freep) struct piece *pieces = NULL;
    struct as_err err;
    size_t n = 0;
    as_status st = piecewise_pieces(fit, info, &pieces, &n, &err);
    if (st != AS_OK)
        onnx_graph_fail(g, st, "%s", err.msg);
    int64_t *input = onnx_graph_memory(g, n, sizeof *input);
    if (st != AS_OK || !input)
        return NULL;
    for (size_t i = 0; i < n; i++)
        input[i] = (int64_t)pieces[i].input;
    x = onnx_graph_add(g,
                       &(struct onnx_node){.op = "Gather",
                                           ONNX_IN(x, onnx_graph_ints(g, "input_of_bin", input, n)),
                                           ONNX_ATTRS(onnx_int("axis", 1))});
    const struct {
        const char *op, *name;
        size_t offset;
    } steps[] = {{"Sub", "low", offsetof(struct piece, low)},
                 {"Div", "width", offsetof(struct piece, width)},
                 {"Max", "least", offsetof(struct piece, least)},
                 {"Min", "most", offsetof(struct piece, most)}};
    for (size_t i = 0; i < AS_ARRAY_LEN(steps); i++)
        x = onnx_graph_binary(g, steps[i].op, x,
                              piece_floats(g, steps[i].name, pieces, n, steps[i].offset));
    return x;
}

static const char *encode_numbers(struct onnx_graph *g, const struct onnx_inputs *in,
                                  const struct preprocess *fit)
{
    const char *x = in->numbers;
    if (x && fit->fill)
        x = fill_missing(g, in, fit);
    if (x && fit->bins)
        return cut(g, x, in->info, fit);
    return x && fit->standardize ? standardize(g, x, fit, dataset_numeric_inputs(in->info)) : x;
}

/* ---- categories ---- */

/* The rows of a column's table: texts and their slots. */
struct slots {
    struct onnx_graph *g;
    const char **keys;
    int64_t *values;
    size_t n, cap;
};

static void add_key(struct slots *s, const char *key, int64_t slot)
{
    if (s->n == s->cap)
        onnx_graph_fail(s->g, AS_E_INTERNAL, "more than %zu keys of a category column", s->cap);
    if (s->n == s->cap)
        return;
    s->keys[s->n] = key;
    s->values[s->n++] = slot;
}

/* Add every spelling of `word` in large and small letters: a CSV file may have any. */
static void add_spellings(struct slots *s, const char *word, int64_t slot)
{
    size_t len = strlen(word), letters = 0;
    for (size_t i = 0; i < len; i++)
        letters += isalpha((unsigned char)word[i]) != 0;
    for (size_t mask = 0; mask < (size_t)1 << letters; mask++) {
        char *key = onnx_graph_memory(s->g, len + 1, 1);
        size_t letter = 0;
        for (size_t i = 0; key && i < len; i++) {
            bool large = isalpha((unsigned char)word[i]) && mask >> letter++ & 1;
            key[i] = (char)(large ? toupper((unsigned char)word[i]) : tolower(word[i]));
        }
        if (key)
            add_key(s, key, slot);
    }
}

/* A code of missing values among categories, as it is written shortest. */
static void add_codes(struct slots *s, const struct dataset_codes *codes, int64_t slot)
{
    enum { LONGEST = 32 };
    for (size_t i = 0; i < codes->n; i++) {
        char *key = onnx_graph_memory(s->g, LONGEST, 1);
        if (key)
            add_key(s, as_format_double(codes->value[i], key, LONGEST), slot);
    }
}

/* A column's text [rows, 1] as slots: int64, counted from `first`. */
static const char *encode_category(struct onnx_graph *g, const char *text,
                                   const struct dataset_column *c,
                                   const struct dataset_codes *codes, const char *seen,
                                   int64_t first)
{
    enum { SPELLINGS = 256 }; /* more than those of all words for missing, and codes */
    struct slots s = {.g = g, .cap = c->n_values + SPELLINGS};
    int64_t other = first + (int64_t)c->n_values;
    s.keys = onnx_graph_memory(g, s.cap, sizeof *s.keys);
    s.values = onnx_graph_memory(g, s.cap, sizeof *s.values);
    for (size_t v = 0; s.values && v < c->n_values; v++)
        if (seen[v])
            add_key(&s, c->values[v], first + (int64_t)v);
    if (s.values && c->n_missing)
        add_key(&s, "", other + 1);
    for (size_t w = 0; s.values && c->n_missing && column_missing_words[w]; w++)
        add_spellings(&s, column_missing_words[w], other + 1);
    if (s.values && c->n_missing)
        add_codes(&s, codes, other + 1);
    if (s.n == 0 && s.values) /* a table may not be empty; the empty text is other all the same */
        add_key(&s, "", other);
    return onnx_graph_add(
        g, &(struct onnx_node){
               .op = "LabelEncoder",
               .ml = true,
               ONNX_IN(text),
               ONNX_ATTRS(
                   {.name = "keys_strings", .kind = ONNX_ATTR_STRINGS, .strings = s.keys, .n = s.n},
                   onnx_ints("values_int64s", s.values, s.n), onnx_int("default_int64", other))});
}

/* Slots [rows, 1] of a column as inputs [rows, n]. */
static const char *one_hot(struct onnx_graph *g, const char *slots, size_t n)
{
    const char *depth = onnx_graph_ints(g, "slots", (int64_t[]){(int64_t)n}, 1);
    const char *values = onnx_graph_floats(g, "off_on", (float[]){0, 1}, 2);
    const char *hot = onnx_graph_add(g, &(struct onnx_node){.op = "OneHot",
                                                            ONNX_IN(slots, depth, values),
                                                            ONNX_ATTRS(onnx_int("axis", -1))});
    return onnx_graph_unary(g, "Flatten", hot); /* [rows, 1, n] to [rows, n] */
}

/* Encode the category columns: codes, or one-hot inputs after the numeric inputs `x`. */
static void encode_categories(struct onnx_graph *g, const struct onnx_inputs *in,
                              const struct preprocess *fit, const char *x, struct onnx_encoded *ret)
{
    const struct dataset_info *info = in->info;
    const char **parts = onnx_graph_memory(g, info->n_features + 1, sizeof *parts);
    const char *seen = fit->seen;
    size_t n = 0;
    int64_t first = 0;
    if (parts && x && !fit->n_codes)
        parts[n++] = x;
    for (size_t i = 0; parts && i < info->n_features; i++) {
        const struct dataset_column *c = &info->columns[i];
        if (!c->categorical)
            continue;
        parts[n] = encode_category(g, in->texts[i], c, &info->options.missing, seen,
                                   fit->n_codes ? first : 0);
        if (!fit->n_codes)
            parts[n] = one_hot(g, parts[n], dataset_column_slots(c));
        first += (int64_t)dataset_column_slots(c);
        seen += c->n_values;
        n++;
    }
    const char *joined = parts ? onnx_graph_concat(g, parts, n, 1) : NULL;
    ret->x = fit->n_codes ? x : joined;
    ret->codes = fit->n_codes ? joined : NULL;
}

void onnx_encode(struct onnx_graph *g, const struct onnx_inputs *in, const struct preprocess *fit,
                 struct onnx_encoded *ret)
{
    *ret = (struct onnx_encoded){.is_made = true};
    if (in->tokens) {
        ret->codes = in->tokens;
        return;
    }
    if (in->info->input == DATASET_IMAGE) {
        ret->x = fit->standardize && fit->n_scales ? standardize(g, in->pixels, fit, fit->n_scales)
                                                   : in->pixels;
        return;
    }
    ret->x = encode_numbers(g, in, fit);
    if (in->texts)
        encode_categories(g, in, fit, ret->x, ret);
}

const char *onnx_encode_indices(struct onnx_graph *g, const struct onnx_inputs *in,
                                const struct preprocess *fit)
{
    const struct dataset_info *info = in->info;
    const char **parts = onnx_graph_memory(g, info->n_features, sizeof *parts);
    const char *seen = fit->seen;
    size_t n = 0;
    for (size_t i = 0; parts && i < info->n_features; i++) {
        const struct dataset_column *c = &info->columns[i];
        if (!c->categorical)
            continue;
        const char *slot = onnx_graph_cast(
            g, encode_category(g, in->texts[i], c, &info->options.missing, seen, 0), ONNX_FLOAT);
        const char *other = onnx_graph_scalar(g, "other", (float)c->n_values);
        const char *known = onnx_graph_binary(g, "LessOrEqual", slot, other);
        parts[n++] = onnx_graph_add(
            g, &(struct onnx_node){.op = "Where",
                                   ONNX_IN(known, slot, onnx_graph_scalar(g, "missing", NAN))});
        seen += c->n_values;
    }
    return parts ? onnx_graph_concat(g, parts, n, 1) : NULL;
}

/* ---- members that share an encoding ---- */

static bool same(const void *a, const void *b, size_t n, size_t size)
{
    if (!a || !b)
        return a == b;
    return n == 0 || memcmp(a, b, n * size) == 0;
}

bool onnx_encodes_alike(const struct dataset_info *info, const struct preprocess *a,
                        const struct preprocess *b)
{
    size_t categories = 0;
    for (size_t c = 0; info->columns && c < info->n_features; c++)
        categories += info->columns[c].n_values;
    return a->standardize == b->standardize && a->n_codes == b->n_codes &&
           a->n_scales == b->n_scales && same(a->mean, b->mean, a->n_scales, sizeof *a->mean) &&
           same(a->scale, b->scale, a->n_scales, sizeof *a->scale) && a->bins == b->bins &&
           same(a->n_edges, b->n_edges, dataset_numeric_inputs(info), sizeof *a->n_edges) &&
           same(a->edges, b->edges, dataset_numeric_inputs(info) * (a->bins + 1),
                sizeof *a->edges) &&
           same(a->fill, b->fill, info->n_features, sizeof *a->fill) &&
           same(a->seen, b->seen, categories, 1);
}
