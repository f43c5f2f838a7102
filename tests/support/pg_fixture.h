/* A private PostgreSQL cluster for a test program. It starts at the first call, in its own folder
 * in /dev/shm where there is room, else in /tmp, and listens on a socket only. It ends when the
 * program ends, even if that crashes.
 *
 * The cluster belongs to the process that starts it, so call pg_fixture_start() in TEST_SUITE(),
 * before Check forks. As root the server runs as the user postgres. fsync is off (the programs need
 * ASSAY_ALLOW_FSYNC_OFF=1, which is set here) unless the test sets it on.
 *
 * A failure here ends the program with a message. Without PostgreSQL it exits 77 (skipped). One
 * thread at a time, except the functions that take a URL. */
#ifndef ASSAY_TESTS_SUPPORT_PG_FIXTURE_H
#define ASSAY_TESTS_SUPPORT_PG_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#define PG_URL_SIZE 256

struct pg_session;

/* Start the cluster. Its database `assay` is migrated; later databases are copied from it. */
void pg_fixture_start(void);
void pg_fixture_start_with_fsync(void);

/* Make such a cluster, end it, and store its folder `data` in a file for tar at `path`. */
void pg_fixture_make(const char *path);
/* Where the build does so. An empty file: it could not. */
#define PG_FIXTURE_MADE "tests/scheduler/cluster.tar"

/* Create a migrated database. Returns its libpq connection text. */
void pg_fixture_database(char ret_url[PG_URL_SIZE]);
/* Create an empty database. */
void pg_fixture_empty_database(char ret_url[PG_URL_SIZE]);

/* Create a migrated database that tests share, one after another: pg_fixture_clear() empties it, at
 * a fifth of what a new one costs with its first connections. The session belongs to the caller. */
struct pg_session *pg_fixture_shared_database(char ret_url[PG_URL_SIZE]);
/* Make it as new: the rows that the migrations wrote, and numbers that begin again. False, and
 * nothing is promised: a test changed its schema, holds a lock there, or ended the session. What
 * ANALYZE found stays, and so do settings of the database. */
bool pg_fixture_clear(struct pg_session *s);

/* Run commands; read one number (of the first row and column). Calls may share a connection: what
 * one sets for its session, or leaves open, does not reach the next one. */
void pg_fixture_exec(const char *url, const char *sql);
int64_t pg_fixture_i64(const char *url, const char *sql);
/* Write the text in the first row and column; at most size - 1 bytes. "" for null or no row. */
void pg_fixture_text(const char *url, const char *sql, char *ret, int size);

/* A connection that has run this SQL and stays open, for its locks; its end rolls back. */
struct pg_session *pg_fixture_session(const char *url, const char *sql);
void pg_fixture_session_end(struct pg_session *s);

/* End all other connections to that database, as a crash of their servers would. */
void pg_fixture_kill_backends(const char *url);

/* Stop the server as a power cut would (SIGQUIT), and start it again. Only where Check does not
 * fork (setenv("CK_FORK", "no", 1) in TEST_SUITE()). */
void pg_fixture_stop(void);
void pg_fixture_continue(void);

#endif
