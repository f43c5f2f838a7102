/* Hosts are namespaces of ip-netns(8), named after this process, and so is the namespace of the
 * switch: removing the namespaces removes the bridge, the cables and their limits, and nothing of
 * it is ever in this machine's own network. */
#include "bench/network/hosts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define PORT 7700

static int made; /* hosts that may exist */
static pid_t maker;

/* Runs a line of sh(1), in which $S is the switch's namespace and $H that of host i. */
static bool sh(int i, const char *line)
{
    char name[40];
    (void)snprintf(name, sizeof name, "assaynet%ds", (int)maker);
    (void)setenv("S", name, 1);
    (void)snprintf(name, sizeof name, "assaynet%dh%d", (int)maker, i);
    (void)setenv("H", name, 1);
    return system(line) == 0;
}

void hosts_remove(void)
{
    if (made == 0 || getpid() != maker)
        return;
    for (int i = 0; i < made; i++)
        (void)sh(i, "ip netns del $H 2>/dev/null");
    (void)sh(0, "ip netns del $S 2>/dev/null");
    made = 0;
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

static void at_signals(void (*what)(int))
{
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        (void)signal(signals[i], what);
}

/* The ranks end with this process (PR_SET_PDEATHSIG). A terminal and timeout(1) send the signal to
 * all processes of the group: those that remove the hosts must not end from it. */
static void end(int number)
{
    at_signals(SIG_IGN);
    hosts_remove();
    _exit(128 + number);
}

static bool make_host(int i, int64_t mbit)
{
    char line[900];
    (void)snprintf(
        line, sizeof line,
        "{ ip netns add $H && ip link add port%d netns $S type veth peer name cable netns "
        "$H && ip -n $S link set port%d master hub up && ip -n $H link set lo up && "
        "ip -n $H addr add %s/24 dev cable && ip -n $H link set cable up; } 2>/dev/null",
        i, i, hosts_address(i));
    if (!sh(i, line))
        return false;
    (void)snprintf(line, sizeof line,
                   "L=\"tbf rate %lldmbit burst 256kb latency 100ms\"; "
                   "{ tc -n $H qdisc add dev cable root $L && "
                   "tc -n $S qdisc add dev port%d root $L; } 2>/dev/null",
                   (long long)mbit, i);
    return mbit == 0 || sh(i, line);
}

bool hosts_make(int n, int64_t mbit)
{
    maker = getpid();
    made = n;
    (void)atexit(hosts_remove);
    at_signals(end);
    bool ok = sh(0, "{ ip netns add $S && ip -n $S link add hub type bridge && "
                    "ip -n $S link set hub up; } 2>/dev/null");
    for (int i = 0; i < n && ok; i++)
        ok = make_host(i, mbit);
    if (!ok)
        hosts_remove();
    return ok;
}

const char *hosts_address(int i)
{
    static char address[20];
    (void)snprintf(address, sizeof address, "10.78.0.%d", i + 1);
    return address;
}

bool hosts_enter(int i)
{
    char path[80];
    (void)snprintf(path, sizeof path, "/run/netns/assaynet%dh%d", (int)maker, i);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && setns(fd, CLONE_NEWNET) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

FILE *hosts_counters(pid_t pid)
{
    char path[40];
    (void)snprintf(path, sizeof path, "/proc/%d/net/dev", (int)pid);
    return fopen(path, "re");
}

uint64_t hosts_bytes_sent(FILE *counters)
{
    char line[400];
    unsigned long long sent = 0;
    if (!counters)
        return 0;
    rewind(counters);
    while (fgets(line, sizeof line, counters)) {
        char *at = strstr(line, "cable:"); /* eight figures of receiving, then the bytes sent */
        if (!at)
            continue;
        at += strlen("cable:");
        for (int field = 0; field < 9; field++)
            sent = strtoull(at, &at, 10);
    }
    return sent;
}

/* --- the rate of plain sockets --- */

static struct sockaddr_in at_host(int i)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    (void)inet_pton(AF_INET, hosts_address(i), &at.sin_addr);
    return at;
}

static bool pump(int out, int in, uint64_t bytes)
{
    static char buffer[1 << 18];
    uint64_t to_send = bytes, to_receive = bytes;
    while (to_send + to_receive > 0) {
        struct pollfd p[2] = {{.fd = to_send ? out : -1, .events = POLLOUT},
                              {.fd = to_receive ? in : -1, .events = POLLIN}};
        if (poll(p, 2, 30000) <= 0)
            return false;
        size_t most = to_send < sizeof buffer ? to_send : sizeof buffer;
        ssize_t n = p[0].revents ? send(out, buffer, most, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        to_send -= n > 0 ? (uint64_t)n : 0;
        most = to_receive < sizeof buffer ? to_receive : sizeof buffer;
        n = p[1].revents ? recv(in, buffer, most, MSG_DONTWAIT) : 0;
        if (p[1].revents && n == 0)
            return false;
        to_receive -= n > 0 ? (uint64_t)n : 0;
    }
    return true;
}

/* Twice: the first time the connections find their window. */
static void pump_host(int i, int n, uint64_t bytes, double *ret_seconds)
{
    struct sockaddr_in here = at_host(i), next = at_host((i + 1) % n);
    int one = 1, out = -1, tries = 0;
    int listening = hosts_enter(i) ? socket(AF_INET, SOCK_STREAM, 0) : -1;
    (void)setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (listening < 0 || bind(listening, (struct sockaddr *)&here, sizeof here) != 0 ||
        listen(listening, 1) != 0)
        return;
    while (out < 0 && tries++ < 500) {
        out = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(out, (struct sockaddr *)&next, sizeof next) != 0) {
            (void)close(out);
            out = -1;
            (void)poll(NULL, 0, 10); /* the other host does not listen yet */
        }
    }
    int in = accept(listening, NULL, NULL);
    if (out < 0 || in < 0 || !pump(out, in, bytes))
        return;
    int64_t start_ns = clock_mono_ns();
    if (pump(out, in, bytes))
        *ret_seconds = (double)(clock_mono_ns() - start_ns) / (double)NS_PER_S;
}

double hosts_rate(int n, uint64_t bytes)
{
    pid_t pids[HOSTS_MAX];
    double slowest = 0;
    double *seconds = mmap(NULL, HOSTS_MAX * sizeof *seconds, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seconds == MAP_FAILED)
        return NAN;
    for (int i = 0; i < n; i++) {
        seconds[i] = NAN;
        pids[i] = fork();
        if (pids[i] == 0) {
            pump_host(i, n, bytes, &seconds[i]);
            _exit(0);
        }
    }
    for (int i = 0; i < n; i++) {
        if (pids[i] > 0)
            (void)waitpid(pids[i], NULL, 0);
        slowest = isnan(seconds[i]) || seconds[i] > slowest ? seconds[i] : slowest;
    }
    for (int i = 0; i < n; i++)
        slowest = isnan(seconds[i]) ? NAN : slowest;
    (void)munmap(seconds, HOSTS_MAX * sizeof *seconds);
    return (double)bytes / slowest;
}
