/* Rules instead of a list of secrets: whatever begins with PG or ASSAY_ is removed, so a credential
 * of a later release does not reach a trial before somebody allows it; the trainer's settings are
 * the exceptions (decision 7004). Credentials of clouds and package registries pass, because trials
 * need them. */
#include "trial-runner/process/child_env.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/private_env.h"
#include "base/str.h"

/* The names of each launcher begin alike. */
static const char *const scrubbed_prefixes[] = {
    "SLURM_",        "SLURMD_",  "SBATCH_", "SRUN_", "PMI_",   "PMI2_",  "PMIX_",
    "OMPI_",         "OPAL_",    "ORTE_",   "PRTE_", "PRRTE_", "I_MPI_", "MPI_LOCAL",
    "MV2_",          "MPIRUN_",  "HYDRA_",  "PALS_", "ALPS_",  "FLUX_",  "JSM_",
    "TORCHELASTIC_", "HOROVOD_", "PBS_",    "LSB_",  "SGE_",
};
static const char *const scrubbed_names[] = {
    /* torchrun, JAX, TensorFlow: a trial would wait for peers that do not exist */
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
    "ROLE_RANK", "ROLE_WORLD_SIZE", "ROLE_NAME", "NODE_RANK", "CROSS_RANK", "CROSS_SIZE",
    "LOCAL_SIZE", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG", "JAX_COORDINATOR_ADDRESS",
    "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "NCCL_COMM_ID", "CUDA_VISIBLE_DEVICES",
    /* the sockets and secrets of the service manager */
    "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
    "CREDENTIALS_DIRECTORY"};
static bool is_scrubbed(const char *pair)
{
    if (private_env_is(pair))
        return true;
    for (size_t i = 0; i < AS_ARRAY_LEN(scrubbed_prefixes); i++)
        if (as_starts_with(pair, scrubbed_prefixes[i]))
            return true;
    return private_env_has_name(pair, scrubbed_names, AS_ARRAY_LEN(scrubbed_names));
}

static as_status push_pair(struct child_env *e, char *pair, struct as_err *err)
{
    as_status st = pair ? as_grow(&e->v, e->n + 2, sizeof *e->v, err) : as_fail_nomem(err);
    if (st < 0) {
        free(pair);
        return st;
    }
    e->v[e->n++] = pair;
    e->v[e->n] = NULL;
    return AS_OK;
}

as_status child_env_init(struct child_env *e, char *const *base, struct as_err *err)
{
    for (; *base; base++) {
        if (!strchr(*base, '=') || is_scrubbed(*base))
            continue;
        as_status st = push_pair(e, as_strdup(*base), err);
        if (st < 0)
            return st;
    }
    return child_env_set(e, "PYTHONUNBUFFERED", "1", err);
}

void child_env_done(struct child_env *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->v[i]);
    free(e->v);
    *e = (struct child_env){0};
}

static size_t find_variable(const struct child_env *e, const char *name)
{
    size_t len = strlen(name), i = 0;
    while (i < e->n && (strncmp(e->v[i], name, len) != 0 || e->v[i][len] != '='))
        i++;
    return i;
}

const char *child_env_get(const struct child_env *e, const char *name)
{
    size_t i = find_variable(e, name);
    return i < e->n ? e->v[i] + strlen(name) + 1 : NULL;
}

as_status child_env_set(struct child_env *e, const char *name, const char *value,
                        struct as_err *err)
{
    AS_AUTO(str_done) struct str pair = {0};
    if (!*name || strchr(name, '='))
        return as_fail(err, AS_E_INVAL, "'%.80s' cannot be the name of an environment variable",
                       name);
    str_printf(&pair, "%s=%s", name, value);
    char *text = str_take(&pair);
    size_t i = find_variable(e, name);
    if (i == e->n || !text)
        return push_pair(e, text, err);
    free(e->v[i]);
    e->v[i] = text;
    return AS_OK;
}

void child_env_unset(struct child_env *e, const char *name)
{
    size_t i = find_variable(e, name);
    if (i == e->n)
        return;
    free(e->v[i]);
    e->v[i] = e->v[--e->n];
    e->v[e->n] = NULL;
}

static as_status set_number(struct child_env *e, const char *name, int64_t n, struct as_err *err)
{
    char text[24];
    if (child_env_get(e, name))
        return AS_OK;
    snprintf(text, sizeof text, "%lld", (long long)n);
    return child_env_set(e, name, text, err);
}

as_status child_env_set_threads(struct child_env *e, int64_t cpus, int64_t slots,
                                struct as_err *err)
{
    static const char *const libraries[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                            "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"};
    cpu_set_t set;
    int64_t all = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int64_t share = all / slots > 1 ? all / slots : 1;
    for (size_t i = 0; i < AS_ARRAY_LEN(libraries); i++) {
        as_status st = set_number(e, libraries[i], cpus > 0 ? cpus : 1, err);
        if (st < 0)
            return st;
    }
    return set_number(e, "ASSAY_THREADS", cpus > 0 ? cpus : share, err);
}
