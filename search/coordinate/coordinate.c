/* The descent runs again for each suggestion, over a history that answers like a table: a point was
 * tried (its row), is being tried, is not allowed, or is new. The first new one ends the walk. */
#include "search/coordinate/coordinate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "search/population/design.h"
#include "search/population/population.h"
#include "search/problem/explain.h"

#define NO_ROW TRAINING_SET_NONE
#define LINES_FIRST 2 /* searches of one line in the first cycle; later one */
#define HELD 1e-2     /* a parabola held if it missed by less than this share of what it spans */
/* Probes without a new point, for each trial there is: a finite space may have none left. */
#define PROBES_EACH 64

/* A place of a parameter on the line that is searched. */
struct place {
    double at;
    size_t row; /* NO_ROW: it has no result */
};

#define PLACES_MAX (1 + LINES_FIRST * (COORDINATE_POINTS + 1))

struct line {
    size_t j; /* the parameter */
    struct place places[PLACES_MAX];
    size_t n; /* ascending by `at` */
    double low, high;
};

struct descent {
    const struct population *p; /* borrowed */
    size_t *rank;               /* [set->n]: the place of each trial that ended in the order */
    double *best;               /* the point of the run */
    size_t best_row;            /* NO_ROW: its start has no result yet */
    double *widths;             /* [parameters]: of the brackets of this cycle */
    double *probe;              /* scratch, as `active` and `rows` [most levels of a choice] */
    bool *active;
    size_t *rows;
    size_t hint; /* the row after the one found last: trials are in probes' order */
    size_t left; /* probes until the walk gives up */
    size_t cycle, restarts;
    /* set with the point that is wanted */
    bool has_found;
    size_t changed; /* a parameter; enc->n: where a run begins */
    double *found;
};

static void descent_free(void *self)
{
    struct descent *s = self;
    if (!s)
        return;
    free(s->rank);
    free(s->best);
    free(s->widths);
    free(s->probe);
    free(s->active);
    free(s->rows);
    free(s->found);
    free(s);
}

static bool is_over(const struct descent *s)
{
    return s->has_found || s->left == 0;
}

/* ---- the table of results ---- */

/* The row of s->probe, which is snapped; NO_ROW if it has no result. A new point is the one that is
 * wanted. */
static size_t look(struct descent *s, size_t changed)
{
    const struct training_set *set = s->p->set;
    s->left--;
    encoding_snap(set->enc, s->probe);
    size_t row = training_set_find(set, s->probe, DESIGN_TOLERANCE, s->hint);
    if (row != NO_ROW) {
        s->hint = row + 1;
        return set->state[row] == OBSERVED_PENDING ? NO_ROW : row;
    }
    if (encoding_allows(set->enc, s->probe, set->scratch)) {
        memcpy(s->found, s->probe, set->enc->n * sizeof *s->found);
        s->has_found = true;
        s->changed = changed;
    }
    return NO_ROW;
}

static size_t rank_of(const struct descent *s, size_t row)
{
    return row == NO_ROW ? SIZE_MAX : s->rank[row];
}

/* The cost of a row, by which a parabola may be drawn; NaN: it has none. */
static double cost_of(const struct descent *s, size_t row)
{
    const struct training_set *set = s->p->set;
    bool is_one = set->spec->n_objectives == 1;
    return is_one && row != NO_ROW && set->feasible[row] ? set->costs[row] : NAN;
}

static void keep_if_better(struct descent *s, size_t row)
{
    if (rank_of(s, row) >= rank_of(s, s->best_row))
        return;
    s->best_row = row;
    memcpy(s->best, training_set_point(s->p->set, row), s->p->set->enc->n * sizeof *s->best);
}

/* ---- a parameter with few values ---- */

