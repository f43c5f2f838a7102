#include "data/missing_code.h"

#include <math.h>

#define TIMES 3

/* The end is the lowest value of all; for the highest one `v` and the end are negative ones. */
static void add_low(struct code_end *e, double v, bool first)
{
    if (first) {
        *e = (struct code_end){v, v, 1};
    } else if (v < e->value) {
        *e = (struct code_end){v, e->value, 1};
    } else if (v == e->value) {
        e->n++;
    } else if (v < e->next || e->next == e->value) {
        e->next = v;
    }
}

void missing_code_add(struct missing_code *m, double v)
{
    bool first = m->n++ == 0;
    add_low(&m->low, v, first);
    add_low(&m->high, -v, first);
}

/* 99, 999 … up to nine digits, of either sign. */
static bool is_nines(double v)
{
    for (double nines = 99; nines < 1e9; nines = 10 * nines + 9)
        if (fabs(v) == nines)
            return true;
    return false;
}

/* Is `end` a code beside values from `near` to `far`? */
static bool is_code(const struct code_end *end, double near, double far)
{
    return is_nines(end->value) && end->n >= TIMES && near != far &&
           fabs(end->value - near) > fabs(far - near);
}

bool missing_code_find(const struct missing_code *m, struct found_code *ret)
{
    const struct code_end low = m->low, high = {-m->high.value, -m->high.next, m->high.n};
    double top = is_nines(high.value) ? high.next : high.value;
    double bottom = is_nines(low.value) ? low.next : low.value;
    if (m->n == 0 || low.value == high.value)
        return false;
    bool of_low = is_code(&low, low.next, top);
    if (!of_low && !is_code(&high, high.next, bottom))
        return false;
    *ret = of_low ? (struct found_code){low.value, low.n, low.next, top}
                  : (struct found_code){high.value, high.n, bottom, high.next};
    return true;
}
