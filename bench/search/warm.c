/* search-warm: what an earlier sweep gains and costs.
 *
 * For each problem and seed the method searches once without an earlier sweep, and once after an
 * earlier sweep of each kind, which the method gp made:
 *   copy      of the same problem
 *   shifted   its numbers moved by a twentieth of their ranges, its values five times as large
 *   scaled    its values are the logarithm of the regret
 *   reversed  every number and choice from the other end
 *   random    a smooth random function of the same parameters
 * The figure is the mean of log10(regret / the problem's scale), not below FLOOR, over problems and
 * seeds. What is reported of each kind: the ratio of the geometric means with and without an
 * earlier sweep at some numbers of trials, and how many trials it takes to reach what a search
 * without one has after 20 and after 40.
 *
 * Finished sweeps go to a CSV file (traces.h), snapshots of the earlier ones to a folder; a later
 * run takes both from there. So a changed method needs another file, and may take the sweeps of the
 * kind `none` from the old one (--load). The problems are split in two halves: one to tune with,
 * one to report. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/opt.h"
#include "base/rng.h"
#include "base/str.h"
#include "bench/search/jobs.h"
#include "bench/search/problems.h"
#include "bench/search/traces.h"
#include "search/prior/warm_start.h"
#include "search/space/encoding.h"
#include "search/suggest.h"

#define EX_USAGE_STATUS 64
#define FLOOR 1e-5
#define MAX_TRIALS 1000
#define MAX_PROBLEMS 32
#define SHIFT 0.05
#define WAVES 8
#define MARKS 4
#define SNAPSHOT_BYTES (16 << 20)

static const size_t marks[MARKS] = {10, 20, 30, 50};

enum kind { NONE, COPY, SHIFTED, SCALED, REVERSED, RANDOM, KINDS };
static const char *const kinds[KINDS] = {"none", "copy", "shifted", "scaled", "reversed", "random"};

static const struct {
    const char *name, *problems;
} halves[] = {
    {"tune", "hartmann3,goldstein-price,levy4,ackley5,func3c,training7,cat10,optimizers"},
    {"report", "branin,hartmann6,rosenbrock4,sphere10,func2c,ackley-mixed,hartmann6-int,pipeline"},
};

struct settings {
    int64_t seeds, first_seed, trials, before, jobs;
    const char *half, *problems, *kinds, *method, *csv, *load, *snapshots;
    bool each, help;
};

struct warm {
    struct settings set;
    const struct search_method *method;
    struct problem *problems[MAX_PROBLEMS];
    size_t n_problems;
    struct traces traces;
};

static void warm_done(struct warm *w)
{
    for (size_t i = 0; i < w->n_problems; i++)
        problem_free(w->problems[i]);
    traces_done(&w->traces);
}

/* ---- earlier sweeps ---- */

static bool is_number(const struct encoded_param *p)
{
    return p->kind == ENCODED_CONTINUOUS || p->kind == ENCODED_LEVELS;
}

/* The sum of some waves over the places of the active numbers, and a value of each choice. */
static double random_value(const struct encoding *e, const double *point, uint64_t seed)
{
    bool active[SPACE_MAX_PARAMS];
    struct rng r;
    double sum = 0;
    encoding_active(e, point, active);
    rng_init(&r, seed, 1);
    for (size_t k = 0; k < WAVES; k++) {
        double phase = 2 * M_PI * rng_uniform(&r);
        for (size_t j = 0; j < e->n; j++) {
            double w = 2 * M_PI * rng_normal(&r) / sqrt((double)e->n);
            phase += active[j] && is_number(&e->params[j]) ? w * point[j] : 0;
        }
        sum += rng_normal(&r) * cos(phase);
    }
    for (size_t j = 0; j < e->n; j++) {
        struct rng own;
        if (e->params[j].kind != ENCODED_CHOICE || !active[j])
            continue;
        rng_init(&own, seed, rng_mix(j, (uint64_t)point[j]));
        sum += rng_normal(&own);
    }
    return sum;
}

