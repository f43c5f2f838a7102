/* Files: durable replacement, what is never replaced (devices, pipes, folders), links, modes,
 * folders, and a disk that is full. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static char dir[TEMP_FOLDER_SIZE];

static void setup(void)
{
    temp_folder_make(dir);
}

static void teardown(void)
{
    temp_folder_remove(dir);
}

START_TEST(replace_and_read)
{
    struct as_err err;
    AS_AUTO(as_freep) char *path = file_join(dir, "f");
    AS_AUTO(as_freep) char *got = NULL;
    size_t len;
    ck_ok(file_replace(path, "one", 3, 0600, &err), err);
    ck_ok(file_replace(path, "three", 5, 0600, &err), err);
    ck_ok(file_read(path, 100, &got, &len, &err), err);
    ck_assert_uint_eq(len, 5);
    ck_assert_str_eq(got, "three");
    struct stat sb;
    ck_assert_int_eq(stat(path, &sb), 0);
    ck_assert_int_eq(sb.st_mode & 0777, 0600);
    char *none = NULL;
    ck_fails(file_read(path, 4, &none, NULL, &err), AS_E_TOO_LARGE, err, "larger");
    ck_fails(file_read("/nowhere/x", 4, &none, NULL, &err), AS_E_NOT_FOUND, err, "/nowhere/x");
}
END_TEST

/* /dev/full stands in for a full disk: ENOSPC on every write. */
START_TEST(publish_and_sync)
{
    struct as_err err;
    AS_AUTO(as_freep) char *path = file_join(dir, "f");
    AS_AUTO(as_freep) char *got = NULL;
    AS_AUTO(as_freep) char *missing = file_join(dir, "none");
    const struct iovec parts[] = {{"on", 2}, {"", 0}, {"e", 1}};
    struct stat st;
    size_t len;
    ck_ok(file_replace(path, "before", 6, 0600, &err), err);
    ck_ok(file_publishv(path, parts, 3, 0640, &err), err);
    ck_ok(file_read(path, 100, &got, &len, &err), err);
    ck_assert_str_eq(got, "one");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0640);
    ck_ok(file_sync(path, &err), err);
    ck_ok(file_sync(dir, &err), err);
    ck_fails(file_sync(missing, &err), AS_E_NOT_FOUND, err, "none");
}
END_TEST

START_TEST(full_disk_is_named)
{
    struct as_err err;
    FILE *f = fopen("/dev/full", "w");
    ck_assert_ptr_nonnull(f);
    ck_fails(file_write_all(fileno(f), "x", 1, &err), AS_E_IO, err, "No space left");
    (void)fclose(f);
}
END_TEST

/* As the end of one attempt removes the empty folders of a trial, when the next attempt makes its
 * own. It pauses after every round: a process that does nothing else on a core of its own may win
 * each of a thousand tries. */
static pid_t start_remover(const char *a, const char *b)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (pid == 0) {
        (void)rmdir(b);
        (void)rmdir(a);
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    }
    return pid;
}

