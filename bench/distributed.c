/* All-reduce between processes of this machine, against MPI and against bare memory and sockets.
 *
 * For each size and number of ranks: our fastest algorithm over shared memory, and over TCP. A
 * figure of a round is the median over repeats of the slowest rank's time; what is reported is the
 * median over the rounds. Ours and the floors take turns from repeat to repeat, ours and the MPIs
 * from round to round, because the machine is shared. A ratio in a note is the median over the
 * rounds of each round's own ratio.
 *
 * Floors, in the same run: for shared memory, P processes that each add as many bytes as they must
 * (2 (P-1)/P N) from memory of their own; for TCP, the same all-reduce by hand over plain sockets
 * (distributed/plain.h): it sends, receives and adds as much as ours, and does nothing else. The
 * note says what sockets take that pass as many bytes and add nothing, from and to one buffer in
 * the cache, and from vector to vector; and what ours takes where the connections encrypt. */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/opt.h"
#include "bench/bench.h"
#include "bench/distributed/plain.h"
#include "trial-runner/collective/collective.h"

#define RANKS_MAX 16
#define REPEATS_MAX 400
#define ROUNDS_MAX 99

static const size_t sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 100 << 20};
#define N_SIZES AS_ARRAY_LEN(sizes)

static int64_t rounds = 5;
static int64_t only_ranks; /* 0: 2, 3 and 4 */
static int64_t only_kib;   /* 0: all sizes */
static bool no_peers, only_tcp, only_shm;

static int repeats_of(size_t bytes)
{
    double n = 2e8 / (double)bytes;
    return n > REPEATS_MAX ? REPEATS_MAX : n < 3 ? 3 : (int)n;
}

/* What is timed, in turn: the disturbances of a shared machine meet all of them alike. */
typedef enum race {
    RING,
    HALVING,
    FLOOR,
    FLOOR_WHOLE,
    PASS_CACHED,
    PASS_VECTORS,
    RING_ENCRYPTED,
    HALVING_ENCRYPTED,
    RACES
} race;

/* What the processes of a measurement share. */
struct lab {
    int32_t n;
    size_t bytes;
    bool tcp;
    struct listener *listeners[RANKS_MAX];
    struct endpoint peers[RANKS_MAX];
    int ring[RANKS_MAX][2]; /* sockets from each rank to the next */
    double seconds[RACES];  /* rank 0 writes them; NaN: not run */
};

typedef int rank_fn(struct lab *lab, int32_t rank);

/* Runs f in a process for each rank; false if one failed. */
static bool in_processes(struct lab *lab, rank_fn *f)
{
    pid_t pids[RANKS_MAX];
    bool well = true;
    (void)fflush(NULL);
    for (int32_t r = 0; r < lab->n; r++)
        if ((pids[r] = fork()) == 0)
            _exit(f(lab, r));
    for (int32_t r = 0; r < lab->n; r++) {
        int status;
        well = waitpid(pids[r], &status, 0) == pids[r] && status == 0 && well;
    }
    return well;
}

/* --- a rank --- */

struct racer {
    struct lab *lab;
    int32_t rank;
    struct coll *coll, *encrypted; /* encrypted: over TCP; else NULL */
    float *in, *out;               /* of lab->bytes */
    float *a, *b, *to;             /* of half of what a rank sends */
    char *buffer;                  /* of PLAIN_PIECE_BYTES */
};

static size_t items_of(const struct lab *lab)
{
    return lab->bytes / sizeof(float);
}

static bool run_ours(struct racer *r, struct coll *c, coll_algorithm algorithm)
{
    return coll_allreduce(c, (struct coll_id){.tag = 1}, algorithm, &reduce_f32_sum, r->in, r->out,
                          items_of(r->lab), NULL) == AS_OK;
}

static struct plain plain_of(const struct racer *r)
{
    const struct lab *lab = r->lab;
    return (struct plain){.rank = r->rank,
                          .n = lab->n,
                          .next = lab->ring[r->rank][0],
                          .before = lab->ring[(r->rank + lab->n - 1) % lab->n][1],
                          .from = r->in,
                          .to = r->out,
                          .items = items_of(lab),
                          .buffer = r->buffer};
}

