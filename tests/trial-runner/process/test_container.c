/* The command lines of container engines: folders, variables and GPUs; values that may be
 * secrets are on none. */
#include "trial-runner/process/container.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"
#include "tests/support/temp_folder.h"

static char *const runner_env[] = {"PATH=/bin", "HOME=/home/runner", "ASSAY_TOKEN=t", NULL};
static struct child_spec spec;

static void set_program(void)
{
    static const char *const argv[] = {"python", "x.py", "a b"};
    static const char *const vars[][2] = {{"TOKEN", "s3cret\nline"},
                                          {"HOME", "/in/image"},
                                          {"ASSAY_REPORT", "/w/t/1/r"},
                                          {"CUDA_VISIBLE_DEVICES", "GPU-1,GPU-2"}};
    struct as_err err;
    child_spec_done(&spec);
    ck_ok(child_spec_set_argv(&spec, argv, 3, &err), err);
    for (size_t i = 0; i < AS_ARRAY_LEN(vars); i++)
        ck_ok(child_env_set(&spec.env, vars[i][0], vars[i][1], &err), err);
}

static const char *command_line(void)
{
    static struct str b;
    str_clear(&b);
    for (size_t i = 0; spec.argv[i]; i++)
        str_printf(&b, "%s%s", i ? "|" : "", spec.argv[i]);
    return str_cstr(&b);
}

static struct container_run run_of(const char *engine, const json_t *container)
{
    return (struct container_run){.container = container,
                                  .engine = engine,
                                  .name = "assay-s-0-1",
                                  .folder = "/home/ada/my x",
                                  .attempt = "/w/t/1",
                                  .cache = "/cache",
                                  .gpus = "GPU-1,GPU-2"};
}

START_TEST(podman)
{
    struct as_err err = {0};
    JSON_AUTO c = json_of("{'image': 'py:3', 'options': ['--network=none', '--init']}");
    const struct container_run r = run_of("podman", c);
    set_program();
    ck_ok(container_wrap(&r, &spec, runner_env, &err), err);
    ck_assert_str_eq(
        command_line(),
        "podman|run|--rm|--replace|--security-opt|label=disable|--security-opt|no-new-privileges|--"
        "name|assay-s-0-1|"
        "--volume|/home/ada/my x:/home/ada/my x|--volume|/w/t/1:/w/t/1|--volume|/cache:/cache:ro|"
        "--workdir|/home/ada/my x|--env|TOKEN|--env|HOME=/in/image|--env|ASSAY_REPORT|"
        "--env|CUDA_VISIBLE_DEVICES|--device|nvidia.com/gpu=GPU-1|--device|nvidia.com/gpu=GPU-2|"
        "--network=none|--init|py:3|python|x.py|a b");
    ck_assert_str_eq(child_env_get(&spec.env, "TOKEN"), "s3cret\nline");
    ck_assert_str_eq(child_env_get(&spec.env, "HOME"), "/home/runner"); /* podman's own */
    ck_assert_str_eq(child_env_get(&spec.env, "ASSAY_REPORT"), "/w/t/1/r");
    ck_assert_ptr_null(child_env_get(&spec.env, "ASSAY_TOKEN"));
}
END_TEST

/* Of ranks: other machines reach their ports. */
START_TEST(network)
{
    static const struct {
        const char *container, *want;
    } cases[] = {
        {"{'image': 'i'}", "|assay-s-0-1|--network=host|--volume|"},
        {"{'image': 'i', 'options': ['--shm-size=1g']}", "|assay-s-0-1|--network=host|--volume|"},
        {"{'image': 'i', 'options': ['--network-alias=a']}", "|assay-s-0-1|--network=host|"},
        {"{'image': 'i', 'options': ['--network=own']}", "|assay-s-0-1|--volume|"},
        {"{'image': 'i', 'options': ['--net=own']}", "|assay-s-0-1|--volume|"},
    };
    struct as_err err = {0};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO c = json_of(cases[i].container);
        struct container_run r = run_of("podman", c);
        r.is_rank = true;
        set_program();
        ck_ok(container_wrap(&r, &spec, runner_env, &err), err);
        ck_assert_msg(strstr(command_line(), cases[i].want) != NULL, "%s: %s", cases[i].container,
                      command_line());
    }
}
END_TEST