START_TEST(folders_are_made_beside_one_that_removes_empty_ones)
{
    struct as_err err;
    AS_AUTO(as_freep) char *a = file_join(dir, "a");
    AS_AUTO(as_freep) char *b = file_join(a, "b");
    AS_AUTO(as_freep) char *c = file_join(b, "c");
    pid_t pid = start_remover(a, b);
    for (int i = 0; i < 200; i++) {
        ck_ok(file_mkdirs(c, 0700, &err), err);
        ck_assert_int_eq(rmdir(c), 0);
    }
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(folders)
{
    struct as_err err;
    AS_AUTO(as_freep) char *path = file_join(dir, "a/b/c");
    ck_ok(file_mkdirs(path, 0700, &err), err);
    ck_ok(file_mkdirs(path, 0700, &err), err);
    ck_fails(file_mkdirs("", 0700, &err), AS_E_IO, err, "without a name");
    AS_AUTO(as_freep) char *file = file_join(path, "x");
    ck_fails(file_mkdirs("/dev/null", 0700, &err), AS_E_IO, err, "is not a folder");
    AS_AUTO(as_freep) char *link = file_join(dir, "link");
    AS_AUTO(as_freep) char *below = file_join(link, "below");
    ck_assert_int_eq(symlink("nothing", link), 0);
    ck_fails(file_mkdirs(below, 0700, &err), AS_E_NOT_FOUND, err, "make the folder");
    ck_ok(file_replace(file, "abc", 3, 0600, &err), err);
    char hex[SHA256_HEX_SIZE];
    int64_t size;
    ck_ok(sha256_of_file(file, hex, &size, &err), err);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_int_eq(size, 3);
}
END_TEST

START_TEST(devices_are_not_replaced)
{
    struct as_err err;
    struct stat before, after;
    ck_assert_int_eq(stat("/dev/null", &before), 0);
    ck_fails(file_replace("/dev/null", "x", 1, 0600, &err), AS_E_IO, err, "a character device");
    struct file_draft draft = {0};
    ck_fails(file_draft_open(&draft, "/dev/null", &err), AS_E_IO, err, "/dev/null");
    ck_ok(file_write_output("/dev/null", "x", 1, 0644, &err), err);
    ck_assert_int_eq(stat("/dev/null", &after), 0);
    ck_assert(S_ISCHR(after.st_mode));
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    ck_assert_uint_eq(before.st_mode, after.st_mode);
    ck_fails(file_write_output("/dev/full", "x", 1, 0644, &err), AS_E_IO, err, "/dev/full");
    ck_fails(file_replace(dir, "x", 1, 0600, &err), AS_E_IO, err, "a folder");
    ck_fails(file_write_output(dir, "x", 1, 0600, &err), AS_E_IO, err, "a folder");
}
END_TEST

START_TEST(pipes_are_written_to)
{
    struct as_err err;
    char got[8] = "";
    AS_AUTO(as_freep) char *path = file_join(dir, "pipe");
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_fails(file_replace(path, "x", 1, 0600, &err), AS_E_IO, err, "a pipe");
    AS_AUTO(file_closep) int fd = open(path, O_RDWR | O_CLOEXEC); /* so that no side waits */
    ck_assert_int_ge(fd, 0);
    ck_ok(file_write_output(path, "abc", 3, 0644, &err), err);
    ck_assert_int_eq(read(fd, got, sizeof got - 1), 3);
    ck_assert_str_eq(got, "abc");
}
END_TEST

START_TEST(links_are_followed)
{
    struct as_err err;
    struct stat sb;
    AS_AUTO(as_freep) char *real = file_join(dir, "real");
    AS_AUTO(as_freep) char *link = file_join(dir, "link");
    AS_AUTO(as_freep) char *broken = file_join(dir, "broken");
    AS_AUTO(as_freep) char *null = file_join(dir, "null");
    AS_AUTO(as_freep) char *got = NULL;
    size_t len;
    ck_ok(file_replace(real, "one", 3, 0600, &err), err);
    ck_assert_int_eq(symlink("real", link), 0);
    ck_ok(file_replace(link, "two", 3, 0600, &err), err);
    ck_assert_int_eq(lstat(link, &sb), 0);
    ck_assert(S_ISLNK(sb.st_mode));
    ck_ok(file_read(real, 100, &got, &len, &err), err);
    ck_assert_str_eq(got, "two");
    ck_assert_int_eq(symlink("nowhere", broken), 0);
    ck_fails(file_replace(broken, "x", 1, 0600, &err), AS_E_IO, err, "a link to nothing");
    ck_assert_int_eq(symlink("/dev/null", null), 0);
    ck_fails(file_replace(null, "x", 1, 0600, &err), AS_E_IO, err, "a character device");
}
END_TEST

START_TEST(outputs_keep_the_mode)
{
    struct as_err err;
    struct stat sb;
    AS_AUTO(as_freep) char *path = file_join(dir, "out");
    ck_ok(file_write_output(path, "a", 1, 0644, &err), err);
    ck_assert_int_eq(stat(path, &sb), 0);
    ck_assert_uint_eq(sb.st_mode & 07777, 0644);
    ck_assert_int_eq(chmod(path, 0660), 0);
    ck_ok(file_write_output(path, "b", 1, 0644, &err), err);
    ck_assert_int_eq(stat(path, &sb), 0);
    ck_assert_uint_eq(sb.st_mode & 07777, 0660);
    ck_ok(file_write_output(path, "c", 1, 0600, &err), err); /* a secret */
    ck_assert_int_eq(stat(path, &sb), 0);
    ck_assert_uint_eq(sb.st_mode & 07777, 0600);
}
END_TEST

/* A draft is invisible until it is committed, follows links, and leaves nothing when it is
 * dropped. */
START_TEST(drafts)
{
    struct as_err err;
    struct stat sb;
    AS_AUTO(as_freep) char *real = file_join(dir, "real");
    AS_AUTO(as_freep) char *link = file_join(dir, "link");
    AS_AUTO(as_freep) char *got = NULL;
    struct file_draft d = {0};
    ck_ok(file_replace(real, "one", 3, 0600, &err), err);
    ck_assert_int_eq(symlink("real", link), 0);
    ck_ok(file_draft_open(&d, link, &err), err);
    ck_ok(file_write_all(d.fd, "half", 4, &err), err);
    file_draft_done(&d);
    file_draft_done(&d);
    ck_ok(file_read(link, 100, &got, NULL, &err), err);
    ck_assert_str_eq(got, "one");
    ck_ok(file_draft_open(&d, link, &err), err);
    ck_ok(file_write_all(d.fd, "two", 3, &err), err);
    ck_ok(file_draft_commit(&d, 0640, true, &err), err);
    file_draft_done(&d);
    as_freep(&got);
    ck_ok(file_read(real, 100, &got, NULL, &err), err);
    ck_assert_str_eq(got, "two");
    ck_assert_int_eq(lstat(link, &sb), 0);
    ck_assert(S_ISLNK(sb.st_mode));
    ck_assert_int_eq(unlink(link), 0);
    ck_assert_int_eq(unlink(real), 0);
    ck_assert_int_eq(rmdir(dir), 0); /* no draft is left */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
}
END_TEST

/* What has no end is refused before it is opened: opening a pipe without a writer would wait. */
START_TEST(inputs)
{
    struct as_err err;
    AS_AUTO(as_freep) char *path = file_join(dir, "in");
    AS_AUTO(as_freep) char *pipe = file_join(dir, "pipe");
    AS_AUTO(as_freep) char *got = NULL;
    int fd = -1;
    ck_ok(file_replace(path, "abc", 3, 0600, &err), err);
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    ck_fails(file_open_regular(pipe, &fd, &err), AS_E_INVAL, err, "is a pipe");
    ck_fails(file_open_regular("/dev/zero", &fd, &err), AS_E_INVAL, err, "a character device");
    ck_fails(file_open_regular(dir, &fd, &err), AS_E_INVAL, err, "a folder");
    ck_fails(file_open_regular("/nowhere/x", &fd, &err), AS_E_NOT_FOUND, err, "/nowhere/x");
    ck_assert_int_eq(fd, -1);
    ck_ok(file_open_regular(path, &fd, &err), err);
    ck_assert_int_eq(close(fd), 0);
    ck_fails(file_read_input("/dev/zero", 100, &got, NULL, &err), AS_E_INVAL, err, "device");
    ck_fails(file_read_input(dir, 100, &got, NULL, &err), AS_E_INVAL, err, "a folder");
    ck_fails(file_read_input("/nowhere/x", 100, &got, NULL, &err), AS_E_NOT_FOUND, err, "/nowhere");
    ck_fails(file_read_input(path, 2, &got, NULL, &err), AS_E_TOO_LARGE, err, "larger than 2");
    ck_ok(file_read_input(path, 100, &got, NULL, &err), err);
    ck_assert_str_eq(got, "abc");
}
END_TEST

static void on_alarm(int number)
{
    (void)number;
}

/* A signal ends the wait for a pipe. */
START_TEST(inputs_are_interruptible)
{
    struct as_err err;
    AS_AUTO(as_freep) char *pipe = file_join(dir, "pipe");
    AS_AUTO(as_freep) char *got = NULL;
    char hex[SHA256_HEX_SIZE];
    const struct sigaction action = {.sa_handler = on_alarm};
    const struct itimerval often = {{0, 20000}, {0, 20000}}; /* again, if one came too early */
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    AS_AUTO(file_closep) int writer = open(pipe, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
    ck_fails(file_read_input(pipe, 100, &got, NULL, &err), AS_E_IO, err, "Interrupted");
    ck_fails(sha256_of_fd(writer, NULL, NULL, hex, NULL, &err), AS_E_IO, err, "Interrupted");
    const struct itimerval off = {{0, 0}, {0, 0}};
    ck_assert_int_eq(setitimer(ITIMER_REAL, &off, NULL), 0);
}
END_TEST

/* A folder that another user could have prepared is not used. */
START_TEST(own_folders)
{
    struct as_err err;
    struct stat sb;
    char own[TEMP_FOLDER_SIZE], path[128], link[128], file[128];
    temp_folder_make(own);
    (void)snprintf(path, sizeof path, "%s/own", own);
    (void)snprintf(link, sizeof link, "%s/link", own);
    (void)snprintf(file, sizeof file, "%s/file", own);
    for (int i = 0; i < 2; i++) { /* made, then found */
        ck_ok(file_own_folder(path, &err), err);
        ck_assert_int_eq(lstat(path, &sb), 0);
        ck_assert_uint_eq(sb.st_mode & 07777, 0700);
        ck_assert_int_eq(chmod(path, 0777), 0);
    }
    ck_assert_int_eq(symlink(path, link), 0);
    ck_fails(file_own_folder(link, &err), AS_E_IO, err, "is a link");
    ck_assert(file_replace(file, "", 0, 0600, NULL) == AS_OK);
    ck_fails(file_own_folder(file, &err), AS_E_IO, err, "not a folder");
    (void)snprintf(file, sizeof file, "%s/none/own", own);
    ck_fails(file_own_folder(file, &err), AS_E_NOT_FOUND, err, "none/own");
    if (geteuid() == 0) {
        ck_ok(file_own_folder_of(path, 12345, 12345, &err), err); /* root gives it away */
        ck_assert_int_eq(lstat(path, &sb), 0);
        ck_assert_uint_eq(sb.st_uid, 12345);
        ck_fails(file_own_folder(path, &err), AS_E_DENIED, err, "belongs to user 12345");
        ck_fails(file_own_folder_of(path, 12346, 12346, &err), AS_E_DENIED, err, "expected 12346");
    }
    temp_folder_remove(own);
}
END_TEST

/* The same for a whole path that somebody gives: no part of it may be a link. */
START_TEST(own_paths)
{
    struct as_err err;
    struct stat sb;
    char own[TEMP_FOLDER_SIZE], path[128], link[128], real[128];
    temp_folder_make(own);
    (void)snprintf(real, sizeof real, "%s/real", own);
    (void)snprintf(link, sizeof link, "%s/link", own);
    (void)snprintf(path, sizeof path, "%s/real//a/b/", own);
    for (int i = 0; i < 2; i++) {
        ck_ok(file_own_path(path, &err), err);
        ck_assert_int_eq(lstat(path, &sb), 0);
        ck_assert_uint_eq(sb.st_mode & 07777, 0700);
        ck_assert_int_eq(chmod(path, 0777), 0);
    }
    ck_assert_int_eq(symlink(real, link), 0);
    ck_fails(file_own_path(link, &err), AS_E_IO, err, real); /* where it leads to */
    (void)snprintf(path, sizeof path, "%s/link/", own);
    ck_fails(file_own_path(path, &err), AS_E_IO, err, "is a link");
    (void)snprintf(path, sizeof path, "%s/link/a/new", own);
    ck_fails(file_own_path(path, &err), AS_E_IO, err, real);
    (void)snprintf(path, sizeof path, "%s/real/a/new", own);
    ck_assert_int_lt(lstat(path, &sb), 0); /* nothing was made behind it */
    ck_fails(file_own_path("", &err), AS_E_IO, err, "without a name");
    ck_assert_int_eq(chdir(real), 0);
    ck_ok(file_own_path("a/../c/./d", &err), err);
    ck_assert_int_eq(lstat("c/d", &sb), 0);
    ck_ok(file_own_path(".", &err), err);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown("c/d", 12345, 12345), 0);
        ck_fails(file_own_path("c/d", &err), AS_E_DENIED, err, "belongs to user 12345");
    }
    ck_assert_int_eq(chdir("/"), 0);
    temp_folder_remove(own);
}
END_TEST

