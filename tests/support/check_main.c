/* The one main() of every Check program.
 *
 * A program has the suites of all test files of a folder or room, because a link costs 0.2 s of
 * processor time and some megabytes, and there are 450 files. It runs one suite, that of the file
 * which its argument names, by the end of its path without "test_" and ".c": `test_search
 * gp/quality`, or `quality`. A program of one file needs no argument; another one lists its suites.
 *
 * The tests of a suite run in one process. With a process for each test (Check's own way), a test
 * that needs 10 us costs 4 ms where page tables are the host's work, and one with a database three
 * times as much. So a process for each is made only where it tells something: when the one process
 * dies in a test, or hangs, the program runs again with CK_FORK=yes, and Check names the test.
 *
 * CK_FORK=no (in the environment, or set in TEST_SUITE()): one process in which nothing is run
 * again, for sanitizers and for tests under a debugger. CK_FORK=yes: a process for each test. */
#include "tests/support/check_main.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SKIPPED 77 /* Meson counts this as skipped */
#define EXIT_USAGE 64

/* Meson ends a program after 1,200 s. A program that hangs is run again before, so that Check names
 * the test; with ASSAY_LONG_FAULTS=1 nothing bounds the first run. */
#define TOGETHER_S 960
#define ALONE_AFTER_HANG_S "180"

static size_t n_skipped;

void skip_tests(const char *name, size_t n, const char *reason)
{
    fprintf(stderr, "skipped: %zu test%s (%s): %s\n", n, n == 1 ? "" : "s", name, reason);
    n_skipped += n;
}

static struct test_file *test_files; /* of this program, in no particular order */

void test_file_join(struct test_file *file)
{
    file->next = test_files;
    test_files = file;
}

/* Is "gp/quality" the name of .../search/gp/test_quality.c? */
static bool is_named(const struct test_file *file, const char *name)
{
    char end[256];
    const char *slash = strrchr(name, '/'), *stem = slash ? slash + 1 : name;
    int n = snprintf(end, sizeof end, "/%.*stest_%s.c", (int)(stem - name), name, stem);
    size_t len = strlen(file->path);
    return n > 0 && n < (int)sizeof end && len >= (size_t)n &&
           strcmp(file->path + len - (size_t)n, end) == 0;
}

static void list_suites(void)
{
    for (const struct test_file *f = test_files; f; f = f->next) {
        const char *path = strstr(f->path, "tests/"), *base = strrchr(f->path, '/') + 1;
        const char *stem = base + strlen("test_");
        fprintf(stderr, "  %.*s%.*s\n", (int)(base - path), path, (int)strcspn(stem, "."), stem);
    }
}

/* The file whose suite runs; NULL after a message where the arguments do not name exactly one. */
static const struct test_file *choose_file(int argc, char **argv)
{
    const struct test_file *found = NULL;
    int n_found = 0;
    for (const struct test_file *f = test_files; f; f = f->next) {
        if (argc == 1 || is_named(f, argv[1])) {
            found = f;
            n_found++;
        }
    }
    if (argc <= 2 && n_found == 1)
        return found;
    if (argc == 2)
        fprintf(stderr, "%s: %d suites are called '%s'\n", argv[0], n_found, argv[1]);
    fprintf(stderr, "%s takes the name of one of these suites:\n", argv[0]);
    list_suites();
    return NULL;
}

static const struct test_file *chosen; /* by main() */

static int run_suite(void)
{
    SRunner *sr = srunner_create(chosen->suite());
    srunner_run_all(sr, CK_ENV);
    int failed = srunner_ntests_failed(sr), run = srunner_ntests_run(sr);
    srunner_free(sr);
    if (failed)
        return EXIT_FAILURE;
    return run == 0 && n_skipped > 0 ? EXIT_SKIPPED : EXIT_SUCCESS;
}

static volatile pid_t together;
static volatile sig_atomic_t did_hang;

static void end_together(int signo)
{
    (void)signo;
    did_hang = 1;
    (void)kill(together, SIGKILL);
}

/* Start the tests in one process, which dies with this one. It writes a byte to `ended` when all
 * have ended: without it, an exit() in what is tested would count as their end. */
static pid_t start_together(int ended)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    (void)setenv("CK_FORK", "no", 1);
    int code = run_suite();
    if (write(ended, "", 1) != 1)
        code = EXIT_FAILURE;
    exit(code);
}

/* The exit code of the tests, or -1: they died, or did not start. */
static int run_together(void)
{
    int ended[2], status = -1;
    char byte;
    if (pipe2(ended, O_CLOEXEC) != 0)
        return -1;
    together = start_together(ended[1]);
    (void)close(ended[1]);
    if (together > 0) {
        (void)signal(SIGALRM, end_together);
        (void)alarm(getenv("ASSAY_LONG_FAULTS") ? 0 : TOGETHER_S);
        while (waitpid(together, &status, 0) < 0 && errno == EINTR)
            ;
        (void)alarm(0);
        (void)signal(SIGALRM, SIG_DFL);
    }
    (void)fcntl(ended[0], F_SETFL, O_NONBLOCK); /* what the tests started may hold the other end */
    bool is_whole = read(ended[0], &byte, 1) == 1;
    (void)close(ended[0]);
    return is_whole && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
    chosen = choose_file(argc, argv);
    if (!chosen)
        return EXIT_USAGE;
    /* Check's own limit is 4 s for a test, which a busy machine exceeds. This limit only serves to
     * name the test that hangs, shortly before Meson ends the program. */
    (void)setenv("CK_DEFAULT_TIMEOUT", "540", 0);
    if (getenv("CK_FORK"))
        return run_suite();
    int code = run_together();
    if (code >= 0)
        return code;
    fprintf(stderr, "the tests died in one process; each runs in one of its own now\n");
    (void)setenv("CK_FORK", "yes", 1);
    if (did_hang)
        (void)setenv("CK_DEFAULT_TIMEOUT", ALONE_AFTER_HANG_S, 1);
    if (run_suite() == EXIT_SUCCESS)
        fprintf(stderr, "each test passes alone: one dies only after the others\n");
    return EXIT_FAILURE;
}
