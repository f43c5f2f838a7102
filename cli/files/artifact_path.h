/* Names of artifacts as files on this machine. The names come from a server: none may lead out of
 * the folder that the user named. */
#ifndef ASSAY_CLI_FILES_ARTIFACT_PATH_H
#define ASSAY_CLI_FILES_ARTIFACT_PATH_H

#include <stdbool.h>

#include "base/status.h"

/* Is it a path below a folder: relative, without empty parts, "." and ".."? */
bool artifact_path_valid(const char *path);

/* Is `path` the file `wanted`, or a file in the folder `wanted`? One slash at the end of `wanted`
 * is ignored. */
bool artifact_path_matches(const char *path, const char *wanted);

/* The last part of a path; a view of it. */
const char *artifact_path_name(const char *path);

/* folder/path, and the folders in it are made. Owned by the caller. AS_E_INVAL: the path leads out
 * of the folder; AS_E_IO. */
AS_MUST_CHECK as_status artifact_path_prepare(const char *folder, const char *path, char **ret,
                                              struct as_err *err);

#endif
