/* Real processes behind walls: what leaves its process group and its environment dies all the
 * same, a program that is set-user-ID gains nothing, processes and files are limited. What this
 * host does not allow (control groups, other users) is left out, and the test says so. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/pipe_end.h"
#include "tests/support/temp_folder.h"
#include "trial-runner/process/child.h"
#include "trial-runner/process/clone_into.h"

#define NOBODY 65534

static char work[TEMP_FOLDER_SIZE];
static struct confinement walls;
static struct as_err err;

static void open_walls(const struct confinement_limits *limits)
{
    ck_ok(confinement_open(limits, work, &walls, &err), err);
}

static void setup(void)
{
    temp_folder_make(work);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void teardown(void)
{
    confinement_done(&walls);
    temp_folder_remove(work);
}

/* Run `sh -c script` to its end; returns the wait status. The output ends with the program. */
static int run_sh(const char *script, bool is_engine, struct str *out)
{
    static const char *const base[] = {"PATH=/usr/bin:/bin", NULL};
    const char *argv[] = {"sh", "-c", script, NULL};
    struct child_spec s = {.confinement = &walls, .is_engine = is_engine};
    int fd = -1, status = 0;
    pid_t pid = 0;
    siginfo_t info;
    str_clear(out);
    ck_ok(child_env_init(&s.env, (char *const *)base, &err), err);
    ck_ok(child_spec_set_argv(&s, argv, 3, &err), err);
    ck_ok(child_spawn(&s, &pid, &fd, &err), err);
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0)
        ;
    child_take_end(pid, s.cgroup, "/nowhere", &status);
    if (s.cgroup)
        ck_assert_int_ne(access(s.cgroup, F_OK), 0); /* no group is left */
    read_to_end(fd, out);
    close(fd);
    child_spec_done(&s);
    return status;
}

static bool is_gone(pid_t pid)
{
    char path[64];
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (file_read(path, 4096, &text, &len, NULL) < 0)
        return true;
    const char *paren = strrchr(text, ')');
    return paren && (paren[2] == 'Z' || paren[2] == 'X');
}

