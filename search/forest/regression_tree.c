/* Each number has a list of the rows in the order of its places, made once and parted at each
 * split, so that no split sorts. Nodes that wait for their split are on a stack, each a range of
 * all lists, so that the depth of a tree costs no stack of the program. The sides of the values of
 * a choice are bits in one array of the tree. */
#include "search/forest/regression_tree.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define LEAF UINT32_MAX
#define CHOICE ((uint32_t)1 << 31) /* beside the parameter */
#define WORD 64

/* Small, because a search walks through the nodes of all trees at each point. */
struct tree_node {
    union {
        double threshold; /* of a number: places up to here are left */
        size_t sides;     /* of a choice: the first word of the bits of its values, 1 is right */
    } by;
    uint32_t param; /* LEAF: none */
    uint32_t left;  /* the left child; the right one is the next. Of a leaf: its index */
};

struct regression_tree {
    size_t n_nodes, cap_nodes, n_words, cap_words, n_leaves, cap_leaves;
    struct tree_node *nodes;
    uint64_t *words;
    struct tree_leaf *leaves;
};

void regression_tree_free(struct regression_tree *tree)
{
    if (!tree)
        return;
    free(tree->nodes);
    free(tree->words);
    free(tree->leaves);
    free(tree);
}

static bool is_right(const struct regression_tree *tree, const struct tree_node *node,
                     const double *x)
{
    if (!(node->param & CHOICE))
        return x[node->param] > node->by.threshold;
    size_t k = (size_t)x[node->param & ~CHOICE];
    return tree->words[node->by.sides + k / WORD] >> k % WORD & 1;
}

const struct tree_leaf *regression_tree_find(const struct regression_tree *tree, const double *x)
{
    const struct tree_node *node = tree->nodes;
    while (node->param != LEAF)
        node = tree->nodes + node->left + is_right(tree, node, x);
    return &tree->leaves[node->left];
}

/* ---- a split ---- */

/* Rows that a split keeps together: of one place of a number, or of one value of a choice. */
struct tree_group {
    double key; /* by which the groups are in order */
    double sum; /* of their values */
    size_t n;
    uint64_t level; /* of a choice */
};

struct split {
    double gain; /* by how much the squares about the means fall; 0: there is none */
    uint32_t param;
    double threshold;
};

struct growth {
    const struct tree_rows *t;
    const struct tree_limits *limits;
    struct rng *r;
    struct regression_tree *tree;
    size_t n;          /* rows, each as often as it counts: the length of a list */
    uint32_t *lists;   /* d + 1: of each number in the order of its places; the last in any */
    uint32_t *scratch; /* [n] */
    bool *right;       /* [t->n] the sides of the rows of the split at hand */
    struct tree_group *groups; /* [most of n and the levels of a choice] */
    uint32_t *params;          /* [d] in the order in which they are tried */
    uint64_t *sides;           /* of the choice at hand, and */
    uint64_t *best_sides;      /* of the best split so far */
    struct range {
        uint32_t node;
        size_t from, n; /* of each list */
    } * waiting;
    size_t n_waiting, cap_waiting;
};

static void growth_done(struct growth *g)
{
    regression_tree_free(g->tree);
    free(g->lists);
    free(g->scratch);
    free(g->right);
    free(g->groups);
    free(g->params);
    free(g->sides);
    free(g->waiting);
}

/* The rows of a range in the order of number j; in any order for a choice, or where j is d. */
static uint32_t *list_of(const struct growth *g, size_t j, const struct range *at)
{
    size_t k = j < g->t->d && g->t->levels[j] > 0 ? g->t->d : j;
    return g->lists + k * g->n + at->from;
}

static int compare_groups(const void *x, const void *y)
{
    const struct tree_group *a = x, *b = y;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->level < b->level ? -1 : a->level > b->level;
}

