/* A proxy that loses replies after their request was carried out:
 * `chaos_proxy LISTEN MARKS TARGET…`.
 *
 * LISTEN and TARGET are "unix:PATH" or "tcp:PORT" (of 127.0.0.1; port 0: any). The first line of
 * stdout is "listening ADDRESS". A request whose bytes contain one of MARKS ("TEXT|TEXT…"), or that
 * is PostgreSQL's query "commit" alone, can lose its reply: the proxy passes the request on, waits
 * for the reply, throws it away, and closes both connections. Its client cannot know whether the
 * request took effect; it did.
 *
 * Commands are lines of stdin:
 *   drop N        the next N marked requests lose their replies; each prints "dropped"
 *   stall MS      pass on nothing for so long; connections stay
 *   cut           close all connections
 *   to TARGET…    where new connections go, in turn; one that cannot be reached is passed over
 *
 * The end of stdin ends the proxy, so it never outlives who started it. One thread; each
 * connection has a buffer for each direction. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES (64 << 10)
#define PAIRS_MAX 2048
#define TARGETS_MAX 8

/* One direction: what was read from a socket and not yet written to the other. */
struct flow {
    char *bytes;
    size_t n, sent;
    bool has_ended; /* nothing more comes */
};

struct pair {
    int fd[2];           /* client, server */
    struct flow flow[2]; /* from the client, from the server */
    bool loses;          /* the reply that comes next */
};

static struct pair pairs[PAIRS_MAX];
static size_t n_pairs;
static char targets[TARGETS_MAX][108];
static size_t n_targets, next_target;
static char *marks[TARGETS_MAX];
static long drops;
static int64_t stalled_until_ms;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* The address of "unix:PATH" or "tcp:PORT"; its length, 0 if the text is neither. */
static socklen_t address_of(const char *text, struct sockaddr_storage *ret)
{
    memset(ret, 0, sizeof *ret);
    if (strncmp(text, "unix:", 5) == 0) {
        struct sockaddr_un *a = (struct sockaddr_un *)ret;
        a->sun_family = AF_UNIX;
        (void)snprintf(a->sun_path, sizeof a->sun_path, "%s", text + 5);
        return sizeof *a;
    }
    if (strncmp(text, "tcp:", 4) == 0) {
        struct sockaddr_in *a = (struct sockaddr_in *)ret;
        *a = (struct sockaddr_in){.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(text + 4, NULL, 10)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        return sizeof *a;
    }
    return 0;
}

static int listen_at(const char *text)
{
    struct sockaddr_storage a;
    struct sockaddr_in bound;
    socklen_t n = address_of(text, &a), n_bound = sizeof bound;
    int fd = n > 0 ? socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, 512) < 0)
        die(text);
    if (a.ss_family == AF_INET && getsockname(fd, (struct sockaddr *)&bound, &n_bound) == 0)
        printf("listening tcp:%u\n", (unsigned)ntohs(bound.sin_port));
    else
        printf("listening %s\n", text);
    return fd;
}

/* A connection to the next target that can be reached; -1: none. */
static int connect_to_target(void)
{
    for (size_t i = 0; i < n_targets; i++) {
        struct sockaddr_storage a;
        socklen_t n = address_of(targets[next_target++ % n_targets], &a);
        int fd = n > 0 ? socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
        if (fd < 0)
            continue;
        if (connect(fd, (struct sockaddr *)&a, n) == 0)
            return fd;
        close(fd);
    }
    return -1;
}

static void make_ready(int fd)
{
    int one = 1;
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* fails on unix: as well */
}

static void accept_one(int listener)
{
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    int server = n_pairs < PAIRS_MAX ? connect_to_target() : -1;
    struct pair p = {.fd = {client, server}};
    for (int i = 0; i < 2; i++)
        p.flow[i].bytes = malloc(BUFFER_BYTES);
    if (server < 0 || !p.flow[0].bytes || !p.flow[1].bytes) {
        close(client);
        if (server >= 0)
            close(server);
        free(p.flow[0].bytes);
        free(p.flow[1].bytes);
        return;
    }
    make_ready(client);
    make_ready(server);
    pairs[n_pairs++] = p;
}

static void close_pair(size_t i)
{
    for (int k = 0; k < 2; k++) {
        close(pairs[i].fd[k]);
        free(pairs[i].flow[k].bytes);
    }
    pairs[i] = pairs[--n_pairs];
}

/* Does the reply of PostgreSQL end here? ReadyForQuery is the last message of each. An HTTP reply
 * has had its effect when its first byte is here. */
static bool is_reply_over(const struct flow *f)
{
    static const char ready[] = {'Z', 0, 0, 0, 5};
    bool is_http = f->n >= 5 && memcmp(f->bytes, "HTTP/", 5) == 0;
    return is_http || (f->n >= 6 && memcmp(f->bytes + f->n - 6, ready, sizeof ready) == 0);
}

static bool is_marked(const struct flow *f)
{
    static const char commit[] = {'Q', 0, 0, 0, 11, 'c', 'o', 'm', 'm', 'i', 't', 0};
    bool found = memmem(f->bytes, f->n, commit, sizeof commit) != NULL;
    for (size_t i = 0; marks[i] && !found; i++)
        found = memmem(f->bytes, f->n, marks[i], strlen(marks[i])) != NULL;
    return found;
}