static double earlier_value(const struct problem *p, const struct encoding *e, enum kind kind,
                            uint64_t seed, const struct config *c, struct config *scratch)
{
    double point[SPACE_MAX_PARAMS];
    encoding_from_config(e, c, point);
    if (kind == RANDOM)
        return random_value(e, point, seed);
    for (size_t j = 0; j < e->n; j++) {
        if (is_number(&e->params[j]) && kind == SHIFTED)
            point[j] += rng_mix(seed, j) % 2 ? SHIFT : -SHIFT;
        else if (kind == REVERSED && e->params[j].kind == ENCODED_CHOICE)
            point[j] = (double)(e->params[j].levels - 1) - point[j];
        else if (kind == REVERSED)
            point[j] = 1 - point[j];
    }
    encoding_snap(e, point);
    encoding_to_config(e, point, scratch);
    double v = problem_value(p, kind == SHIFTED || kind == REVERSED ? scratch : c);
    if (kind == SCALED)
        return log(v - p->optimum + 0.01 * p->scale);
    return kind == SHIFTED ? 5 * v - 3 : v;
}

/* ---- one sweep ---- */

struct run {
    const struct problem *problem;
    struct search_spec spec;
    struct encoding *enc;
    struct search_cache *cache;
    struct config *scratch;
    struct observation *seen;
    struct config **configs;
    json_t *state;
    size_t n;
    double *values; /* of the problem, without the noise that the method sees */
};

static void run_done(struct run *r)
{
    for (size_t i = 0; r->configs && i < r->n; i++)
        config_free(r->configs[i]);
    free(r->configs);
    free(r->seen);
    free(r->values);
    config_free(r->scratch);
    encoding_free(r->enc);
    search_cache_free(r->cache);
    json_decref(r->state);
}

static as_status run_trial(struct run *r, enum kind kind, struct as_err *err)
{
    const struct history h = {r->seen, r->n};
    struct suggestion made = {0};
    as_status st = suggest(&r->spec, &h, r->state, r->n, r->n, r->cache, &made, err);
    if (st < 0)
        return st;
    struct config *c = r->configs[r->n] = made.config;
    double v = kind == NONE ? problem_observe(r->problem, c, r->spec.seed, r->n)
                            : earlier_value(r->problem, r->enc, kind, r->spec.seed, c, r->scratch);
    r->values[r->n] = kind == NONE ? problem_value(r->problem, c) : v;
    r->seen[r->n] =
        (struct observation){.number = r->n,
                             .config = c,
                             .state = isfinite(v) ? OBSERVED_COMPLETED : OBSERVED_FAILED,
                             .values = {isfinite(v) ? v : 0},
                             .is_suggested = true};
    json_decref(r->state);
    json_decref(made.reason);
    r->state = made.state;
    r->n++;
    return AS_OK;
}

/* Run up to `trials` trials; a small space may have fewer. ret: run_done(). */
static as_status run_sweep(const struct problem *p, const struct search_method *m,
                           const struct warm_start *before, enum kind kind, uint64_t seed,
                           size_t trials, struct run *ret, struct as_err *err)
{
    *ret = (struct run){.problem = p,
                        .spec = {.space = p->space,
                                 .method = m,
                                 .seed = seed,
                                 .n_objectives = 1,
                                 .earlier = before},
                        .cache = search_cache_create(),
                        .scratch = config_create(p->space),
                        .seen = as_calloc(trials, sizeof *ret->seen),
                        .configs = as_calloc(trials, sizeof *ret->configs),
                        .values = as_calloc(trials, sizeof *ret->values)};
    if (!ret->cache || !ret->scratch || !ret->seen || !ret->configs || !ret->values)
        return as_fail_nomem(err);
    as_status st = encoding_create(p->space, &ret->enc, err);
    while (st == AS_OK && ret->n < trials)
        st = run_trial(ret, kind, err);
    return st == AS_E_EXHAUSTED ? AS_OK : st;
}

static int by_number(const void *x, const void *y)
{
    const double *a = x, *b = y; /* value, trial */
    return a[0] != b[0] ? (a[0] > b[0]) - (a[0] < b[0]) : (a[1] > b[1]) - (a[1] < b[1]);
}

/* As the service does it: the trials that warm_start_keeps() says, best first. */
static as_status write_snapshot(const struct run *r, json_t **ret, struct as_err *err)
{
    double order[MAX_TRIALS][2];
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->seen[i].state == OBSERVED_COMPLETED) {
            order[n][0] = r->values[i];
            order[n++][1] = (double)i;
        }
    qsort(order, n, sizeof *order, by_number);
    JSON_AUTO j =
        json_pack("{s:s, s:I, s:[]}", "sweep", "before", "completed", (json_int_t)n, "trials");
    for (size_t i = 0; j && i < n; i++) {
        const struct config *c = r->configs[(size_t)order[i][1]];
        if (warm_start_keeps(i, n) &&
            json_array_append_new(json_object_get(j, "trials"),
                                  json_pack("{s:o, s:f}", "params",
                                            config_to_json(r->problem->space, c), "cost",
                                            order[i][0])) < 0)
            return as_fail_nomem(err);
    }
    *ret = as_steal(j);
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status make_snapshot(const struct warm *w, const struct problem *p, enum kind kind,
                               uint64_t seed, json_t **ret, struct as_err *err)
{
    AS_AUTO(run_done) struct run r = {0};
    const struct search_method *gp = NULL;
    as_status st = search_method_parse("gp", "method", &gp, err);
    if (st == AS_OK)
        st = run_sweep(p, gp, NULL, kind, 1000000 + seed, (size_t)w->set.before, &r, err);
    return st == AS_OK ? write_snapshot(&r, ret, err) : st;
}

