#include "base/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

void notify_send(const char *message)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    if (len == 0 || len >= sizeof sa.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(sa.sun_path, path, len);
    if (path[0] == '@')
        sa.sun_path[0] = '\0'; /* an abstract socket */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, message, strlen(message), MSG_NOSIGNAL, (const struct sockaddr *)&sa,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    (void)close(fd);
}

int64_t notify_watchdog_ns(void)
{
    const char *time = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t us = 0, who = 0;
    if (!time || as_parse_i64(time, &us, NULL) < 0 || us <= 0 || us > INT64_MAX / 1000)
        return 0;
    if (pid && (as_parse_i64(pid, &who, NULL) < 0 || who != getpid()))
        return 0;
    return us * 1000 / 2;
}

void notify_beat(struct notify_watchdog *w)
{
    int64_t now = clock_mono_ns();
    if (w->every_ns == 0 || now < w->due_ns)
        return;
    notify_send("WATCHDOG=1");
    w->due_ns = now + w->every_ns;
}
