/* The folders of assay-runner belong to its user, whoever chose them. The address for ranks. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"
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

static as_status parse_with(const char *option, const char *path, struct as_err *err)
{
    char other[200];
    (void)snprintf(other, sizeof other, "%s.other", path);
    const char *argv[] = {
        "assay-runner", "--name", "r",  "--gpus",
        "none",         option,   path, strcmp(option, "--work") == 0 ? "--cache" : "--work",
        other,          NULL};
    struct options o = {0};
    as_status st = options_parse(&o, 9, (char **)argv, err);
    options_done(&o);
    return st;
}

static const char *const folder_options[] = {"--work", "--cache"};

START_TEST(given_folders_are_no_links)
{
    const char *option = folder_options[_i];
    char dir[TEMP_FOLDER_SIZE], real[100], link[100], behind[120];
    struct as_err err = {0};
    struct stat sb;
    temp_folder_make(dir);
    (void)snprintf(real, sizeof real, "%s/real", dir);
    (void)snprintf(link, sizeof link, "%s/link", dir);
    (void)snprintf(behind, sizeof behind, "%s/link/behind", dir);
    ck_ok(parse_with(option, real, &err), err);
    ck_ok(parse_with(option, real, &err), err); /* found */
    ck_assert_int_eq(symlink(real, link), 0);
    ck_fails(parse_with(option, link, &err), AS_E_IO, err, option);
    ck_fails(parse_with(option, link, &err), AS_E_IO, err, "is a link; give the path");
    ck_fails(parse_with(option, behind, &err), AS_E_IO, err, "is a link; give the path");
    ck_assert_int_lt(stat(behind, &sb), 0);
    temp_folder_remove(dir);
}
END_TEST

START_TEST(given_folders_are_the_users_own)
{
    char dir[TEMP_FOLDER_SIZE], theirs[100];
    struct as_err err = {0};
    temp_folder_make(dir);
    (void)snprintf(theirs, sizeof theirs, "%s/theirs", dir);
    ck_assert_int_eq(mkdir(theirs, 0777), 0);
    ck_assert_int_eq(chown(theirs, UID, UID), 0);
    for (int i = 0; i < 2; i++) {
        ck_fails(parse_with(folder_options[i], theirs, &err), AS_E_DENIED, err, folder_options[i]);
        ck_assert_ptr_nonnull(strstr(err.msg, "belongs to user 54321"));
    }
    temp_folder_remove(dir);
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

TEST_SUITE()
{
    Suite *s = suite_create("options");
    TCase *t = tcase_create("options");
    tcase_add_test(t, the_address_for_ranks_is_numeric);
    tcase_add_loop_test(t, given_folders_are_no_links, 0, 2);
    add_test_if(t, given_folders_are_the_users_own, geteuid() == 0, "needs root, to be two users");
    add_test_if(t, default_folders_are_the_users_own, geteuid() == 0,
                "needs root, to be two users");
    suite_add_tcase(s, t);
    return s;
}
