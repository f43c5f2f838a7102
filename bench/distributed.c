/* All-reduce between processes of this machine, against MPI and against bare memory and sockets.
 *
 * For each size and number of ranks: our fastest algorithm over shared memory, and over TCP. Every
 * figure is the median over repeats of the slowest rank's time, in rounds that alternate with the
 * peers, because the machine is shared; the best round of each counts.
 *
 * Floors, in the same run: for shared memory, P processes that each add as many bytes as they must
 * (2 (P-1)/P N) from memory of their own; for TCP, processes that send each other as many bytes
 * through plain sockets, without looking at them. They do it twice: from and to one buffer of
 * 256 KiB, which stays in the cache (the floor), and from the vector to another one, as a program
 * must whose bytes mean something (the note). */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
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
#include "trial-runner/collective/collective.h"

#define RANKS_MAX 16
#define REPEATS_MAX 400

static const size_t sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 100 << 20};
#define N_SIZES AS_ARRAY_LEN(sizes)

static int64_t rounds = 3;
static int64_t only_ranks; /* 0: 2 and 4 */
static int64_t only_kib;   /* 0: all sizes */
static bool no_peers, only_tcp;

static int repeats_of(size_t bytes)
{
    double n = 2e8 / (double)bytes;
    return n > REPEATS_MAX ? REPEATS_MAX : n < 3 ? 3 : (int)n;
}

