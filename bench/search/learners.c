/* The forests of a file, as one array of nodes in preorder: the left child of a split follows it,
 * the right one has its place stored. */
#include "bench/search/learners.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

#define MAX_BYTES (8U << 20)
#define MAX_DEPTH 256
#define MAX_TREES 64 /* of a part */
#define MAX_PARTS 16
#define LEAF (-1)

struct node {
    int column;    /* of x; LEAF */
    double number; /* left where x is at most this; a leaf's value */
    size_t right;
};

struct part {
    double chosen[SPACE_MAX_PARAMS]; /* indices of choices; NaN: any */
    size_t roots[MAX_TREES], n_trees;
};

struct learners {
    const struct space *space;
    struct node *nodes;
    size_t n_nodes, capacity;
    struct part parts[MAX_PARTS];
    size_t n_parts;
    double best[SPACE_MAX_PARAMS], lowest;
};

void learners_free(struct learners *l)
{
    if (l == NULL)
        return;
    free(l->nodes);
    free(l);
}

as_status learners_read(const char *path, json_t **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    as_status st = file_read(path, MAX_BYTES, &text, &len, err);
    if (st == AS_OK)
        st = json_parse(text, len, ret, err);
    return st < 0 ? as_err_prefix(err, st, "%s", path) : AS_OK;
}

/* The configuration of a document as numbers; NaN where it has no value. */
static as_status read_numbers(const struct space *s, const json_t *config, double *ret,
                              struct as_err *err)
{
    for (size_t i = 0; i < s->n; i++) {
        const json_t *value = json_object_get(config, s->params[i].name), *choice;
        size_t k;
        ret[i] = value != NULL && s->params[i].values == NULL ? json_number_value(value) : NAN;
        json_array_foreach(s->params[i].values, k, choice) if (value && json_equal(choice, value))
            ret[i] = (double)k;
        if (value != NULL && isnan(ret[i]))
            return as_fail(err, AS_E_INVAL, "%s has no such value", s->params[i].name);
    }
    return AS_OK;
}

/* One tree in preorder; columns: the part's, as places in x. */
static as_status read_tree(struct learners *l, const json_t *tree, const int *columns,
                           size_t n_columns, struct as_err *err)
{
    size_t open[MAX_DEPTH], n_open = 0; /* splits whose right child comes later */
    size_t n = json_array_size(tree) / 2;
    for (size_t i = 0; i < n; i++) {
        json_int_t column = json_integer_value(json_array_get(tree, 2 * i));
        struct node node = {LEAF, json_number_value(json_array_get(tree, 2 * i + 1)), 0};
        bool is_last = column < 0 && n_open == 0;
        if (column >= (json_int_t)n_columns || n_open == MAX_DEPTH || is_last != (i + 1 == n))
            return as_fail(err, AS_E_INVAL, "a tree is not complete");
        if (column >= 0) {
            node.column = columns[column];
            open[n_open++] = l->n_nodes;
        } else if (n_open > 0) {
            l->nodes[open[--n_open]].right = l->n_nodes + 1;
        }
        as_status st = as_reserve_one(&l->nodes, l->n_nodes, &l->capacity, sizeof *l->nodes, err);
        if (st < 0)
            return st;
        l->nodes[l->n_nodes++] = node;
    }
    return n > 0 ? AS_OK : as_fail(err, AS_E_INVAL, "a tree has no node");
}

static as_status read_part(struct learners *l, const json_t *doc, struct as_err *err)
{
    const json_t *names = json_object_get(doc, "columns"), *trees = json_object_get(doc, "trees");
    const json_t *name, *tree;
    int columns[SPACE_MAX_PARAMS];
    size_t i;
    if (l->n_parts == MAX_PARTS || json_array_size(names) > SPACE_MAX_PARAMS ||
        json_array_size(trees) == 0 || json_array_size(trees) > MAX_TREES)
        return as_fail(err, AS_E_INVAL, "too many parts, columns or trees, or no tree");
    struct part *p = &l->parts[l->n_parts++];
    as_status st = read_numbers(l->space, json_object_get(doc, "when"), p->chosen, err);
    json_array_foreach(names, i, name)
    {
        const char *text = json_string_value(name);
        columns[i] = text != NULL ? space_find(l->space, text) : -1;
        if (columns[i] < 0)
            return as_fail(err, AS_E_INVAL, "a column is no parameter");
    }
    json_array_foreach(trees, i, tree)
    {
        p->roots[p->n_trees++] = l->n_nodes;
        if (st == AS_OK)
            st = read_tree(l, tree, columns, json_array_size(names), err);
    }
    return st;
}

as_status learners_create(const json_t *doc, const struct space *s, struct learners **ret,
                          struct as_err *err)
{
    AS_AUTO(learners_freep) struct learners *l = as_calloc(1, sizeof *l);
    const json_t *part;
    size_t i;
    if (l == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    l->space = s;
    if (!json_number_get(json_object_get(doc, "optimum"), &l->lowest))
        return as_fail(err, AS_E_INVAL, "there is no optimum");
    as_status st = read_numbers(s, json_object_get(doc, "best"), l->best, err);
    json_array_foreach(json_object_get(doc, "parts"), i, part) if (st == AS_OK) st =
        read_part(l, part, err);
    if (st == AS_OK)
        *ret = as_steal(l);
    return st;
}

static bool is_chosen(const struct part *p, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isnan(p->chosen[i]) && p->chosen[i] != x[i])
            return false;
    return true;
}

double learners_value(const struct learners *l, const double *x)
{
    const struct part *p = l->parts, *end = l->parts + l->n_parts;
    double sum = 0;
    while (p < end && !is_chosen(p, x, l->space->n))
        p++;
    if (p == end)
        return NAN; /* the problem's test finds it */
    for (size_t t = 0; t < p->n_trees; t++) {
        size_t at = p->roots[t];
        while (l->nodes[at].column != LEAF)
            at = x[l->nodes[at].column] <= l->nodes[at].number ? at + 1 : l->nodes[at].right;
        sum += l->nodes[at].number;
    }
    return sum;
}

void learners_best(const struct learners *l, double *x)
{
    memcpy(x, l->best, l->space->n * sizeof *x);
}

double learners_lowest(const struct learners *l)
{
    return l->lowest;
}
