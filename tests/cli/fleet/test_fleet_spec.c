/* What a fleet may be, how it is stored, and the scripts and objects that are made of it. */
#include "cli/fleet/fleet_spec.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/shell_text.h"
#include "cli/fleet/command.h"
#include "cli/fleet/kubernetes_objects.h"
#include "cli/fleet/slurm_script.h"
#include "cli/fleet/ssh_script.h"
#include "tests/support/check_main.h"

#define GIB (INT64_C(1) << 30)

static struct as_err err;

static struct fleet_spec spec_of(fleet_engine engine)
{
    struct fleet_spec s = {.engine = engine,
                           .name = "lab",
                           .server = "https://assay.example",
                           .token_file = "/home/u/it's/token",
                           .logs = "/home/u/logs",
                           .slots = 1,
                           .ranks = 1,
                           .image = "assay-runner:0.1"};
    s.hosts[s.n_hosts++] = "me@pc-1";
    return s;
}

START_TEST(texts_that_are_refused)
{
    static const struct {
        size_t offset;
        const char *text;
    } wrong[] = {{offsetof(struct fleet_spec, name), "Lab"},
                 {offsetof(struct fleet_spec, name), "-lab"},
                 {offsetof(struct fleet_spec, name), "lab-"},
                 {offsetof(struct fleet_spec, name), "a/../b"},
                 {offsetof(struct fleet_spec, name), "a23456789b123456789c123456789d123456789e1"},
                 {offsetof(struct fleet_spec, server), "assay.example"},
                 {offsetof(struct fleet_spec, server), "http://h/'; rm -rf /"},
                 {offsetof(struct fleet_spec, token_file), "relative/token"},
                 {offsetof(struct fleet_spec, token_file), "/a\nb"},
                 {offsetof(struct fleet_spec, token_file), "/a\x01"},
                 {offsetof(struct fleet_spec, program), "-rf"},
                 {offsetof(struct fleet_spec, partition), "gpu --uid=0"},
                 {offsetof(struct fleet_spec, partition), "gpu\n#SBATCH --uid=0"},
                 {offsetof(struct fleet_spec, account), "--uid=0"},
                 {offsetof(struct fleet_spec, qos), "\"high\""},
                 {offsetof(struct fleet_spec, constraint), ""},
                 {offsetof(struct fleet_spec, logs), "/tmp/%j"},
                 {offsetof(struct fleet_spec, logs), "/tmp/a b"},
                 {offsetof(struct fleet_spec, image), "a b"},
                 {offsetof(struct fleet_spec, namespace), "Kube"},
                 {offsetof(struct fleet_spec, namespace), "../kube-system"},
                 {offsetof(struct fleet_spec, context), "-v"},
                 {offsetof(struct fleet_spec, pull_secret), "a_b"},
                 {offsetof(struct fleet_spec, queue), "a.b"}};
    for (size_t i = 0; i < AS_ARRAY_LEN(wrong); i++) {
        struct fleet_spec s = spec_of(FLEET_SLURM);
        ck_ok(fleet_spec_check(&s, &err), err);
        *(const char **)(void *)((char *)&s + wrong[i].offset) = wrong[i].text;
        ck_fails(fleet_spec_check(&s, &err), AS_E_USAGE, err, "expected");
    }
}
END_TEST

START_TEST(numbers_hosts_and_what_is_needed)
{
    struct fleet_spec s = spec_of(FLEET_SLURM);
    s.ranks = 0;
    ck_fails(fleet_spec_check(&s, &err), AS_E_USAGE, err, "--ranks is 0, expected 1 to 1024");
    s = spec_of(FLEET_SLURM);
    s.server = NULL;
    ck_fails(fleet_spec_check(&s, &err), AS_E_USAGE, err, "--runner-server");
    s = spec_of(FLEET_KUBERNETES);
    s.image = NULL;
    ck_fails(fleet_spec_check(&s, &err), AS_E_USAGE, err, "--image");
    s = spec_of(FLEET_SSH);
    s.hosts[0] = "-oProxyCommand=reboot";
    ck_fails(fleet_spec_check(&s, &err), AS_E_USAGE, err, "is no host");
    s = spec_of(FLEET_SSH);
    s.hosts[s.n_hosts++] = "me@pc-1";
    ck_fails(fleet_spec_check(&s, &err), AS_E_USAGE, err, "twice");
    s = spec_of(FLEET_SSH);
    s.ranks = 2;
    ck_fails(fleet_spec_check(&s, &err), AS_E_USAGE, err, "--ranks");
    s = spec_of(FLEET_SSH);
    s.n_hosts = 0;
    ck_fails(fleet_spec_check(&s, &err), AS_E_USAGE, err, "HOST");
}
END_TEST

