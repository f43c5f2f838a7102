/* Push-sum: averages by gossip (Kempe, Dobra, Gehrke 2003; of models: Assran et al. 2019). Pure.
 *
 * Every rank has a model x and a weight w, 1 at first. It gives half of its weight, with its model,
 * to a random peer. A rank that receives (x', w') replaces its model by
 * (w x + w' x') / (w + w') and its weight by w + w'. The sum of w x over all ranks, and what is on
 * its way, stays; all x approach sum(w x) / sum(w) geometrically. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_PUSH_SUM_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_PUSH_SUM_H

#include <stddef.h>
#include <stdint.h>

/* Halves *w; returns the half that is given away. */
double push_sum_give(double *w);

/* Adds what a peer has given: model [n] and weight > 0. */
void push_sum_take(float *x, double *w, const float *model, double weight, size_t n);

/* To whom rank `rank` of n >= 2 gives in a step; `index` counts its partners of that step. A pure
 * function of its arguments; never the rank itself. */
int32_t push_sum_peer(uint64_t seed, uint64_t step, uint32_t index, int32_t rank, int32_t n);

#endif
