/* Makes and starts the private PostgreSQL cluster of `assay up`.
 *
 * cluster_prepare() goes through fixed steps: user, place, programs, leftovers, socket, URL,
 * initdb. Each step needs the results of the ones before it. Nothing here connects to the database:
 * `postgres --single` creates the database from standard input, and postmaster.pid shows when the
 * server is ready. So `assay up` does not link libpq and never holds a connection.
 *
 * The settings of postgres are on its command line, not in postgresql.conf. An update of Assay can
 * then change them for existing clusters, too. */
#include "cli/up/cluster.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/disk_room.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/up/leftover.h"
#include "cli/up/postgres.h"
#include "cli/view/say.h"

#define INIT_TIMEOUT_MS 120000
#define START_TIMEOUT_MS 60000
#define FALLBACK_HOME "/var/lib/assay/clusters"

void cluster_done(struct cluster *c)
{
    free(c->home);
    free(c->pgdata);
    free(c->socket);
    free(c->bin);
    free(c->url);
    free(c->log);
    *c = (struct cluster){0};
}

static as_status choose_user(struct system_user *user, struct as_err *err)
{
    static const char *const names[] = {"postgres", "nobody"};
    if (geteuid() != 0)
        return AS_OK; /* the user who runs this program */
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
        const struct passwd *found = getpwnam(names[i]);
        if (!found || found->pw_uid == 0)
            continue;
        *user = (struct system_user){.uid = found->pw_uid, .gid = found->pw_gid};
        (void)snprintf(user->name, sizeof user->name, "%s", names[i]);
        return AS_OK;
    }
    return as_fail(
        err, AS_E_DENIED,
        "PostgreSQL does not run as root, and there is no user postgres or nobody to run "
        "it as; run assay up as another user, or name a database with --database");
}

/* Make or check a folder of the cluster's user. */
static as_status own_folder(const struct system_user *user, const char *path, struct as_err *err)
{
    return user->name[0] ? file_own_folder_of(path, user->uid, user->gid, err)
                         : file_own_folder(path, err);
}

/* The place of the cluster when the user of the database cannot enter the data folder. */
static as_status fallback_home(const char *data, char **ret, struct as_err *err)
{
    char hash[SHA256_HEX_SIZE];
    struct str b = {0};
    as_status st = sha256_of(data, strlen(data), hash, err);
    if (st < 0)
        return st;
    str_printf(&b, "%s/%.16s", FALLBACK_HOME, hash);
    *ret = str_take(&b);
    return *ret ? AS_OK : as_fail_nomem(err);
}

static bool has_cluster(const char *home)
{
    struct str b = {0};
    str_printf(&b, "%s/cluster/PG_VERSION", home);
    bool found = !b.failed && access(b.s, F_OK) == 0;
    str_done(&b);
    return found;
}

static as_status fail_no_entry(const struct cluster *c, const char *folder, struct as_err *err)
{
    return as_fail(err, AS_E_DENIED,
                   "the user %s, who runs PostgreSQL, cannot enter %s; choose a data folder whose "
                   "parents all users may enter (chmod o+x), such as /var/lib/assay",
                   c->user.name[0] ? c->user.name : "who runs this", folder);
}

/* DATA/postgres, or the fallback when the user cannot enter DATA. An existing cluster decides: a
 * change of permissions must not make an empty database appear. */
static as_status choose_home(struct cluster *c, const char *data, struct as_err *err)
{
    AS_AUTO(as_freep) char *inside = file_join(data, "postgres");
    AS_AUTO(as_freep) char *outside = NULL;
    bool can_enter = system_user_can_enter(&c->user, data);
    as_status st = inside ? AS_OK : as_fail_nomem(err);
    if (st < 0)
        return st;
    if (c->user.name[0])
        st = fallback_home(data, &outside, err);
    if (st < 0)
        return st;
    bool go_outside = outside && !has_cluster(inside) && (has_cluster(outside) || !can_enter);
    if (!go_outside && !can_enter)
        return fail_no_entry(c, data, err);
    if (go_outside && (st = file_mkdirs(FALLBACK_HOME, 0711, err)) < 0)
        return st;
    if (go_outside && !system_user_can_enter(&c->user, FALLBACK_HOME))
        return fail_no_entry(c, FALLBACK_HOME, err);
    c->home = go_outside ? as_steal(outside) : as_steal(inside);
    if (go_outside)
        say("The user %s cannot enter %s; the database is in %s", c->user.name, data, c->home);
    return own_folder(&c->user, c->home, err);
}

