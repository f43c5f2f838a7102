#include "search/prior/trust.h"

#include <math.h>

#include "search/prior/belief.h"

/* A result: how bad its kind is, and its row. */
struct result {
    int class; /* 0: feasible, 1: breaks a bound, 2: failed */
    size_t row;
    double distance; /* from what is likely: belief_distance() */
};

static size_t list_results(const struct training_set *s, size_t rows, struct result *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n && i < rows && n < TRUST_MOST; i++) {
        if (s->state[i] == OBSERVED_PENDING)
            continue;
        int class = s->feasible[i] ? 0 : s->state[i] == OBSERVED_COMPLETED ? 1 : 2;
        ret[n++] = (struct result){class, i, belief_distance(s->enc, training_set_point(s, i))};
    }
    return n;
}

/* 1 if a is better than b, -1 if it is worse, 0 if neither. */
static int compare(const struct training_set *s, const struct result *a, const struct result *b)
{
    size_t m = s->spec->n_objectives;
    bool better = false, worse = false;
    if (a->class != b->class)
        return a->class < b->class ? 1 : -1;
    for (size_t k = 0; k < m && a->class == 0; k++) {
        double left = s->costs[a->row * m + k], right = s->costs[b->row * m + k];
        better |= left < right;
        worse |= left > right;
    }
    return better == worse ? 0 : better ? 1 : -1;
}

double trust_of(const struct training_set *s, size_t rows)
{
    struct result list[TRUST_MOST];
    int sum = 0;
    if (!belief_exists(s->spec->space))
        return 0;
    size_t n = list_results(s, rows, list);
    if (n < TRUST_LEAST)
        return 1;
    for (size_t i = 1; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            double off = list[j].distance - list[i].distance;
            sum += compare(s, &list[i], &list[j]) * ((off > 0) - (off < 0));
        }
    double pairs = (double)n * (double)(n - 1) / 2;
    double z = sum / pairs / sqrt((double)(2 * (2 * n + 5)) / (double)(9 * n * (n - 1)));
    return fmin(1, fmax(0, (1 + z) / 2));
}

bool trust_is_confirmed(const struct training_set *s)
{
    return s->n_completed + s->n_failed >= TRUST_LEAST && trust_of(s, s->n) >= 1;
}

double trust_weight(const struct training_set *s)
{
    size_t n = s->n_completed + s->n_failed;
    return n < TRUST_MOST && belief_exists(s->spec->space) ? trust_of(s, s->n) * belief_weight(n)
                                                           : 0;
}
