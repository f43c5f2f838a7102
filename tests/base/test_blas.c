/* OpenBLAS is loaded when it is needed, with one thread; what a program without it does. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/blas.h"
#include "tests/support/check_main.h"

static bool is_loaded(void)
{
    return dlopen("libopenblas.so.0", RTLD_NOLOAD | RTLD_NOW) != NULL;
}

/* Threads of this process. */
static size_t n_threads(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* With no file to be opened, the library is missing. */
static void set_files(rlim_t n)
{
    struct rlimit most;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &most), 0);
    most.rlim_cur = n;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &most), 0);
}

/* In a child, as there is no way back. */
static int code_without_library(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        set_files(0);
        _exit(blas_need() == NULL);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* In this order, in one process: what is loaded stays. */
START_TEST(comes_when_it_is_needed)
{
    struct as_err err;
    double two[2] = {2, 3};
    ck_assert_int_eq(unsetenv("OPENBLAS_NUM_THREADS"), 0);
    ck_assert(!is_loaded());
    ck_assert_ptr_null(blas_get());
    if (!IS_SANITIZED) /* its check for leaks needs a file at the exit */
        ck_assert_int_eq(code_without_library(), 127);
    set_files(0);
    as_status st = blas_open(&err);
    set_files(256);
    ck_fails(st, AS_E_UNSUPPORTED, err, "install libopenblas0");
    ck_assert_ptr_null(blas_get());
    size_t before = n_threads();
    ck_ok(blas_open(&err), err);
    ck_ok(blas_open(&err), err);
    ck_assert(is_loaded());
    ck_assert_uint_eq(n_threads(), before);
    ck_assert_int_eq(code_without_library(), 0); /* it stays open */
    ck_assert_ptr_eq(blas_need(), blas_get());
    ck_assert_double_eq(blas_need()->ddot(2, two, 1, two, 1), 13);
    ck_assert_uint_gt(strlen(blas_get()->get_corename()), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("blas");
    TCase *t = tcase_create("blas");
    tcase_add_test(t, comes_when_it_is_needed);
    suite_add_tcase(s, t);
    return s;
}
