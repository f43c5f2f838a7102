/* Files: read whole, replace durably, make folders. Paths are borrowed. */
#ifndef ASSAY_BASE_FILE_H
#define ASSAY_BASE_FILE_H

#include <stdbool.h>
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

/* As file_read(), for a path that a user named on a command line: "-" is standard input. A device
 * or a folder is AS_E_INVAL, because a device may have no end. Pipes are read, such as <(COMMAND)
 * of a shell. A signal whose handler is installed without SA_RESTART ends the wait for a pipe:
 * AS_E_IO. */
AS_MUST_CHECK as_status file_read_input(const char *path, size_t max_bytes, char **ret,
                                        size_t *ret_len, struct as_err *err);

/* Open a file that a user named, to read it more than once. *ret_fd is owned by the caller.
 * AS_E_INVAL: it is not a regular file, and the message says what it is; AS_E_NOT_FOUND;
 * AS_E_IO. */
AS_MUST_CHECK as_status file_open_regular(const char *path, int *ret_fd, struct as_err *err);

/* Replace `path` durably: write a temporary beside it, fsync, rename, fsync the folder. After a
 * crash the file is the old or the new one, whole. A link is followed, and its target replaced.
 * AS_E_IO: the disk is full; or something is there that is not a regular file (a device, a pipe, a
 * folder, a link to nothing), which is never replaced. */
AS_MUST_CHECK as_status file_replace(const char *path, const void *bytes, size_t len, mode_t mode,
                                     struct as_err *err);

/* Let this process open as many files and connections as it may, at most 65,536: raises the soft
 * limit of descriptors to the hard one. */
void file_raise_limit(void);

/* Write what a user asked for to the path that the user named: "-" is standard output; a character
 * device or a pipe is written to; anything else is as for file_replace(), but an existing file
 * keeps its mode. If `mode` gives nothing to group and others, an existing file gives them nothing
 * either. AS_E_IO. */
AS_MUST_CHECK as_status file_write_output(const char *path, const void *bytes, size_t len,
                                          mode_t mode, struct as_err *err);

/* A new content of `path` that is written piece by piece, to a temporary file beside what it will
 * replace. A link is followed: its target is replaced. Zeroed: no draft. */
struct file_draft {
    int fd;     /* write here */
    char *path; /* what commit replaces; owned */
    char *temp; /* where fd is until then; owned */
};

/* Begin a draft. AS_E_IO: as for file_replace(), before anything is written. */
AS_MUST_CHECK as_status file_draft_open(struct file_draft *d, const char *path, struct as_err *err);
/* Give the draft its mode and its name. `durably`: sync the file and its folder. After a failure
 * the old file is there. */
AS_MUST_CHECK as_status file_draft_commit(struct file_draft *d, mode_t mode, bool durably,
                                          struct as_err *err);
/* Remove a draft that was not committed; may be called twice. */
void file_draft_done(struct file_draft *d);

/* The same for what a user asked for, by the rules of file_write_output(). Zeroed: none. */
struct file_output {
    int fd; /* write here */
    mode_t mode;
    bool close; /* fd is a device's */
    struct file_draft draft;
};

AS_MUST_CHECK as_status file_output_open(struct file_output *o, const char *path, mode_t mode,
                                         struct as_err *err);
AS_MUST_CHECK as_status file_output_commit(struct file_output *o, struct as_err *err);
void file_output_done(struct file_output *o);

/* Replace `path` by bytes that lie in several pieces. Readers see the old file or the new one, but
 * it is not durable: until file_sync(), a crash of the machine may leave an empty file. AS_E_IO. */
AS_MUST_CHECK as_status file_publishv(const char *path, const struct iovec *parts, size_t n_parts,
                                      mode_t mode, struct as_err *err);

/* fsync a file or folder; a symbolic link is not followed. AS_E_NOT_FOUND, AS_E_IO. */
AS_MUST_CHECK as_status file_sync(const char *path, struct as_err *err);

/* Is there a folder, or a link to one? */
bool file_is_folder(const char *path);

/* mkdir -p with mode 0777 less the umask (the last component gets `mode`). Others may remove empty
 * folders of the path meanwhile: these are made again. AS_E_IO. */
AS_MUST_CHECK as_status file_mkdirs(const char *path, mode_t mode, struct as_err *err);

/* Make a folder that this user alone may enter, or check that it is one: mode 0700, this user's, no
 * link. Another user may have made a folder, or a link, where the path can be guessed. The parent
 * must exist. A folder of this user with another mode gets the right one. AS_E_DENIED: it belongs
 * to another user; AS_E_NOT_FOUND: no parent; AS_E_IO: a link, no folder, or it cannot be made. */
AS_MUST_CHECK as_status file_own_folder(const char *path, struct as_err *err);

/* The same for a path that a person has given: the folders on the way are made if needed (mode 0777
 * less the umask), and none of them may be a link either: whoever owns a link decides where the
 * files go. AS_E_IO for a link names the path that it leads to. */
AS_MUST_CHECK as_status file_own_path(const char *path, struct as_err *err);

/* The same as file_own_folder() for root, who makes or gives the folder to another user. */
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

/* Is a text from outside safe as the path of a file inside a folder? It is relative, has no empty,
 * "." or ".." component, no control character, and at most 255 bytes. */
bool file_path_is_inner(const char *path);

/* Copy the bytes of a file to `to`, which is made with mode 0644, or replaced. AS_E_IO,
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status file_copy(const char *from, const char *to, struct as_err *err);

/* Give a file a second name, `to`, or copy it where the file system has no hard links.
 * AS_E_NOT_FOUND: there is no such file; AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status file_link_or_copy(const char *from, const char *to, struct as_err *err);

#endif