/* What the processes of a measurement share. */
struct lab {
    int32_t n;
    size_t bytes;
    bool tcp;
    struct listener *listeners[RANKS_MAX];
    struct endpoint peers[RANKS_MAX];
    int ring[RANKS_MAX][2]; /* sockets from each rank to the next */
    double seconds[4];      /* of the races; rank 0 writes them */
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

/* What is timed, in turn: the disturbances of a shared machine meet all of them alike. */
struct racer {
    struct lab *lab;
    int32_t rank;
    struct coll *coll;
    float *in, *out;   /* of lab->bytes */
    float *a, *b, *to; /* of half of what a rank sends */
    char *buffer;      /* of BUFFER_BYTES */
};

#define BUFFER_BYTES (1 << 18)

typedef bool race_fn(struct racer *r);

static bool race_ring(struct racer *r)
{
    return coll_allreduce(r->coll, (struct coll_id){.tag = 1}, COLL_RING, &reduce_f32_sum, r->in,
                          r->out, r->lab->bytes / sizeof(float), NULL) == AS_OK;
}

static bool race_halving(struct racer *r)
{
    return coll_allreduce(r->coll, (struct coll_id){.tag = 2}, COLL_HALVING, &reduce_f32_sum, r->in,
                          r->out, r->lab->bytes / sizeof(float), NULL) == AS_OK;
}

/* What a rank sends in a ring, and receives. */
static size_t bytes_of_a_rank(const struct lab *lab)
{
    return 2 * lab->bytes / (size_t)lab->n * (size_t)(lab->n - 1);
}

/* Half of the bytes are added, half are copied. */
static bool race_memory(struct racer *r)
{
    size_t half = bytes_of_a_rank(r->lab) / 2;
    reduce_f32_sum.combine(r->to, r->a, r->b, half / sizeof(float));
    memcpy(r->b, r->to, half);
    __asm__ volatile("" : : "r"(r->to), "r"(r->b) : "memory");
    return true;
}

/* The next piece of a vector that is passed again and again. */
static char *piece(char *from, size_t span, size_t at, size_t left, size_t *ret_bytes)
{
    size_t to_end = span - at % span;
    *ret_bytes = left < BUFFER_BYTES ? left : BUFFER_BYTES;
    *ret_bytes = *ret_bytes < to_end ? *ret_bytes : to_end;
    return from + at % span;
}

/* A ring of plain sockets: what a rank sends goes to the next, what it receives comes from the one
 * before, both at once. `from` and `to`: of `span` bytes. */
static bool pass_through_sockets(struct racer *r, char *from, char *to, size_t span)
{
    const struct lab *lab = r->lab;
    int out = lab->ring[r->rank][0], in = lab->ring[(r->rank + lab->n - 1) % lab->n][1];
    size_t all = bytes_of_a_rank(lab), sent = 0, received = 0, most;
    while (sent < all || received < all) {
        struct pollfd p[2] = {{.fd = sent < all ? out : -1, .events = POLLOUT},
                              {.fd = received < all ? in : -1, .events = POLLIN}};
        if (poll(p, 2, -1) < 0)
            return false;
        char *at = piece(from, span, sent, all - sent, &most);
        ssize_t n = p[0].revents ? send(out, at, most, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        sent += n > 0 ? (size_t)n : 0;
        at = piece(to, span, received, all - received, &most);
        n = p[1].revents ? recv(in, at, most, MSG_DONTWAIT) : 0;
        received += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool race_sockets(struct racer *r)
{
    return pass_through_sockets(r, r->buffer, r->buffer, BUFFER_BYTES);
}

static bool race_vectors(struct racer *r)
{
    return pass_through_sockets(r, (char *)r->in, (char *)r->out, r->lab->bytes);
}

/* ring, halving, the floors */
#define RACES 4

static bool racer_init(struct racer *r, struct lab *lab, int32_t rank)
{
    struct world w = {.attempt = 1, .epoch = 1, .rank = rank, .n = lab->n, .peers = lab->peers};
    struct mesh_opts opts = {.tcp_only = lab->tcp};
    size_t half = bytes_of_a_rank(lab) / 2;
    *r = (struct racer){.lab = lab,
                        .rank = rank,
                        .in = calloc(1, lab->bytes),
                        .out = calloc(1, lab->bytes),
                        .a = calloc(1, half),
                        .b = calloc(1, half),
                        .to = calloc(1, half),
                        .buffer = calloc(1, BUFFER_BYTES)};
    if (!r->in || !r->out || !r->a || !r->b || !r->to || !r->buffer)
        return false;
    for (size_t i = 0; i < lab->bytes / sizeof(float); i++)
        r->in[i] = (float)i, r->out[i] = 0;
    memset(r->to, 1, half);
    return coll_create(lab->listeners[rank], &w, &opts, &r->coll, NULL, NULL) == AS_OK;
}

static void racer_done(struct racer *r)
{
    coll_free(r->coll);
    free(r->in);
    free(r->out);
    free(r->a);
    free(r->b);
    free(r->to);
    free(r->buffer);
}

static bool race(struct racer *r, race_fn *const races[RACES], double own[RACES][REPEATS_MAX])
{
    int repeats = repeats_of(r->lab->bytes);
    for (int k = -1; k < repeats; k++) /* the first one warms up */
        for (int i = 0; i < RACES; i++) {
            if (coll_barrier(r->coll, (struct coll_id){0}, NULL) < 0)
                return false;
            int64_t start_ns = clock_mono_ns();
            if (!races[i](r))
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
    for (int i = 0; i < RACES; i++) {
        if (coll_allreduce(r->coll, (struct coll_id){.tag = 3}, COLL_RING, &reduce_f64_max, own[i],
                           all, (size_t)repeats, NULL) < 0)
            return false;
        if (r->rank == 0)
            r->lab->seconds[i] = bench_median(all, (size_t)repeats);
    }
    return true;
}

static int race_rank(struct lab *lab, int32_t rank)
{
    race_fn *const races[RACES] = {race_ring, race_halving, lab->tcp ? race_sockets : race_memory,
                                   lab->tcp ? race_vectors : race_memory};
    double own[RACES][REPEATS_MAX];
    struct racer r;
    bool well = racer_init(&r, lab, rank) && race(&r, races, own) && judge(&r, own);
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

/* Our faster algorithm, and the floors. */
static void ours(struct lab *lab, bool tcp, double *value, double *floor, double *second)
{
    lab->tcp = tcp;
    if (open_lab(lab) && in_processes(lab, race_rank)) {
        *value = fmin(*value, fmin(lab->seconds[0], lab->seconds[1]));
        *floor = fmin(*floor, lab->seconds[2]);
        *second = fmin(*second, lab->seconds[3]);
    }
    close_lab(lab);
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

struct figures {
    double shm, tcp, memory, socket, vectors, mpi[N_MPIS];
};

/* The least of all rounds; fmin ignores NaN. */
static void measure(struct lab *lab, struct figures *f)
{
    *f = (struct figures){NAN, NAN, NAN, NAN, NAN, {NAN, NAN}};
    for (int64_t k = 0; k < rounds; k++) {
        if (!only_tcp)
            ours(lab, false, &f->shm, &f->memory, &f->memory);
        for (size_t i = 0; i < N_MPIS; i++)
            f->mpi[i] = fmin(f->mpi[i], peer(lab, i));
        ours(lab, true, &f->tcp, &f->socket, &f->vectors);
    }
}

static void report(const struct lab *lab, const struct figures *f)
{
    char name[64], note[64];
    size_t best = isnan(f->mpi[1]) || f->mpi[0] <= f->mpi[1] ? 0 : 1;
    const char *peer_name = isnan(f->mpi[best]) ? NULL : mpis[best].name;
    (void)snprintf(name, sizeof name, "all-reduce shm P=%d %zu KiB", (int)lab->n, lab->bytes >> 10);
    if (!only_tcp)
        bench_report(name, f->shm * 1e6, "us", f->memory * 1e6, f->mpi[best] * 1e6, peer_name,
                     NULL);
    (void)snprintf(name, sizeof name, "all-reduce tcp P=%d %zu KiB", (int)lab->n, lab->bytes >> 10);
    (void)snprintf(note, sizeof note, "sockets from vector to vector: %.3g us", f->vectors * 1e6);
    bench_report(name, f->tcp * 1e6, "us", f->socket * 1e6, NAN, NULL, note);
}

static void measure_sizes(struct lab *lab, int32_t n)
{
    lab->n = n;
    for (size_t i = 0; i < (only_kib ? 1 : N_SIZES); i++) {
        struct figures f;
        lab->bytes = only_kib ? (size_t)only_kib << 10 : sizes[i];
        measure(lab, &f);
        report(lab, &f);
    }
}

int main(int argc, char **argv)
{
    static const struct opt more[] = {
        {"rounds", 0, OPT_I64, &rounds, "N", NULL, "rounds of each case; the best counts"},
        {"ranks", 0, OPT_I64, &only_ranks, "P", NULL, "this number of ranks alone (2 to 16)"},
        {"kib", 0, OPT_I64, &only_kib, "N", NULL, "this size alone, in KiB (1 to 1048576)"},
        {"no-peers", 0, OPT_FLAG, &no_peers, NULL, NULL, "without MPI"},
        {"tcp", 0, OPT_FLAG, &only_tcp, NULL, NULL, "over TCP alone, without MPI"},
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
    no_peers = no_peers || only_tcp;
    struct lab *lab =
        mmap(NULL, sizeof *lab, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lab == MAP_FAILED)
        return EXIT_FAILURE;
    if (!no_peers)
        compile_peers();
    if (only_ranks)
        measure_sizes(lab, (int32_t)only_ranks);
    for (int32_t n = 2; !only_ranks && n <= 4; n += 2)
        measure_sizes(lab, n);
    if (!no_peers)
        remove_peers();
    return bench_exit();
}
