#include "bench/scheduler/pgbench.h"

#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "bench/scheduler/usage.h"
#include "bench/scheduler/wire.h"
#include "tests/support/pg_fixture.h"
#include "tests/support/temp_folder.h"

#define QUEUED_PER_S 100000 /* more than are claimed in a second */
#define PATIENCE_S 300

static const char tables[] =
    "create table bare_trial (id bigint primary key, state smallint not null, value float8);"
    "create table bare_measurement (trial bigint, step bigint, value float8 not null, "
    "primary key (trial, step));"
    "insert into bare_trial select i, 0 from generate_series(1, %d) i;"
    "create index bare_queue on bare_trial (id) where state = 0;";

static const char one[] =
    "update bare_trial set state = 1 where id = (select id from bare_trial where state = 0 "
    "order by id limit 1 for update skip locked) returning id \\gset\n"
    "insert into bare_measurement values (:id, 0, 0.5);\n"
    "update bare_trial set state = 2, value = 0.5 where id = :id and state = 1;\n";

static const char set[] =
    "with c as (update bare_trial set state = 1 where id in (select id from bare_trial where "
    "state = 0 order by id limit %d for update skip locked) returning id) "
    "select array_agg(id) as ids from c \\gset\n"
    "insert into bare_measurement select i, 0, 0.5 from unnest(cast(:ids as bigint[])) i;\n"
    "update bare_trial set state = 2, value = 0.5 where id = any(cast(:ids as bigint[])) and "
    "state = 1;\n";

static const char points[] =
    "create sequence bare_series; create table bare_measurement (trial bigint, step bigint, value "
    "float8 not null, primary key (trial, step))";
static const char add_points[] =
    "insert into bare_measurement select n, i, 0.5 from (select nextval('bare_series') as n) s, "
    "generate_series(1, %d) i;\n";

/* The newest of the cluster's own version, or what is in PATH; false: none. */
static bool find_pgbench(char *ret, size_t size)
{
    glob_t g = {0};
    bool found = glob("/usr/lib/postgresql/*/bin/pgbench", 0, NULL, &g) == 0 && g.gl_pathc > 0;
    (void)snprintf(ret, size, "%s", found ? g.gl_pathv[g.gl_pathc - 1] : "");
    globfree(&g);
    return found;
}

static void write_script(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        wire_give_up(path, "cannot be written");
}

static void make_tables(const char *url, double seconds)
{
    char sql[sizeof tables + 20];
    (void)snprintf(sql, sizeof sql, tables, (int)(ceil(seconds) * QUEUED_PER_S));
    pg_fixture_exec(url, sql);
    pg_fixture_exec(url, "vacuum analyze bare_trial");
}

/* Run it with its output in `out`. */
static void run(const char *program, const char *url, const char *script, const char *out,
                int clients, double seconds)
{
    char n[16], t[16];
    (void)snprintf(n, sizeof n, "%d", clients);
    (void)snprintf(t, sizeof t, "%.0f", seconds);
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(out, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
        if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
            _exit(126);
        (void)execl(program, "pgbench", "--no-vacuum", "--protocol=prepared", "--client", n,
                    "--jobs=1", "--time", t, "--file", script, url, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, &status, 0);
    if (status != 0) {
        AS_AUTO(as_freep) char *text = NULL;
        size_t len = 0;
        as_status st = file_read(out, 65536, &text, &len, NULL);
        wire_give_up("pgbench", st == AS_OK ? text : "it failed");
    }
}

/* 0: not one transaction ended, and pgbench says no rate. */
static double read_rate(const char *out)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    if (file_read(out, 65536, &text, &len, NULL) != AS_OK)
        wire_give_up("pgbench", "no output");
    const char *tps = strstr(text, "tps = ");
    if (!tps && strstr(text, "actually processed: 0"))
        return 0;
    if (!tps)
        wire_give_up("pgbench", text);
    return strtod(tps + strlen("tps = "), NULL);
}

/* Runs `text` as a transaction, which does n of what is counted: for longer, where a busy machine
 * ends none meanwhile. */
static struct floor measure(const char *program, const char *url, const char *text, int n,
                            int clients, double seconds)
{
    char dir[TEMP_FOLDER_SIZE], script[100], out[100];
    temp_folder_make(dir);
    (void)snprintf(script, sizeof script, "%s/script", dir);
    (void)snprintf(out, sizeof out, "%s/out", dir);
    write_script(script, text);
    struct usage begin, end;
    double rate;
    do {
        begin = usage_now(0);
        run(program, url, script, out, clients, seconds);
        end = usage_now(0);
        rate = read_rate(out) * n;
        seconds *= rate > 0 ? 1 : 4;
    } while (rate <= 0 && seconds < PATIENCE_S);
    temp_folder_remove(dir);
    if (rate <= 0)
        wire_give_up("pgbench", "not one transaction ended");
    return (struct floor){rate, usage_us(&begin, &end, rate * seconds)};
}

struct floor pgbench_cycles(int size, int clients, double seconds)
{
    char url[PG_URL_SIZE], program[200], text[sizeof set + 20];
    if (!find_pgbench(program, sizeof program))
        return (struct floor){NAN, NAN};
    pg_fixture_empty_database(url);
    make_tables(url, seconds);
    (void)snprintf(text, sizeof text, size == 1 ? one : set, size);
    return measure(program, url, text, size, clients, ceil(seconds));
}

struct floor pgbench_points(int size, int clients, double seconds)
{
    char url[PG_URL_SIZE], program[200], text[sizeof add_points + 20];
    if (!find_pgbench(program, sizeof program))
        return (struct floor){NAN, NAN};
    pg_fixture_empty_database(url);
    pg_fixture_exec(url, points);
    (void)snprintf(text, sizeof text, add_points, size);
    return measure(program, url, text, size, clients, ceil(seconds));
}
