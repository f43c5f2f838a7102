/* Configurations as a model sees them: points and features.
 *
 * A *point* has one double for each parameter of the space, in the document's order, active or not:
 *   continuous  (float)                       its place u in [0,1] on its scale
 *   levels      (float with step, int,        its place in [0,1]: i/(m-1) of level i of m; on a log
 *                ordinal)                     scale ln(x_i/x_0) / ln(x_m-1/x_0)
 *   choice      (categorical, bool)           the choice's index 0..K-1, a whole number
 *   constant    (one possible value)          0, whatever is written there
 * A point is *snapped* when every level is exactly at its place and every choice is a whole number.
 * Points made from configurations are snapped. Points that an optimiser moves are not;
 * encoding_snap snaps them. The place of an inactive parameter is kept but has no effect, so that
 * the parameter has it again when a move of its parent makes it active.
 *
 * *Features* are what a kernel compares. Real columns x: u itself; for a conditional parameter two
 * columns, (sin, cos)(pi u / 2) while it is active and (0, 0) while it is not (an arc: all its
 * values are equally far from "inactive"; K. Swersky et al., "Raiders of the lost architecture",
 * 2014). Category columns z, int32: the choice's index, -1 while it is not active; a kernel adds
 * [a != b] / l^2 to the squared distance, half of that between active and not active. Constants
 * have no column. Columns that belong to one parameter share one length scale; but a choice of
 * numbers (value_order.h) has real columns of its place in their order beside its category column,
 * with a length scale each, so that the results decide whether the order means something.
 *
 * An encoding never changes, so distinct threads may read one. Nothing but encoding_create
 * allocates. A place outside [0,1] or an index outside 0..K-1 counts as the nearest end, NaN as the
 * lower end. */
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
    bool is_conditional; /* has a `when`, so it may be inactive */
    bool is_parent;      /* moving it may activate or deactivate others: features jump */
    uint64_t levels;     /* of ENCODED_LEVELS and ENCODED_CHOICE, at least 2; constant 1; else 0 */
    int real;       /* its first real column, -1 for none; conditional ones have real + 1 too */
    int category;   /* its category column, -1 for none */
    int length;     /* its length scale, -1 for none; of a choice, that of its category column */
    int order_real; /* the first real column of a choice's order, -1 for none */
    double *order;  /* owned; [levels]: the place of each value of such a choice */
    bool is_log;    /* ENCODED_LEVELS on a log scale: level k is at ln(1 + k ratio) / span */
    double ratio, span;
    double bend,
        bend_span; /* struct bent_number; 0: its places are those of the document's scale */
};

/* A number that has no effect while a choice has this value, as the results say
 * (search/gp/relevance.h). It counts as inactive there, as if the document had said so with `when`;
 * its configuration has a value nevertheless. */
struct dead_pair {
    size_t param;   /* a number without conditions that no condition reads */
    size_t choice;  /* a choice without conditions */
    uint64_t level; /* its value */
};

/* A number on a linear scale whose effect is by a logarithm, as the results say
 * (search/gp/bend.h). Its place is ln(1 + rate u) / ln(1 + rate), where u is that of the linear
 * scale; of a negative rate the same from the upper end. */
struct bent_number {
    size_t param;
    double rate; /* not 0 */
};

/* What the results say of the parameters, beside the document. All borrowed. */
struct encoding_learned {
    const struct dead_pair *dead;
    size_t n_dead;
    const struct bent_number *bent;
    size_t n_bent;
};

struct encoding {
    const struct space *space;    /* borrowed */
    struct encoded_param *params; /* [n] */
    size_t n;                     /* parameters: the length of a point */
    size_t n_real;                /* columns of x, at most 2n */
    size_t n_category;            /* columns of z, at most n */
    size_t n_numeric;             /* parameters that are numbers: continuous or of levels */
    size_t n_varied;              /* parameters with columns: n_numeric + n_category */
    size_t n_groups;              /* length scales of real columns; those of numbers, and of the
                                     orders of choices */
    size_t n_lengths;             /* n_groups + n_category */
    size_t n_continuous;          /* parameters of ENCODED_CONTINUOUS */
    size_t *real_length;          /* [n_real]: the length scale of each real column, ascending,
                                     0..n_groups-1; that of category column c is n_groups + c */
    struct dead_pair *dead;       /* [n_dead] */
    size_t n_dead;
    uint64_t bends;      /* digest of the bent numbers; 0: there are none */
    bool is_conditional; /* some parameter is */
    bool has_conditions; /* the document declares some: not only the results */
};

/* `space` is borrowed and must outlive the encoding. AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status encoding_create(const struct space *space, struct encoding **ret,
                                        struct as_err *err);
/* The same with what was learned (NULL: nothing). The numbers of dead pairs are conditional, their
 * choices parents, and points are those of the encoding without them. Bent numbers have other
 * places; a configuration that goes there and back may differ by a few parts in 1e15 of the range.
 * `learned` is borrowed for the call. */
