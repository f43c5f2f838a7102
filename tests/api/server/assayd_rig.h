/* An assayd of its own over a database of its own, for tests of the program: its files, its start,
 * its end. One test process has one rig at a time. */
#ifndef ASSAY_TESTS_API_SERVER_ASSAYD_RIG_H
#define ASSAY_TESTS_API_SERVER_ASSAYD_RIG_H

#include <check.h>
#include <sys/types.h>

#include "tests/api/server/assayd_process.h"
#include "tests/api/server/rest.h"
#include "tests/support/pg_fixture.h"
#include "tests/support/temp_folder.h"

/* For the test that runs: a folder for its files, and the URL of a database of its own. That is
 * migrated, which takes half a second: a test of the migrations asks for an empty one. */
extern char rig_dir[TEMP_FOLDER_SIZE], rig_database[PG_URL_SIZE];

/* A suite of one case, over a PostgreSQL that was started; each of its tests has the folder and the
 * database. Adds the case to ret_case. */
Suite *rig_suite(const char *name, TCase **ret_case);

/* The path of a file in rig_dir; good for 32 calls. */
const char *rig_file(const char *name);

/* Start assayd with this name for its address file, and wait until it answers. url and token (of an
 * administrator) are filled in. */
pid_t rig_start_as(const char *name, char url[128], char token[128]);
pid_t rig_start(char url[128], char token[128]);
/* Wait for the file url of an assayd that the test started by itself with --address-file url and
 * --admin-token-file admin. */
void rig_await_ready(pid_t pid, char url[128], char token[128]);

/* Send SIGTERM, and wait for a good end. */
void rig_stop(pid_t pid);
/* Wait for its end, and check its exit status. */
#define ck_ends(pid, want) ck_assert_int_eq(assayd_wait(pid, want), want)

/* A sweep called asked, for clients. */
void rig_make_asked(const struct rest *to, const char *path, const char *method, int max_trials);

#endif
