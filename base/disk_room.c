#include "base/disk_room.h"

#include <stdio.h>
#include <sys/statvfs.h>

bool disk_room_is_short(const char *folder, uint64_t least, char *ret_text, size_t size)
{
    struct statvfs fs;
    if (statvfs(folder, &fs) != 0 || fs.f_blocks == 0)
        return false;
    uint64_t left = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (left >= least)
        return false;
    if (ret_text)
        (void)snprintf(ret_text, size, "%s has %llu MiB left, and at least %llu MiB are needed",
                       folder, (unsigned long long)(left >> 20), (unsigned long long)(least >> 20));
    return true;
}
