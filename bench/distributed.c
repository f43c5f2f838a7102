/* All-reduce between processes of this machine, against MPI and against bare memory and sockets.
 *
 * For each size and number of ranks: our fastest algorithm over shared memory, and over TCP. Every
 * figure is the median over repeats of the slowest rank's time, in rounds that alternate with the
 * peers, because the machine is shared; the best round of each counts.
 *
 * Floors, in the same run: for shared memory, P processes that each add as many bytes as they must
 * (2 (P-1)/P N) from memory of their own; for TCP, pairs of processes that send each other as many
 * bytes through plain blocking sockets, without looking at them. */
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
    double seconds;         /* rank 0 writes it */
};

typedef int rank_fn(struct lab *lab, int32_t rank);

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

/* Runs f in a process for each rank; NaN if one failed. */
static double in_processes(struct lab *lab, rank_fn *f)
{
    pid_t pids[RANKS_MAX];
    bool well = true;
    (void)fflush(NULL);
    lab->seconds = NAN;
    for (int32_t r = 0; r < lab->n; r++)
        if ((pids[r] = fork()) == 0)
            _exit(f(lab, r));
    for (int32_t r = 0; r < lab->n; r++) {
        int status;
        well = waitpid(pids[r], &status, 0) == pids[r] && status == 0 && well;
    }
    return well ? lab->seconds : NAN;
}

/* --- ours --- */

static int time_algorithm(struct lab *lab, struct coll *c, coll_algorithm algorithm,
                          double *ret_seconds)
{
    size_t n = lab->bytes / sizeof(float);
    int repeats = repeats_of(lab->bytes);
    double own[REPEATS_MAX], all[REPEATS_MAX];
    float *in = malloc(lab->bytes), *out = malloc(lab->bytes);
    bool ok = in && out;
    for (size_t i = 0; ok && i < n; i++)
        in[i] = (float)i, out[i] = 0;
    for (int k = -1; ok && k < repeats; k++) { /* the first one warms up */
        ok = coll_barrier(c, (struct coll_id){0}, NULL) == AS_OK;
        int64_t start_ns = clock_mono_ns();
        ok = ok && coll_allreduce(c, (struct coll_id){.tag = 1}, algorithm, &reduce_f32_sum, in,
                                  out, n, NULL) == AS_OK;
        if (k >= 0)
            own[k] = (double)(clock_mono_ns() - start_ns) / (double)NS_PER_S;
    }
    ok = ok && coll_allreduce(c, (struct coll_id){.tag = 2}, COLL_RING, &reduce_f64_max, own, all,
                              (size_t)repeats, NULL) == AS_OK;
    free(in);
    free(out);
    *ret_seconds = ok ? median(all, repeats) : NAN;
    return ok ? 0 : 1;
}

static int ours_rank(struct lab *lab, int32_t rank)
{
    struct world w = {.attempt = 1, .epoch = 1, .rank = rank, .n = lab->n, .peers = lab->peers};
    struct mesh_opts opts = {.tcp_only = lab->tcp};
    AS_AUTO(coll_freep) struct coll *c = NULL;
    double ring, halving;
    if (coll_create(lab->listeners[rank], &w, &opts, &c, NULL, NULL) < 0 ||
        time_algorithm(lab, c, COLL_RING, &ring) || time_algorithm(lab, c, COLL_HALVING, &halving))
        return 1;
    if (rank == 0)
        lab->seconds = fmin(ring, halving);
    return 0;
}

static double ours(struct lab *lab, bool tcp)
{
    lab->tcp = tcp;
    for (int32_t r = 0; r < lab->n; r++) {
        if (listener_create("127.0.0.1", &lab->listeners[r], NULL) < 0)
            return NAN;
        lab->peers[r] = lab->listeners[r]->endpoint;
    }
    double seconds = in_processes(lab, ours_rank);
    for (int32_t r = 0; r < lab->n; r++)
        listener_free(lab->listeners[r]);
    return seconds;
}

/* --- floors --- */

static size_t bytes_of_a_rank(const struct lab *lab)
{
    return 2 * lab->bytes / (size_t)lab->n * (size_t)(lab->n - 1);
}

/* Half of the bytes are added, half are copied. */
static int memory_rank(struct lab *lab, int32_t rank)
{
    size_t half = bytes_of_a_rank(lab) / 2, n = half / sizeof(float);
    int repeats = repeats_of(lab->bytes);
    double own[REPEATS_MAX];
    float *a = calloc(n, sizeof *a), *b = calloc(n, sizeof *b), *to = calloc(n, sizeof *to);
    if (!a || !b || !to)
        return 1;
    for (int k = 0; k < repeats; k++) {
        int64_t start_ns = clock_mono_ns();
        reduce_f32_sum.combine(to, a, b, n);
        memcpy(b, to, half);
        own[k] = (double)(clock_mono_ns() - start_ns) / (double)NS_PER_S;
        __asm__ volatile("" : : "r"(to), "r"(b) : "memory");
    }
    if (rank == 0)
        lab->seconds = median(own, repeats);
    free(a);
    free(b);
    free(to);
    return 0;
}

/* A ring of plain sockets: what a rank sends goes to the next, what it receives comes from the one
 * before, both at once. */
