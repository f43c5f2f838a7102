/* Runs initdb and postgres as children.
 *
 * The server must end with the test, even if the test crashes. So it asks the kernel for SIGQUIT
 * when its parent dies (PR_SET_PDEATHSIG). PostgreSQL refuses to run as root, so as root the
 * children become the user postgres first. */
#include "tests/support/pg_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "scheduler/services/migrate.h"

static struct {
    pid_t owner, server; /* 0: none */
    bool fsync;
    char dir[64];  /* data and socket */
    char bin[128]; /* of PostgreSQL's programs */
} cluster;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "pg_fixture: %s: %s\n", what, why);
    exit(99);
}

static void find_programs(void)
{
    glob_t g = {0};
    if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &g) != 0 || g.gl_pathc == 0) {
        fprintf(stderr, "skipped: there is no PostgreSQL in /usr/lib/postgresql\n");
        exit(77);
    }
    const char *last = g.gl_pathv[g.gl_pathc - 1];
    snprintf(cluster.bin, sizeof cluster.bin, "%.*s", (int)(strrchr(last, '/') - last), last);
    globfree(&g);
}

/* As root: become the user postgres. Only a child may call this, because it cannot be undone. */
static void drop_root(void)
{
    if (geteuid() != 0)
        return;
    struct passwd *pw = getpwnam("postgres");
    if (!pw || setgroups(0, NULL) != 0 || setgid(pw->pw_gid) != 0 || setuid(pw->pw_uid) != 0)
        _exit(98);
}

static pid_t spawn(char *const argv[], const char *log)
{
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        die("fork", strerror(errno));
    if (pid > 0)
        return pid;
    setpgid(0, 0); /* Ctrl-C at the terminal reaches only the test, which then ends the server */
    drop_root();
    prctl(PR_SET_PDEATHSIG, SIGQUIT); /* must come after the change of user, which clears it */
    if (getppid() != parent || chdir("/") != 0)
        _exit(97);
    char path[128];
    snprintf(path, sizeof path, "%s/%s", cluster.dir, log);
    int fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execv(argv[0], argv);
    _exit(96);
}

static void admin_url(char ret[PG_URL_SIZE], const char *database)
{
    snprintf(ret, PG_URL_SIZE, "host=%s user=assay dbname=%s", cluster.dir, database);
}

static void start_server(void)
{
    char program[160], data[80], url[PG_URL_SIZE];
    snprintf(program, sizeof program, "%s/postgres", cluster.bin);
    snprintf(data, sizeof data, "%s/data", cluster.dir);
    char *const argv[] = {program,
                          "-D",
                          data,
                          "-k",
                          cluster.dir,
                          "-c",
                          "listen_addresses=",
                          "-c",
                          cluster.fsync ? "fsync=on" : "fsync=off",
                          "-c",
                          "max_connections=120",
                          "-c",
                          "shared_buffers=32MB",
                          NULL};
    cluster.server = spawn(argv, "server.log");
    admin_url(url, "postgres");
    for (int i = 0; PQping(url) != PQPING_OK; i++) {
        int status;
        if (waitpid(cluster.server, &status, WNOHANG) == cluster.server || i > 12000)
            die("the server does not start, see its log", cluster.dir);
        clock_sleep_ms(10);
    }
}

void pg_fixture_stop(void)
{
    if (getpid() != cluster.owner)
        die("stop", "only the process that started the cluster can: set CK_FORK=no");
    if (cluster.server > 0) {
        kill(cluster.server, SIGQUIT);
        waitpid(cluster.server, NULL, 0);
    }
    cluster.server = 0;
}

void pg_fixture_continue(void)
{
    start_server();
}

static void remove_cluster(void)
{
    if (getpid() != cluster.owner)
        return; /* a test that Check forked */
    pg_fixture_stop();
    /* Helper processes may outlive the server for a moment and write files while we remove them. */
    for (int i = 0; i < 1000; i++) {
        if (file_remove_tree(cluster.dir, NULL) == AS_OK && access(cluster.dir, F_OK) != 0)
            return;
        clock_sleep_ms(20);
    }
    fprintf(stderr, "pg_fixture: %s is left behind\n", cluster.dir);
}

