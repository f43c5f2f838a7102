#include "trial-runner/collective/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

static bool is_ipv6(const char *address)
{
    return strchr(address, ':') != NULL;
}

const char *endpoint_format(const struct endpoint *e, char *buf)
{
    bool six = is_ipv6(e->address);
    (void)snprintf(buf, ENDPOINT_TEXT_MAX, "%s%s%s:%u host=%s socket=%s", six ? "[" : "",
                   e->address, six ? "]" : "", (unsigned)e->port, e->host, e->socket);
    return buf;
}

static bool is_hex(const char *s, size_t len)
{
    return strspn(s, "0123456789abcdef") == len && s[len] == '\0';
}

static bool is_address(const char *address)
{
    unsigned char bytes[16];
    return inet_pton(is_ipv6(address) ? AF_INET6 : AF_INET, address, bytes) == 1;
}

as_status endpoint_parse(const char *text, struct endpoint *ret, struct as_err *err)
{
    struct endpoint e = {0};
    char digits[6] = "", again[ENDPOINT_TEXT_MAX];
    int n = text[0] == '['
                ? sscanf(text, "[%63[0-9a-f:.]]:%5[0-9] host=%16[0-9a-f] socket=%32[0-9a-f]",
                         e.address, digits, e.host, e.socket)
                : sscanf(text, "%63[0-9.]:%5[0-9] host=%16[0-9a-f] socket=%32[0-9a-f]", e.address,
                         digits, e.host, e.socket);
    unsigned long port = strtoul(digits, NULL, 10);
    e.port = (uint16_t)port;
    /* sscanf allows other blanks, and text behind; what is written again as it was has none. */
    if (n == 4 && port > 0 && port <= UINT16_MAX && is_address(e.address) && is_hex(e.host, 16) &&
        is_hex(e.socket, 32) && strcmp(endpoint_format(&e, again), text) == 0) {
        *ret = e;
        return AS_OK;
    }
    return as_fail(err, AS_E_INVAL,
                   "'%.120s' is no endpoint; expected ADDRESS:PORT host=16 hexadecimal digits "
                   "socket=32 hexadecimal digits",
                   text);
}

static as_status read_boot_id(char *buf, size_t size, struct as_err *err)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
    int why = errno;
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return as_fail(err, AS_E_IO, "/proc/sys/kernel/random/boot_id: %s", strerror(why));
    buf[n] = '\0';
    return AS_OK;
}

as_status endpoint_this_host(char ret[17], struct as_err *err)
{
    char boot[64], text[200], hex[SHA256_HEX_SIZE];
    struct stat net, pid;
    as_status st;
    if ((st = read_boot_id(boot, sizeof boot, err)) < 0)
        return st;
    if (stat("/proc/self/ns/net", &net) < 0 || stat("/proc/self/ns/pid", &pid) < 0)
        return as_fail(err, AS_E_IO, "/proc/self/ns: %s", strerror(errno));
    (void)snprintf(text, sizeof text, "%s net %llu pid %llu", boot, (unsigned long long)net.st_ino,
                   (unsigned long long)pid.st_ino);
    if ((st = sha256_of(text, strlen(text), hex, err)) < 0)
        return st;
    memcpy(ret, hex, 16);
    ret[16] = '\0';
    return AS_OK;
}

bool endpoint_same_host(const struct endpoint *a, const struct endpoint *b)
{
    return strcmp(a->host, b->host) == 0;
}
