/* Is a disk full? For messages: a program that fails on a full disk seldom says which disk it is,
 * or how much it needs. */
#ifndef ASSAY_BASE_DISK_ROOM_H
#define ASSAY_BASE_DISK_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What PostgreSQL needs to start on a disk that was full: two segments of its write-ahead log. */
#define DISK_ROOM_POSTGRES ((uint64_t)32 << 20)

/* Does the file system of `folder` have less than `least` bytes for programs without privileges?
 * Writes "FOLDER has 3 MiB left, and at least 32 MiB are needed" to ret_text (may be NULL), cut at
 * `size`. False when its size is unknown, as of a folder that does not exist. */
bool disk_room_is_short(const char *folder, uint64_t least, char *ret_text, size_t size);

#endif
