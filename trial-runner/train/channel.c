#include "trial-runner/train/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

void channel_init(struct channel *c, int fd)
{
    struct stat st;
    *c = (struct channel){.fd = -1};
    (void)pthread_mutex_init(&c->lock, NULL);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode))
        c->fd = fd;
}

void channel_done(struct channel *c)
{
    (void)pthread_mutex_destroy(&c->lock);
    control_lines_done(&c->in);
}

static void send_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return;
        bytes += sent;
        n -= (size_t)sent;
    }
}

void channel_send(struct channel *c, const struct control_event *e)
{
    AS_AUTO(str_done) struct str line = {0};
    if (c->fd < 0 || control_event_format(e, &line, NULL) != AS_OK)
        return;
    (void)pthread_mutex_lock(&c->lock);
    send_all(c->fd, line.s, line.len);
    (void)pthread_mutex_unlock(&c->lock);
}

void channel_log(struct channel *c, const char *id, bool is_error, const char *text)
{
    AS_AUTO(str_done) struct str line = {0};
    bool to_runner = c && c->fd >= 0 && *id;
    int len = (int)strlen(text);
    if (len > 0 && text[len - 1] == '\n')
        len--;
    str_printf(&line, "%s%s%s%.*s", is_error ? "assay-train: " : "", to_runner ? "" : id,
               to_runner || !*id ? "" : ": ", len, text);
    struct control_event e = {.kind = CONTROL_LOG, .id = id, .text = str_cstr(&line)};
    if (to_runner) {
        channel_send(c, &e);
        return;
    }
    (void)fflush(stdout);
    (void)fprintf(is_error ? stderr : stdout, "%s\n", str_cstr(&line));
}

as_status channel_read(struct channel *c, int timeout_ms, struct as_err *err)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    char bytes[16384];
    if (c->fd < 0 || c->gone || poll(&p, 1, timeout_ms) <= 0)
        return AS_OK;
    for (;;) {
        ssize_t n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return AS_OK;
        if (n <= 0) {
            c->gone = true;
            return AS_OK;
        }
        as_status st = control_lines_feed(&c->in, bytes, (size_t)n, err);
        if (st != AS_OK) {
            c->gone = true;
            return st;
        }
    }
}

as_status channel_next(struct channel *c, struct control_request *ret, struct as_err *err)
{
    size_t len = 0;
    const char *line = control_lines_next(&c->in, &len);
    if (!line)
        return AS_E_NOT_FOUND;
    return control_request_parse(line, len, ret, err);
}
