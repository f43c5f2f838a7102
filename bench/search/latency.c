/* search: how long a suggestion takes, by the number of observations.
 *
 * Ten dimensions: Hartmann6 with four dummies, and Levy-10; 50 dimensions: Hartmann6 with 44; 30
 * parameters of which a part are categories: additive30. A suggestion gets the same inputs as in
 * the service: the whole history, the state of the previous suggestion and a warm cache. One
 * observation arrives between two suggestions. Up to n = 210 the observations are the method's own,
 * of five seeds, and at each n the ten suggestions from n to n+9 of every seed are measured. Beyond
 * that the history of the first seed is filled, half with Sobol points and half with perturbations
 * of the best (deviation 0.05 of the range, as trials that users added), because suggesting 5,000
 * trials would take minutes. The first suggestion after a filling is not counted; the next 60 are
 * (at 5,000: 30).
 *
 * value: median, with refits where they occur. floor: dpotrf of an n x n matrix, in this run. All
 * use one BLAS thread. peer: Optuna's GPSampler with the same observations, median of 5 suggestions
 * (2 from n = 500 on) after one that is not counted; up to n = 1,000. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "bench/search/peer.h"
#include "bench/search/problems.h"
#include "bench/search/searcher.h"
#include "search/sampling/sampler.h"

#define SEEDS 5
#define OWN_TRIALS 210 /* trials that the method itself suggested, for each seed */
#define WINDOW_OWN 10
#define WINDOW_FILLED 60
#define WINDOW_LARGE 30
#define LARGE 5000
#define PEER_LIMIT 1000
#define FILL_PURPOSE 202 /* see problems.c, sweep.c */
#define MAX_SAMPLES (SEEDS * WINDOW_OWN > WINDOW_FILLED ? SEEDS * WINDOW_OWN : WINDOW_FILLED)

void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info);

static const struct {
    const char *name, *problem;
} functions[] = {{"hartmann6", "hartmann6-10d"},
                 {"levy10", "levy10"},
                 {"hartmann6-50d", "hartmann6-50d"},
                 {"mixed30", "additive30-3"},
                 {"flat28", "crowd-1"}};

static const size_t sizes[] = {50, 100, 200, 500, 1000, LARGE};

static struct as_err err;

/* End the program if the benchmark cannot run. */
static void must(as_status st)
{
    if (st == AS_OK)
        return;
    (void)fprintf(stderr, "search: %s\n", err.msg);
    exit(EXIT_FAILURE);
}

static void *must_have(void *p)
{
    if (p == NULL)
        must(as_fail(&err, AS_E_NOMEM, "out of memory"));
    return p;
}

/* Milliseconds of suggestions at one n. */
struct samples {
    double ms[MAX_SAMPLES], refit_ms[MAX_SAMPLES];
    size_t n, n_refits;
};

/* A sweep with its history. */
struct run {
    const struct problem *problem;
    struct searcher *searcher;
    uint64_t seed;
    struct observation *seen;
    size_t n;
    size_t best;
};

static void run_begin(struct run *r, const struct problem *p, uint64_t seed)
{
    *r = (struct run){.problem = p, .seed = seed};
    r->seen = must_have(as_calloc(LARGE + 2 * WINDOW_FILLED, sizeof *r->seen));
    must(searcher_open("gp", p, seed, &r->searcher, &err));
}

static void run_end(struct run *r)
{
    for (size_t i = 0; i < r->n; i++)
        config_free((struct config *)r->seen[i].config);
    free(r->seen);
    searcher_free(r->searcher);
}

/* Add a finished trial; takes c. */
static void observe(struct run *r, struct config *c, bool is_suggested)
{
    r->seen[r->n] = (struct observation){.number = r->n,
                                         .config = c,
                                         .state = OBSERVED_COMPLETED,
                                         .is_suggested = is_suggested,
                                         .values = {problem_value(r->problem, c)}};
    if (r->seen[r->n].values[0] < r->seen[r->best].values[0])
        r->best = r->n;
    r->n++;
}

/* Suggest, run, observe. */
static void step(struct run *r, struct samples *s)
{
    struct config *c = NULL;
    double ms = 0;
    const struct history h = {r->seen, r->n};
    must(searcher_ask(r->searcher, &h, r->n, &c, &ms, &err));
    if (s != NULL) {
        const json_t *fit = json_object_get(searcher_reason(r->searcher), "fit");
        s->ms[s->n++] = ms;
        if (json_is_true(json_object_get(fit, "refitted")))
            s->refit_ms[s->n_refits++] = ms;
    }
    observe(r, c, true);
}