START_TEST(apptainer)
{
    struct as_err err = {0};
    JSON_AUTO c = json_of("{'image': 'py.sif'}");
    struct container_run r = run_of("apptainer", c);
    r.cache = NULL;
    set_program();
    ck_ok(container_wrap(&r, &spec, runner_env, &err), err);
    ck_assert_str_eq(
        command_line(),
        "apptainer|exec|--cleanenv|--no-home|--bind|/home/ada/my x:/home/ada/my x|--bind|"
        "/w/t/1:/w/t/1|--pwd|/home/ada/my x|--nv|py.sif|python|x.py|a b");
    ck_assert_str_eq(child_env_get(&spec.env, "APPTAINERENV_TOKEN"), "s3cret\nline");
    ck_assert_str_eq(child_env_get(&spec.env, "APPTAINERENV_HOME"), "/in/image");
    ck_assert_str_eq(child_env_get(&spec.env, "HOME"), "/home/runner");
    ck_assert_str_eq(child_env_get(&spec.env, "ASSAY_REPORT"),
                     "/w/t/1/r"); /* to find its processes */
    r.gpus = "";
    r.folder = "/"; /* the runner's, of a service: not mounted */
    set_program();
    ck_ok(container_wrap(&r, &spec, runner_env, &err), err);
    ck_assert_str_eq(
        command_line(),
        "apptainer|exec|--cleanenv|--no-home|--bind|/w/t/1:/w/t/1|py.sif|python|x.py|a b");
}
END_TEST

START_TEST(folders_that_cannot_be_mounted)
{
    static const char *const folders[] = {"/home/a:b", "/home/a,b"};
    JSON_AUTO c = json_of("{'image': 'i'}");
    for (size_t i = 0; i < AS_ARRAY_LEN(folders); i++) {
        struct as_err err = {0};
        struct container_run r = run_of("podman", c);
        r.folder = folders[i];
        set_program();
        ck_assert_int_eq(container_wrap(&r, &spec, runner_env, &err), AS_E_INVAL);
        ck_assert_ptr_nonnull(strstr(err.msg, folders[i]));
        ck_assert_str_eq(spec.argv[0], "python"); /* as it was */
    }
}
END_TEST

START_TEST(engines)
{
    char dir[TEMP_FOLDER_SIZE];
    struct as_err err = {0};
    AS_AUTO(child_env_done) struct child_env e = {0};
    const char *found = NULL;
    JSON_AUTO any = json_of("{'image': 'i'}");
    JSON_AUTO asked = json_of("{'image': 'i', 'engine': 'podman'}");
    temp_folder_make(dir);
    AS_AUTO(as_freep) char *program = file_join(dir, "apptainer");
    ck_ok(child_env_set(&e, "PATH", dir, &err), err);
    ck_assert_int_eq(container_engine(any, &e, &found, &err), AS_E_NOT_FOUND);
    ck_assert_str_eq(err.msg, "trial.container: this machine has neither podman nor apptainer");
    ck_ok(file_replace(program, "", 0, 0755, &err), err);
    ck_ok(container_engine(any, &e, &found, &err), err);
    ck_assert_str_eq(found, "apptainer");
    ck_assert_int_eq(container_engine(asked, &e, &found, &err), AS_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.msg, "trial.container"));
    temp_folder_remove(dir);
}
END_TEST

START_TEST(names)
{
    char one[CONTAINER_NAME_SIZE], two[CONTAINER_NAME_SIZE], odd[300];
    container_name("/var/tmp/a/trials/hill/3/1", one);
    container_name("/var/tmp/b/trials/hill/3/1", two);
    ck_assert_int_eq(strncmp(one, "assay-hill-3-1-", 15), 0);
    ck_assert_str_ne(one, two);
    ck_assert_uint_eq(strspn(one, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(one));
    memset(odd, 'x', sizeof odd - 1);
    odd[sizeof odd - 1] = 0;
    container_name(odd, two);
    ck_assert_uint_lt(strlen(two), CONTAINER_NAME_SIZE);
}
END_TEST

START_TEST(exits)
{
    ck_assert(WIFSIGNALED(container_wait_status(137 << 8)));
    ck_assert_int_eq(WTERMSIG(container_wait_status(137 << 8)), SIGKILL);
    ck_assert_int_eq(container_wait_status(0), 0);
    ck_assert_int_eq(container_wait_status(75 << 8), 75 << 8);
    ck_assert_int_eq(container_wait_status(128 << 8), 128 << 8);
    ck_assert_int_eq(container_wait_status(255 << 8), 255 << 8);
    ck_assert_int_eq(container_wait_status(SIGTERM), SIGTERM);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("container");
    TCase *t = tcase_create("container");
    tcase_add_test(t, podman);
    tcase_add_test(t, network);
    tcase_add_test(t, apptainer);
    tcase_add_test(t, folders_that_cannot_be_mounted);
    tcase_add_test(t, engines);
    tcase_add_test(t, names);
    tcase_add_test(t, exits);
    suite_add_tcase(s, t);
    return s;
}
