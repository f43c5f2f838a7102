/* How much of a single training row can be learned from a model that was trained with
 * `train.privacy`: the accountant of DP-SGD (Abadi et al., "Deep learning with differential
 * privacy", CCS 2016).
 *
 * Each step is a sampled Gaussian mechanism: every row is in the batch with probability q,
 * independently of the others; its gradient has a norm of at most `clip`; the sum gets Gaussian
 * noise of deviation noise x clip. Its Rényi divergence at an order a > 1 is that of Mironov,
 * Talwar and Zhang, "Rényi differential privacy of the sampled Gaussian mechanism" (2019), section
 * 3.3, for whole a:
 *
 *   log(sum over k = 0..a of binomial(a, k) (1 - q)^(a - k) q^k exp((k^2 - k) / (2 noise^2)))
 *       / (a - 1)
 *
 * Divergences of steps add up. At a given delta they become epsilon by Canonne, Kamath and Steinke,
 * "The discrete Gaussian for differential privacy" (2020), proposition 12; the least over the
 * orders counts. Neighbours are data sets of which one has one row more. Pure, without
 * allocations. */
#ifndef ASSAY_MODEL_NETWORK_PRIVACY_ACCOUNT_H
#define ASSAY_MODEL_NETWORK_PRIVACY_ACCOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "model/document/train_spec.h"

/* The divergence of one step at the whole order 2 <= order <= PRIVACY_MAX_ORDER; 0 < q <= 1,
 * noise > 0. */
#define PRIVACY_MAX_ORDER 256
double privacy_divergence(double q, double noise, int order);

/* A total of steps, at the orders 2 to PRIVACY_MAX_ORDER. */
struct privacy_account {
    double divergence[PRIVACY_MAX_ORDER + 1]; /* by order; 0 and 1 are unused */
};

/* Add so many steps to an account; a zeroed one is of no step. */
void privacy_account_add(struct privacy_account *a, double q, double noise, double steps);

/* 0 < delta < 1. Never below 0. */
double privacy_account_epsilon(const struct privacy_account *a, double delta);

/* Of a training of n_train rows after so many epochs: every batch has batch_size rows in the mean,
 * the last one of an epoch those that are left. */
double privacy_epsilon(const struct train_privacy_spec *p, size_t n_train, size_t batch_rows,
                       int64_t epochs);

#endif