AS_MUST_CHECK as_status encoding_create_with(const struct space *space,
                                             const struct encoding_learned *learned,
                                             struct encoding **ret, struct as_err *err);
/* May such a pair be dead, of this number or of this choice? May this number be bent? */
bool encoding_may_die(const struct encoding *e, size_t param);
bool encoding_may_kill(const struct encoding *e, size_t choice);
bool encoding_may_bend(const struct encoding *e, size_t param);
/* The place under this rate of a place u on the linear scale, and back; rate 0: u. */
double encoding_bend(double rate, double u);
double encoding_unbend(double rate, double place);
void encoding_free(struct encoding *e);
AS_DEFINE_FREEP(struct encoding, encoding_free)

/* ---- configurations and points: point is [n] ---- */

/* The snapped point of a configuration of the same space. An inactive parameter is put in the
 * middle (the middle level, choice 0). */
void encoding_from_config(const struct encoding *e, const struct config *c, double *point);

/* The configuration of a point, which need not be snapped. `c` was made by config_create for the
 * same space; it is overwritten and settled (its conditions hold).
 * The value at a place is that of param_decode, except for the last bits: a value within the map's
 * rounding error of a number with 15 digits becomes that number, 0.01 instead of
 * 0.010000000000000005. encoding_to_config(encoding_from_config(c)) equals c where every value of c
 * is discrete (up to PARAM_EXACT_LEVELS of them), an end of its range, or came from
 * encoding_to_config; any other real is kept within a few parts in 1e15 of its range (of itself, on
 * a log scale). */
void encoding_to_config(const struct encoding *e, const double *point, struct config *c);

/* Map a point u of the unit cube (Sobol or random numbers, one for each parameter) to a snapped
 * point. Each value of a discrete parameter owns the share that param_decode gives it. The
 * configuration of the point is the sampler's for the same numbers; reals agree up to their last
 * bits. Bent numbers are even over their places instead. u and point may be the same. */
void encoding_from_unit(const struct encoding *e, const double *u, double *point);

/* Move every level and choice to its nearest place. In place; continuous places are clamped. */
void encoding_snap(const struct encoding *e, double *point);

/* Which parameters are active: active is [n]. The answer equals that of encoding_to_config, and is
 * much cheaper: O(n + conditions). */
void encoding_active(const struct encoding *e, const double *point, bool *active);

/* Do two points stand for the same configuration? They do if they have the same active parameters,
 * the same levels and choices, and places of active continuous parameters that differ by at most
 * `tolerance`. */
bool encoding_same(const struct encoding *e, const double *a, const double *b, double tolerance);

/* Does the space allow the point's configuration (space_allows)? `scratch` is overwritten with that
 * configuration. Always true if the space has no constraints. */
bool encoding_allows(const struct encoding *e, const double *point, struct config *scratch);

/* ---- discrete parameters: kind ENCODED_LEVELS or ENCODED_CHOICE ---- */

/* Level k < levels of parameter i, as its place in a point; and the level nearest to a place.
 * encoding_level(e, i, encoding_place(e, i, k)) == k, up to PARAM_EXACT_LEVELS. */
double encoding_place(const struct encoding *e, size_t i, uint64_t k);
uint64_t encoding_level(const struct encoding *e, size_t i, double place);

/* The places next to `place` that a local search should try. If there are at most `cap` other
 * levels, all of them. Otherwise for levels: those 1, 2, 4, 8, … levels away on both sides, nearest
 * first, within the range and at most cap of them. Otherwise for choices: the next `cap` choices in
 * cyclic order. Returns how many were written to ret[cap]; 0 for continuous and constant
 * parameters. */
size_t encoding_neighbours(const struct encoding *e, size_t i, double place, double *ret,
                           size_t cap);

/* ---- features: x is [n_real], z is [n_category] ---- */

/* The features of a point. Places are *not* snapped, so that an optimiser may relax levels. Snap a
 * point first if a model is fitted to it. O(n + conditions). x or z may be NULL if there is no such
 * column. */
void encoding_features(const struct encoding *e, const double *point, double *x, int32_t *z);

/* The same for a point that differs in parameter i alone, which is active, from the point whose
 * features x and z hold. O(1), unless other parameters depend on i. */
void encoding_move_feature(const struct encoding *e, const double *point, size_t i, double *x,
                           int32_t *z);

/* Chain rule: dx is [n_real], the gradient of some f by the features at `point`. du is [n] and
 * receives the gradient by the places: nonzero for every active continuous or levels parameter (for
 * levels: by the relaxed place), 0 for all others. Activity is taken as constant. */
void encoding_pull_gradient(const struct encoding *e, const double *point, const double *dx,
                            double *du);

#endif