static size_t half_of_a_rank(const struct lab *lab)
{
    struct plain p = {.n = lab->n, .items = items_of(lab)};
    return plain_bytes(&p) / 2;
}

/* Half of the bytes are added, half are copied. */
static bool run_memory(struct racer *r)
{
    size_t half = half_of_a_rank(r->lab);
    reduce_f32_sum.combine(r->to, r->a, r->b, half / sizeof(float));
    memcpy(r->b, r->to, half);
    __asm__ volatile("" : : "r"(r->to), "r"(r->b) : "memory");
    return true;
}

static bool run(struct racer *r, race which)
{
    struct plain p = plain_of(r);
    switch (which) {
    case RING:
        return run_ours(r, r->coll, COLL_RING);
    case HALVING:
        return run_ours(r, r->coll, COLL_HALVING);
    case FLOOR:
        return r->lab->tcp ? plain_allreduce(&p, false) : run_memory(r);
    case FLOOR_WHOLE:
        return plain_allreduce(&p, true);
    case RING_ENCRYPTED:
        return run_ours(r, r->encrypted, COLL_RING);
    case HALVING_ENCRYPTED:
        return run_ours(r, r->encrypted, COLL_HALVING);
    default:
        return plain_pass(&p, which == PASS_CACHED);
    }
}

static bool is_run(const struct lab *lab, race which)
{
    return which <= FLOOR || (lab->tcp && (which != FLOOR_WHOLE || lab->n == 2));
}

/* Does `out` hold the sum of what all ranks have in `in`? A floor that does not add is none. A
 * ring over plain sockets leaves out what does not divide by the ranks. */
static bool is_sum(const struct racer *r)
{
    size_t n = (size_t)r->lab->n, items = items_of(r->lab) / n * n;
    for (size_t i = 0; i < items; i++)
        if (fabsf(r->out[i] - (float)n * r->in[i]) > 1e-5F * fabsf(r->out[i]))
            return false;
    return true;
}

static bool racer_init(struct racer *r, struct lab *lab, int32_t rank)
{
    struct world w = {.attempt = 1, .epoch = 1, .rank = rank, .n = lab->n, .peers = lab->peers};
    struct mesh_opts opts = {.tcp_only = lab->tcp};
    size_t half = half_of_a_rank(lab);
    *r = (struct racer){.lab = lab,
                        .rank = rank,
                        .in = calloc(1, lab->bytes),
                        .out = calloc(1, lab->bytes),
                        .a = calloc(1, half),
                        .b = calloc(1, half),
                        .to = calloc(1, half),
                        .buffer = calloc(1, PLAIN_PIECE_BYTES)};
    if (!r->in || !r->out || !r->a || !r->b || !r->to || !r->buffer)
        return false;
    for (size_t i = 0; i < lab->bytes / sizeof(float); i++)
        r->in[i] = (float)i, r->out[i] = 0;
    memset(r->to, 1, half);
    if (coll_create(lab->listeners[rank], &w, &opts, &r->coll, NULL, NULL) < 0)
        return false;
    w.epoch = 2;
    w.encrypt = true;
    return !lab->tcp ||
           coll_create(lab->listeners[rank], &w, &opts, &r->encrypted, NULL, NULL) == AS_OK;
}

static void racer_done(struct racer *r)
{
    coll_free(r->coll);
    coll_free(r->encrypted);
    free(r->in);
    free(r->out);
    free(r->a);
    free(r->b);
    free(r->to);
    free(r->buffer);
}

static bool run_checked(struct racer *r, race which)
{
    bool adds = which != PASS_CACHED && which != PASS_VECTORS && (which < FLOOR || r->lab->tcp);
    memset(r->out, 0, r->lab->bytes);
    return run(r, which) && (!adds || is_sum(r));
}