/* The snapshot, from the folder if it is there. */
static as_status get_snapshot(const struct warm *w, const struct problem *p, enum kind kind,
                              uint64_t seed, json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    str_printf(&path, "%s/%s-%s-%" PRId64 "-%" PRIu64 ".json",
               w->set.snapshots ? w->set.snapshots : "", p->def->name, kinds[kind], w->set.before,
               seed);
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    if (w->set.snapshots && access(str_cstr(&path), R_OK) == 0) {
        st = file_read(str_cstr(&path), SNAPSHOT_BYTES, &text, &len, err);
        return st < 0 ? st : json_parse(text, len, ret, err);
    }
    st = make_snapshot(w, p, kind, seed, ret, err);
    if (st < 0 || !w->set.snapshots)
        return st;
    text = json_dumps(*ret, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!text)
        return as_fail_nomem(err);
    return file_replace(str_cstr(&path), text, strlen(text), 0644, err);
}

static as_status read_earlier(const struct warm *w, const struct problem *p, enum kind kind,
                              uint64_t seed, struct warm_start **ret, struct as_err *err)
{
    JSON_AUTO snapshot = NULL;
    struct json_fields f;
    if (kind == NONE)
        return AS_OK;
    as_status st = get_snapshot(w, p, kind, seed, &snapshot, err);
    if (st < 0)
        return st;
    JSON_AUTO search = json_pack("{s:[O]}", "prior", snapshot);
    st = json_fields_init(&f, search, "/search", err);
    return st < 0 ? st : warm_start_parse(&f, p->space, ret, err);
}

/* ---- all sweeps ---- */

static void label_of(const struct warm *w, enum kind kind, char ret[TRACE_NAME_SIZE])
{
    (void)snprintf(ret, TRACE_NAME_SIZE, "%s+%s", w->set.method, kinds[kind]);
}

static const struct trace *find(const struct warm *w, const struct problem *p, enum kind kind,
                                uint64_t seed)
{
    char label[TRACE_NAME_SIZE];
    label_of(w, kind, label);
    const struct trace *t = traces_find(&w->traces, p->def->name, label, 1, seed);
    return t && t->n >= (size_t)w->set.trials ? t : NULL;
}

static bool is_wanted(const struct warm *w, enum kind kind)
{
    return !w->set.kinds || kind == NONE || strstr(w->set.kinds, kinds[kind]);
}

static as_status run_one(const struct warm *w, const struct problem *p, enum kind kind,
                         uint64_t seed, struct as_err *err)
{
    AS_AUTO(run_done) struct run r = {0};
    AS_AUTO(warm_start_freep) struct warm_start *before = NULL;
    double regret[MAX_TRIALS], ms[MAX_TRIALS] = {0}, lowest = INFINITY;
    as_status st = read_earlier(w, p, kind, seed, &before, err);
    if (st < 0)
        return st;
    st = run_sweep(p, w->method, before, NONE, seed, (size_t)w->set.trials, &r, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < (size_t)w->set.trials; i++) {
        if (i < r.n && r.values[i] < lowest)
            lowest = r.values[i];
        regret[i] = lowest - p->optimum;
    }
    struct trace t = {
        .slots = 1, .seed = seed, .n = (size_t)w->set.trials, .regret = regret, .ms = ms};
    (void)snprintf(t.problem, sizeof t.problem, "%s", p->def->name);
    label_of(w, kind, t.method);
    return traces_append(w->set.csv, &t, err);
}

