/* Files: read whole, replace durably, make folders. Paths are borrowed. */
#ifndef ASSAY_BASE_FILE_H
#define ASSAY_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/mem.h"
#include "base/status.h"

/* The whole file, NUL-terminated past its end; owned by the caller.
 * AS_E_NOT_FOUND; AS_E_IO; AS_E_TOO_LARGE past max_bytes; AS_E_NOMEM. */
AS_MUST_CHECK as_status file_read(const char *path, size_t max_bytes, char **ret, size_t *ret_len,
                                  struct as_err *err);

/* Replace `path` durably: write a temporary beside it, fsync, rename, fsync the folder. After a
 * crash the file is the old or the new one, whole. A link is followed, and its target replaced.
 * AS_E_IO: the disk is full; or something is there that is not a regular file (a device, a pipe, a
 * folder, a link to nothing), which is never replaced. */
AS_MUST_CHECK as_status file_replace(const char *path, const void *bytes, size_t len, mode_t mode,
                                     struct as_err *err);

/* Write what a user asked for to the path that the user named: "-" is standard output; a character
 * device or a pipe is written to; anything else is as for file_replace(), but an existing file keeps
 * its mode. If `mode` gives nothing to group and others, an existing file gives them nothing either.
 * AS_E_IO. */
AS_MUST_CHECK as_status file_write_output(const char *path, const void *bytes, size_t len,
                                          mode_t mode, struct as_err *err);

/* May a file be put at `path` by rename? Yes when nothing is there, or a regular file, or a link to
 * one. AS_E_IO otherwise; the message says what is there. */
AS_MUST_CHECK as_status file_check_replaceable(const char *path, struct as_err *err);

/* Replace `path` by bytes that lie in several pieces. Readers see the old file or the new one, but
 * it is not durable: until file_sync(), a crash of the machine may leave an empty file. AS_E_IO. */
AS_MUST_CHECK as_status file_publishv(const char *path, const struct iovec *parts, size_t n_parts,
                                      mode_t mode, struct as_err *err);

/* fsync a file or folder; a symbolic link is not followed. AS_E_NOT_FOUND, AS_E_IO. */
AS_MUST_CHECK as_status file_sync(const char *path, struct as_err *err);

/* mkdir -p with mode 0777 less the umask (the last component gets `mode`). AS_E_IO. */
AS_MUST_CHECK as_status file_mkdirs(const char *path, mode_t mode, struct as_err *err);

/* Make a folder that this user alone may enter, or check that it is one: mode 0700, this user's, no
 * link. Another user may have made a folder, or a link, where the path can be guessed. The parent must
 * exist. A folder of this user with another mode gets the right one. AS_E_DENIED: it belongs to
 * another user; AS_E_NOT_FOUND: no parent; AS_E_IO: a link, no folder, or it cannot be made. */
AS_MUST_CHECK as_status file_own_folder(const char *path, struct as_err *err);

/* The same for root, who makes or gives the folder to another user. */
AS_MUST_CHECK as_status file_own_folder_of(const char *path, uid_t uid, gid_t gid,
                                           struct as_err *err);

/* Remove a file or a folder with its content; never follows links. AS_OK if there is none. AS_E_IO.
 */
AS_MUST_CHECK as_status file_remove_tree(const char *path, struct as_err *err);

/* Write all bytes to a descriptor; repeats after EINTR and short writes. AS_E_IO. */
AS_MUST_CHECK as_status file_write_all(int fd, const void *bytes, size_t len, struct as_err *err);

/* dir + "/" + name, owned by the caller, or NULL when memory is out. */
char *file_join(const char *dir, const char *name);

/* cleanup for descriptors: closes *fd when >= 0. */
void file_closep(int *fd);

#endif
