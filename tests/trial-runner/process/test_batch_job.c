#include "tests/support/check_main.h"

#include <string.h>

#include "trial-runner/process/batch_job.h"

static const char *const *pairs; /* name, value, …, NULL */

static const char *get(const char *name)
{
    for (size_t i = 0; pairs[i]; i += 2)
        if (strcmp(pairs[i], name) == 0)
            return pairs[i + 1];
    return NULL;
}

static struct batch_job read_of(const char *const *of)
{
    struct batch_job j;
    pairs = of;
    batch_job_read(get, &j);
    return j;
}

START_TEST(a_task_of_an_array_of_slurm)
{
    static const char *const env[] = {"SLURM_JOB_ID",
                                      "1240",
                                      "SLURM_ARRAY_JOB_ID",
                                      "1234",
                                      "SLURM_ARRAY_TASK_ID",
                                      "7",
                                      "SLURM_CPUS_PER_TASK",
                                      "4",
                                      "SLURM_CPUS_ON_NODE",
                                      "16",
                                      "SLURM_MEM_PER_CPU",
                                      "2048",
                                      "SLURM_JOB_END_TIME",
                                      "1795820400",
                                      NULL};
    struct batch_job j = read_of(env);
    ck_assert_str_eq(j.name, "slurm/1234_7");
    ck_assert_int_eq(j.cpus, 4);
    ck_assert_int_eq(j.memory_bytes, INT64_C(8) << 30);
    ck_assert_int_eq(j.ends_s, 1795820400);
}
END_TEST

START_TEST(a_job_of_slurm)
{
    static const char *const env[] = {
        "SLURM_JOB_ID", "9", "SLURM_CPUS_ON_NODE", "16", "SLURM_MEM_PER_NODE", "1000", NULL};
    struct batch_job j = read_of(env);
    ck_assert_str_eq(j.name, "slurm/9");
    ck_assert_int_eq(j.cpus, 16);
    ck_assert_int_eq(j.memory_bytes, INT64_C(1000) << 20);
    ck_assert_int_eq(j.ends_s, 0);
}
END_TEST

START_TEST(a_pod_of_kubernetes)
{
    static const char *const named[] = {"KUBERNETES_SERVICE_HOST",
                                        "10.0.0.1",
                                        "POD_NAME",
                                        "gpu-0-x7k",
                                        "POD_NAMESPACE",
                                        "ml",
                                        "HOSTNAME",
                                        "h",
                                        NULL};
    static const char *const plain[] = {"KUBERNETES_SERVICE_HOST", "10.0.0.1", "HOSTNAME",
                                        "gpu-0-x7k", NULL};
    ck_assert_str_eq(read_of(named).name, "kubernetes/ml/gpu-0-x7k");
    ck_assert_str_eq(read_of(plain).name, "kubernetes/-/gpu-0-x7k");
}
END_TEST

START_TEST(no_job_and_strange_values)
{
    static const char *const none[] = {NULL};
    static const char *const strange[] = {"SLURM_JOB_ID", "12x", "SLURM_CPUS_PER_TASK", "-3", NULL};
    static const char *const tasks[] = {"SLURM_JOB_ID",
                                        "12",
                                        "SLURM_ARRAY_JOB_ID",
                                        "11",
                                        "SLURM_ARRAY_TASK_ID",
                                        "../1",
                                        "SLURM_MEM_PER_NODE",
                                        "9223372036854775807",
                                        NULL};
    static const char *const pod[] = {"KUBERNETES_SERVICE_HOST", "x", "HOSTNAME", "a\nb", NULL};
    ck_assert_str_eq(read_of(none).name, "");
    ck_assert_str_eq(read_of(strange).name, "");
    ck_assert_int_eq(read_of(strange).cpus, 0);
    ck_assert_str_eq(read_of(tasks).name, "slurm/12");
    ck_assert_int_eq(read_of(tasks).memory_bytes, 0);
    ck_assert_str_eq(read_of(pod).name, "");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("batch_job");
    TCase *t = tcase_create("batch_job");
    tcase_add_test(t, a_task_of_an_array_of_slurm);
    tcase_add_test(t, a_job_of_slurm);
    tcase_add_test(t, a_pod_of_kubernetes);
    tcase_add_test(t, no_job_and_strange_values);
    suite_add_tcase(s, t);
    return s;
}
