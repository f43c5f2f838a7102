#include "tests/support/pipe_end.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

void read_to_end(int fd, struct str *out)
{
    char buf[4096];
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        poll(&p, 1, -1);
        ssize_t n = read(fd, buf, sizeof buf);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (n <= 0)
            return;
        str_add(out, buf, (size_t)n);
    }
}
