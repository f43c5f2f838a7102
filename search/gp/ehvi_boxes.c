/* The boxes between a front and the reference point.
 *
 * With two objectives the boxes are strips. With three, the points are swept in the order of the
 * third objective: each point cuts the strips that it dominates, and a cut strip becomes a box from
 * the level at which it opened to the current level. With four, the boxes of three objectives are
 * computed at each level of the fourth; a box that does not change stays open, and the others are
 * closed. So the number of boxes stays near its minimum, and a value of the acquisition costs one
 * term for each box. */
#include "search/gp/ehvi_boxes_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static as_status emit_box(struct ehvi_boxes *out, const struct ehvi_box *b, struct as_err *err)
{
    as_status st = as_reserve_one(&out->boxes, out->n, &out->cap, sizeof *out->boxes, err);
    if (st < 0)
        return st;
    out->boxes[out->n++] = *b;
    return AS_OK;
}

/* ---- two and three objectives: strips ---- */

/* A strip that is open since level `since` of the third objective. In the first objective it goes
 * from `left` to the next strip's left (the last strip ends at the reference); in the second it
 * goes up to `top`. Tops fall from left to right. */
struct strip {
    double left, top, since;
};

struct sweep {
    struct strip *strips; /* owned; room for all points and one more */
    size_t n;
    const double *reference;
    struct ehvi_boxes *out;
};

static double strip_right(const struct sweep *s, size_t i)
{
    return i + 1 < s->n ? s->strips[i + 1].left : s->reference[0];
}

/* Close the part of strip i to the right of `left` at `level`. */
static as_status close_strip(const struct sweep *s, size_t i, double left, double level,
                             struct as_err *err)
{
    const struct strip *t = &s->strips[i];
    struct ehvi_box b = {{left, -INFINITY, t->since}, {strip_right(s, i), t->top, level}};
    if (b.lower[0] >= b.upper[0] || t->since >= level)
        return AS_OK;
    return emit_box(s->out, &b, err);
}

/* Add a point of this level: the strips that reach above it are cut at its left. */
static as_status sweep_point(struct sweep *s, double a, double b, double level, struct as_err *err)
{
    size_t first = 0;
    while (first + 1 < s->n && s->strips[first + 1].left <= a)
        first++;
    if (s->strips[first].top <= b)
        return AS_OK;
    size_t end = first;
    for (; end < s->n && s->strips[end].top > b; end++) {
        as_status st = close_strip(s, end, fmax(a, s->strips[end].left), level, err);
        if (st < 0)
            return st;
    }
    size_t at = s->strips[first].left < a ? first + 1 : first; /* keep the part to the left of a */
    memmove(s->strips + at + 1, s->strips + end, (s->n - end) * sizeof *s->strips);
    s->strips[at] = (struct strip){a, b, level};
    s->n = s->n - end + at + 1;
    return AS_OK;
}

static int compare_third(const void *pa, const void *pb)
{
    const struct ehvi_point *a = pa, *b = pb;
    return (a->c[2] > b->c[2]) - (a->c[2] < b->c[2]);
}

/* Two objectives are treated as three whose last one is always at level -infinity. Strips that stay
 * open reach up to the reference. `strips` has room for n + 1.
 */
static as_status sweep_three(struct ehvi_point *points, size_t n, size_t m, const double *reference,
                             struct strip *strips, struct ehvi_boxes *out, struct as_err *err)
{
    struct sweep s = {.strips = strips, .n = 1, .reference = reference, .out = out};
    strips[0] = (struct strip){-INFINITY, reference[1], -INFINITY};
    if (m > 2)
        qsort(points, n, sizeof *points, compare_third);
    for (size_t i = 0; i < n; i++) {
        double third = m > 2 ? points[i].c[2] : -INFINITY;
        as_status st = sweep_point(&s, points[i].c[0], points[i].c[1], third, err);
        if (st < 0)
            return st;
    }
    for (size_t i = 0; i < s.n; i++) {
        as_status st = close_strip(&s, i, s.strips[i].left, m > 2 ? reference[2] : 0, err);
        if (st < 0)
            return st;
    }
    for (size_t i = 0; i < out->n && m == 2; i++)
        out->boxes[i].lower[2] = 0;
    return AS_OK;
}

/* ---- four objectives: the boxes of three, open while they stay the same ---- */

