#include <string.h>

#include "search/pareto/front2d_priv.h"

/* The first step with a' > a. */
static size_t find(const struct staircase *s, double a)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->steps[mid].a > a)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

bool staircase_insert(struct staircase *s, double a, double b, double ref_a, double ref_b,
                      double *ret_area)
{
    size_t at = find(s, a);
    if (at > 0 && s->steps[at - 1].b <= b)
        return false;
    if (at > 0 && s->steps[at - 1].a == a)
        at--; /* the same a and a worse b: dominated */
    size_t end = at;
    double area = 0, left = a, ceiling = at > 0 ? s->steps[at - 1].b : ref_b;
    for (; end < s->n && s->steps[end].b >= b; end++) {
        area += (s->steps[end].a - left) * (ceiling - b);
        left = s->steps[end].a;
        ceiling = s->steps[end].b;
    }
    area += ((end < s->n ? s->steps[end].a : ref_a) - left) * (ceiling - b);
    memmove(s->steps + at + 1, s->steps + end, (s->n - end) * sizeof *s->steps);
    s->steps[at] = (struct stair){a, b};
    s->n = s->n - (end - at) + 1;
    if (ret_area)
        *ret_area = area;
    return true;
}
