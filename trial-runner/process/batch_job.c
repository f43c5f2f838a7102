/* Slurm and Kubernetes say in the environment which job or pod a process belongs to.
 *
 * Slurm also says what the job was given. That counts where no control group or CPU mask bounds the
 * process: many clusters are configured without them, and two jobs on a node would both use all of
 * it. */
#include "trial-runner/process/batch_job.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* A number from 1 of the environment; 0: there is none. */
static int64_t number_of(const char *(*get)(const char *), const char *name)
{
    const char *text = get(name);
    int64_t v = 0;
    return text && as_parse_i64(text, &v, NULL) == AS_OK && v > 0 ? v : 0;
}

static int64_t mebibytes(int64_t n)
{
    return n > 0 && n < INT64_MAX >> 20 ? n << 20 : 0;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a > 0 && (b == 0 || a < b) ? a : b;
}

static void read_slurm(const char *(*get)(const char *), struct batch_job *j)
{
    int64_t array = number_of(get, "SLURM_ARRAY_JOB_ID"), id = number_of(get, "SLURM_JOB_ID");
    const char *task = get("SLURM_ARRAY_TASK_ID");
    int64_t per_cpu = mebibytes(number_of(get, "SLURM_MEM_PER_CPU"));
    if (array && task && strspn(task, "0123456789") == strlen(task) && *task)
        (void)snprintf(j->name, sizeof j->name, "slurm/%lld_%.20s", (long long)array, task);
    else
        (void)snprintf(j->name, sizeof j->name, "slurm/%lld", (long long)id);
    j->cpus = smaller(number_of(get, "SLURM_CPUS_PER_TASK"), number_of(get, "SLURM_CPUS_ON_NODE"));
    j->memory_bytes = mebibytes(number_of(get, "SLURM_MEM_PER_NODE"));
    if (j->memory_bytes == 0 && per_cpu > 0 && j->cpus > 0 && per_cpu < INT64_MAX / j->cpus)
        j->memory_bytes = per_cpu * j->cpus;
    j->ends_s = number_of(get, "SLURM_JOB_END_TIME");
}

/* Part of a name of the cluster: printable, without a slash. */
static bool is_name(const char *text)
{
    return text && *text && strlen(text) < 80 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
               strlen(text);
}

/* The manifests of `assay launch` set POD_NAME and POD_NAMESPACE; a pod of others has its name as
 * its host's. */
static void read_kubernetes(const char *(*get)(const char *), struct batch_job *j)
{
    const char *pod = get("POD_NAME"), *namespace = get("POD_NAMESPACE");
    if (!is_name(pod))
        pod = get("HOSTNAME");
    if (!is_name(pod))
        return;
    (void)snprintf(j->name, sizeof j->name, "kubernetes/%s/%s",
                   is_name(namespace) ? namespace : "-", pod);
}

void batch_job_read(const char *(*get)(const char *), struct batch_job *ret)
{
    *ret = (struct batch_job){0};
    if (number_of(get, "SLURM_JOB_ID") > 0)
        read_slurm(get, ret);
    else if (get("KUBERNETES_SERVICE_HOST"))
        read_kubernetes(get, ret);
}

static const char *get_of_this_process(const char *name)
{
    return getenv(name);
}

void batch_job_of_this_process(struct batch_job *ret)
{
    batch_job_read(get_of_this_process, ret);
}
