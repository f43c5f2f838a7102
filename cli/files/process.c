#include "cli/files/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

unsigned long long process_start_ticks(pid_t pid)
{
    char path[64], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n <= 0)
        return 0;
    text[n] = 0;
    /* "pid (name) state ppid …". The name may contain blanks and brackets, so the fields are
     * counted from the last bracket. */
    const char *at = strrchr(text, ')');
    if (!at || !at[1] || at[2] == 'Z')
        return 0;
    at += 2; /* field 3 */
    for (int field = 3; field < 22 && at; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}
