/* What runs, and why nothing does, is the same as by execvpe() of the system. */
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "trial-runner/process/program_path.h"

/* Names of the folders that a test makes: each file prints its folder and its arguments. */
static const struct {
    const char *path, *text;
    mode_t mode;
} files[] = {
    {"first/no-mode", "#!/bin/sh\necho first $*\n", 0644},
    {"first/both", "#!/bin/sh\necho first $*\n", 0755},
    {"first/no-interpreter", "echo first $*\n", 0755},
    {"first/gone-interpreter", "#!/no/such/interpreter\n", 0755},
    {"second/no-mode", "#!/bin/sh\necho second $*\n", 0755},
    {"second/both", "#!/bin/sh\necho second $*\n", 0755},
    {"second/gone-interpreter", "#!/bin/sh\necho second $*\n", 0755},
    {"second/only-second", "#!/bin/sh\necho second $* $MARK\n", 0755},
    {"second/empty", "", 0755},
    {"first/denied", "text", 0644},
};

/* `path` of NULL is none. */
static const struct {
    const char *name, *path, *want; /* what it prints, or the error */
} cases[] = {
    {"both", "first:second", "first a b\n"},
    {"both", "second:first", "second a b\n"},
    {"no-mode", "first:second", "second a b\n"},
    {"no-interpreter", "none:first", "first a b\n"},
    {"gone-interpreter", "first:second", "second a b\n"},
    {"only-second", "first:none:second", "second a b here\n"},
    {"only-second", "first/both:second", "second a b here\n"}, /* a file among the folders */
    {"empty", "second", ""},                                   /* an empty script */
    {"denied", "first:second", "Permission denied"},
    {"nowhere", "first:second", "No such file or directory"},
    {"nowhere", "", "No such file or directory"},
    {"", "first", "No such file or directory"},
    {"second/both", "first", "second a b\n"}, /* a path is not looked up */
    {"./first/no-interpreter", NULL, "first a b\n"},
    {"first/denied", "second", "Permission denied"},
    {"first", ":", "Permission denied"}, /* the current folder, and what is there is a folder */
    {"echo", NULL, "a b\n"},             /* the system's own folders */
    {"nowhere", NULL, "No such file or directory"},
};

static void run_one(bool is_ours, const char *name, const char *path, struct str *out)
{
    char *argv[] = {(char *)name, "a", "b", NULL}, *env[] = {"MARK=here", NULL};
    int ends[2];
    struct program_path p;
    struct as_err err = {0};
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        dup2(ends[1], 1);
        if (path)
            setenv("PATH", path, 1);
        else
            unsetenv("PATH");
        if (!is_ours)
            execvpe(name, argv, env);
        else if (program_path_init(&p, argv, env, path, &err) == AS_OK)
            program_path_exec(&p);
        int failure = errno;
        dprintf(1, "%s", strerror(failure));
        _exit(1);
    }
    close(ends[1]);
    char text[256];
    for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0;)
        str_add(out, text, (size_t)n);
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void compare(const char *name, const char *path, const char *want)
{
    struct str ours = {0}, theirs = {0};
    run_one(true, name, path, &ours);
    run_one(false, name, path, &theirs);
    ck_assert_msg(strcmp(str_cstr(&ours), str_cstr(&theirs)) == 0,
                  "'%.80s' in '%.80s': found '%s', execvpe() has '%s'", name,
                  path ? path : "(none)", str_cstr(&ours), str_cstr(&theirs));
    ck_assert_str_eq(str_cstr(&ours), want);
    str_done(&ours);
    str_done(&theirs);
}

static void make_files(void)
{
    struct as_err err = {0};
    ck_assert_int_eq(mkdir("first", 0755), 0);
    ck_assert_int_eq(mkdir("second", 0755), 0);
    for (size_t i = 0; i < AS_ARRAY_LEN(files); i++) {
        const char *text = files[i].text;
        ck_ok(file_replace(files[i].path, text, strlen(text), files[i].mode, &err), err);
    }
}

START_TEST(as_the_system_looks)
{
    char dir[TEMP_FOLDER_SIZE];
    temp_folder_make(dir);
    ck_assert_int_eq(chdir(dir), 0);
    make_files();
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++)
        compare(cases[i].name, cases[i].path, cases[i].want);
    ck_assert_int_eq(chdir("/"), 0);
    temp_folder_remove(dir);
}
END_TEST

/* Names of 255 bytes and more, and folders that fill a path. */
START_TEST(what_is_too_long)
{
    char name[300], folder[5000];
    memset(name, 'n', sizeof name - 1);
    memset(folder, 'f', sizeof folder - 1);
    name[sizeof name - 1] = folder[sizeof folder - 1] = 0;
    compare(name, "/usr/bin", "File name too long");
    AS_AUTO(str_done) struct str path = {0}, ours = {0};
    run_one(true, "echo", folder, &ours); /* execvpe() leaves the errno of before */
    ck_assert_str_eq(str_cstr(&ours), "File name too long");
    str_printf(&path, "%s:/bin", folder);
    compare("echo", str_cstr(&path), "a b\n");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("program_path");
    TCase *t = tcase_create("program_path");
    tcase_add_test(t, as_the_system_looks);
    tcase_add_test(t, what_is_too_long);
    suite_add_tcase(s, t);
    return s;
}