/* HOME/socket, or a short path when that is too long for a socket address. */
static as_status choose_socket(struct cluster *c, struct as_err *err)
{
    char hash[SHA256_HEX_SIZE];
    struct str b = {0};
    str_printf(&b, "%s/socket", c->home);
    if (b.len > CLUSTER_SOCKET_FOLDER_MAX) {
        as_status st = sha256_of(c->home, strlen(c->home), hash, err);
        if (st < 0) {
            str_done(&b);
            return st;
        }
        str_clear(&b);
        str_printf(&b, "%s/assay-%u-%.12s", geteuid() == 0 ? "/run" : "/tmp", (unsigned)geteuid(),
                   hash);
    }
    c->socket = str_take(&b);
    return c->socket ? own_folder(&c->user, c->socket, err) : as_fail_nomem(err);
}

/* Make the URL postgresql:///assay?host=…, with the folder percent-encoded. */
static as_status make_url(struct cluster *c, struct as_err *err)
{
    struct str b = {0};
    str_puts(&b, "postgresql:///assay?user=assay&host=");
    for (const char *p = c->socket; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || strchr("-_.~", *p);
        if (plain)
            str_putc(&b, *p);
        else
            str_printf(&b, "%%%02X", (unsigned)(unsigned char)*p);
    }
    c->url = str_take(&b);
    return c->url ? AS_OK : as_fail_nomem(err);
}

static as_status run_tool(const struct cluster *c, struct supervisor *s, const char *name,
                          const char *const *argv, const char *input, struct as_err *err)
{
    const struct spawn_spec spec = {
        .argv = argv,
        .log_path = c->log,
        .input = input,
        .set_env = {{"LC_ALL", "C.UTF-8"}},
        .user = c->user,
        .death_signal = SIGTERM,
    };
    return supervisor_run(s, name, &spec, INIT_TIMEOUT_MS, err);
}

/* Make the cluster in a temporary folder and rename that when it is complete, so that a crash never
 * leaves half a cluster. */
static as_status init_cluster_at(const struct cluster *c, struct supervisor *s, const char *fresh,
                                 struct as_err *err)
{
    AS_AUTO(as_freep) char *initdb = file_join(c->bin, "initdb");
    AS_AUTO(as_freep) char *postgres = file_join(c->bin, "postgres");
    if (!initdb || !postgres)
        return as_fail_nomem(err);
    const char *const init[] = {initdb,
                                "-D",
                                fresh,
                                "-U",
                                "assay",
                                "-E",
                                "UTF8",
                                "--locale=C.UTF-8",
                                "--auth-local=trust",
                                "--auth-host=reject",
                                "--no-instructions",
                                NULL};
    const char *const create[] = {postgres, "--single", "-D", fresh, "postgres", NULL};
    as_status st = file_remove_tree(fresh, err);
    if (st < 0)
        return st;
    st = run_tool(c, s, "initdb", init, NULL, err);
    if (st < 0)
        return st;
    st = run_tool(c, s, "postgres --single", create, "CREATE DATABASE assay;\n", err);
    if (st < 0)
        return st;
    if (rename(fresh, c->pgdata) != 0)
        return as_fail(err, AS_E_IO, "cannot rename %s: %s", fresh, strerror(errno));
    return AS_OK;
}

static as_status init_cluster(const struct cluster *c, struct supervisor *s, struct as_err *err)
{
    AS_AUTO(as_freep) char *fresh = file_join(c->home, "cluster.new");
    AS_AUTO(as_freep) char *marker = file_join(c->pgdata, "PG_VERSION");
    if (!fresh || !marker)
        return as_fail_nomem(err);
    if (access(marker, F_OK) == 0)
        return AS_OK;
    say("Making a PostgreSQL cluster in %s", c->pgdata);
    return init_cluster_at(c, s, fresh, err);
}

as_status cluster_prepare(struct cluster *c, const char *data, const char *log,
                          struct supervisor *s, struct as_err *err)
{
    c->log = as_strdup(log);
    as_status st = c->log ? choose_user(&c->user, err) : as_fail_nomem(err);
    if (st < 0)
        return st;
    st = choose_home(c, data, err);
    if (st < 0)
        return st;
    if (!(c->pgdata = file_join(c->home, "cluster")))
        return as_fail_nomem(err);
    st = postgres_find(c->pgdata, &c->bin, err);
    if (st < 0)
        return st;
    st = leftover_stop_postmaster(c->pgdata, err);
    if (st < 0)
        return st;
    st = choose_socket(c, err);
    if (st < 0)
        return st;
    st = make_url(c, err);
    if (st < 0)
        return st;
    return init_cluster(c, s, err);
}

