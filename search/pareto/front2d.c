#include "search/pareto/front2d_priv.h"

#include <string.h>

/* The first point with a' > a. */
static size_t find_after(const struct front2d *f, double a)
{
    size_t lo = 0, hi = f->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (f->points[mid].a > a)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

bool front2d_insert(struct front2d *f, double a, double b, double ref_a, double ref_b,
                    double *ret_area)
{
    size_t at = find_after(f, a);
    if (at > 0 && f->points[at - 1].b <= b)
        return false;
    if (at > 0 && f->points[at - 1].a == a)
        at--; /* it has the same a and a worse b: dominated */
    size_t end = at;
    double area = 0, left = a, ceiling = at > 0 ? f->points[at - 1].b : ref_b;
    for (; end < f->n && f->points[end].b >= b; end++) {
        area += (f->points[end].a - left) * (ceiling - b);
        left = f->points[end].a;
        ceiling = f->points[end].b;
    }
    area += ((end < f->n ? f->points[end].a : ref_a) - left) * (ceiling - b);
    memmove(f->points + at + 1, f->points + end, (f->n - end) * sizeof *f->points);
    f->points[at] = (struct front2d_point){a, b};
    f->n = f->n - (end - at) + 1;
    if (ret_area)
        *ret_area = area;
    return true;
}
