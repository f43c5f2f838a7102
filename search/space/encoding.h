/* Configurations as a model sees them: points and features.
 *
 * A *point* has one double for each parameter of the space, in the document's order, active or not:
 *   continuous  (float)                       its place u in [0,1] on its scale
 *   levels      (float with step, int,        its place in [0,1]: i/(m-1) of level i of m; on a log
 *                ordinal)                     scale ln(x_i/x_0) / ln(x_m-1/x_0)
 *   choice      (categorical, bool)           the choice's index 0..K-1, a whole number
 *   constant    (one possible value)          0, whatever is written there
 * A point is *snapped* when every level stands on its place and every choice is whole. Points made
 * from configurations are; those that an optimiser moves are not: encoding_snap. The value of a
 * parameter that is not active is kept and means nothing, so that a move of its parent may bring
 * it back.
 *
 * *Features* are what a kernel compares. Real columns x: u itself; for a conditional parameter two
 * columns, (sin, cos)(pi u / 2) while it is active and (0, 0) while it is not (an arc: all its
 * values are equally far from "not there"; K. Swersky et al., "Raiders of the lost architecture",
 * 2014). Category columns z, int32: the choice's index, -1 while it is not active; a kernel adds
 * [a != b] / l^2 to the squared distance, half of that between active and not active. Constants
 * have no column. Columns that belong to one parameter share one length scale.
 *
 * An encoding never changes, so distinct threads may read one. Nothing but encoding_create
 * allocates. A place or index from outside [0,1] or 0..K-1 is taken for the nearest end, NaN for
 * the lower one. */
#ifndef ASSAY_SEARCH_SPACE_ENCODING_H
#define ASSAY_SEARCH_SPACE_ENCODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/space/config.h"
#include "search/space/param.h"
#include "search/space/space.h"

typedef enum encoded_kind {
    ENCODED_CONSTANT,
    ENCODED_CONTINUOUS,
    ENCODED_LEVELS,
    ENCODED_CHOICE
} encoded_kind;

struct encoded_param {
    encoded_kind kind;
    bool is_conditional; /* it has a `when`: it may be inactive */
    bool is_parent;      /* moving it may turn others on or off: features jump there */
    uint64_t levels;     /* of ENCODED_LEVELS and ENCODED_CHOICE, at least 2; constant 1; else 0 */
    int real;     /* its first real column, -1 for none; conditional ones have real + 1 too */
    int category; /* its category column, -1 for none */
    int length;   /* its length scale, -1 for none */
    bool is_log;  /* ENCODED_LEVELS on a log scale: level k stands at ln(1 + k ratio) / span */
    double ratio, span;
};

struct encoding {
    const struct space *space;    /* borrowed */
    struct encoded_param *params; /* [n] */
    size_t n;                     /* parameters: the length of a point */
    size_t n_real;                /* columns of x, at most 2n */
    size_t n_category;            /* columns of z, at most n */
    size_t n_numeric;             /* parameters that have real columns */
    size_t n_lengths;             /* n_numeric + n_category */
    size_t n_continuous;          /* parameters of ENCODED_CONTINUOUS */
    size_t *real_length;          /* [n_real]: the length scale of each real column, ascending,
                                     0..n_numeric-1;          that of category column c is n_numeric + c */
    bool is_conditional;          /* some parameter is */
};

/* `space` is borrowed and must outlive the encoding. AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status encoding_create(const struct space *space, struct encoding **ret,
                                        struct as_err *err);
void encoding_free(struct encoding *e);
AS_DEFINE_FREEP(struct encoding, encoding_free)

/* ---- configurations and points: point is [n] ---- */

/* The point of a configuration of the same space, snapped. What is not active stands in the middle
 * (the middle level, choice 0). */
void encoding_from_config(const struct encoding *e, const struct config *c, double *point);

/* The configuration of a point, which need not be snapped. `c` was made by config_create for the
 * same space; it is overwritten and settled (its conditions hold).
 * The value at a place is that of param_decode, but for the last bits: one that lies as near to a
 * number of 15 digits as the map's own rounding becomes that number, 0.01 instead of
 * 0.010000000000000005.
 * encoding_to_config(encoding_from_config(c)) equals c where every value of c is discrete (up to
 * PARAM_EXACT_LEVELS of them), an end of its range, or came from encoding_to_config; any other real
 * is kept within a few parts in 1e15 of its range (of itself, on a log scale). */
void encoding_to_config(const struct encoding *e, const double *point, struct config *c);

/* Numbers of the unit cube, one for each parameter (Sobol or random ones), as a snapped point: each
 * value of a discrete parameter owns the share that param_decode gives it. The configuration of the
 * point is that of the sampler for the same numbers, reals within their last bits. u and point may
 * be the same. */
void encoding_from_unit(const struct encoding *e, const double *u, double *point);

/* Move every level and choice to its nearest place. In place; continuous places are clamped. */
void encoding_snap(const struct encoding *e, double *point);

/* Which parameters are active: active is [n]. As encoding_to_config would have it, and much
 * cheaper: O(n + conditions). */
void encoding_active(const struct encoding *e, const double *point, bool *active);

/* Do two points stand for the same configuration? The same parameters are active, the same levels
 * and choices taken, and the places of active continuous ones differ by at most `tolerance`. */
bool encoding_same(const struct encoding *e, const double *a, const double *b, double tolerance);

/* May it be tried: does the space allow its configuration (space_allows)? `scratch` is overwritten
 * with it. Always true where the space has no constraints. */
bool encoding_allows(const struct encoding *e, const double *point, struct config *scratch);

/* ---- discrete parameters: kind ENCODED_LEVELS or ENCODED_CHOICE ---- */

/* Level k < levels of parameter i, as its place in a point; and the level nearest to a place.
 * encoding_level(e, i, encoding_place(e, i, k)) == k, up to PARAM_EXACT_LEVELS. */
double encoding_place(const struct encoding *e, size_t i, uint64_t k);
uint64_t encoding_level(const struct encoding *e, size_t i, double place);

/* The places next to `place` that a local search should try: all other levels where there are at
 * most `cap` of them; else of a levels parameter those 1, 2, 4, 8, … levels away on both sides,
 * nearest first, while they are within the range and fit; else (choices) the cap that follow it in
 * the circle. Returns how many were written to ret[cap]; 0 for continuous and constant ones. */
size_t encoding_neighbours(const struct encoding *e, size_t i, double place, double *ret,
                           size_t cap);

/* ---- features: x is [n_real], z is [n_category] ---- */

/* The features of a point as it stands: places are *not* snapped, so that an optimiser may relax
 * levels; snap first what a model is to be fitted to. O(n + conditions). x or z may be NULL where
 * there is no such column. */
void encoding_features(const struct encoding *e, const double *point, double *x, int32_t *z);

/* Chain rule: dx is [n_real], the gradient of some f by the features at `point`; du is [n], filled
 * with its gradient by the places: d x / d u for every continuous and levels parameter that is
 * active (for levels: of the relaxed place), 0 for all else. Activity is taken as constant. */
void encoding_pull_gradient(const struct encoding *e, const double *point, const double *dx,
                            double *du);

#endif