int64_t cluster_buffers_mb(int64_t memory_mb)
{
    int64_t mb = memory_mb / 16;
    return mb < 32 ? 32 : mb > 512 ? 512 : mb;
}

/* The eighth line of postmaster.pid becomes "ready" when postgres accepts connections. */
static bool is_ready(const struct cluster *c)
{
    AS_AUTO(as_freep) char *path = file_join(c->pgdata, "postmaster.pid");
    AS_AUTO(as_freep) char *text = NULL;
    size_t len;
    if (!path || file_read(path, 65536, &text, &len, NULL) < 0)
        return false;
    const char *line = text;
    for (int i = 1; i < 8 && line; i++) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return line && as_starts_with(line, "ready");
}

static bool lacks_room(const struct cluster *c, char *ret_text, size_t size)
{
    return disk_room_is_short(c->home, DISK_ROOM_POSTGRES, ret_text, size);
}

/* A postgres that died on a full disk is not started again before it has room. */
static bool must_wait(const void *ctx, char *ret_why, size_t size)
{
    char room[300];
    if (!lacks_room(ctx, room, sizeof room))
        return false;
    (void)snprintf(ret_why, size, "the disk is full: %s. Free some space: it is started then",
                   room);
    return true;
}

static as_status add_postgres(struct cluster *c, struct supervisor *s, struct as_err *err)
{
    char buffers[64], sockets[256];
    AS_AUTO(as_freep) char *postgres = file_join(c->bin, "postgres");
    if (!postgres)
        return as_fail_nomem(err);
    int64_t memory_mb = (int64_t)sysconf(_SC_PHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024);
    (void)snprintf(buffers, sizeof buffers, "shared_buffers=%dMB",
                   (int)(c->buffers_mb ? c->buffers_mb : cluster_buffers_mb(memory_mb)));
    (void)snprintf(sockets, sizeof sockets, "unix_socket_directories=%s", c->socket);
    const char *const argv[] = {postgres,
                                "-D",
                                c->pgdata,
                                "-c",
                                "listen_addresses=",
                                "-c",
                                sockets,
                                "-c",
                                "unix_socket_permissions=0700",
                                "-c",
                                buffers,
                                "-c",
                                "max_connections=100",
                                "-c",
                                "wal_level=minimal",
                                "-c",
                                "max_wal_senders=0",
                                "-c",
                                "max_logical_replication_workers=0", /* no process that waits */
                                "-c",
                                "max_wal_size=1GB",
                                "-c",
                                "jit=off",
                                "-c",
                                "autovacuum_vacuum_scale_factor=0.02",
                                "-c",
                                "logging_collector=off",
                                "-c",
                                "log_line_prefix=%m [%p] ",
                                NULL};
    const struct spawn_spec spec = {
        .argv = argv,
        .log_path = c->log,
        .set_env = {{"LC_ALL", "C.UTF-8"}},
        .user = c->user,
        .death_signal = SIGINT, /* a fast shutdown */
    };
    as_status st = supervisor_add(s, "postgres", &spec, stop_database, &c->index, err);
    if (st == AS_OK)
        supervisor_set_wait(s, c->index, must_wait, c);
    return st;
}

/* The log may be empty because the disk is full, so that cause is checked separately. */
static as_status fail_start(const struct cluster *c, struct as_err *err)
{
    char room[300];
    AS_AUTO(as_freep) char *end = supervisor_log_end(c->log);
    say("%s", end ? end : "");
    if (lacks_room(c, room, sizeof room))
        return as_fail(err, AS_E_IO,
                       "PostgreSQL does not start: the disk is full: %s; its log is %s", room,
                       c->log);
    return as_fail(err, AS_E_IO, "PostgreSQL does not start; its log is %s", c->log);
}

as_status cluster_start(struct cluster *c, struct supervisor *s, struct as_err *err)
{
    int64_t end_ns = clock_mono_ns() + START_TIMEOUT_MS * NS_PER_MS;
    as_status st = add_postgres(c, s, err);
    if (st < 0)
        return st;
    st = supervisor_start(s, c->index, err);
    if (st < 0)
        return st;
    while (!is_ready(c)) {
        if (!supervisor_wait(s, 20))
            return as_fail(err, AS_E_UNAVAILABLE, "interrupted");
        unsigned deaths = supervisor_deaths(s, c->index);
        bool is_full = deaths > 0 && lacks_room(c, NULL, 0);
        if (deaths >= 4 || is_full || clock_mono_ns() > end_ns)
            return fail_start(c, err);
    }
    return AS_OK;
}
