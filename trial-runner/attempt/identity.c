#include "trial-runner/attempt/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

#define SECRET_BYTES 32
#define SECRET_MIN 32
#define SECRET_MAX 128

static as_status make_secret(const char *path, char **ret, struct as_err *err)
{
    uint8_t bytes[SECRET_BYTES];
    char text[2 * SECRET_BYTES + 1];
    random_bytes(bytes, sizeof bytes);
    hex_format(bytes, sizeof bytes, text);
    as_status st = file_replace(path, text, strlen(text), 0600, err);
    if (st < 0)
        return as_err_prefix(err, st, "the runner's secret");
    *ret = as_strdup(text);
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status check_file(int fd, const char *path, struct as_err *err)
{
    struct stat sb;
    if (fstat(fd, &sb) < 0 || !S_ISREG(sb.st_mode))
        return as_fail(err, AS_E_IO, "%.200s is not a regular file", path);
    if (sb.st_uid != geteuid() || (sb.st_mode & 077) != 0)
        return as_fail(err, AS_E_DENIED,
                       "%.200s belongs to user %u with mode %03o, expected user %u and 600: "
                       "another user may know this runner's secret; remove the file",
                       path, (unsigned)sb.st_uid, (unsigned)sb.st_mode & 0777, (unsigned)geteuid());
    return AS_OK;
}

static as_status read_secret(int fd, const char *path, char **ret, struct as_err *err)
{
    static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char text[SECRET_MAX + 2];
    as_status st = check_file(fd, path, err);
    if (st < 0)
        return st;
    ssize_t n = read(fd, text, sizeof text - 1);
    if (n < 0)
        return as_fail(err, AS_E_IO, "%.200s: %s", path, strerror(errno));
    text[n] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    size_t len = strlen(text);
    if (len < SECRET_MIN || len > SECRET_MAX || strspn(text, allowed) != len)
        return as_fail(
            err, AS_E_INVAL,
            "%.200s has %zu characters, expected %d to %d digits and letters; remove it, "
            "and the runner makes another",
            path, len, SECRET_MIN, SECRET_MAX);
    *ret = as_strdup(text);
    return *ret ? AS_OK : as_fail_nomem(err);
}

as_status identity_load(const char *work, char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(work, "secret");
    if (!path)
        return as_fail_nomem(err);
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        return read_secret(fd, path, ret, err);
    if (errno != ENOENT)
        return as_fail(err, AS_E_IO, "cannot open %.200s: %s", path, strerror(errno));
    return make_secret(path, ret, err);
}

as_status identity_client(const struct options *o, struct client **ret, struct as_err *err)
{
    AS_AUTO(client_freep) struct client *c = NULL;
    as_status st = client_create(o->server, o->token, "assay-runner", &c, err);
    if (st < 0)
        return st;
    if (o->secret && (st = client_show_secret(c, o->secret, err)) < 0)
        return st;
    *ret = as_steal(c);
    return AS_OK;
}
