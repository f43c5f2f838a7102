#include "data/number_bins.h"

#include <math.h>
#include <string.h>

/* A place has to be a whole number that a double holds: |v| / width stays below 2^50. */
#define PLACE_BITS 50

static int64_t place_of(const struct number_bins *b, double v)
{
    return (int64_t)floor(ldexp(v, -b->exponent));
}

/* Bins of twice the width. Places are halved downward, negative ones too. */
static void widen(struct number_bins *b)
{
    size_t merged[NUMBER_BINS] = {0};
    const int64_t first = b->first >> 1;
    for (int64_t p = b->first; p <= b->last; p++)
        merged[(p >> 1) - first] += b->counts[p - b->first];
    memcpy(b->counts, merged, sizeof merged);
    b->first = first;
    b->last >>= 1;
    b->exponent++;
}

static void count(struct number_bins *b, double v)
{
    int64_t place = place_of(b, v);
    while (place - b->first >= NUMBER_BINS || b->last - place >= NUMBER_BINS) {
        widen(b);
        place >>= 1;
    }
    if (place < b->first) {
        const size_t by = (size_t)(b->first - place);
        memmove(b->counts + by, b->counts, (NUMBER_BINS - by) * sizeof *b->counts);
        memset(b->counts, 0, by * sizeof *b->counts);
        b->first = place;
    }
    b->last = place > b->last ? place : b->last;
    b->counts[place - b->first]++;
}

static int exponent_of(double v)
{
    int e = 0;
    (void)frexp(v, &e);
    return e;
}

/* Choose the width by the numbers so far, and count them. */
static void open_bins(struct number_bins *b)
{
    const size_t n = b->n < NUMBER_BINS_FIRST ? b->n : NUMBER_BINS_FIRST;
    const double range = b->most / NUMBER_BINS - b->least / NUMBER_BINS;
    const int finest = exponent_of(fmax(fabs(b->least), fabs(b->most))) - PLACE_BITS;
    bool is_whole = true;
    for (size_t i = 0; i < n; i++)
        is_whole = is_whole && b->begin[i] == floor(b->begin[i]);
    b->exponent = range > 0 && exponent_of(range) > finest ? exponent_of(range) : finest;
    if (is_whole && b->exponent < 0)
        b->exponent = 0;
    b->first = b->last = place_of(b, b->begin[0]);
    b->is_open = true;
    for (size_t i = 0; i < n; i++)
        count(b, b->begin[i]);
}

void number_bins_add(struct number_bins *b, double v)
{
    const double before = v - b->mean;
    b->least = b->n && b->least < v ? b->least : v;
    b->most = b->n && b->most > v ? b->most : v;
    b->mean += before / (double)(b->n + 1);
    b->squares += before * (v - b->mean);
    if (b->n == NUMBER_BINS_FIRST)
        open_bins(b);
    if (b->is_open)
        count(b, v);
    else
        b->begin[b->n] = v;
    b->n++;
}

void number_bins_end(struct number_bins *b)
{
    if (b->n && !b->is_open)
        open_bins(b);
}

double number_bins_width(const struct number_bins *b)
{
    return ldexp(1, b->exponent);
}

double number_bins_deviation(const struct number_bins *b)
{
    return b->n ? sqrt(b->squares / (double)b->n) : 0;
}