static int compare_boxes(const void *pa, const void *pb)
{
    const struct ehvi_box *a = pa, *b = pb;
    for (size_t k = 0; k < 3; k++) {
        if (a->lower[k] != b->lower[k])
            return a->lower[k] < b->lower[k] ? -1 : 1;
        if (a->upper[k] != b->upper[k])
            return a->upper[k] < b->upper[k] ? -1 : 1;
    }
    return 0;
}

/* Replace the open boxes by those that are open from `level` on; both lists are sorted. A box that
 * stays keeps the level at which it was opened (lower[3]); the others are closed and output. */
static as_status advance_boxes(const struct ehvi_boxes *open, struct ehvi_boxes *next, double level,
                               struct ehvi_boxes *out, struct as_err *err)
{
    size_t j = 0;
    for (size_t i = 0; i < next->n; i++)
        next->boxes[i].lower[3] = level;
    for (size_t i = 0; i < open->n; i++) {
        const struct ehvi_box *b = &open->boxes[i];
        while (j < next->n && compare_boxes(&next->boxes[j], b) < 0)
            j++;
        if (j < next->n && compare_boxes(&next->boxes[j], b) == 0) {
            next->boxes[j].lower[3] = b->lower[3];
            continue;
        }
        struct ehvi_box closed = *b;
        closed.upper[3] = level;
        if (closed.lower[3] >= level)
            continue;
        as_status st = emit_box(out, &closed, err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static int compare_fourth(const void *pa, const void *pb)
{
    const struct ehvi_point *a = pa, *b = pb;
    return (a->c[3] > b->c[3]) - (a->c[3] < b->c[3]);
}

struct sweep4 {
    struct ehvi_point *prefix; /* a copy of the points up to a level: sweep_three sorts it */
    struct strip *strips;
    struct ehvi_boxes open, next;
};

static void sweep4_done(struct sweep4 *s)
{
    free(s->prefix);
    free(s->strips);
    free(s->open.boxes);
    free(s->next.boxes);
}

/* The boxes of the first k points, from `level` on. */
static as_status sweep4_step(struct sweep4 *s, const struct ehvi_point *points, size_t k,
                             const double *reference, double level, struct ehvi_boxes *out,
                             struct as_err *err)
{
    if (k > 0)
        memcpy(s->prefix, points, k * sizeof *points);
    s->next.n = 0;
    as_status st = sweep_three(s->prefix, k, 3, reference, s->strips, &s->next, err);
    if (st < 0)
        return st;
    qsort(s->next.boxes, s->next.n, sizeof *s->next.boxes, compare_boxes);
    st = advance_boxes(&s->open, &s->next, level, out, err);
    if (st < 0)
        return st;
    struct ehvi_boxes swap = s->open;
    s->open = s->next;
    s->next = swap;
    return AS_OK;
}

static as_status sweep_four(struct ehvi_point *points, size_t n, const double *reference,
                            struct ehvi_boxes *out, struct as_err *err)
{
    AS_AUTO(sweep4_done) struct sweep4 s = {0};
    s.prefix = as_calloc(n, sizeof *s.prefix);
    s.strips = as_calloc(n + 1, sizeof *s.strips);
    if (!s.prefix || !s.strips)
        return as_fail(err, AS_E_NOMEM, "out of memory for the boxes of %zu points", n);
    qsort(points, n, sizeof *points, compare_fourth);
    as_status st = sweep4_step(&s, points, 0, reference, -INFINITY, out, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < n; i++) {
        st = sweep4_step(&s, points, i + 1, reference, points[i].c[3], out, err);
        if (st < 0)
            return st;
    }
    s.next.n = 0;
    return advance_boxes(&s.open, &s.next, reference[3], out, err);
}

as_status ehvi_boxes_build(struct ehvi_point *points, size_t n, size_t m, const double *reference,
                           struct ehvi_boxes *ret, struct as_err *err)
{
    if (m == 4)
        return sweep_four(points, n, reference, ret, err);
    AS_AUTO(as_freep) struct strip *strips = as_calloc(n + 1, sizeof *strips);
    if (!strips)
        return as_fail(err, AS_E_NOMEM, "out of memory for the boxes of %zu points", n);
    return sweep_three(points, n, m, reference, strips, ret, err);
}