START_TEST(what_is_stored_is_read_back)
{
    struct fleet_spec s = spec_of(FLEET_SSH), back;
    JSON_AUTO tree = NULL;
    s.memory_bytes = 16 * GIB;
    s.time_ms = 90000;
    ck_ok(fleet_spec_json(&s, &tree, &err), err);
    ck_ok(fleet_spec_parse(tree, &back, &err), err);
    ck_assert_int_eq(back.engine, FLEET_SSH);
    ck_assert_int_eq(back.memory_bytes, 16 * GIB);
    ck_assert_int_eq(back.time_ms, 90000);
    ck_assert_str_eq(back.token_file, s.token_file);
    ck_assert_uint_eq(back.n_hosts, 1);
    ck_assert_str_eq(back.hosts[0], "me@pc-1");
    ck_assert_ptr_null(back.partition);
    json_object_set_new(tree, "surprise", json_true());
    ck_fails(fleet_spec_parse(tree, &back, &err), AS_E_INVAL, err, "surprise");
}
END_TEST

START_TEST(a_script_for_slurm)
{
    AS_AUTO(str_done) struct str b = {0};
    struct fleet_spec s = spec_of(FLEET_SLURM);
    s.partition = "gpu";
    s.cpus = 4;
    s.gpus = 1;
    s.memory_bytes = 16 * GIB;
    s.time_ms = 4 * 3600 * 1000;
    s.idle_exit_ms = 600000;
    slurm_script(&s, 3, &b);
    static const char want[] =
        "#!/bin/sh\n"
        "#SBATCH --job-name=assay-lab\n"
        "#SBATCH --array=0-2\n"
        "#SBATCH --partition=gpu\n"
        "#SBATCH --ntasks=1\n"
        "#SBATCH --nodes=1\n"
        "#SBATCH --cpus-per-task=4\n"
        "#SBATCH --mem=16384M\n"
        "#SBATCH --gpus-per-node=1\n"
        "#SBATCH --time=240\n"
        "#SBATCH --signal=B:TERM@120\n"
        "#SBATCH --output=/home/u/logs/%A_%a.log\n"
        "#SBATCH --open-mode=append\n"
        "export ASSAY_SERVER='https://assay.example'\n"
        "export ASSAY_TOKEN_FILE='/home/u/it'\\''s/token'\n"
        "export ASSAY_RUNNER_FLEET='lab'\n"
        "length=$((${SLURM_JOB_END_TIME:-0} - ${SLURM_JOB_START_TIME:-0}))\n"
        "[ \"${SLURM_JOB_START_TIME:-0}\" -gt 0 ] && [ $length -gt 0 ] || length=14400\n"
        "export ASSAY_RUNNER_UNTIL=${length}s\n"
        "name=lab-$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID\n"
        "program='assay-runner'\n"
        "work=''\n"
        "export name program work\n"
        "exec \"$program\" --name \"$name\" ${work:+--work \"$work/$name\"} --slots 1 --cpus 4 "
        "--memory 17179869184 --idle-exit 600000ms\n";
    ck_assert_str_eq(str_cstr(&b), want);
}
END_TEST

START_TEST(ranks_of_one_job)
{
    AS_AUTO(str_done) struct str b = {0};
    struct fleet_spec s = spec_of(FLEET_SLURM);
    s.ranks = 4;
    s.cpus = 8;
    s.memory_bytes = 16 * GIB;
    s.time_ms = 60000;
    slurm_script(&s, 1, &b);
    static const char srun[] =
        "exec srun --kill-on-bad-exit=0 --cpus-per-task 8 sh -c 'exec \"$program\" --name "
        "\"$name-$SLURM_PROCID\" ${work:+--work \"$work/$name-$SLURM_PROCID\"} --slots 1 --cpus 8 "
        "--memory 17179869184 --gpus none'\n";
    static const char *const parts[] = {"#SBATCH --array=0-0\n", "#SBATCH --ntasks=4\n",
                                        "#SBATCH --mem-per-cpu=2048M\n",
                                        "#SBATCH --signal=TERM@15\n", srun};
    for (size_t i = 0; i < AS_ARRAY_LEN(parts); i++)
        ck_assert_msg(strstr(str_cstr(&b), parts[i]), "%s: %s", parts[i], str_cstr(&b));
    ck_assert(!strstr(str_cstr(&b), "--nodes"));
}
END_TEST

START_TEST(scripts_for_ssh)
{
    AS_AUTO(str_done) struct str start = {0}, print = {0}, stop = {0};
    struct fleet_spec s = spec_of(FLEET_SSH);
    s.work = "/scratch/o'brien";
    ssh_script(&s, SSH_START, "me@pc-1", "abc_123", &start);
    ck_assert(strstr(start.s, "base='/scratch/o'\\''brien'\n"));
    ck_assert(strstr(start.s, "cat > \"$dir/token\" <<'END_OF_TOKEN'\nabc_123\nEND_OF_TOKEN\n"));
    ck_assert(strstr(start.s, "export ASSAY_RUNNER_JOB=ssh/'pc-1'\n"));
    ssh_script(&s, SSH_START, NULL, NULL, &print);
    ck_assert(!strstr(print.s, "END_OF_TOKEN"));
    ssh_script(&s, SSH_STOP, "me@pc-1", NULL, &stop);
    ck_assert(strstr(stop.s, "kill -TERM \"$pid\"") && !strstr(stop.s, "assay.example"));
    ck_assert_str_eq(ssh_host_of("me@pc-1"), "pc-1");
    ck_assert_str_eq(ssh_host_of("pc-1"), "pc-1");
}
END_TEST