static bool take_turns(struct racer *r, double own[RACES][REPEATS_MAX])
{
    int repeats = repeats_of(r->lab->bytes);
    for (int k = -1; k < repeats; k++) /* the first one warms up */
        for (race i = 0; i < RACES; i++) {
            if (!is_run(r->lab, i))
                continue;
            if (coll_barrier(r->coll, (struct coll_id){0}, NULL) < 0)
                return false;
            int64_t start_ns = clock_mono_ns();
            if (!(k < 0 ? run_checked(r, i) : run(r, i)))
                return false;
            if (k >= 0)
                own[i][k] = (double)(clock_mono_ns() - start_ns) / (double)NS_PER_S;
        }
    return true;
}

/* The slowest rank's times count. */
static bool judge(struct racer *r, double own[RACES][REPEATS_MAX])
{
    double all[REPEATS_MAX];
    int repeats = repeats_of(r->lab->bytes);
    for (race i = 0; i < RACES; i++) {
        bool ran = is_run(r->lab, i);
        if (ran && coll_allreduce(r->coll, (struct coll_id){.tag = 3}, COLL_RING, &reduce_f64_max,
                                  own[i], all, (size_t)repeats, NULL) < 0)
            return false;
        if (r->rank == 0)
            r->lab->seconds[i] = ran ? bench_median(all, (size_t)repeats) : NAN;
    }
    return true;
}

static int race_rank(struct lab *lab, int32_t rank)
{
    double own[RACES][REPEATS_MAX];
    struct racer r;
    bool well = racer_init(&r, lab, rank) && take_turns(&r, own) && judge(&r, own);
    racer_done(&r);
    return well ? 0 : 1;
}