/* jobs_share */
static as_status run_share(void *ctx, size_t job, struct as_err *err)
{
    const struct warm *w = ctx;
    size_t place = 0;
    for (int64_t s = 0; s < w->set.seeds; s++)
        for (size_t i = 0; i < w->n_problems; i++)
            for (enum kind kind = NONE; kind < KINDS; kind++) {
                uint64_t seed = (uint64_t)(w->set.first_seed + s);
                if (!is_wanted(w, kind) || find(w, w->problems[i], kind, seed) ||
                    place++ % (size_t)w->set.jobs != job)
                    continue;
                as_status st = run_one(w, w->problems[i], kind, seed, err);
                if (st < 0)
                    return as_err_prefix(err, st, "%s, %s", w->problems[i]->def->name, kinds[kind]);
            }
    return AS_OK;
}

/* ---- the report ---- */

struct mean {
    double sum, square;
    size_t n;
};

static void add(struct mean *m, double v)
{
    m->sum += v;
    m->square += v * v;
    m->n++;
}

static double mean_of(const struct mean *m)
{
    return m->sum / (double)m->n;
}

static double error_of(const struct mean *m)
{
    double mean = mean_of(m), n = (double)m->n;
    return n > 1 ? sqrt(fmax(0, m->square / n - mean * mean) / (n - 1)) : NAN;
}

static double logged(const struct problem *p, const struct trace *t, size_t trial)
{
    return log10(fmax(FLOOR, t->regret[trial] / p->scale));
}

/* Trials after which the mean is that of a search without an earlier sweep after `trials`; 0:
 * never. */
static size_t trials_for(const struct mean *with, const struct mean *without, size_t n,
                         size_t trials)
{
    for (size_t i = 0; i < n && trials <= n; i++)
        if (mean_of(&with[i]) <= mean_of(&without[trials - 1]))
            return i + 1;
    return 0;
}

/* One row: problems from..to-1 together. */
static void report_row(const struct warm *w, const char *name, size_t from, size_t to,
                       enum kind kind)
{
    struct mean with[MAX_TRIALS] = {{0}}, without[MAX_TRIALS] = {{0}}, off[MAX_TRIALS] = {{0}};
    size_t n = (size_t)w->set.trials;
    for (size_t i = from; i < to; i++)
        for (int64_t s = 0; s < w->set.seeds; s++) {
            const struct problem *p = w->problems[i];
            const struct trace *a = find(w, p, kind, (uint64_t)(w->set.first_seed + s));
            const struct trace *b = find(w, p, NONE, (uint64_t)(w->set.first_seed + s));
            for (size_t t = 0; a && b && t < n; t++) {
                add(&with[t], logged(p, a, t));
                add(&without[t], logged(p, b, t));
                add(&off[t], logged(p, a, t) - logged(p, b, t));
            }
        }
    if (with[0].n == 0)
        return;
    printf("| %s | %s | %zu |", name, kinds[kind], with[0].n);
    for (size_t k = 0; k < MARKS; k++) {
        size_t t = marks[k] - 1;
        if (t >= n)
            printf(" - |");
        else if (kind == NONE)
            printf(" %.2f |", mean_of(&with[t]));
        else
            printf(" %.3g (%.2g to %.2g) |", pow(10, mean_of(&off[t])),
                   pow(10, mean_of(&off[t]) - 2 * error_of(&off[t])),
                   pow(10, mean_of(&off[t]) + 2 * error_of(&off[t])));
    }
    printf(" %zu | %zu |\n", trials_for(with, without, n, 20), trials_for(with, without, n, 40));
}

static void report(const struct warm *w)
{
    printf("Mean log10 of the regret (none), and its ratio to none (two standard errors), after so "
           "many trials; trials for what none has after 20 and after 40:\n\n"
           "| problems | earlier | sweeps | 10 | 20 | 30 | 50 | for 20 | for 40 |\n"
           "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (enum kind kind = NONE; kind < KINDS; kind++) {
        for (size_t i = 0; w->set.each && i < w->n_problems; i++)
            report_row(w, w->problems[i]->def->name, i, i + 1, kind);
        report_row(w, w->set.problems ? "these" : w->set.half, 0, w->n_problems, kind);
    }
}

/* ---- the program ---- */

static as_status open_problems(struct warm *w, struct as_err *err)
{
    const char *list = w->set.problems;
    for (size_t i = 0; !list && i < AS_ARRAY_LEN(halves); i++)
        if (as_streq(halves[i].name, w->set.half))
            list = halves[i].problems;
    AS_AUTO(as_freep) char *copy = as_strdup(list);
    char *rest = copy;
    if (!copy)
        return as_fail_nomem(err);
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        const struct problem_def *def = problem_find(word);
        if (!def || w->n_problems == MAX_PROBLEMS)
            return as_fail(err, AS_E_INVAL,
                           "--problems: '%s': expected at most %d problems of search-quality "
                           "--list",
                           word, MAX_PROBLEMS);
        as_status st = problem_open(def, &w->problems[w->n_problems], err);
        if (st < 0)
            return st;
        w->n_problems++;
    }
    return AS_OK;
}

