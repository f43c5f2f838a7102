#include "bench/scheduler/commits.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "bench/scheduler/wire.h"
#include "tests/support/pg_fixture.h"

#define CONNECTIONS_MAX 16

struct job {
    const char *url;
    char row[8];
    int64_t until_ns, done;
};

static void *work(void *arg)
{
    struct job *j = arg;
    const char *const values[] = {j->row};
    PGconn *c = PQconnectdb(j->url);
    PQclear(PQprepare(c, "bump", "update bare set n = n + 1 where id = $1", 1, NULL));
    do {
        PGresult *r = PQexecPrepared(c, "bump", 1, values, NULL, NULL, 0);
        if (PQresultStatus(r) != PGRES_COMMAND_OK)
            wire_give_up("bare commit", PQerrorMessage(c));
        PQclear(r);
        j->done++;
    } while (clock_mono_ns() < j->until_ns);
    PQfinish(c);
    return NULL;
}

double commits_rate(int connections, double seconds)
{
    char url[PG_URL_SIZE];
    struct job jobs[CONNECTIONS_MAX] = {0};
    pthread_t threads[CONNECTIONS_MAX];
    int64_t done = 0;
    pg_fixture_empty_database(url);
    pg_fixture_exec(url, "create table bare (id int primary key, n int not null); "
                         "insert into bare select i, 0 from generate_series(0, 63) i");
    int64_t begin_ns = clock_mono_ns();
    for (int i = 0; i < connections; i++) {
        jobs[i] = (struct job){.url = url, .until_ns = begin_ns + (int64_t)(seconds * NS_PER_S)};
        (void)snprintf(jobs[i].row, sizeof jobs[i].row, "%d", i);
        if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0)
            wire_give_up("bare commit", "no thread");
    }
    for (int i = 0; i < connections; i++) {
        (void)pthread_join(threads[i], NULL);
        done += jobs[i].done;
    }
    return (double)done / ((double)(clock_mono_ns() - begin_ns) / NS_PER_S);
}