START_TEST(the_limit_of_descriptors_is_raised)
{
    struct rlimit was, lim;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    lim = was;
    lim.rlim_cur = was.rlim_max < 64 ? was.rlim_max : 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
    file_raise_limit();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
    ck_assert_uint_eq(lim.rlim_cur, was.rlim_max < 65536 ? was.rlim_max : 65536);
    ck_assert_uint_eq(lim.rlim_max, was.rlim_max);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("file");
    TCase *t = tcase_create("file");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, replace_and_read);
    tcase_add_test(t, publish_and_sync);
    tcase_add_test(t, full_disk_is_named);
    tcase_add_test(t, folders);
    tcase_add_test(t, folders_are_made_beside_one_that_removes_empty_ones);
    tcase_add_test(t, own_folders);
    tcase_add_test(t, own_paths);
    tcase_add_test(t, devices_are_not_replaced);
    tcase_add_test(t, pipes_are_written_to);
    tcase_add_test(t, links_are_followed);
    tcase_add_test(t, outputs_keep_the_mode);
    tcase_add_test(t, drafts);
    tcase_add_test(t, inputs);
    tcase_add_test(t, inputs_are_interruptible);
    tcase_add_test(t, the_limit_of_descriptors_is_raised);
    suite_add_tcase(s, t);
    return s;
}