static as_status load_all(struct warm *w, struct as_err *err)
{
    traces_done(&w->traces);
    w->traces = (struct traces){0};
    as_status st = w->set.load ? traces_load(&w->traces, w->set.load, err) : AS_OK;
    return st == AS_OK ? traces_load(&w->traces, w->set.csv, err) : st;
}

static as_status check(const struct settings *s, int n_args, char **argv, struct as_err *err)
{
    if (n_args > 0)
        return as_fail(err, AS_E_INVAL, "'%s' is not expected", argv[1]);
    if (!s->csv)
        return as_fail(err, AS_E_INVAL, "--csv FILE is needed: where the sweeps are kept");
    if (s->seeds < 1 || s->first_seed < 0 || s->jobs < 1 || s->jobs > JOBS_MAX || s->trials < 1 ||
        s->trials > MAX_TRIALS || s->before < 1 || s->before > MAX_TRIALS)
        return as_fail(err, AS_E_INVAL,
                       "--seeds takes 1 and more, --jobs 1 to %d, --trials and --before 1 to %d",
                       JOBS_MAX, MAX_TRIALS);
    return AS_OK;
}

static as_status run(struct warm *w, struct as_err *err)
{
    as_status st = search_method_parse(w->set.method, "--method", &w->method, err);
    if (st < 0 || (st = open_problems(w, err)) < 0 || (st = load_all(w, err)) < 0 ||
        (st = jobs_run("search-warm", (size_t)w->set.jobs, run_share, w, err)) < 0 ||
        (st = load_all(w, err)) < 0)
        return st;
    report(w);
    return AS_OK;
}

int main(int argc, char **argv)
{
    AS_AUTO(warm_done)
    struct warm w = {
        .set = {
            .seeds = 10, .trials = 50, .before = 50, .jobs = 1, .half = "report", .method = "gp"}};
    struct settings *s = &w.set;
    const struct opt table[] = {
        {"half", 0, OPT_STRING, &s->half, "HALF", NULL, "of the problems (report)", "tune|report"},
        {"problems", 0, OPT_STRING, &s->problems, "A,B", NULL, "these instead"},
        {"kinds", 0, OPT_STRING, &s->kinds, "A,B", NULL,
         "of earlier sweeps: copy, shifted, scaled, reversed, random (all)"},
        {"method", 0, OPT_STRING, &s->method, "NAME", NULL, "the method (gp)"},
        {"seeds", 0, OPT_I64, &s->seeds, "N", NULL, "seeds per problem (10)"},
        {"first-seed", 0, OPT_I64, &s->first_seed, "N", NULL, "the first of them (0)"},
        {"trials", 0, OPT_I64, &s->trials, "N", NULL, "trials of a sweep (50)"},
        {"before", 0, OPT_I64, &s->before, "N", NULL, "trials of an earlier sweep (50)"},
        {"csv", 0, OPT_STRING, &s->csv, "FILE", NULL, "keep sweeps here, and run what it lacks"},
        {"load", 0, OPT_STRING, &s->load, "FILE", NULL, "sweeps to use as well"},
        {"snapshots", 0, OPT_STRING, &s->snapshots, "DIR", NULL, "keep the earlier sweeps here"},
        {"jobs", 0, OPT_I64, &s->jobs, "N", NULL, "processes (1)"},
        {"each", 0, OPT_FLAG, &s->each, NULL, NULL, "also a row for each problem"},
        {"help", 'h', OPT_FLAG, &s->help, NULL, NULL, "this text"},
        {0},
    };
    struct as_err err = {0};
    int n_args = 0;
    as_status st = opt_parse(table, argc, argv, &n_args, &err);
    if (st == AS_OK && s->help) {
        puts("search-warm: what an earlier sweep gains and costs");
        opt_help(table, stdout);
        return EXIT_SUCCESS;
    }
    if (st == AS_OK)
        st = check(s, n_args, argv, &err);
    if (st < 0) {
        (void)fprintf(stderr, "search-warm: %s\n", err.msg);
        return EX_USAGE_STATUS;
    }
    st = run(&w, &err);
    if (st < 0)
        (void)fprintf(stderr, "search-warm: %s\n", err.msg);
    return st < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
