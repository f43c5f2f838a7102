/* The batch script of a fleet for Slurm. */
#ifndef ASSAY_CLI_FLEET_SLURM_SCRIPT_H
#define ASSAY_CLI_FLEET_SLURM_SCRIPT_H

#include "base/str.h"
#include "cli/fleet/fleet_spec.h"

/* What a job is named: "assay-NAME". */
#define SLURM_JOB_PREFIX "assay-"

/* Append a script that starts `jobs` jobs as one array: a runner each, or spec->ranks runners that
 * start together. It names no credentials, only the file of the token. spec: checked, with a
 * token's file and a folder for logs. Pure. */
void slurm_script(const struct fleet_spec *spec, int64_t jobs, struct str *b);

#endif
