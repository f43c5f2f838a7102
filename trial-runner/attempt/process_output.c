/* What a process prints, on its way from the pipe to the log and to the collector.
 *
 * Main alone reads the pipe, in bounded rounds, and no more than the collector has room for. The
 * delivery thread cannot read it, but must know that everything printed before a moment has reached
 * the collector's file. So it asks: main notes how many bytes stand in the pipe then, and answers
 * when it has read as many. */
#include "trial-runner/attempt/process_output.h"

#include <errno.h>
#include <sys/ioctl.h>
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

static void read_rounds(struct attempt *t, char *buf, bool rest)
{
    for (int i = 0; i < OUTPUT_ROUNDS; i++) {
        size_t most = rest ? OUTPUT_BYTES : room(t);
        size_t n = most ? output_read_pipe(&t->process.out_fd, buf, most) : 0;
        if (n == 0)
            return;
        t->process.out_read += (int64_t)n;
        attempt_add_output(t, buf, n);
        if (t->launch.collector)
            collector_add(t->launch.collector, buf, n);
    }
}

/* Has the delivery thread asked anew? Then it waits for the bytes that are in the pipe now. A
 * program that prints on and on never empties it. */
static void take_question(struct attempt *t)
{
    int waiting = 0;
    pthread_mutex_lock(&t->lock);
    unsigned asked = t->out_asked;
    pthread_mutex_unlock(&t->lock);
    if (asked == t->process.out_seen)
        return;
    t->process.out_seen = asked;
    if (t->process.out_fd >= 0 && ioctl(t->process.out_fd, FIONREAD, &waiting) < 0)
        waiting = 0;
    t->process.out_due = t->process.out_read + waiting;
}

static void answer_question(struct attempt *t)
{
    if (t->process.out_fd >= 0 && t->process.out_read < t->process.out_due)
        return;
    pthread_mutex_lock(&t->lock);
    if (t->out_passed != t->process.out_seen) {
        t->out_passed = t->process.out_seen;
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
}

void output_read(struct attempt *t, char *buf, bool rest)
{
    if (t->launch.collector)
        take_question(t);
    read_rounds(t, buf, rest);
    if (t->launch.collector)
        answer_question(t);
}

void output_catch_up(struct attempt *a)
{
    pthread_mutex_lock(&a->lock);
    unsigned mine = ++a->out_asked;
    attempt_wake_locked(a);
    while (a->out_passed != mine && a->phase < ATTEMPT_ENDED)
        pthread_cond_wait(&a->changed, &a->lock);
    pthread_mutex_unlock(&a->lock);
    collector_catch_up(a->launch.collector);
}
