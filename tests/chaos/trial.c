/* A trial that writes down what it does: `chaos_trial HISTORY STEPS PAUSE_MS X Y`.
 *
 * Each line of HISTORY is one write with O_APPEND, followed by fsync, so that it is whole and
 * stays. The value is written to HISTORY before it is reported: whatever the server knows is in
 * HISTORY. Times are of CLOCK_MONOTONIC, which all processes of a machine share and no fault
 * moves.
 *
 * What the trial does follows from its parameters and its attempt: most complete, some fail (exit
 * 1), and some exit with 75 in their first attempt, to be tried again. Ranks other than 0 of a
 * gang run as long and report nothing. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXIT_AGAIN 75

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((format(printf, 3, 4))) static void append(const char *path, int must_sync,
                                                         const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, line, (size_t)n) != n || (must_sync && fsync(fd) < 0)) {
        perror(path);
        exit(EXIT_AGAIN); /* the disk is full */
    }
    close(fd);
}

static const char *variable(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value ? value : fallback;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: chaos_trial HISTORY STEPS PAUSE_MS X Y\n");
        return 64;
    }
    const char *history = argv[1], *report = variable("ASSAY_REPORT", "/dev/null");
    const char *trial = variable("ASSAY_TRIAL", "?"), *attempt = variable("ASSAY_ATTEMPT", "0");
    int steps = (int)strtol(argv[2], NULL, 10), pause = (int)strtol(argv[3], NULL, 10);
    int rank = (int)strtol(variable("RANK", "0"), NULL, 10);
    double x = strtod(argv[4], NULL), y = strtod(argv[5], NULL);
    int lot = (int)(x * 1e6) % 20; /* what this configuration does */
#define NOTE(event, more, ...)                                                                     \
    append(history, 1,                                                                             \
           "{\"t\": %" PRId64 ", \"event\": \"" event "\", \"trial\": \"%s\", \"attempt\": %s, "   \
           "\"rank\": %d, \"pid\": %d" more "}\n",                                                 \
           now_ms(), trial, attempt, rank, (int)getpid(), __VA_ARGS__)
    NOTE("begin", "%s", "");
    for (int step = 0; step < steps; step++) {
        struct timespec t = {.tv_sec = pause / 1000, .tv_nsec = pause % 1000 * 1000000L};
        nanosleep(&t, NULL);
        NOTE("step", ", \"step\": %d", step);
        if (rank == 0 && step + 1 < steps)
            append(report, 0, "{\"step\": %d, \"loss\": %.17g}\n", step,
                   x * x + y * y + steps - 1 - step);
    }
    if (lot == 0) {
        NOTE("end", ", \"exit\": %d", 1);
        return 1;
    }
    if (lot == 1 && strcmp(attempt, "1") == 0) {
        NOTE("end", ", \"exit\": %d", EXIT_AGAIN);
        return EXIT_AGAIN;
    }
    NOTE("end", ", \"exit\": 0, \"value\": %.17g", x * x + y * y);
    if (rank == 0)
        append(report, 0, "{\"step\": %d, \"loss\": %.17g}\n", steps - 1, x * x + y * y);
    return 0;
}