static void make_folder(void)
{
    snprintf(cluster.dir, sizeof cluster.dir, "/tmp/assay-pg-XXXXXX");
    if (!mkdtemp(cluster.dir))
        die("mkdtemp", strerror(errno));
    struct passwd *pw = geteuid() == 0 ? getpwnam("postgres") : NULL;
    if (geteuid() == 0 && (!pw || chown(cluster.dir, pw->pw_uid, pw->pw_gid) != 0))
        die("chown", "is there a user postgres?");
}

static void init_cluster(void)
{
    char program[160], data[80];
    int status = 0;
    snprintf(program, sizeof program, "%s/initdb", cluster.bin);
    snprintf(data, sizeof data, "%s/data", cluster.dir);
    char *const argv[] = {program, "-D", data,   "-U",         "assay",     "-A",
                          "trust", "-E", "UTF8", "--locale=C", "--no-sync", NULL};
    pid_t pid = spawn(argv, "initdb.log");
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die("initdb failed, see its log", cluster.dir);
}

static void migrate_template(void)
{
    char url[PG_URL_SIZE];
    admin_url(url, "postgres");
    pg_fixture_exec(url, "create database template_assay");
    admin_url(url, "template_assay");
    struct store *db = NULL;
    struct as_err err = {0};
    struct store_opts opts = {.url = url};
    if (store_open(&opts, &db, &err) != AS_OK || migrate_run(db, NULL, &err) != AS_OK)
        die("migrations", err.msg);
    store_close(db);
}

static void start(bool fsync)
{
    if (cluster.owner)
        return;
    setenv("ASSAY_ALLOW_FSYNC_OFF", "1", 1);
    log_setup("test", LOG_ERROR);
    find_programs();
    cluster.fsync = fsync;
    make_folder();
    cluster.owner = getpid();
    atexit(remove_cluster);
    init_cluster();
    start_server();
    migrate_template();
}

void pg_fixture_start(void)
{
    start(false);
}

void pg_fixture_start_with_fsync(void)
{
    start(true);
}

static void new_database(char ret_url[PG_URL_SIZE], const char *template)
{
    static atomic_int counter;
    char admin[PG_URL_SIZE], name[64], sql[160];
    snprintf(name, sizeof name, "t%d_%d", (int)getpid(), atomic_fetch_add(&counter, 1));
    snprintf(sql, sizeof sql, "create database %s template %s", name, template);
    admin_url(admin, "postgres");
    pg_fixture_exec(admin, sql);
    admin_url(ret_url, name);
}

void pg_fixture_database(char ret_url[PG_URL_SIZE])
{
    new_database(ret_url, "template_assay");
}

void pg_fixture_empty_database(char ret_url[PG_URL_SIZE])
{
    new_database(ret_url, "template0");
}

struct pg_session *pg_fixture_session(const char *url, const char *sql)
{
    PGconn *c = PQconnectdb(url);
    PGresult *r = PQexec(c, sql);
    if (PQresultStatus(r) != PGRES_COMMAND_OK)
        die(sql, PQerrorMessage(c));
    PQclear(r);
    return (struct pg_session *)c;
}

void pg_fixture_session_end(struct pg_session *s)
{
    PQfinish((PGconn *)s);
}

void pg_fixture_text(const char *url, const char *sql, char *ret, int size)
{
    PGconn *c = PQconnectdb(url);
    PGresult *r = PQexec(c, sql);
    ExecStatusType st = PQresultStatus(r);
    if (st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK)
        die(sql, PQerrorMessage(c));
    snprintf(ret, (size_t)size, "%s", PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    PQfinish(c);
}

void pg_fixture_exec(const char *url, const char *sql)
{
    char ignored[8];
    pg_fixture_text(url, sql, ignored, sizeof ignored);
}

int64_t pg_fixture_i64(const char *url, const char *sql)
{
    char text[32];
    int64_t v = 0;
    pg_fixture_text(url, sql, text, sizeof text);
    if (as_parse_i64(text, &v, NULL) != AS_OK)
        die(sql, "not a number");
    return v;
}

void pg_fixture_kill_backends(const char *url)
{
    pg_fixture_exec(url, "select pg_terminate_backend(pid) from pg_stat_activity where datname = "
                         "current_database() and pid <> pg_backend_pid()");
}
