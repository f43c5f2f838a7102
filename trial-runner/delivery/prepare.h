/* Prepares an attempt between its claim and the start of its process: the folder, params.json, the
 * checkpoints of an earlier attempt, data sets, the job of the built-in trainer, command and
 * environment. */
#ifndef ASSAY_TRIAL_RUNNER_DELIVERY_PREPARE_H
#define ASSAY_TRIAL_RUNNER_DELIVERY_PREPARE_H

#include "trial-runner/attempt/attempt.h"

/* Fill a->spec, or a->job for a member of a group. It is called once, in phase preparing.
 * a->fetch downloads, and waits as long as the server does not answer. AS_E_INVAL: the trial's
 * document cannot be run, so another attempt would not help. AS_E_NOT_FOUND: the server does not
 * have one of its files. AS_E_UNAVAILABLE: a stop was asked for. AS_E_IO, AS_E_NOMEM and others: a
 * problem of this machine, which another may not have. */
AS_MUST_CHECK as_status prepare(struct attempt *a, struct as_err *err);

/* Will prepare() return soon? Then it fetches nothing, starts nothing, and touches no file but in
 * the runner's own folders. */
bool prepare_is_quick(const struct attempt *a);

#endif
