/* A cluster runs only under the major version that made it (PG_VERSION), so an existing cluster
 * decides; a new one takes the newest that is installed. Debian and Red Hat keep the server
 * programs out of PATH, in folders that have the version in their names; pg_config is asked only
 * where these have none. */
#include "cli/up/postgres.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define OLDEST 14

/* The best folder found so far. */
struct search {
    int64_t wanted; /* a major version; 0: the newest */
    int64_t version;
    char *bin; /* owned */
};

static bool has_programs(const char *bin)
{
    AS_AUTO(as_freep) char *initdb = file_join(bin, "initdb");
    AS_AUTO(as_freep) char *postgres = file_join(bin, "postgres");
    return initdb && postgres && access(initdb, X_OK) == 0 && access(postgres, X_OK) == 0;
}

static void keep_if_better(struct search *s, const char *bin, int64_t version)
{
    bool fits = s->wanted ? version == s->wanted : version >= OLDEST && version > s->version;
    if (!fits || !has_programs(bin))
        return;
    char *copy = as_strdup(bin);
    if (!copy)
        return;
    free(s->bin);
    s->bin = copy;
    s->version = version;
}

/* The first number in a text, 0 when there is none. */
static int64_t first_number(const char *text)
{
    text += strcspn(text, "0123456789");
    return strtoll(text, NULL, 10);
}

static void search_folders(struct search *s, const char *pattern, const char *prefix)
{
    glob_t found = {0};
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            keep_if_better(s, found.gl_pathv[i], first_number(found.gl_pathv[i] + strlen(prefix)));
    globfree(&found);
}

/* Read the first line of a command's output; "" when it fails. The command is a constant. */
static void read_first_line(const char *command, char *buf, int size)
{
    buf[0] = 0;
    FILE *f = popen(command, "r");
    if (!f)
        return;
    if (!fgets(buf, size, f))
        buf[0] = 0;
    (void)pclose(f);
    buf[strcspn(buf, "\n")] = 0;
}

static void search_pg_config(struct search *s)
{
    char bin[1024], version[128];
    read_first_line("pg_config --bindir 2>/dev/null", bin, sizeof bin);
    read_first_line("pg_config --version 2>/dev/null", version, sizeof version);
    if (bin[0] == '/')
        keep_if_better(s, bin, first_number(version));
}

static as_status read_version(const char *cluster, int64_t *ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(cluster, "PG_VERSION");
    AS_AUTO(as_freep) char *text = NULL;
    size_t len;
    if (!path)
        return as_fail_nomem(err);
    as_status st = file_read(path, 64, &text, &len, err);
    if (st == AS_E_NOT_FOUND)
        return AS_OK;
    if (st < 0)
        return st;
    *ret = first_number(text);
    return AS_OK;
}

as_status postgres_find(const char *cluster, char **ret, struct as_err *err)
{
    struct search s = {0};
    as_status st = read_version(cluster, &s.wanted, err);
    if (st < 0)
        return st;
    search_folders(&s, "/usr/lib/postgresql/*/bin", "/usr/lib/postgresql/");
    search_folders(&s, "/usr/pgsql-*/bin", "/usr/pgsql-");
    if (!s.bin)
        search_pg_config(&s);
    if (s.bin) {
        *ret = s.bin;
        return AS_OK;
    }
    if (s.wanted)
        return as_fail(err, AS_E_NOT_FOUND,
                       "the cluster in %s needs the server programs of PostgreSQL %d, which are "
                       "not installed (Debian: apt-get install postgresql-%d)",
                       cluster, (int)s.wanted, (int)s.wanted);
    return as_fail(err, AS_E_NOT_FOUND,
                   "PostgreSQL's server programs (%d or newer) are not installed; install them "
                   "(Debian: apt-get install postgresql) or name a database with --database",
                   OLDEST);
}