static void try_values(struct descent *s, size_t j)
{
    const struct encoding *e = s->p->set->enc;
    size_t levels = (size_t)e->params[j].levels, n = 0;
    size_t now = (size_t)encoding_level(e, j, s->best[j]);
    for (size_t k = 0; k < levels && !is_over(s); k++) {
        if (k == now)
            continue;
        memcpy(s->probe, s->best, e->n * sizeof *s->probe);
        s->probe[j] = encoding_place(e, j, k);
        s->rows[n++] = look(s, j);
    }
    for (size_t k = 0; k < n && !is_over(s); k++)
        keep_if_better(s, s->rows[k]);
}

/* ---- a number ---- */

/* The place on the line; l->n: it is not there. */
static size_t find_place(const struct line *l, double at)
{
    size_t k = 0;
    while (k < l->n && fabs(l->places[k].at - at) > DESIGN_TOLERANCE)
        k++;
    return k;
}

static void add_place(struct line *l, double at, size_t row)
{
    size_t k = l->n++;
    for (; k > 0 && l->places[k - 1].at > at; k--)
        l->places[k] = l->places[k - 1];
    l->places[k] = (struct place){at, row};
}

static double snapped_place(const struct descent *s, const struct line *l, double at)
{
    const struct encoding *e = s->p->set->enc;
    bool has_levels = e->params[l->j].kind == ENCODED_LEVELS;
    return has_levels ? encoding_place(e, l->j, encoding_level(e, l->j, at)) : at;
}

/* Look at one more place of the line, unless it is on it. */
static void probe_place(struct descent *s, struct line *l, double at)
{
    const struct encoding *e = s->p->set->enc;
    at = snapped_place(s, l, at);
    if (is_over(s) || find_place(l, at) < l->n)
        return;
    memcpy(s->probe, s->best, e->n * sizeof *s->probe);
    s->probe[l->j] = at;
    add_place(l, at, look(s, l->j));
}

static size_t best_place(const struct descent *s, const struct line *l)
{
    size_t best = 0;
    for (size_t k = 1; k < l->n; k++)
        if (rank_of(s, l->places[k].row) < rank_of(s, l->places[best].row))
            best = k;
    return best;
}

/* The vertex of the parabola through three points, a < b < c, and its value. False: they lie on no
 * parabola that is open upward. */
static bool vertex(const double x[3], const double y[3], double *ret_at, double *ret_value)
{
    double left = (y[1] - y[0]) / (x[1] - x[0]), right = (y[2] - y[1]) / (x[2] - x[1]);
    double bend = (right - left) / (x[2] - x[0]);
    if (!(bend > 0) || !isfinite(bend))
        return false;
    double slope = left + bend * (x[1] - x[0]); /* at x[1] */
    *ret_at = x[1] - slope / (2 * bend);
    *ret_value = y[1] - slope * slope / (4 * bend);
    return isfinite(*ret_at);
}

/* Try the vertex of the parabola through the best place and its neighbours, or the two that are
 * nearest where the best is the first or the last. True: it was as the parabola said. */
static bool try_vertex(struct descent *s, struct line *l, size_t best)
{
    double x[3], y[3], at, value;
    size_t first = best == 0 ? 0 : best + 1 < l->n ? best - 1 : l->n - 3;
    if (l->n < 3)
        return false;
    for (size_t k = 0; k < 3; k++) {
        x[k] = l->places[first + k].at;
        y[k] = cost_of(s, l->places[first + k].row);
        if (!isfinite(y[k]))
            return false;
    }
    if (!vertex(x, y, &at, &value))
        return false;
    bool is_inside = at >= l->low && at <= l->high;
    at = snapped_place(s, l, fmin(fmax(at, l->low), l->high));
    probe_place(s, l, at);
    double span = fmax(y[0], fmax(y[1], y[2])) - fmin(value, fmin(y[0], fmin(y[1], y[2])));
    size_t k = find_place(l, at); /* it is not there if the walk is over */
    double miss = k < l->n ? cost_of(s, l->places[k].row) - value : NAN;
    return is_inside && fabs(miss) <= HELD * span;
}