/* One group for each place; returns how many. */
static size_t group_places(const struct growth *g, size_t j, const uint32_t *rows, size_t n)
{
    const struct tree_rows *t = g->t;
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        double place = t->x[rows[i] * t->d + j];
        if (m == 0 || g->groups[m - 1].key != place)
            g->groups[m++] = (struct tree_group){.key = place};
        g->groups[m - 1].sum += t->y[rows[i]];
        g->groups[m - 1].n++;
    }
    return m;
}

/* One group for each value that the rows have, in the order of their means; returns how many. */
static size_t group_values(const struct growth *g, size_t j, const uint32_t *rows, size_t n)
{
    const struct tree_rows *t = g->t;
    size_t m = 0;
    for (uint64_t k = 0; k < t->levels[j]; k++)
        g->groups[k] = (struct tree_group){0, 0, 0, k};
    for (size_t i = 0; i < n; i++) {
        struct tree_group *group = &g->groups[(size_t)t->x[rows[i] * t->d + j]];
        group->sum += t->y[rows[i]];
        group->n++;
    }
    for (uint64_t k = 0; k < t->levels[j]; k++) {
        if (!g->groups[k].n)
            continue;
        g->groups[m] = g->groups[k];
        g->groups[m].key = g->groups[m].sum / (double)g->groups[m].n;
        m++;
    }
    qsort(g->groups, m, sizeof *g->groups, compare_groups);
    return m;
}

/* The number of groups before the best cut; 0: there is none that leaves both sides their rows. */
static size_t best_cut(const struct growth *g, size_t m, size_t n, double *ret_gain)
{
    double total = 0, left = 0;
    size_t n_left = 0, at = 0;
    *ret_gain = 0;
    for (size_t i = 0; i < m; i++)
        total += g->groups[i].sum;
    for (size_t i = 0; i + 1 < m; i++) {
        left += g->groups[i].sum;
        n_left += g->groups[i].n;
        if (n_left < g->limits->leaf || n - n_left < g->limits->leaf)
            continue;
        double off = left / (double)n_left - (total - left) / (double)(n - n_left);
        double gain = off * off * (double)n_left * (double)(n - n_left) / (double)n;
        if (gain > *ret_gain) {
            *ret_gain = gain;
            at = i + 1;
        }
    }
    return at;
}

static size_t words_of(uint64_t levels)
{
    return (size_t)((levels + WORD - 1) / WORD);
}

/* The sides of all values of a choice, of which the first `cut` of m groups are left. */
static void set_sides(const struct growth *g, size_t j, size_t cut, size_t m)
{
    for (size_t w = 0; w < words_of(g->t->levels[j]); w++)
        g->sides[w] = rng_u64(g->r);
    for (size_t i = 0; i < m; i++) {
        uint64_t bit = (uint64_t)1 << g->groups[i].level % WORD;
        uint64_t *word = &g->sides[g->groups[i].level / WORD];
        *word = i < cut ? *word & ~bit : *word | bit;
    }
}

/* Is the split of parameter j better than the best so far? Then it is the best. Returns whether the
 * rows differ in it. */
static bool try_param(const struct growth *g, size_t j, const struct range *at, struct split *best)
{
    double gain;
    const uint32_t *rows = list_of(g, j, at);
    size_t n = at->n;
    bool is_choice = g->t->levels[j] > 0;
    size_t m = is_choice ? group_values(g, j, rows, n) : group_places(g, j, rows, n);
    size_t cut = best_cut(g, m, n, &gain);
    if (cut > 0 && gain > best->gain) {
        *best = (struct split){.gain = gain, .param = (uint32_t)j};
        if (is_choice) {
            set_sides(g, j, cut, m);
            memcpy(g->best_sides, g->sides, words_of(g->t->levels[j]) * sizeof *g->sides);
        } else {
            double low = g->groups[cut - 1].key, high = g->groups[cut].key;
            best->threshold = low + rng_uniform(g->r) * (high - low);
            if (!(best->threshold < high)) /* rounding */
                best->threshold = low;
        }
    }
    return m > 1;
}

