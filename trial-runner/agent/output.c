#include "trial-runner/agent/output.h"

#include <errno.h>
#include <unistd.h>

#include "trial-runner/collect/collector.h"

size_t output_read_pipe(int *fd, char *buf, size_t most)
{
    for (;;) {
        ssize_t n = *fd < 0 ? -1 : read(*fd, buf, most);
        if (n > 0)
            return (size_t)n;
        if (n < 0 && errno == EINTR && *fd >= 0)
            continue;
        if (*fd >= 0 && (n == 0 || errno != EAGAIN)) {
            close(*fd);
            *fd = -1;
        }
        return 0;
    }
}

void output_to_tail(struct attempt *t, const char *bytes, size_t n)
{
    pthread_mutex_lock(&t->lock);
    tail_add(&t->tail, bytes, n);
    pthread_mutex_unlock(&t->lock);
}

/* How many bytes may be read now, at most OUTPUT_BYTES. */
static size_t room(const struct attempt *t)
{
    size_t n = t->launch.collector ? collector_room(t->launch.collector) : OUTPUT_BYTES;
    return n < OUTPUT_BYTES ? n : OUTPUT_BYTES;
}

bool output_has_room(const struct attempt *t)
{
    return room(t) > 0;
}

void output_read(struct attempt *t, char *buf, bool rest)
{
    for (int i = 0; i < OUTPUT_ROUNDS; i++) {
        size_t most = rest ? OUTPUT_BYTES : room(t);
        size_t n = most ? output_read_pipe(&t->process.out_fd, buf, most) : 0;
        if (n == 0)
            return;
        output_to_tail(t, buf, n);
        if (t->launch.collector)
            collector_add(t->launch.collector, buf, n);
    }
}