/* Shrink the bracket to the neighbours of the best place. */
static void shrink(struct line *l, size_t best)
{
    l->low = best > 0 ? l->places[best - 1].at : l->low;
    l->high = best + 1 < l->n ? l->places[best + 1].at : l->high;
}

static void search_line(struct descent *s, size_t j)
{
    double before = s->best[j], width = s->widths[j];
    struct line l = {
        .j = j, .low = fmax(0, before - width / 2), .high = fmin(1, before + width / 2)};
    if (s->cycle == 0) {
        l.low = 0;
        l.high = 1;
    }
    add_place(&l, before, s->best_row);
    size_t times = s->cycle == 0 ? LINES_FIRST : 1;
    bool held = false;
    for (size_t i = 0; i < times && !held && !is_over(s); i++) {
        double low = l.low, step = (l.high - l.low) / COORDINATE_POINTS;
        for (size_t k = 0; k < COORDINATE_POINTS; k++)
            probe_place(s, &l, low + step * ((double)k + 0.5));
        if (is_over(s))
            return;
        size_t best = best_place(s, &l);
        shrink(&l, best);
        held = try_vertex(s, &l, best);
    }
    if (is_over(s))
        return;
    keep_if_better(s, l.places[best_place(s, &l)].row);
    double moved = fabs(s->best[j] - before);
    s->widths[j] = fmin(width, fmax(COORDINATE_NARROWEST, fmax(4 * moved, width / 4)));
}

/* ---- cycles and runs ---- */

static bool has_few_values(const struct encoded_param *p)
{
    return p->kind == ENCODED_CHOICE ||
           (p->kind == ENCODED_LEVELS && p->levels <= COORDINATE_POINTS + 1);
}

/* Change each parameter. True: something is better, or may be in narrower brackets. */
static bool run_cycle(struct descent *s)
{
    const struct encoding *e = s->p->set->enc;
    size_t row = s->best_row;
    bool is_narrowest = s->cycle > 0;
    for (size_t j = 0; j < e->n && !is_over(s); j++) {
        encoding_active(e, s->best, s->active);
        if (!s->active[j] || e->params[j].kind == ENCODED_CONSTANT)
            continue;
        if (has_few_values(&e->params[j])) {
            try_values(s, j);
            continue;
        }
        is_narrowest &= s->widths[j] <= COORDINATE_NARROWEST;
        search_line(s, j);
    }
    return s->best_row != row || !is_narrowest;
}

/* The best trial of the design. */
static void begin_first(struct descent *s)
{
    const struct training_set *set = s->p->set;
    size_t design = design_size(set), best = NO_ROW;
    for (size_t i = 0; i < set->n && (i < design || best == NO_ROW); i++)
        if (set->state[i] != OBSERVED_PENDING && rank_of(s, i) < rank_of(s, best))
            best = i;
    s->best_row = best;
    memcpy(s->best, training_set_point(set, best), set->enc->n * sizeof *s->best);
}

/* A random point that is allowed. */
static void begin_again(struct descent *s)
{
    const struct training_set *set = s->p->set;
    struct rng r;
    rng_init(&r, set->spec->seed, s->restarts << 8 | SEARCH_DRAW_COORDINATE_START);
    for (size_t k = 0; k < POPULATION_TRIES && !is_over(s); k++) {
        for (size_t j = 0; j < set->enc->n; j++)
            s->probe[j] = rng_uniform(&r);
        encoding_from_unit(set->enc, s->probe, s->probe);
        s->left--;
        if (encoding_allows(set->enc, s->probe, set->scratch))
            break;
    }
    memcpy(s->best, s->probe, set->enc->n * sizeof *s->best);
    s->best_row = is_over(s) ? NO_ROW : look(s, set->enc->n);
}

/* One run: from its start to the first point that nobody tried, or until nothing gets better. */
static void run(struct descent *s)
{
    for (size_t j = 0; j < s->p->set->enc->n; j++)
        s->widths[j] = 1;
    if (s->restarts == 0)
        begin_first(s);
    else
        begin_again(s);
    s->cycle = 0;
    while (run_cycle(s) && !is_over(s))
        s->cycle++;
}