static struct split choose_split(const struct growth *g, const struct range *at)
{
    struct split best = {0};
    for (size_t i = 0, tried = 0; i < g->t->d && tried < g->limits->n_tried; i++) {
        size_t k = i + (size_t)rng_below(g->r, g->t->d - i);
        uint32_t j = g->params[k];
        g->params[k] = g->params[i];
        g->params[i] = j;
        tried += try_param(g, j, at, &best);
    }
    return best;
}

/* ---- the tree ---- */

/* A node that waits for its split, or is a leaf. */
static as_status add_node(struct growth *g, size_t from, size_t n, struct as_err *err)
{
    struct regression_tree *tree = g->tree;
    as_status st =
        as_reserve_one(&tree->nodes, tree->n_nodes, &tree->cap_nodes, sizeof *tree->nodes, err);
    if (st == AS_OK)
        st = as_reserve_one(&g->waiting, g->n_waiting, &g->cap_waiting, sizeof *g->waiting, err);
    if (st < 0)
        return st;
    g->waiting[g->n_waiting++] = (struct range){(uint32_t)tree->n_nodes, from, n};
    tree->nodes[tree->n_nodes++] = (struct tree_node){.param = LEAF};
    return AS_OK;
}

static struct tree_leaf leaf_of(const struct growth *g, const uint32_t *rows, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += g->t->y[rows[i]];
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double off = g->t->y[rows[i]] - mean;
        squares += off * off;
    }
    return (struct tree_leaf){mean, squares / (double)n};
}

static as_status add_leaf(struct growth *g, uint32_t node, const struct tree_leaf *leaf,
                          struct as_err *err)
{
    struct regression_tree *tree = g->tree;
    as_status st =
        as_reserve_one(&tree->leaves, tree->n_leaves, &tree->cap_leaves, sizeof *tree->leaves, err);
    if (st < 0)
        return st;
    tree->nodes[node].left = (uint32_t)tree->n_leaves;
    tree->leaves[tree->n_leaves++] = *leaf;
    return AS_OK;
}

/* Keep the bits of the best split's values. */
static as_status add_sides(struct growth *g, size_t n_words, struct as_err *err)
{
    struct regression_tree *tree = g->tree;
    for (size_t w = 0; w < n_words; w++) {
        as_status st =
            as_reserve_one(&tree->words, tree->n_words, &tree->cap_words, sizeof *tree->words, err);
        if (st < 0)
            return st;
        tree->words[tree->n_words++] = g->best_sides[w];
    }
    return AS_OK;
}

/* Put the rows of the left child first, in the order that they have; returns how many. */
static size_t part_list(const struct growth *g, uint32_t *list, size_t n)
{
    size_t n_left = 0, n_right = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t row = list[i];
        if (g->right[row])
            g->scratch[n_right++] = row;
        else
            list[n_left++] = row;
    }
    memcpy(list + n_left, g->scratch, n_right * sizeof *list);
    return n_left;
}

static size_t part_lists(const struct growth *g, const struct tree_node *node,
                         const struct range *at)
{
    const struct tree_rows *t = g->t;
    uint32_t *all = list_of(g, t->d, at);
    for (size_t i = 0; i < at->n; i++)
        g->right[all[i]] = is_right(g->tree, node, t->x + all[i] * t->d);
    for (size_t j = 0; j < t->d; j++)
        if (!t->levels[j])
            (void)part_list(g, list_of(g, j, at), at->n);
    return part_list(g, all, at->n);
}