/* A value near v: numbers by 0.05 of the range, of choices one in ten is drawn anew. */
static union param_value perturb(const struct space_param *p, union param_value v, struct rng *draw)
{
    if (!param_is_choice(p))
        return param_decode(p, fmin(fmax(param_encode(p, v) + 0.05 * rng_normal(draw), 0), 1));
    return rng_uniform(draw) < 0.1 ? param_decode(p, rng_uniform(draw)) : v;
}

/* Half Sobol points, half perturbations of the best. No parameter has a condition. */
static void fill(struct run *r, size_t to)
{
    const struct space *space = r->problem->space;
    while (r->n < to) {
        struct config *c = NULL;
        if (r->n % 2 == 0) {
            must(sampler_draw(space, SAMPLER_SOBOL, r->seed, r->n, &c, NULL, &err));
            observe(r, c, false);
            continue;
        }
        struct rng draw;
        rng_init(&draw, r->seed, (uint64_t)r->n << 8 | FILL_PURPOSE);
        c = must_have(config_copy(r->seen[r->best].config));
        for (size_t i = 0; i < space->n; i++)
            c->entries[i].value = perturb(&space->params[i], c->entries[i].value, &draw);
        observe(r, c, false);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    return n == 0 ? NAN : n % 2 ? v[n / 2] : 0.5 * (v[n / 2 - 1] + v[n / 2]);
}

static double mean(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += v[i];
    return sum / (double)n;
}

/* Milliseconds of one dpotrf of a positive definite matrix, without the copy. */
static double floor_ms(size_t n)
{
    double *original = must_have(as_calloc(n * n, sizeof(double)));
    double *a = must_have(as_calloc(n * n, sizeof(double)));
    double ms[25];
    int size = (int)n, info = 0;
    size_t rounds = n >= LARGE ? 3 : n >= 1000 ? 9 : 25;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            original[i * n + j] = exp(-fabs((double)i - (double)j) / (double)n) + (i == j);
    for (size_t k = 0; k < rounds; k++) {
        memcpy(a, original, n * n * sizeof(double));
        int64_t from = searcher_clock_ns();
        dpotrf_("U", &size, a, &size, &info);
        ms[k] = (double)(searcher_clock_ns() - from) / (double)NS_PER_MS;
    }
    free(original);
    free(a);
    return info == 0 ? median(ms, rounds) : NAN;
}

/* The peer's median with the first n observations of the run; NaN if the peer is not installed. */
static double peer_ms(const struct run *r, size_t n)
{
    double ms[5];
    size_t rounds = n < 500 ? 5 : 2;
    AS_AUTO(searcher_freep) struct searcher *s = NULL;
    as_status st = searcher_open("optuna-gp", r->problem, r->seed, &s, &err);
    if (st < 0) {
        (void)fprintf(stderr, "search: no peer: %s\n", err.msg);
        return NAN;
    }
    for (size_t i = 0; i < n; i++)
        must(searcher_add(s, r->seen[i].config, r->seen[i].values[0], &err));
    for (size_t k = 0; k <= rounds; k++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        double took = 0;
        must(searcher_ask(s, NULL, n + k, &c, &took, &err));
        must(searcher_tell(s, n + k, problem_value(r->problem, c), &err));
        if (k > 0)
            ms[k - 1] = took;
    }
    return median(ms, rounds);
}

static void report(const char *function, size_t n, struct samples *s, double peer)
{
    char name[64], note[160];
    double average = mean(s->ms, s->n), mid = median(s->ms, s->n); /* sorts */
    double p99 = s->ms[(size_t)ceil(0.99 * (double)s->n) - 1], floor = floor_ms(n);
    (void)snprintf(note, sizeof note, "mean %.3g, p99 %.3g of %zu suggestions, %zu of them refit",
                   average, p99, s->n, s->n_refits);
    (void)snprintf(name, sizeof name, "%s n=%zu", function, n);
    bench_report(name, mid, "ms", floor, peer, isfinite(peer) ? peer_version(PEER_OPTUNA) : NULL,
                 note);
    (void)snprintf(name, sizeof name, "%s n=%zu mean", function, n);
    bench_report(name, average, "ms", floor, NAN, NULL, NULL);
    (void)snprintf(name, sizeof name, "%s n=%zu p99", function, n);
    bench_report(name, p99, "ms", floor, NAN, NULL, NULL);
    if (s->n_refits > 0) {
        (void)snprintf(name, sizeof name, "%s n=%zu refit", function, n);
        bench_report(name, median(s->refit_ms, s->n_refits), "ms", floor, NAN, NULL,
                     "median of the suggestions that refit");
    }
}

static void report_memory(const char *function, const struct run *r)
{
    char name[64];
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    (void)snprintf(name, sizeof name, "%s n=%d cache", function, LARGE);
    bench_report(name, (double)searcher_cache_bytes(r->searcher) / (1 << 20), "MiB", NAN, NAN, NULL,
                 "what the search keeps between suggestions");
    (void)snprintf(name, sizeof name, "%s n=%d peak", function, LARGE);
    bench_report(name, (double)used.ru_maxrss / 1024, "MiB", NAN, NAN, NULL,
                 "peak of the whole process so far");
}

struct wish {
    int64_t limit; /* largest n */
    bool no_peer, cpu_time;
};

static void bench_own(const char *function, struct run *runs, const struct wish *w)
{
    struct samples own[3] = {0};
    for (size_t s = 0; s < SEEDS; s++)
        while (runs[s].n < OWN_TRIALS) {
            struct samples *to = NULL;
            for (size_t k = 0; k < AS_ARRAY_LEN(own); k++)
                if (runs[s].n >= sizes[k] && runs[s].n < sizes[k] + WINDOW_OWN)
                    to = &own[k];
            step(&runs[s], to);
        }
    for (size_t k = 0; k < AS_ARRAY_LEN(own) && (int64_t)sizes[k] <= w->limit; k++)
        report(function, sizes[k], &own[k], w->no_peer ? NAN : peer_ms(&runs[0], sizes[k]));
}

static void bench_filled(const char *function, struct run *r, const struct wish *w)
{
    for (size_t k = 3; k < AS_ARRAY_LEN(sizes) && (int64_t)sizes[k] <= w->limit; k++) {
        struct samples s = {0};
        bool has_peer = !w->no_peer && sizes[k] <= PEER_LIMIT;
        fill(r, sizes[k]);
        step(r, NULL);
        while (s.n < (sizes[k] < LARGE ? WINDOW_FILLED : WINDOW_LARGE))
            step(r, &s);
        report(function, sizes[k], &s, has_peer ? peer_ms(r, sizes[k]) : NAN);
        if (sizes[k] == LARGE)
            report_memory(function, r);
    }
}

static void bench_function(const char *name, const struct problem_def *def, const struct wish *w)
{
    AS_AUTO(problem_freep) struct problem *p = NULL;
    struct run runs[SEEDS];
    must(problem_open(def, &p, &err));
    for (uint64_t s = 0; s < SEEDS; s++)
        run_begin(&runs[s], p, s);
    bench_own(name, runs, w);
    bench_filled(name, &runs[0], w);
    for (size_t s = 0; s < SEEDS; s++)
        run_end(&runs[s]);
}

int main(int argc, char **argv)
{
    struct wish w = {.limit = LARGE};
    const char *optuna_path = NULL, *only = NULL;
    const struct opt more[] = {
        {"limit", 0, OPT_I64, &w.limit, "N", NULL, "the largest number of observations (5000)"},
        {"only", 0, OPT_STRING, &only, "NAME", NULL,
         "hartmann6, levy10, hartmann6-50d, mixed30 or flat28 alone"},
        {"no-peer", 0, OPT_FLAG, &w.no_peer, NULL, NULL, "do not time Optuna"},
        {"cpu-time", 0, OPT_FLAG, &w.cpu_time, NULL, NULL,
         "processor time instead of wall-clock time, for a busy machine"},
        {"optuna-path", 0, OPT_STRING, &optuna_path, "DIR", "OPTUNA_PATH",
         "a folder with another Optuna in it"},
        {0},
    };
    if (!bench_start_with("search", "time of a suggestion by the number of observations", more,
                          argc, argv))
        return bench_exit();
    openblas_set_num_threads(1);
    peer_set_path(optuna_path);
    searcher_time_cpu(w.cpu_time);
    for (size_t i = 0; i < AS_ARRAY_LEN(functions); i++)
        if (only == NULL || strcmp(only, functions[i].name) == 0)
            bench_function(functions[i].name, problem_find(functions[i].problem), &w);
    peer_close();
    return bench_exit();
}
