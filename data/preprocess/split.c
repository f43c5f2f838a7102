/* A random split is a shuffle whose first n_held rows are held out. A stratified one takes the same
 * shuffle and gives each class its share in that order, by largest remainders within bounds that
 * keep a row on both sides (decision 1006). So the number of held-out rows does not depend on the
 * rule, and plans do not either. A part that the caller gives (a column, folds) only lists rows. */
#include "data/preprocess/split.h"

#include <stdbool.h>

#include "base/mem.h"
#include "data/random_purpose.h"
#include "data/preprocess/holdout.h"

void split_random(size_t n, uint64_t seed, int32_t *ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] = (int32_t)i;
    struct rng r = draw_stream(seed, DRAW_SPLIT, 0);
    draw_shuffle(&r, ret, n);
}

/* One class: its rows, how many of them are held out, and the bounds of that number. */
struct share {
    size_t rows, held, least, most;
};

/* How far the class lies below its exact share, in units of 1 / n rows. At most 2^27 rows, so the
 * products fit. */
static int64_t missing(const struct share *s, size_t n, size_t n_held)
{
    return (int64_t)(n_held * s->rows) - (int64_t)(s->held * n);
}

/* Bound each class so that it has rows on both sides, as far as n_held allows. */
static void bound_shares(struct share *s, size_t classes, size_t n_held)
{
    size_t least = 0, most = 0;
    for (size_t c = 0; c < classes; c++) {
        s[c].most = s[c].rows > 0 ? s[c].rows - 1 : 0;
        s[c].least = s[c].most > 0;
        least += s[c].least;
        most += s[c].most;
    }
    for (size_t c = 0; c < classes; c++) {
        s[c].least = least <= n_held ? s[c].least : 0;
        s[c].most = most >= n_held ? s[c].most : s[c].rows;
    }
}

static void share_out(struct share *s, size_t classes, size_t n, size_t n_held)
{
    size_t sum = 0;
    bound_shares(s, classes, n_held);
    for (size_t c = 0; c < classes; c++) {
        s[c].held = n_held * s[c].rows / n;
        s[c].held = s[c].held < s[c].least ? s[c].least : s[c].held;
        s[c].held = s[c].held > s[c].most ? s[c].most : s[c].held;
        sum += s[c].held;
    }
    while (sum != n_held) { /* largest remainder; ties go to the first class */
        bool more = sum < n_held;
        struct share *best = NULL;
        for (size_t c = 0; c < classes; c++) {
            if (more ? s[c].held == s[c].most : s[c].held == s[c].least)
                continue;
            int64_t m = missing(&s[c], n, n_held);
            int64_t b = best ? missing(best, n, n_held) : 0;
            if (!best || (more ? m > b : m < b))
                best = &s[c];
        }
        if (!best)
            return; /* cannot be: the bounds leave room for n_held rows */
        best->held += more ? 1 : (size_t)-1;
        sum += more ? 1 : (size_t)-1;
    }
}

as_status split_stratified(const int32_t *labels, size_t n, size_t classes, size_t n_held,
                           uint64_t seed, int32_t *ret, struct as_err *err)
{
    if (n == 0)
        return AS_OK;
    AS_AUTO(as_freep) struct share *s = as_calloc(classes, sizeof *s);
    AS_AUTO(as_freep) int32_t *order = as_calloc(n, sizeof *order);
    if (!s || !order)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++)
        s[labels[i]].rows++;
    share_out(s, classes, n, n_held);
    split_random(n, seed, order);
    size_t held = 0, train = n_held;
    for (size_t i = 0; i < n; i++) {
        struct share *mine = &s[labels[order[i]]];
        if (mine->held > 0) {
            mine->held--;
            ret[held++] = order[i];
        } else {
            ret[train++] = order[i];
        }
    }
    return AS_OK;
}

/* Append the rows of one part to `rows`. Returns how many there are. */
static size_t list_part(const unsigned char *part, size_t n, unsigned char which, int32_t *rows)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (part[i] == which)
            rows[found++] = (int32_t)i;
    return found;
}

as_status split_rows(const struct preprocess_opts *opts, const int32_t *labels, size_t n,
                     size_t classes, int32_t *rows, struct preprocess_rows *ret, struct as_err *err)
{
    as_status st = AS_OK;
    size_t held = opts->n_validation, both = 0, train = n - held;
    if (opts->part) {
        held = list_part(opts->part, n, HOLDOUT_HELD, rows);
        both = list_part(opts->part, n, HOLDOUT_BOTH, rows + held);
        train = both + list_part(opts->part, n, HOLDOUT_TRAIN, rows + held + both);
        (void)list_part(opts->part, n, HOLDOUT_UNUSED, rows + held + train);
    } else if (opts->stratify && labels) {
        st = split_stratified(labels, n, classes, held, opts->split_seed, rows, err);
    } else {
        split_random(n, opts->split_seed, rows);
    }
    if (st == AS_OK)
        *ret = (struct preprocess_rows){
            .train = rows + held, .held = rows, .n_train = train, .n_held = held + both};
    return st;
}
