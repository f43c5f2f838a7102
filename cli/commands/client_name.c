#include "cli/commands/client_name.h"

#include <ctype.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/files/process.h"

/* Replace the characters that a client name may not contain by _. */
static void keep_allowed(char *s)
{
    for (; *s; s++)
        if (!isascii((unsigned char)*s) || !(isalnum((unsigned char)*s) || strchr("._:-", *s)))
            *s = '_';
}

const char *client_name_prefix(char buf[CLIENT_NAME_SIZE])
{
    char host[256] = "", user[64] = "";
    const struct passwd *entry = getpwuid(getuid());
    if (gethostname(host, sizeof host - 1) < 0 || !host[0])
        (void)snprintf(host, sizeof host, "localhost");
    if (entry && isalnum((unsigned char)entry->pw_name[0]))
        (void)snprintf(user, sizeof user, "%s", entry->pw_name);
    else
        (void)snprintf(user, sizeof user, "uid%lu", (unsigned long)getuid());
    keep_allowed(user);
    keep_allowed(host);
    /* 12 + 1 + 20 + 1 characters, so that a pid (10), a dash (1) and a start time (16) fit, too. */
    (void)snprintf(buf, CLIENT_NAME_SIZE, "%.12s@%.20s-", user, host);
    return buf;
}

const char *client_name_default(char buf[CLIENT_NAME_SIZE])
{
    char prefix[CLIENT_NAME_SIZE];
    pid_t parent = getppid();
    (void)snprintf(buf, CLIENT_NAME_SIZE, "%.34s%d-%" PRIx64, client_name_prefix(prefix),
                   (int)parent, (uint64_t)process_start_ticks(parent));
    return buf;
}

bool client_name_is_ours(const char *holder)
{
    char prefix[CLIENT_NAME_SIZE];
    return as_starts_with(holder, client_name_prefix(prefix));
}