static const json_t *at(const json_t *j, const char *a, const char *b, const char *c)
{
    j = json_object_get(j, a);
    j = b ? json_object_get(j, b) : j;
    return c ? json_object_get(j, c) : j;
}

START_TEST(a_job_of_kubernetes)
{
    JSON_AUTO job = NULL;
    JSON_AUTO secret = NULL;
    struct fleet_spec s = spec_of(FLEET_KUBERNETES);
    s.ranks = 4;
    s.gpus = 2;
    s.queue = "batch";
    s.time_ms = 90500;
    ck_ok(kubernetes_job(&s, "0f", &job, &err), err);
    ck_assert_str_eq(json_string_value(at(job, "metadata", "name", NULL)), "assay-lab-0f");
    ck_assert_str_eq(json_string_value(at(job, "metadata", "labels", "kueue.x-k8s.io/queue-name")),
                     "batch");
    ck_assert_int_eq(json_integer_value(at(job, "spec", "completions", NULL)), 4);
    ck_assert_int_eq(json_integer_value(at(job, "spec", "parallelism", NULL)), 4);
    ck_assert_int_eq(json_integer_value(at(job, "spec", "activeDeadlineSeconds", NULL)), 91);
    const json_t *pod = at(job, "spec", "template", "spec");
    ck_assert(json_is_false(json_object_get(pod, "automountServiceAccountToken")));
    ck_assert(json_is_true(at(pod, "securityContext", "runAsNonRoot", NULL)));
    const json_t *c = json_array_get(json_object_get(pod, "containers"), 0);
    ck_assert_str_eq(json_string_value(at(c, "resources", "limits", "nvidia.com/gpu")), "2");
    ck_assert(json_is_true(at(c, "securityContext", "readOnlyRootFilesystem", NULL)));
    AS_AUTO(as_freep) char *text = json_format(job);
    ck_assert(!strstr(text, "stringData"));
    ck_ok(kubernetes_secret(&s, "abc", &secret, &err), err);
    ck_assert_str_eq(json_string_value(at(secret, "stringData", "token", NULL)), "abc");
    ck_assert_str_eq(json_string_value(at(secret, "metadata", "name", NULL)), "assay-lab");
}
END_TEST

START_TEST(programs_of_a_cluster)
{
    AS_AUTO(str_done) struct str out = {0};
    const char *const echo[] = {"sh", "-c", "cat; env | grep -c ^ASSAY_", NULL};
    const char *const fails[] = {"sh", "-c", "echo the quota is full >&2; exit 3", NULL};
    const char *const away[] = {"sh", "-c", "echo Connection refused >&2; exit 1", NULL};
    const char *const slow[] = {"sleep", "100", NULL};
    const char *const none[] = {"no-such-program-x", NULL};
    (void)setenv("ASSAY_TOKEN", "secret", 1);
    ck_fails(command_run(echo, "hello ", 10000, &out, &err), AS_E_CONFLICT, err, "sh");
    ck_assert_str_eq(str_cstr(&out), "hello 0\n"); /* and grep found nothing */
    ck_fails(command_run(fails, NULL, 10000, &out, &err), AS_E_CONFLICT, err,
             "sh: the quota is full");
    ck_fails(command_run(away, NULL, 10000, &out, &err), AS_E_UNAVAILABLE, err, "refused");
    ck_fails(command_run(slow, NULL, 50, &out, &err), AS_E_UNAVAILABLE, err, "no answer");
    ck_fails(command_run(none, NULL, 10000, &out, &err), AS_E_NOT_FOUND, err, "not installed");
    ck_assert(command_says_away("sbatch: error: Unable to contact slurm controller"));
    ck_assert(!command_says_away("sbatch: error: invalid partition specified: x"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("fleet_spec");
    TCase *t = tcase_create("fleet_spec");
    tcase_add_test(t, texts_that_are_refused);
    tcase_add_test(t, numbers_hosts_and_what_is_needed);
    tcase_add_test(t, what_is_stored_is_read_back);
    tcase_add_test(t, a_script_for_slurm);
    tcase_add_test(t, ranks_of_one_job);
    tcase_add_test(t, scripts_for_ssh);
    tcase_add_test(t, a_job_of_kubernetes);
    tcase_add_test(t, programs_of_a_cluster);
    suite_add_tcase(s, t);
    return s;
}
