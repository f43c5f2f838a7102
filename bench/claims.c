/* How long a claim takes, by the number of its trials, and the service's time for each trial of a
 * group from its claim to its end (claim, one measurement, completion). PostgreSQL with fsync on,
 * one runner. The floor of a claim is one bare commit on the same cluster. */
#include <libpq-fe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "bench/bench.h"
#include "scheduler/lifecycle/attempts.h"
#include "scheduler/content/blobs.h"
#include "scheduler/assign/claims.h"
#include "scheduler/services/datasets.h"
#include "scheduler/services/runners.h"
#include "scheduler/services/sweeps.h"
#include "tests/support/pg_fixture.h"

#define ROUNDS 40

static void must(as_status st, const struct as_err *err)
{
    if (st == AS_OK)
        return;
    (void)fprintf(stderr, "claims: %s\n", err->msg);
    exit(1);
}

static json_t *parse(const char *text)
{
    struct as_err err = {0};
    json_t *j = NULL;
    must(json_parse(text, strlen(text), &j, &err), &err);
    return j;
}

static void make_dataset(struct store *db, struct arena *a)
{
    static const char table[] = "x,y,class\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n";
    struct as_err err = {0};
    struct blob_put *put = NULL;
    struct dataset_row row;
    char hex[SHA256_HEX_SIZE], text[200];
    bool created;
    must(sha256_of(table, strlen(table), hex, &err), &err);
    must(blob_put_create(hex, &put, &err), &err);
    must(blob_put_add(put, table, strlen(table), &err), &err);
    must(blob_put_commit(db, put, &created, &err), &err);
    blob_put_free(put);
    (void)snprintf(text, sizeof text,
                   "{\"name\":\"toy\",\"format\":\"csv\",\"files\":{\"table\":\"%s\"},\"target\":"
                   "\"class\"}",
                   hex);
    JSON_AUTO doc = parse(text);
    must(dataset_create(db, a, doc, &row, &created, &err), &err);
}

static void make_sweep(struct store *db, struct arena *a)
{
    JSON_AUTO doc = parse(
        "{\"name\":\"bench\",\"metric\":{\"name\":\"val_loss\",\"goal\":\"minimize\"},"
        "\"parameters\":{\"lr\":{\"type\":\"float\",\"min\":0.001,\"max\":1,\"scale\":\"log\"}},"
        "\"search\":{\"method\":\"random\",\"seed\":1},\"limits\":{\"max_trials\":1000000},"
        "\"resources\":{\"group\":64},\"ensemble\":false,\"trial\":{\"train\":{\"dataset\":\"toy\","
        "\"epochs\":2,\"model\":{\"layers\":[64,32]},\"optimizer\":{\"lr\":\"${lr}\"}}}}");
    struct as_err err = {0};
    struct sweep_row row;
    must(sweep_create(db, a, doc, NULL, &row, &err), &err);
}

static void end_all(struct store *db, struct arena *a, const struct claim_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct claimed_row *c = &list->rows[i];
        const struct attempt_ref ref = {c->sweep, c->number, c->attempt};
        const struct measurement m = {.metric = "val_loss", .value = 0.5};
        const struct completion done = {.outcome = OUTCOME_COMPLETED, .has_exit_code = true};
        struct as_err err = {0};
        struct trial_row row;
        int64_t recorded = 0;
        must(attempt_measure(db, &ref, NULL, &m, 1, &recorded, &err), &err);
        must(attempt_complete(db, a, &ref, NULL, &done, &row, &err), &err);
    }
}

static double bare_commit_ms(const char *url)
{
    PGconn *c = PQconnectdb(url);
    PQclear(PQexec(c, "create table bare (n int not null); insert into bare values (0)"));
    int64_t start = clock_mono_ns();
    for (int i = 0; i < ROUNDS; i++)
        PQclear(PQexec(c, "update bare set n = n + 1"));
    double ms = (double)(clock_mono_ns() - start) / NS_PER_MS / ROUNDS;
    PQfinish(c);
    return ms;
}

/* Report groups of `members`: the median claim, and the mean time of each trial, claim to end. */
static void measure_group(struct store *db, int64_t epoch, int members, double floor_ms)
{
    double claims[ROUNDS], total = 0;
    char name[64];
    for (int i = 0; i < ROUNDS; i++) {
        AS_AUTO(arena_done) struct arena a = {0};
        struct as_err err = {0};
        struct claim_list list = {0};
        char id[48];
        (void)snprintf(id, sizeof id, "%d-%d", members, i);
        const struct claim_request req = {.runner = "r",
                                          .epoch = epoch,
                                          .claim_id = id,
                                          .max_trials = 1,
                                          .groups.members = members};
        int64_t start = clock_mono_ns();
        must(claim_trials(db, NULL, &a, &req, &list, &err), &err);
        claims[i] = (double)(clock_mono_ns() - start) / NS_PER_MS;
        if (list.n != (size_t)members)
            abort();
        end_all(db, &a, &list);
        total += (double)(clock_mono_ns() - start) / NS_PER_MS;
    }
    (void)snprintf(name, sizeof name, "claim of %d", members);
    bench_report(name, bench_median(claims, ROUNDS), "ms", floor_ms, NAN, NULL,
                 "median; floor: a bare commit");
    (void)snprintf(name, sizeof name, "trial in a group of %d", members);
    bench_report(name, total / ROUNDS / members, "ms", NAN, NAN, NULL,
                 "claim, measure, complete, one after another");
}

int main(int argc, char **argv)
{
    static const int members[] = {1, 8, 32, 64};
    char url[PG_URL_SIZE];
    AS_AUTO(arena_done) struct arena a = {0};
    AS_AUTO(store_closep) struct store *db = NULL;
    struct as_err err = {0};
    struct registration reg;
    if (!bench_start("claims", "claims of groups, and the service's time for each trial", argc,
                     argv))
        return bench_exit();
    pg_fixture_start_with_fsync();
    pg_fixture_database(url);
    const struct store_opts opts = {.url = url, .max_connections = 2};
    const struct runner_register r = {.name = "r", .slots = 1};
    must(store_open(&opts, &db, &err), &err);
    must(runner_register(db, &a, &r, &reg, &err), &err);
    make_dataset(db, &a);
    make_sweep(db, &a);
    double floor_ms = bare_commit_ms(url);
    for (size_t i = 0; i < AS_ARRAY_LEN(members); i++) {
        pg_fixture_exec(url, "vacuum analyze"); /* autovacuum does this, but only once a minute */
        measure_group(db, reg.epoch, members[i], floor_ms);
    }
    return bench_exit();
}