static int socket_rank(struct lab *lab, int32_t rank)
{
    static char buffer[1 << 18];
    int repeats = repeats_of(lab->bytes);
    int out = lab->ring[rank][0], in = lab->ring[(rank + lab->n - 1) % lab->n][1];
    double own[REPEATS_MAX];
    for (int k = 0; k < repeats; k++) {
        size_t to_send = bytes_of_a_rank(lab), to_receive = to_send;
        int64_t start_ns = clock_mono_ns();
        while (to_send + to_receive > 0) {
            struct pollfd p[2] = {{.fd = to_send ? out : -1, .events = POLLOUT},
                                  {.fd = to_receive ? in : -1, .events = POLLIN}};
            if (poll(p, 2, -1) < 0)
                return 1;
            size_t most = to_send < sizeof buffer ? to_send : sizeof buffer;
            ssize_t n = p[0].revents ? send(out, buffer, most, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
            to_send -= n > 0 ? (size_t)n : 0;
            most = to_receive < sizeof buffer ? to_receive : sizeof buffer;
            n = p[1].revents ? recv(in, buffer, most, MSG_DONTWAIT) : 0;
            to_receive -= n > 0 ? (size_t)n : 0;
        }
        own[k] = (double)(clock_mono_ns() - start_ns) / (double)NS_PER_S;
    }
    if (rank == 0)
        lab->seconds = median(own, repeats);
    return 0;
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

static double socket_floor(struct lab *lab)
{
    bool ok = true;
    for (int32_t r = 0; r < lab->n; r++)
        ok = connect_ends(lab->ring[r]) && ok;
    double seconds = ok ? in_processes(lab, socket_rank) : NAN;
    for (int32_t r = 0; r < lab->n; r++)
        for (int end = 0; end < 2; end++)
            (void)close(lab->ring[r][end]);
    return seconds;
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

static double peer(const struct lab *lab, size_t which)
{
    char line[600], answer[80] = "", *end = NULL;
    if (!has_mpi[which])
        return NAN;
    (void)snprintf(line, sizeof line, "timeout 60 %s -n %d %s/peer%zu %zu %d 2>%s/log",
                   mpis[which].run, (int)lab->n, folder, which, lab->bytes, repeats_of(lab->bytes),
                   folder);
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
    double shm, tcp, memory, socket, mpi[N_MPIS];
};

/* The least of all rounds; fmin ignores NaN. */
static void measure(struct lab *lab, struct figures *f)
{
    *f = (struct figures){NAN, NAN, NAN, NAN, {NAN, NAN}};
    for (int64_t k = 0; k < rounds; k++) {
        f->shm = fmin(f->shm, ours(lab, false));
        f->memory = fmin(f->memory, in_processes(lab, memory_rank));
        for (size_t i = 0; i < N_MPIS; i++)
            f->mpi[i] = fmin(f->mpi[i], peer(lab, i));
        f->tcp = fmin(f->tcp, ours(lab, true));
        f->socket = fmin(f->socket, socket_floor(lab));
    }
}

static void report(const struct lab *lab, const struct figures *f)
{
    char name[64];
    size_t best = isnan(f->mpi[1]) || f->mpi[0] <= f->mpi[1] ? 0 : 1;
    const char *peer_name = isnan(f->mpi[best]) ? NULL : mpis[best].name;
    (void)snprintf(name, sizeof name, "all-reduce shm P=%d %zu KiB", (int)lab->n, lab->bytes >> 10);
    bench_report(name, f->shm * 1e6, "us", f->memory * 1e6, f->mpi[best] * 1e6, peer_name, NULL);
    (void)snprintf(name, sizeof name, "all-reduce tcp P=%d %zu KiB", (int)lab->n, lab->bytes >> 10);
    bench_report(name, f->tcp * 1e6, "us", f->socket * 1e6, NAN, NULL, NULL);
}

static void measure_sizes(struct lab *lab, int32_t n)
{
    lab->n = n;
    for (size_t i = 0; i < N_SIZES; i++) {
        struct figures f;
        lab->bytes = sizes[i];
        measure(lab, &f);
        report(lab, &f);
    }
}

int main(int argc, char **argv)
{
    static const struct opt more[] = {
        {"rounds", 0, OPT_I64, &rounds, "N", NULL, "rounds of each case; the best counts"},
        {"ranks", 0, OPT_I64, &only_ranks, "P", NULL, "this number of ranks alone (2 to 16)"},
        {0},
    };
    if (!bench_start_with("distributed", "all-reduce between processes", more, argc, argv))
        return bench_exit();
    if (only_ranks < 0 || only_ranks == 1 || only_ranks > RANKS_MAX) {
        (void)fprintf(stderr, "--ranks is %lld; expected 2 to %d\n", (long long)only_ranks,
                      RANKS_MAX);
        return EXIT_FAILURE;
    }
    struct lab *lab =
        mmap(NULL, sizeof *lab, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lab == MAP_FAILED)
        return EXIT_FAILURE;
    compile_peers();
    if (only_ranks)
        measure_sizes(lab, (int32_t)only_ranks);
    for (int32_t n = 2; !only_ranks && n <= 4; n += 2)
        measure_sizes(lab, n);
    remove_peers();
    return bench_exit();
}
