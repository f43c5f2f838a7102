#include "cli/files/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/proc_stat.h"

unsigned long long process_start_ticks(pid_t pid)
{
    char path[64], text[PROC_STAT_MAX];
    struct proc_stat stat;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n <= 0)
        return 0;
    text[n] = 0;
    return proc_stat_parse(text, &stat) && stat.state != 'Z' ? stat.start : 0;
}