/* What the sandboxes of some containers do: the kernel seems to have no clone3(). For good. */
static void refuse_clone3(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    if (geteuid() != 0)
        ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void tell_group(const void *arg)
{
    const int *out = arg;
    char text[512];
    int fd = open("/proc/self/cgroup", O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    _exit(n > 0 && write(*out, text, (size_t)n) == n ? 0 : 1);
}

START_TEST(a_process_begins_in_its_group)
{
    AS_AUTO(as_freep) char *path = NULL;
    AS_AUTO(str_done) struct str out = {0};
    const struct cgroup_limits none = {0};
    int fds[2], status = 0;
    open_walls(&(struct confinement_limits){.processes = CONFINEMENT_PROCESSES});
    ck_assert_int_lt(clone_into(-1, tell_group, &fds[1]), 0);
    ck_assert_int_eq(errno, EBADF);
    if (!walls.cgroups)
        return;
    ck_ok(cgroup_make(walls.cgroups, &none, &path, &err), err);
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    ck_assert(folder >= 0 && pipe(fds) == 0);
    pid_t pid = clone_into(folder, tell_group, &fds[1]);
    if (pid < 0) {
        ck_assert_int_eq(errno, ENOSYS);
        printf("processes enter their group: %s\n", strerror(errno));
    } else {
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        close(fds[1]);
        read_to_end(fds[0], &out);
        const char *name = strrchr(path, '/');
        ck_assert_msg(strstr(str_cstr(&out), name), "'%s' is not in %s", name, str_cstr(&out));
    }
    close(folder);
    ck_assert_uint_eq(cgroup_end(path, 1000), 0);
}
END_TEST

/* It forks twice, leaves the session, and has nothing of the trial in its environment. */
static void leave_group(void)
{
    AS_AUTO(str_done) struct str out = {0};
    open_walls(&(struct confinement_limits){.processes = CONFINEMENT_PROCESSES});
    if (!walls.cgroups) {
        printf("without a control group: %s\n", walls.why_none);
        ck_assert_uint_gt(strlen(walls.why_none), 0);
        return;
    }
    int status =
        run_sh("(setsid env -i sh -c '(echo $$; exec /bin/sleep 600) & exec /bin/sleep 600'"
               " </dev/null &) ; sleep 0.3",
               false, &out);
    ck_assert_int_eq(status, 0);
    pid_t left = (pid_t)strtol(str_cstr(&out), NULL, 10);
    ck_assert_int_gt(left, 1);
    ck_assert_msg(is_gone(left), "process %d is still there", (int)left);
}

START_TEST(nothing_leaves_a_control_group)
{
    leave_group();
}
END_TEST

START_TEST(nothing_leaves_a_group_that_it_had_to_enter)
{
    refuse_clone3();
    leave_group();
}
END_TEST

static void ck_line(const struct str *out, const char *line)
{
    ck_assert_msg(strstr(str_cstr(out), line) != NULL, "'%s' is not in\n%s", line, str_cstr(out));
}

START_TEST(no_privileges_and_limits)
{
    AS_AUTO(str_done) struct str out = {0}, words = {0};
    open_walls(&(struct confinement_limits){.files = 77, .file_bytes = 1 << 20, .processes = 9999});
    run_sh("grep -E 'NoNewPrivs|Cap(Eff|Prm|Bnd|Inh|Amb)' /proc/self/status | tr -d '\t'; "
           "echo files $(ulimit -n) core $(ulimit -c); dd if=/dev/zero of=/dev/null count=1 2>&1; "
           "ls /proc/self/fd | tr '\n' ' '",
           false, &out);
    ck_line(&out, "NoNewPrivs:1\n");
    ck_line(&out, "CapEff:0000000000000000\n");
    ck_line(&out, "CapPrm:0000000000000000\n");
    ck_line(&out, "CapInh:0000000000000000\n");
    ck_line(&out, "CapAmb:0000000000000000\n");
    if (geteuid() == 0)
        ck_line(&out, "CapBnd:0000000000000000\n");
    ck_line(&out, "files 77 core 0\n");
    ck_line(&out, "0 1 2 3 "); /* 3 is the folder that ls reads: the group's entry is closed */
    confinement_words(&walls, &words);
    ck_line(&words, "no_new_privileges no_capabilities");
    ck_line(&words, "files file_size");
    int status = run_sh("f=$(mktemp) && dd if=/dev/zero of=$f bs=1M count=2 2>/dev/null; s=$?; "
                        "stat -c %s $f; rm $f; exit $s",
                        false, &out);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    ck_line(&out, "1048576\n");
    run_sh("grep NoNewPrivs /proc/self/status | tr -d '\t'", true, &out);
    ck_line(&out, "NoNewPrivs:0\n"); /* an engine makes a container */
}
END_TEST

START_TEST(privileges_that_are_kept)
{
    AS_AUTO(str_done) struct str out = {0}, words = {0};
    open_walls(&(struct confinement_limits){.processes = 9999, .keeps_privileges = true});
    run_sh("grep NoNewPrivs /proc/self/status | tr -d '\t'", false, &out);
    ck_line(&out, "NoNewPrivs:0\n");
    confinement_words(&walls, &words);
    ck_assert_ptr_null(strstr(str_cstr(&words), "privileges"));
}
END_TEST

/* Become a user without rights, whose programs are so for good, until become_root(). */
static bool become_nobody(void)
{
    if (geteuid() != 0) {
        printf("not root: left out\n");
        return false;
    }
    ck_assert_int_eq(chmod(work, 0755), 0);
    ck_assert_int_eq(setgroups(0, NULL), 0);
    ck_assert_int_eq(setresgid(NOBODY, NOBODY, NOBODY), 0);
    ck_assert_int_eq(setresuid(NOBODY, NOBODY, 0), 0);
    return true;
}

static void become_root(void)
{
    ck_assert_int_eq(setresuid(0, 0, 0), 0); /* the folder of the test is root's */
}

START_TEST(a_setuid_program_gains_nothing)
{
    AS_AUTO(str_done) struct str out = {0};
    char path[TEMP_FOLDER_SIZE + 32], script[TEMP_FOLDER_SIZE + 64];
    AS_AUTO(as_freep) char *program = NULL;
    size_t len = 0;
    struct confinement_limits limits = {.processes = 9999};
    open_walls(&limits);
    (void)snprintf(path, sizeof path, "%s/id", work);
    ck_ok(file_read("/usr/bin/id", 1 << 22, &program, &len, &err), err);
    ck_ok(file_replace(path, program, len, 0755, &err), err);
    ck_assert_int_eq(chmod(path, 04755), 0);
    if (!become_nobody())
        return;
    cgroup_home_close(walls.cgroups); /* it is root's */
    walls.cgroups = NULL;
    (void)snprintf(script, sizeof script, "%s -u", path);
    walls.limits.keeps_privileges = true;
    run_sh(script, false, &out);
    if (strcmp(str_cstr(&out), "0\n") != 0) {
        printf("the folder is mounted nosuid: left out\n");
        become_root();
        return;
    }
    walls.limits.keeps_privileges = false;
    run_sh(script, false, &out);
    become_root();
    ck_assert_str_eq(str_cstr(&out), "65534\n");
}
END_TEST

START_TEST(a_fork_bomb_is_bounded)
{
    AS_AUTO(str_done) struct str out = {0};
    open_walls(&(struct confinement_limits){.processes = 40});
    if (!become_nobody())
        return;
    cgroup_home_close(walls.cgroups);
    walls.cgroups = NULL;
    int status =
        run_sh("i=0; while [ $i -lt 300 ]; do sleep 600 & i=$((i+1)); done; echo all", false, &out);
    become_root();
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) != 0, "status %d: %s", status,
                  str_cstr(&out));
    ck_assert_ptr_null(strstr(str_cstr(&out), "all"));
}
END_TEST