/* A TCP connection over loopback: two ends in this process. */
static bool connect_ends(int ret[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listening = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    ret[0] = socket(AF_INET, SOCK_STREAM, 0);
    bool ok = bind(listening, (struct sockaddr *)&at, len) == 0 && listen(listening, 1) == 0 &&
              getsockname(listening, (struct sockaddr *)&at, &len) == 0 &&
              connect(ret[0], (struct sockaddr *)&at, len) == 0 &&
              (ret[1] = accept(listening, NULL, NULL)) >= 0 &&
              setsockopt(ret[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0;
    (void)close(listening);
    return ok;
}

static bool open_lab(struct lab *lab)
{
    bool ok = true;
    for (int32_t r = 0; r < lab->n; r++) {
        ok = listener_create("127.0.0.1", &lab->listeners[r], NULL) == AS_OK && ok;
        if (ok)
            lab->peers[r] = lab->listeners[r]->endpoint;
        ok = connect_ends(lab->ring[r]) && ok;
    }
    return ok;
}

static void close_lab(struct lab *lab)
{
    for (int32_t r = 0; r < lab->n; r++) {
        listener_free(lab->listeners[r]);
        for (int end = 0; end < 2; end++)
            (void)close(lab->ring[r][end]);
    }
}

/* One round of ours and the floors; ret: NaN where a rank failed. */
static void race_once(struct lab *lab, bool tcp, double ret[RACES])
{
    lab->tcp = tcp;
    bool well = open_lab(lab) && in_processes(lab, race_rank);
    close_lab(lab);
    for (race i = 0; i < RACES; i++)
        ret[i] = well ? lab->seconds[i] : NAN;
}

/* --- peers: MPI, if it is installed --- */

static const struct mpi {
    const char *name, *compile, *run;
} mpis[] = {
    {"Open MPI", "mpicc.openmpi", "mpirun.openmpi --allow-run-as-root --oversubscribe"},
    {"MPICH", "mpicc.mpich", "mpirun.mpich"},
};
#define N_MPIS AS_ARRAY_LEN(mpis)

static char folder[] = "/tmp/assay-bench-XXXXXX";
static bool has_mpi[N_MPIS];

static void compile_peers(void)
{
    char line[600];
    if (!mkdtemp(folder))
        return;
    for (size_t i = 0; i < N_MPIS; i++) {
        (void)snprintf(line, sizeof line, "%s -O2 -o %s/peer%zu %s/peer_mpi.c >%s/log 2>&1",
                       mpis[i].compile, folder, i, BENCH_DISTRIBUTED_DIR, folder);
        has_mpi[i] = system(line) == 0;
    }
}

static void remove_peers(void)
{
    char line[100];
    (void)snprintf(line, sizeof line, "rm -rf %s", folder);
    if (system(line) != 0)
        (void)fprintf(stderr, "bench/distributed: %s was not removed\n", folder);
}

/* MPI's ranks spin while they wait. If they outnumber the processors and have real-time priority,
 * they never let each other run. */
static const char *ordinary_priority(const struct lab *lab)
{
    return lab->n > sysconf(_SC_NPROCESSORS_ONLN) ? "chrt --other 0 " : "";
}

static double peer(const struct lab *lab, size_t which)
{
    char line[600], answer[80] = "", *end = NULL;
    if (!has_mpi[which])
        return NAN;
    (void)snprintf(line, sizeof line, "%stimeout -k 2 20 %s -n %d %s/peer%zu %zu %d 2>%s/log",
                   ordinary_priority(lab), mpis[which].run, (int)lab->n, folder, which, lab->bytes,
                   repeats_of(lab->bytes), folder);
    FILE *from = popen(line, "r");
    if (!from)
        return NAN;
    bool got = fgets(answer, sizeof answer, from) != NULL; /* "BYTES SECONDS" */
    (void)pclose(from);
    const char *second = got ? strchr(answer, ' ') : NULL;
    double seconds = second ? strtod(second, &end) : NAN;
    return second && end > second ? seconds : NAN;
}

/* --- rounds --- */

/* By round; NaN where a round failed, or the case is not run. */
struct figures {
    double shm[ROUNDS_MAX][RACES], tcp[ROUNDS_MAX][RACES], mpi[ROUNDS_MAX][N_MPIS];
};

static void measure(struct lab *lab, struct figures *f)
{
    for (int64_t k = 0; k < rounds; k++) {
        if (!only_tcp)
            race_once(lab, false, f->shm[k]);
        for (size_t i = 0; i < N_MPIS; i++)
            f->mpi[k][i] = peer(lab, i);
        if (!only_shm)
            race_once(lab, true, f->tcp[k]);
    }
}

/* The median over the rounds of column `a`, divided by column `b` of the same round if that is not
 * NULL. Rounds without a figure do not count. The columns' rows are `stride` apart. */
static double middle(const double *a, const double *b, size_t stride_a, size_t stride_b)
{
    double v[ROUNDS_MAX];
    size_t n = 0;
    for (size_t k = 0; k < (size_t)rounds; k++) {
        double x = a[k * stride_a] / (b ? b[k * stride_b] : 1);
        if (!isnan(x))
            v[n++] = x;
    }
    return bench_median(v, n);
}

static double middle_of(const double rows[][RACES], race i)
{
    return middle(&rows[0][i], NULL, RACES, 0);
}

/* The one whose median is the least; one that was not run is never it. */
static race faster(const double rows[][RACES], race a, race b)
{
    return middle_of(rows, b) < middle_of(rows, a) ? b : a;
}

static void report_shm(const struct lab *lab, const struct figures *f)
{
    char name[64], note[64] = "";
    double mpi[N_MPIS];
    for (size_t i = 0; i < N_MPIS; i++)
        mpi[i] = middle(&f->mpi[0][i], NULL, N_MPIS, 0);
    size_t best = isnan(mpi[1]) || mpi[0] <= mpi[1] ? 0 : 1;
    race own = faster(f->shm, RING, HALVING);
    if (!isnan(mpi[best]))
        (void)snprintf(note, sizeof note, "%.2f times the peer's speed",
                       middle(&f->mpi[0][best], &f->shm[0][own], N_MPIS, RACES));
    (void)snprintf(name, sizeof name, "all-reduce shm P=%d %zu KiB", (int)lab->n, lab->bytes >> 10);
    bench_report(name, middle_of(f->shm, own) * 1e6, "us", middle_of(f->shm, FLOOR) * 1e6,
                 mpi[best] * 1e6, isnan(mpi[best]) ? NULL : mpis[best].name, note);
}

static void report_tcp(const struct lab *lab, const struct figures *f)
{
    char name[64], note[240];
    race secret = faster(f->tcp, RING_ENCRYPTED, HALVING_ENCRYPTED);
    race own = faster(f->tcp, RING, HALVING), floor = faster(f->tcp, FLOOR, FLOOR_WHOLE);
    (void)snprintf(name, sizeof name, "all-reduce tcp P=%d %zu KiB", (int)lab->n, lab->bytes >> 10);
    (void)snprintf(note, sizeof note,
                   "%.2f of the floor's speed; sockets that add nothing: %.3g us in the cache, "
                   "%.3g us from vector to vector; encrypted %.3g us, %.2f of the time",
                   middle(&f->tcp[0][floor], &f->tcp[0][own], RACES, RACES),
                   middle_of(f->tcp, PASS_CACHED) * 1e6, middle_of(f->tcp, PASS_VECTORS) * 1e6,
                   middle_of(f->tcp, secret) * 1e6,
                   middle(&f->tcp[0][secret], &f->tcp[0][own], RACES, RACES));
    bench_report(name, middle_of(f->tcp, own) * 1e6, "us", middle_of(f->tcp, floor) * 1e6, NAN,
                 NULL, note);
}

static void measure_sizes(struct lab *lab, int32_t n)
{
    lab->n = n;
    for (size_t i = 0; i < (only_kib ? 1 : N_SIZES); i++) {
        struct figures f;
        lab->bytes = only_kib ? (size_t)only_kib << 10 : sizes[i];
        measure(lab, &f);
        if (!only_tcp)
            report_shm(lab, &f);
        if (!only_shm)
            report_tcp(lab, &f);
    }
}

int main(int argc, char **argv)
{
    static const struct opt more[] = {
        {"rounds", 0, OPT_I64, &rounds, "N", NULL,
         "rounds of each case (1 to 99); their median counts"},
        {"ranks", 0, OPT_I64, &only_ranks, "P", NULL, "this number of ranks alone (2 to 16)"},
        {"kib", 0, OPT_I64, &only_kib, "N", NULL, "this size alone, in KiB (1 to 1048576)"},
        {"no-peers", 0, OPT_FLAG, &no_peers, NULL, NULL, "without MPI"},
        {"tcp", 0, OPT_FLAG, &only_tcp, NULL, NULL, "over TCP alone, without MPI"},
        {"shm", 0, OPT_FLAG, &only_shm, NULL, NULL, "through shared memory alone, beside MPI"},
        {0},
    };
    if (!bench_start_with("distributed", "all-reduce between processes", more, argc, argv))
        return bench_exit();
    if (only_ranks < 0 || only_ranks == 1 || only_ranks > RANKS_MAX) {
        (void)fprintf(stderr, "--ranks is %lld; expected 2 to %d\n", (long long)only_ranks,
                      RANKS_MAX);
        return EXIT_FAILURE;
    }
    if (only_kib < 0 || only_kib > 1 << 20) {
        (void)fprintf(stderr, "--kib is %lld; expected 1 to %d\n", (long long)only_kib, 1 << 20);
        return EXIT_FAILURE;
    }
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        (void)fprintf(stderr, "--rounds is %lld; expected 1 to %d\n", (long long)rounds,
                      ROUNDS_MAX);
        return EXIT_FAILURE;
    }
    no_peers = no_peers || only_tcp;
    struct lab *lab =
        mmap(NULL, sizeof *lab, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lab == MAP_FAILED)
        return EXIT_FAILURE;
    if (!no_peers)
        compile_peers();
    if (only_ranks)
        measure_sizes(lab, (int32_t)only_ranks);
    for (int32_t n = 2; !only_ranks && n <= 4; n++)
        measure_sizes(lab, n);
    if (!no_peers)
        remove_peers();
    return bench_exit();
}