static void walk(struct descent *s)
{
    for (run(s); !is_over(s); run(s))
        s->restarts++;
}

static size_t most_values(const struct encoding *e)
{
    size_t most = COORDINATE_POINTS + 1;
    for (size_t j = 0; j < e->n; j++)
        if (e->params[j].kind == ENCODED_CHOICE && e->params[j].levels > most)
            most = (size_t)e->params[j].levels;
    return most;
}

static as_status coordinate_begin(const struct population *p, void **ret_self, struct as_err *err)
{
    const struct training_set *set = p->set;
    size_t d = set->enc->n;
    struct descent *s = as_calloc(1, sizeof *s);
    bool ok = s && (s->rank = as_calloc(set->n, sizeof *s->rank)) &&
              (s->best = as_calloc(d, sizeof *s->best)) &&
              (s->widths = as_calloc(d, sizeof *s->widths)) &&
              (s->probe = as_calloc(d, sizeof *s->probe)) &&
              (s->found = as_calloc(d, sizeof *s->found)) &&
              (s->active = as_calloc(d, sizeof *s->active)) &&
              (s->rows = as_calloc(most_values(set->enc), sizeof *s->rows));
    if (!ok) {
        descent_free(s);
        return as_fail(err, AS_E_NOMEM, "out of memory for a suggestion");
    }
    s->p = p;
    s->left = PROBES_EACH * (set->n + PROBES_EACH);
    for (size_t i = 0; i < p->n; i++)
        s->rank[p->order[i]] = i;
    walk(s);
    *ret_self = s;
    return AS_OK;
}

static as_status coordinate_propose(void *self, const struct population *p, struct rng *r,
                                    double *ret_point, json_t *reason, struct as_err *err)
{
    const struct descent *s = self;
    const struct encoding *e = p->set->enc;
    (void)r;
    memcpy(ret_point, s->has_found ? s->found : s->best, e->n * sizeof *ret_point);
    if (!s->has_found)
        return AS_OK; /* it was tried */
    JSON_AUTO changed = json_array();
    int bad = !changed;
    if (s->changed < e->n) {
        const char *name = p->set->spec->space->params[s->changed].name;
        bad |= json_array_append_new(changed, json_string(name));
        if (!has_few_values(&e->params[s->changed]))
            bad |= json_object_set_new(reason, "step", json_number_new(s->widths[s->changed]));
    }
    bad |= json_object_set(reason, "changed", changed);
    bad |= json_object_set_new(reason, "cycle", json_integer((json_int_t)s->cycle));
    bad |= json_object_set_new(reason, "restarts", json_integer((json_int_t)s->restarts));
    return bad ? as_fail(err, AS_E_NOMEM, "out of memory for a suggestion's reason") : AS_OK;
}

static void coordinate_explain(const json_t *reason, struct str *b)
{
    const char *name = json_string_value(json_array_get(json_object_get(reason, "changed"), 0));
    int64_t restarts = explain_count(reason, "restarts");
    if (name) {
        double step;
        str_printf(b, "%s changed alone in cycle %" PRId64, name,
                   explain_count(reason, "cycle") + 1);
        if (json_number_get(json_object_get(reason, "step"), &step))
            str_printf(b, ", within %.2g of its range", step);
        if (restarts > 0)
            str_printf(b, ", run %" PRId64, restarts + 1);
    } else {
        str_printf(b, "where run %" PRId64 " begins", restarts + 1);
    }
}

static const struct population_method coordinate = {.purpose = SEARCH_DRAW_COORDINATE_START,
                                                    .begin = coordinate_begin,
                                                    .propose = coordinate_propose,
                                                    .end = descent_free,
                                                    .explain = coordinate_explain};

const struct search_method search_coordinate = POPULATION_METHOD("coordinate", coordinate);
