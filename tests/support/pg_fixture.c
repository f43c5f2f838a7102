/* Runs postgres as a child, on a copy of the cluster that the build has made (make_cluster.c). A
 * copy takes a tenth of what initdb and the migrations take. Without that file, as in the
 * benchmarks, it makes the cluster itself.
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
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "scheduler/services/migrate.h"

/* What must be free in /dev/shm: a program's databases and log take some 100 MB; several run. */
#define MEMORY_BYTES (INT64_C(4) << 30)

static struct {
    pid_t owner, server; /* 0: none */
    bool fsync;
    int lock;      /* of dir */
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

/* input: -1 for none */
static pid_t spawn(char *const argv[], int input, const char *log)
{
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        die("fork", strerror(errno));
    if (pid > 0)
        return pid;
    setpgid(0, 0); /* Ctrl-C at the terminal reaches only the test, which then ends the server */
    drop_root();
    unsetenv("MALLOC_PERTURB_");      /* that malloc() fills memory is for the tests' own code */
    prctl(PR_SET_PDEATHSIG, SIGQUIT); /* must come after the change of user, which clears it */
    if (getppid() != parent || chdir("/") != 0)
        _exit(97);
    char path[128];
    snprintf(path, sizeof path, "%s/%s", cluster.dir, log);
    int fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    if (input >= 0)
        dup2(input, STDIN_FILENO);
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
                          "-c",
                          "jit=off",
                          "-c",
                          "max_logical_replication_workers=0",
                          NULL};
    cluster.server = spawn(argv, -1, "server.log");
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

/* A folder in memory whose test was killed would stay until the machine ends. A test that runs
 * holds the lock of its folder. */
static void remove_left_behind(void)
{
    glob_t g = {0};
    struct stat found;
    time_t now = time(NULL);
    if (glob("/dev/shm/assay-pg-*", 0, NULL, &g) != 0)
        return;
    for (size_t i = 0; i < g.gl_pathc; i++) {
        int fd = open(g.gl_pathv[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        bool is_new = fd < 0 || fstat(fd, &found) != 0 || now - found.st_mtime < 600;
        if (!is_new && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
            file_remove_tree(g.gl_pathv[i], NULL) != AS_OK)
            fprintf(stderr, "pg_fixture: %s is left behind\n", g.gl_pathv[i]);
        if (fd >= 0)
            close(fd);
    }
    globfree(&g);
}

/* A database for each test is 300 files: 0.43 s of processor time on ext4 of a busy machine, 0.04 s
 * in memory. A test with fsync is about the disk. */
static bool is_room_in_memory(void)
{
    struct statvfs fs;
    return !cluster.fsync && statvfs("/dev/shm", &fs) == 0 &&
           (uint64_t)fs.f_bavail * fs.f_frsize >= MEMORY_BYTES;
}

static void make_folder(void)
{
    bool in_memory = is_room_in_memory();
    if (in_memory)
        remove_left_behind();
    snprintf(cluster.dir, sizeof cluster.dir, "%s/assay-pg-XXXXXX",
             in_memory ? "/dev/shm" : "/tmp");
    if (!mkdtemp(cluster.dir))
        die("mkdtemp", strerror(errno));
    cluster.lock = open(cluster.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cluster.lock < 0 || flock(cluster.lock, LOCK_EX | LOCK_NB) != 0)
        die("flock", strerror(errno));
    struct passwd *pw = geteuid() == 0 ? getpwnam("postgres") : NULL;
    if (geteuid() == 0 && (!pw || chown(cluster.dir, pw->pw_uid, pw->pw_gid) != 0))
        die("chown", "is there a user postgres?");
}

static void run(char *const argv[], int input, const char *log)
{
    int status = 0;
    pid_t pid = spawn(argv, input, log);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die(argv[0], cluster.dir);
}

/* With the settings of `assay up` (cli/up/cluster.c), which gets copies, too. */
static void init_cluster(void)
{
    char program[160], data[80];
    snprintf(program, sizeof program, "%s/initdb", cluster.bin);
    snprintf(data, sizeof data, "%s/data", cluster.dir);
    char *const argv[] = {program,
                          "-D",
                          data,
                          "-U",
                          "assay",
                          "-E",
                          "UTF8",
                          "--locale=C.UTF-8",
                          "--auth-local=trust",
                          "--auth-host=reject",
                          "--no-sync",
                          NULL};
    run(argv, -1, "initdb.log");
}

static void make_database(void)
{
    char url[PG_URL_SIZE];
    admin_url(url, "postgres");
    pg_fixture_exec(url, "create database assay strategy file_copy");
    admin_url(url, "assay");
    struct store *db = NULL;
    struct as_err err = {0};
    struct store_opts opts = {.url = url};
    if (store_open(&opts, &db, &err) != AS_OK || migrate_run(db, NULL, &err) != AS_OK)
        die("migrations", err.msg);
    store_close(db);
}

/* Unpack what the build has made. False: there is none. */
static bool copy_cluster(void)
{
    const char *build = getenv("ASSAY_BUILD_ROOT");
    char path[4096];
    struct stat found;
    if (!build || snprintf(path, sizeof path, "%s/" PG_FIXTURE_MADE, build) >= (int)sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_there = fd >= 0 && fstat(fd, &found) == 0 && found.st_size > 0;
    char *const argv[] = {"/bin/tar", "-x", "-C", cluster.dir, "-f", "-", NULL};
    if (is_there)
        run(argv, fd, "tar.log"); /* its user may not be able to open the file */
    if (fd >= 0)
        close(fd);
    return is_there;
}

static void begin(bool fsync)
{
    setenv("ASSAY_ALLOW_FSYNC_OFF", "1", 1);
    log_setup("test", LOG_ERROR);
    find_programs();
    cluster.fsync = fsync;
    make_folder();
    cluster.owner = getpid();
    atexit(remove_cluster);
}

void pg_fixture_make(const char *path)
{
    begin(false);
    init_cluster();
    start_server();
    make_database();
    kill(cluster.server, SIGINT); /* a clean end, so that each copy starts without recovery */
    waitpid(cluster.server, NULL, 0);
    cluster.server = 0;
    char *const argv[] = {"/bin/tar", "-c", "-C", cluster.dir, "-f", (char *)path, "data", NULL};
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        execv(argv[0], argv);
        _exit(96);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die("tar", path);
}

static void start(bool fsync)
{
    if (cluster.owner)
        return;
    begin(fsync);
    bool is_copy = copy_cluster();
    if (!is_copy)
        init_cluster();
    start_server();
    if (!is_copy)
        make_database();
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
    snprintf(sql, sizeof sql, "create database %s template %s strategy file_copy", name, template);
    admin_url(admin, "postgres");
    pg_fixture_exec(admin, sql);
    admin_url(ret_url, name);
}

void pg_fixture_database(char ret_url[PG_URL_SIZE])
{
    new_database(ret_url, "assay");
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

/* Emptying a database.
 *
 * Rows are deleted, because a few cost less than the new files of TRUNCATE, after which every
 * connection plans its statements again; many rows, and the room of those deleted before, go by
 * TRUNCATE. The session fires no triggers (session_replication_role), so that the order of tables
 * is of no matter. An event trigger counts changes of the schema. */
#define TRUNCATE_BYTES "2097152"

static const char share_sql[] =
    "create schema fixture; create sequence fixture.changes;"
    "create function fixture.changed() returns event_trigger language plpgsql as"
    " 'begin perform nextval(''fixture.changes''); end';"
    "do $do$ declare t record; has boolean; sizes text := '0'; names text := '';"
    " deletes text := ''; inserts text := ''; starts text := '';"
    "begin"
    " for t in select relname as name from pg_class where relkind = 'r'"
    "  and relnamespace = 'public'::regnamespace loop"
    "  sizes := sizes || format(' + pg_relation_size(''public.%I'')', t.name);"
    "  names := names || format('%spublic.%I', case when names <> '' then ', ' end, t.name);"
    "  deletes := deletes || format('if pg_relation_size(''public.%1$I'') > 0 then delete from "
    "public.%1$I; end if; ', t.name);"
    "  execute format('select exists (select from public.%I)', t.name) into has;"
    "  if has then"
    "   execute format('create table fixture.%1$I as table public.%1$I', t.name);"
    "   inserts := inserts || format('insert into public.%1$I overriding system value table "
    "fixture.%1$I; ', t.name);"
    "  end if;"
    " end loop;"
    " for t in select format('public.%I', sequencename) as name, coalesce(last_value, "
    "start_value) as n, last_value is not null as called from pg_sequences where schemaname = "
    "'public' loop"
    "  starts := starts || format('perform setval(%L, %s, %L); ', t.name, t.n, t.called);"
    " end loop;"
    " execute format('create function fixture.clear() returns boolean language plpgsql as %L',"
    "  'begin if (select is_called from fixture.changes) then return false; end if; if ' || sizes"
    "  || ' > " TRUNCATE_BYTES " then truncate ' || names || '; else ' || deletes || 'end if; '"
    "  || inserts || starts || 'return true; end');"
    "end $do$;"
    "create event trigger fixture_changed on ddl_command_end execute function fixture.changed()";

struct pg_session *pg_fixture_shared_database(char ret_url[PG_URL_SIZE])
{
    char url[PG_URL_SIZE + 100];
    pg_fixture_database(ret_url);
    (void)snprintf(url, sizeof url,
                   "%s options='-c session_replication_role=replica -c lock_timeout=10s'", ret_url);
    return pg_fixture_session(url, share_sql);
}

bool pg_fixture_clear(struct pg_session *s)
{
    PGresult *r = PQexec((PGconn *)s, "select fixture.clear()");
    bool is_clear = PQresultStatus(r) == PGRES_TUPLES_OK && *PQgetvalue(r, 0, 0) == 't';
    PQclear(r);
    return is_clear;
}

/* The connections of the latest statements: one to the database where others are made, one to
 * another. A new backend costs 5 to 20 ms of processor time, a hundred times what most statements
 * of tests cost. Threads may share them: who finds none here, or one of another database, connects.
 * A process that was forked leaves its parent's alone. */
struct kept {
    PGconn *c;
    pid_t owner;
    char url[PG_URL_SIZE];
};
static _Atomic(struct kept *) kept_of_admin, kept_of_test, of_parent;

static _Atomic(struct kept *) *place_of(const char *url)
{
    char admin[PG_URL_SIZE];
    admin_url(admin, "postgres");
    return strcmp(url, admin) == 0 ? &kept_of_admin : &kept_of_test;
}

static void drop(struct kept *k)
{
    if (k && k->owner != getpid()) {
        atomic_store(&of_parent, k);
        return;
    }
    if (k)
        PQfinish(k->c);
    free(k);
}

/* Does it lead to that database, and did nobody end it? It forgets what SQL set for its session. */
static bool serves(const struct kept *k, const char *url)
{
    if (!k || k->owner != getpid() || strcmp(k->url, url) != 0 ||
        PQtransactionStatus(k->c) != PQTRANS_IDLE)
        return false;
    PGresult *r = PQexec(k->c, "reset all");
    bool is_alive = PQresultStatus(r) == PGRES_COMMAND_OK;
    PQclear(r);
    return is_alive;
}

static struct kept *take_connection(const char *url)
{
    struct kept *k = atomic_exchange(place_of(url), NULL);
    if (serves(k, url))
        return k;
    drop(k);
    k = calloc(1, sizeof *k);
    if (!k)
        die("connection", "out of memory");
    k->c = PQconnectdb(url);
    k->owner = getpid();
    (void)snprintf(k->url, sizeof k->url, "%s", url);
    return k;
}

static void put_connection(struct kept *k)
{
    drop(atomic_exchange(place_of(k->url), k));
}

void pg_fixture_text(const char *url, const char *sql, char *ret, int size)
{
    struct kept *k = take_connection(url);
    PGresult *r = PQexec(k->c, sql);
    ExecStatusType st = PQresultStatus(r);
    if (st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK)
        die(sql, PQerrorMessage(k->c));
    snprintf(ret, (size_t)size, "%s", PQntuples(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    put_connection(k);
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