/* Read into a flow; false: the pair must be closed. */
static bool read_flow(struct pair *p, int from)
{
    struct flow *f = &p->flow[from];
    if (f->has_ended || f->n == BUFFER_BYTES)
        return true;
    ssize_t got = recv(p->fd[from], f->bytes + f->n, BUFFER_BYTES - f->n, 0);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0) {
        f->has_ended = true;
        return f->n > f->sent; /* what is left is still passed on */
    }
    f->n += (size_t)got;
    if (from == 0 && drops > 0 && !p->loses && is_marked(f)) {
        drops--;
        p->loses = true;
    }
    if (from == 1 && p->loses) {
        bool is_over = is_reply_over(f) || f->n == BUFFER_BYTES;
        if (is_over)
            printf("dropped\n");
        return !is_over;
    }
    return true;
}

/* Write from a flow; false: the pair must be closed. */
static bool write_flow(struct pair *p, int from)
{
    struct flow *f = &p->flow[from];
    if (from == 1 && p->loses)
        return true;
    if (f->n > f->sent) {
        ssize_t put = send(p->fd[1 - from], f->bytes + f->sent, f->n - f->sent, MSG_NOSIGNAL);
        if (put < 0)
            return errno == EAGAIN || errno == EINTR;
        f->sent += (size_t)put;
    }
    if (f->sent == f->n) {
        f->n = f->sent = 0;
        return !f->has_ended;
    }
    return true;
}

static void set_targets(char *words)
{
    n_targets = 0;
    for (char *w = strtok_r(words, " ", &words); w && n_targets < TARGETS_MAX;
         w = strtok_r(NULL, " ", &words))
        (void)snprintf(targets[n_targets++], sizeof targets[0], "%s", w);
}

static void obey(char *line)
{
    if (strncmp(line, "drop ", 5) == 0)
        drops = strtol(line + 5, NULL, 10);
    else if (strncmp(line, "stall ", 6) == 0)
        stalled_until_ms = now_ms() + strtol(line + 6, NULL, 10);
    else if (strncmp(line, "to ", 3) == 0)
        set_targets(line + 3);
    else if (strcmp(line, "cut") == 0)
        while (n_pairs > 0)
            close_pair(n_pairs - 1);
}

/* Read commands; at the end of stdin the program ends. */
static void read_commands(void)
{
    static char buffer[1024];
    static size_t n;
    ssize_t got = read(STDIN_FILENO, buffer + n, sizeof buffer - 1 - n);
    if (got <= 0)
        exit(0);
    n += (size_t)got;
    buffer[n] = '\0';
    char *line = buffer, *end;
    while ((end = strchr(line, '\n'))) {
        *end = '\0';
        obey(line);
        line = end + 1;
    }
    n = strlen(line);
    memmove(buffer, line, n);
}

static short events_of(const struct pair *p, int side)
{
    const struct flow *in = &p->flow[side], *out = &p->flow[1 - side];
    bool holds = side == 0 && p->loses; /* the reply goes nowhere */
    return (short)((!in->has_ended && in->n < BUFFER_BYTES ? POLLIN : 0) |
                   (out->n > out->sent && !holds ? POLLOUT : 0));
}

static bool pass_on(struct pair *p, const struct pollfd *f)
{
    for (int from = 0; from < 2; from++)
        if (f[from].revents & (POLLIN | POLLHUP | POLLERR) && !read_flow(p, from))
            return false;
    return write_flow(p, 0) && write_flow(p, 1);
}

static void run_once(int listener)
{
    static struct pollfd f[2 + 2 * PAIRS_MAX];
    int64_t left = stalled_until_ms - now_ms();
    size_t seen = left > 0 ? 0 : n_pairs;
    f[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    f[1] = (struct pollfd){.fd = left > 0 ? -1 : listener, .events = POLLIN};
    for (size_t i = 0; i < seen; i++)
        for (int k = 0; k < 2; k++)
            f[2 + 2 * i + (size_t)k] =
                (struct pollfd){.fd = pairs[i].fd[k], .events = events_of(&pairs[i], k)};
    if (poll(f, 2 + 2 * seen, left > 0 ? (int)left : -1) < 0)
        return;
    for (size_t i = seen; i-- > 0;)
        if (!pass_on(&pairs[i], &f[2 + 2 * i]))
            close_pair(i); /* the last pair takes its place, and has had its turn */
    if (f[1].revents)
        accept_one(listener);
    if (f[0].revents)
        read_commands();
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 3 + TARGETS_MAX) {
        fprintf(stderr, "usage: chaos_proxy LISTEN MARKS TARGET...\n");
        return 64;
    }
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    size_t n = 0;
    for (char *rest = argv[2], *m; n + 1 < TARGETS_MAX && (m = strtok_r(rest, "|", &rest));)
        marks[n++] = m;
    for (int i = 3; i < argc; i++)
        (void)snprintf(targets[n_targets++], sizeof targets[0], "%s", argv[i]);
    int listener = listen_at(argv[1]);
    for (;;)
        run_once(listener);
}
