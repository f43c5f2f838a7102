/* Files that grow, are cut, replaced or written again, and those that lie outside; and whose they
 * are. */
#include "tests/support/check_main.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "trial-runner/collect/file_owner.h"
#include "trial-runner/collect/follow.h"

static char folder[200];
static int dir;

static void setup(void)
{
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(folder, sizeof folder, "%s/follow-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(dir, 0);
}

static void teardown(void)
{
    struct as_err err = {0};
    close(dir);
    ck_ok(file_remove_tree(folder, &err), err);
}

/* Write `text` at the end, or as the whole file. */
static void put(const char *name, const char *text, int flags)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static as_status feed(void *arg, const char *bytes, size_t len, bool is_old, struct as_err *err)
{
    (void)err;
    str_puts(arg, is_old ? "old:" : "");
    str_add(arg, bytes, len);
    return AS_OK;
}

static void restart(void *arg)
{
    str_puts(arg, "|");
}

static const char *look(struct follow *f, const char *name, struct str *b)
{
    const struct follow_fns fns = {.feed = feed, .restart = restart, .arg = b};
    struct as_err err = {0};
    str_clear(b);
    ck_ok(follow_read(f, dir, name, &fns, &err), err);
    return str_cstr(b);
}

START_TEST(grows_is_cut_and_is_replaced)
{
    AS_AUTO(str_done) struct str b = {0};
    struct follow f = {0};
    ck_assert_str_eq(look(&f, "a", &b), "");
    put("a", "one\n", O_APPEND);
    ck_assert_str_eq(look(&f, "a", &b), "one\n");
    ck_assert_str_eq(look(&f, "a", &b), "");
    put("a", "two\n", O_APPEND);
    ck_assert_str_eq(look(&f, "a", &b), "two\n");
    put("a", "x\n", O_TRUNC); /* shorter */
    ck_assert_str_eq(look(&f, "a", &b), "|x\n");
    put("b", "x\ny\n", O_TRUNC); /* another file under its name */
    ck_assert_int_eq(renameat(dir, "b", dir, "a"), 0);
    ck_assert_str_eq(look(&f, "a", &b), "|x\ny\n");
    put("a", "x\ny\nz\n", O_TRUNC); /* the same and more: as if it had grown */
    ck_assert_str_eq(look(&f, "a", &b), "z\n");
    put("a", "x\nother\nz\n", O_TRUNC); /* longer, with another middle */
    ck_assert_str_eq(look(&f, "a", &b), "|x\nother\nz\n");
}
END_TEST

START_TEST(what_was_there_is_old)
{
    AS_AUTO(str_done) struct str b = {0};
    struct follow appended = {0}, again = {0}, same = {0};
    put("a", "old\n", O_APPEND);
    put("b", "old\n", O_APPEND);
    put("c", "old\n", O_APPEND);
    follow_mark_old(&appended, dir, "a");
    follow_mark_old(&again, dir, "b");
    follow_mark_old(&same, dir, "c");
    ck_assert_str_eq(look(&appended, "a", &b), "old:old\n");
    put("a", "new\n", O_APPEND);
    ck_assert_str_eq(look(&appended, "a", &b), "new\n");
    put("b", "no\n", O_TRUNC);
    ck_assert_str_eq(look(&again, "b", &b), "|no\n");
    struct timespec later[2] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};
    put("c", "old\n", O_TRUNC); /* written again with the same content */
    ck_assert_int_eq(utimensat(dir, "c", later, 0), 0);
    ck_assert_str_eq(look(&same, "c", &b), "|old\n");
}
END_TEST

START_TEST(nothing_outside_is_read)
{
    const struct follow_fns fns = {.feed = feed, .restart = restart, .arg = NULL};
    struct as_err err = {0};
    struct follow f = {0};
    ck_assert_int_eq(symlinkat("/etc/passwd", dir, "out"), 0);
    ck_assert_int_eq(follow_read(&f, dir, "out", &fns, &err), AS_E_INVAL);
    ck_assert_int_eq(mkfifoat(dir, "pipe", 0600), 0);
    ck_assert_int_eq(follow_read(&f, dir, "pipe", &fns, &err), AS_E_INVAL);
    AS_AUTO(str_done) struct str b = {0};
    put("in", "x", 0);
    ck_assert_int_eq(symlinkat("in", dir, "link"), 0);
    ck_assert_str_eq(look(&f, "link", &b), "x");
}
END_TEST

/* A child that has the file open, with this marker, until it is killed. It goes on as `then`. */
static pid_t holder(const char *marker, const char *then)
{
    char value[100], path[400];
    (void)snprintf(value, sizeof value, "ASSAY_REPORT=%s", marker);
    (void)snprintf(path, sizeof path, "exec 7>>%s/events; echo > %s/ready; exec %s", folder, folder,
                   then);
    pid_t pid = fork();
    if (pid == 0) {
        char *env[] = {value, "PATH=/bin:/usr/bin", NULL};
        execle("/bin/sh", "sh", "-c", path, (char *)NULL, env);
        _exit(127);
    }
    while (faccessat(dir, "ready", F_OK, 0) < 0)
        usleep(1000);
    return pid;
}

START_TEST(whose_a_file_is)
{
    put("events", "x", 0);
    ck_assert_int_eq(file_owner_find(dir, "events", "/ours"), FILE_OWNER_NONE);
    pid_t pid = holder("/ours", "sleep 60");
    ck_assert_int_eq(file_owner_find(dir, "events", "/ours"), FILE_OWNER_OURS);
    ck_assert_int_eq(file_owner_find(dir, "events", "/others"), FILE_OWNER_OTHER);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    int reading = openat(dir, "events", O_RDONLY | O_CLOEXEC); /* a reader owns nothing */
    ck_assert_int_eq(file_owner_find(dir, "events", "/ours"), FILE_OWNER_NONE);
    close(reading);
}
END_TEST

/* Again and again it begins another program, and has no environment for a moment. */
START_TEST(an_owner_that_begins_another_program)
{
    char then[300];
    put("again", "exec sh $0", 0);
    put("events", "x", 0);
    (void)snprintf(then, sizeof then, "sh %s/again", folder);
    pid_t pid = holder("/ours", then);
    int found = 0;
    for (int i = 0; i < 40; i++)
        found += file_owner_find(dir, "events", "/ours") == FILE_OWNER_OURS;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ck_assert_int_eq(found, 40);
}
END_TEST

START_TEST(two_readers_know_of_each_other)
{
    put("m.csv", "x", 0);
    int a = follow_open(dir, "m.csv");
    file_owner_mark(a);
    ck_assert(!file_owner_is_shared(a));
    int b = follow_open(dir, "m.csv");
    ck_assert(file_owner_is_shared(b));
    ck_assert(!file_owner_is_shared(a));
    file_owner_mark(b);
    ck_assert(file_owner_is_shared(a));
    close(b);
    ck_assert(!file_owner_is_shared(a));
    close(a);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("follow");
    TCase *t = tcase_create("follow");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, grows_is_cut_and_is_replaced);
    tcase_add_test(t, what_was_there_is_old);
    tcase_add_test(t, nothing_outside_is_read);
    tcase_add_test(t, whose_a_file_is);
    tcase_add_test(t, an_owner_that_begins_another_program);
    tcase_add_test(t, two_readers_know_of_each_other);
    suite_add_tcase(s, t);
    return s;
}
