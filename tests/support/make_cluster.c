/* make_cluster FILE: makes the cluster that tests start with copies of, for the build. It must not
 * fail where there is no PostgreSQL, or no user to run it. FILE is empty then, and the tests skip,
 * or fail with their own words. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/pg_fixture.h"

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_cluster FILE\n");
        return 64;
    }
    int status = 0;
    pid_t pid = fork(); /* pg_fixture.c ends the process that it fails in */
    if (pid == 0) {
        pg_fixture_make(argv[1]);
        exit(0);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
        return 0;
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return fd >= 0 && close(fd) == 0 ? 0 : 1;
}
