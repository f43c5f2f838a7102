/* The default folders of assay-runner: their paths can be guessed, so that their owner counts. The
 * address for ranks. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/check_main.h"
#include "trial-runner/attempt/options.h"

#define UID 54321 /* nobody has it */
#define FOLDER "/var/tmp/assay-runner-54321"

/* As that user: 0 if the options are accepted, 1 if a folder is refused for its owner, 2 if because
 * it is a link, 3 for anything else. */
static int parse_as_user(void)
{
    static const char *const argv[] = {"assay-runner", "--name", "r", "--gpus", "none", NULL};
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct options o = {0};
        struct as_err err = {0};
        if (setgid(UID) != 0 || setuid(UID) != 0)
            _exit(3);
        as_status st = options_parse(&o, 5, (char **)argv, &err);
        _exit(st == AS_OK ? 0 : st == AS_E_DENIED ? 1 : strstr(err.msg, "is a link") ? 2 : 3);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void remove_folder(void)
{
    (void)unlink(FOLDER);
    (void)rmdir(FOLDER "/r");
    (void)rmdir(FOLDER "/cache");
    (void)rmdir(FOLDER);
}

START_TEST(default_folders_are_the_users_own)
{
    struct stat sb;
    char elsewhere[] = "/var/tmp/assay-test-XXXXXX";
    remove_folder();
    ck_assert_int_eq(parse_as_user(), 0);
    ck_assert_int_eq(lstat(FOLDER "/r", &sb), 0);
    ck_assert_uint_eq(sb.st_mode & 0777, 0700);
    ck_assert_int_eq(parse_as_user(), 0); /* found */
    remove_folder();
    ck_assert_int_eq(mkdir(FOLDER, 0777), 0); /* another user was first */
    ck_assert_int_eq(chmod(FOLDER, 0777), 0);
    ck_assert_int_eq(parse_as_user(), 1);
    remove_folder();
    ck_assert_ptr_nonnull(mkdtemp(elsewhere));
    ck_assert_int_eq(chown(elsewhere, UID, UID), 0);
    ck_assert_int_eq(symlink(elsewhere, FOLDER), 0);
    ck_assert_int_eq(parse_as_user(), 2);
    remove_folder();
    ck_assert_int_eq(rmdir(elsewhere), 0);
}
END_TEST

START_TEST(the_address_for_ranks_is_numeric)
{
    static const char *const argv[] = {"assay-runner", "--name",         "r",         "--gpus",
                                       "none",         "--rank-address", "localhost", NULL};
    struct options o = {0};
    struct as_err err = {0};
    ck_fails(options_parse(&o, 7, (char **)argv, &err), AS_E_INVAL, err,
             "--rank-address is 'localhost'");
    options_done(&o);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("options");
    TCase *t = tcase_create("options");
    tcase_add_test(t, the_address_for_ranks_is_numeric);
    add_test_if(t, default_folders_are_the_users_own, geteuid() == 0,
                "needs root, to be two users");
    suite_add_tcase(s, t);
    return s;
}