static as_status split_node(struct growth *g, const struct range *at, struct as_err *err)
{
    const struct tree_leaf leaf = leaf_of(g, list_of(g, g->t->d, at), at->n);
    struct split split = {0};
    if (at->n >= 2 * g->limits->leaf && leaf.variance > 0)
        split = choose_split(g, at);
    if (!(split.gain > 0))
        return add_leaf(g, at->node, &leaf, err);
    struct regression_tree *tree = g->tree;
    uint64_t levels = g->t->levels[split.param];
    struct tree_node node = {.param = split.param, .left = (uint32_t)tree->n_nodes};
    if (levels > 0) {
        node.param |= CHOICE;
        node.by.sides = tree->n_words;
    } else {
        node.by.threshold = split.threshold;
    }
    as_status st = levels ? add_sides(g, words_of(levels), err) : AS_OK;
    if (st < 0)
        return st;
    tree->nodes[at->node] = node;
    size_t n_left = part_lists(g, &node, at);
    st = add_node(g, at->from, n_left, err);
    return st < 0 ? st : add_node(g, at->from + n_left, at->n - n_left, err);
}

static as_status grow(struct growth *g, struct as_err *err)
{
    as_status st = add_node(g, 0, g->n, err);
    while (st == AS_OK && g->n_waiting > 0) {
        struct range at = g->waiting[--g->n_waiting];
        st = split_node(g, &at, err);
    }
    return st;
}

static as_status reserve(struct growth *g, struct as_err *err)
{
    const struct tree_rows *t = g->t;
    size_t most = g->n;
    for (size_t j = 0; j < t->d; j++)
        most = t->levels[j] > most ? (size_t)t->levels[j] : most;
    g->tree = as_calloc(1, sizeof *g->tree);
    g->lists = as_calloc(t->d + 1, g->n * sizeof *g->lists);
    g->scratch = as_calloc(g->n, sizeof *g->scratch);
    g->right = as_calloc(t->n, sizeof *g->right);
    g->groups = as_calloc(most, sizeof *g->groups);
    g->params = as_calloc(t->d, sizeof *g->params);
    g->sides = as_calloc(2 * words_of(most), sizeof *g->sides);
    if (!g->tree || !g->lists || !g->scratch || !g->right || !g->groups || !g->params || !g->sides)
        return as_fail(err, AS_E_NOMEM, "out of memory for a tree of %zu rows", g->n);
    g->best_sides = g->sides + words_of(most);
    return AS_OK;
}

/* Each row as often as it counts. */
static void fill_lists(struct growth *g, const uint32_t *times)
{
    const struct tree_rows *t = g->t;
    for (size_t j = 0; j <= t->d; j++) {
        uint32_t *list = g->lists + j * g->n;
        bool is_ordered = j < t->d && !t->levels[j];
        for (size_t i = 0; i < t->n && (is_ordered || j == t->d); i++) {
            uint32_t row = is_ordered ? t->order[j * t->n + i] : (uint32_t)i;
            for (uint32_t k = 0; k < times[row]; k++)
                *list++ = row;
        }
    }
    for (size_t j = 0; j < t->d; j++)
        g->params[j] = (uint32_t)j;
}

as_status regression_tree_grow(const struct tree_rows *t, const struct tree_limits *limits,
                               const uint32_t *times, struct rng *r, struct regression_tree **ret,
                               struct as_err *err)
{
    AS_AUTO(growth_done) struct growth g = {.t = t, .limits = limits, .r = r};
    for (size_t i = 0; i < t->n; i++)
        g.n += times[i];
    as_status st = reserve(&g, err);
    if (st < 0)
        return st;
    fill_lists(&g, times);
    st = grow(&g, err);
    if (st == AS_OK)
        *ret = as_steal(g.tree);
    return st;
}

/* ---- the order of rows ---- */

struct placed {
    double place;
    uint32_t row;
};

static int compare_placed(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

as_status tree_order(const struct tree_rows *t, uint32_t *ret, struct as_err *err)
{
    AS_AUTO(as_freep) struct placed *rows = as_calloc(t->n, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (size_t j = 0; j < t->d; j++) {
        if (t->levels[j] > 0)
            continue;
        for (size_t i = 0; i < t->n; i++)
            rows[i] = (struct placed){t->x[i * t->d + j], (uint32_t)i};
        qsort(rows, t->n, sizeof *rows, compare_placed);
        for (size_t i = 0; i < t->n; i++)
            ret[j * t->n + i] = rows[i].row;
    }
    return AS_OK;
}