START_TEST(each_program_has_a_folder_for_temporary_files)
{
    AS_AUTO(as_freep) char *one = NULL, *two = NULL;
    struct stat st;
    struct confinement_limits limits = {.processes = 9999};
    (void)unsetenv("TMPDIR");
    open_walls(&limits);
    ck_ok(confinement_tmp(&walls, &one, &err), err);
    ck_ok(confinement_tmp(&walls, &two, &err), err);
    ck_assert_str_ne(one, two);
    ck_assert(stat(one, &st) == 0 && (st.st_mode & 07777) == 0700);
    confinement_done(&walls);
    open_walls(&limits); /* the next runner removes what is left */
    ck_assert_int_ne(access(one, F_OK), 0);
    confinement_done(&walls);
    ck_assert_int_eq(setenv("TMPDIR", "/var/tmp", 1), 0); /* it stays */
    open_walls(&limits);
    free(as_steal(one));
    ck_ok(confinement_tmp(&walls, &one, &err), err);
    ck_assert_ptr_null(one);
}
END_TEST

/* Groups of another host, as files. */
static void write_root(const char *cgroup, const char *mountinfo)
{
    AS_AUTO(as_freep) char *proc = file_join(work, "proc/self");
    AS_AUTO(as_freep) char *one = file_join(proc, "cgroup");
    AS_AUTO(as_freep) char *two = file_join(proc, "mountinfo");
    ck_ok(file_mkdirs(proc, 0755, &err), err);
    ck_ok(file_replace(one, cgroup, strlen(cgroup), 0644, &err), err);
    ck_ok(file_replace(two, mountinfo, strlen(mountinfo), 0644, &err), err);
}

#define MOUNT(ROOT) "35 28 0:31 " ROOT " /groups rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"

START_TEST(why_there_are_no_control_groups)
{
    struct cgroup_home *h = NULL;
    AS_AUTO(as_freep) char *folder = file_join(work, "groups/me");
    write_root("3:memory:/x\n", MOUNT("/"));
    ck_fails(cgroup_home_open(work, &h, &err), AS_E_UNSUPPORTED, err, "no control groups");
    write_root("0::/me\n", "36 28 0:32 / /groups rw - cgroup cgroup rw,memory\n");
    ck_fails(cgroup_home_open(work, &h, &err), AS_E_UNSUPPORTED, err, "no control groups");
    write_root("0::/me\n", MOUNT("/"));
    ck_fails(cgroup_home_open(work, &h, &err), AS_E_UNSUPPORTED, err, "groups/me is not delegated");
    ck_ok(file_mkdirs(folder, 0755, &err), err);
    ck_fails(cgroup_home_open(work, &h, &err), AS_E_UNSUPPORTED, err, "have no cgroup.kill");
    write_root("0::/docker/7/me\n", MOUNT("/docker/7")); /* a part of the tree */
    ck_fails(cgroup_home_open(work, &h, &err), AS_E_UNSUPPORTED, err, "have no cgroup.kill");
    ck_assert_ptr_null(h);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("confinement");
    TCase *tc = tcase_create("walls");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_process_begins_in_its_group);
    tcase_add_test(tc, nothing_leaves_a_control_group);
    tcase_add_test(tc, no_privileges_and_limits);
    tcase_add_test(tc, privileges_that_are_kept);
    tcase_add_test(tc, a_setuid_program_gains_nothing);
    tcase_add_test(tc, a_fork_bomb_is_bounded);
    tcase_add_test(tc, each_program_has_a_folder_for_temporary_files);
    tcase_add_test(tc, why_there_are_no_control_groups);
    tcase_add_test(tc, nothing_leaves_a_group_that_it_had_to_enter); /* the last: see above */
    suite_add_tcase(s, tc);
    return s;
}
