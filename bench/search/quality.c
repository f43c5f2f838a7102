/* search-quality: methods against each other on public problems.
 *
 * Runs the sweeps that the CSV file does not hold yet (every method, problem and seed), then prints
 * the results. It may be stopped and started again at any time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/str.h"
#include "bench/search/bars.h"
#include "bench/search/jobs.h"
#include "bench/search/peer.h"
#include "bench/search/problems.h"
#include "bench/search/ranking.h"
#include "bench/search/report.h"
#include "bench/search/searcher.h"
#include "bench/search/surrogate.h"
#include "bench/search/sweep.h"
#include "bench/search/traces.h"

#define EX_USAGE_STATUS 64
#define MAX_SLOTS 1000
#define MAX_DISGUISES 1000

struct settings {
    int64_t seeds, first_seed, trials, slots, jobs, disguise;
    const char *problems, *methods, *csv, *optuna_path, *surrogate;
    const char *load;
    bool json, markdown, list, bars, no_run, help;
};

struct quality {
    struct settings set;
    struct problem **problems; /* that were asked for */
    size_t n_problems;
    char *labels, *names; /* the words of --methods, cut */
    struct ranked_method methods[RANKING_MAX_METHODS];
    size_t n_methods;
    char own_csv[64]; /* a temporary file; "": none */
    struct traces traces;
};

static void quality_done(struct quality *q)
{
    for (size_t i = 0; i < q->n_problems; i++)
        problem_free(q->problems[i]);
    free(q->problems);
    free(q->labels);
    free(q->names);
    traces_done(&q->traces);
    if (q->own_csv[0] != '\0')
        (void)unlink(q->own_csv);
    peer_close();
}

/* Is `name` in a list "a,b,c"? NULL lists everything. */
static bool is_listed(const char *list, const char *name)
{
    size_t len = strlen(name);
    if (list == NULL)
        return true;
    for (const char *at = list; at != NULL && *at != '\0'; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

/* Every word of --problems must name a problem. */
static as_status check_names(const char *list, struct as_err *err)
{
    AS_AUTO(as_freep) char *copy = as_strdup(list);
    char *rest = copy;
    for (char *word; (word = strsep(&rest, ",")) != NULL;)
        if (problem_find(word) == NULL)
            return as_fail(err, AS_E_INVAL, "--problems: there is no '%s'; --list shows all", word);
    return AS_OK;
}

static as_status open_problems(struct quality *q, struct as_err *err)
{
    as_status st = q->set.problems != NULL ? check_names(q->set.problems, err) : AS_OK;
    if (st < 0)
        return st;
    q->problems = as_calloc(problem_count(), sizeof(struct problem *));
    if (q->problems == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    for (size_t i = 0; i < problem_count(); i++) {
        const struct problem_def *def = problem_at(i);
        if (!is_listed(q->set.problems, def->name))
            continue;
        struct problem **place = &q->problems[q->n_problems];
        st = q->set.disguise > 0
                 ? problem_open_disguised(def, (unsigned)q->set.disguise, place, err)
                 : problem_open(def, place, err);
        if (st == AS_E_UNAVAILABLE)
            (void)fprintf(stderr, "search-quality: %s is left out: %s\n", def->name, err->msg);
        else if (st < 0)
            return st;
        q->n_problems += st == AS_OK;
    }
    if (q->n_problems == 0)
        return as_fail(err, AS_E_UNAVAILABLE, "no problem is left");
    return AS_OK;
}

/* "gp" runs with --slots slots, "gp:8" with eight. */
static as_status cut_methods(struct quality *q, struct as_err *err)
{
    q->labels = as_strdup(q->set.methods);
    q->names = as_strdup(q->set.methods);
    if (q->labels == NULL || q->names == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    char *rest = q->labels, *name = q->names;
    for (char *label; (label = strsep(&rest, ",")) != NULL; name += strlen(label) + 1) {
        int64_t slots = q->set.slots;
        size_t len = strcspn(label, ":");
        if (q->n_methods == RANKING_MAX_METHODS)
            return as_fail(err, AS_E_INVAL, "--methods: more than %d", RANKING_MAX_METHODS);
        if (label[len] == ':' &&
            (as_parse_i64(label + len + 1, &slots, err) < 0 || slots < 1 || slots > MAX_SLOTS))
            return as_fail(err, AS_E_INVAL, "--methods: '%s': expected NAME or NAME:SLOTS", label);
        name[len] = '\0';
        q->methods[q->n_methods++] = (struct ranked_method){label, name, (size_t)slots};
    }
    return AS_OK;
}

/* Run one sweep and append it. */
static as_status run_one(const struct quality *q, const struct problem *p,
                         const struct ranked_method *m, uint64_t seed, struct as_err *err)
{
    size_t n = (size_t)q->set.trials;
    AS_AUTO(as_freep) double *regret = as_calloc(n, sizeof(double));
    AS_AUTO(as_freep) double *ms = as_calloc(n, sizeof(double));
    if (regret == NULL || ms == NULL)
        return as_fail(err, AS_E_NOMEM, "out of memory");
    struct sweep_record record = {.regret = regret, .ms = ms};
    int64_t from = clock_mono_ns();
    as_status st = sweep_run(p, m->name, seed, m->slots, n, &record, err);
    if (st < 0)
        return as_err_prefix(err, st, "%s on %s, seed %" PRIu64, m->label, p->def->name, seed);
    struct trace t = {.slots = m->slots,
                      .seed = seed,
                      .n = n,
                      .regret = regret,
                      .ms = ms,
                      .peer = searcher_peer(m->name)};
    (void)snprintf(t.problem, sizeof t.problem, "%s", p->def->name);
    (void)snprintf(t.method, sizeof t.method, "%s", m->name);
    (void)fprintf(stderr, "%-18s %-10s seed %" PRIu64 ": regret %.3g, %.1f s", p->def->name,
                  m->label, seed, regret[n - 1],
                  (double)(clock_mono_ns() - from) / (double)NS_PER_S);
    if (record.failed > 0)
        (void)fprintf(stderr, ", %zu failed, of %zu after the tenth failure %zu", record.failed,
                      record.late, record.failed_late);
    (void)fputc('\n', stderr);
    return traces_append(q->set.csv, &t, err);
}

/* Run the share of job `job`: the sweeps that the file does not hold, seed by seed, so that a run
 * that was stopped early covers as many problems as possible. A missing peer is reported once and
 * skipped. */
static as_status run_sweeps(struct quality *q, size_t job, struct as_err *err)
{
    size_t place = 0, n = (size_t)q->set.trials;
    bool absent[RANKING_MAX_METHODS] = {false};
    for (int64_t s = 0; s < q->set.seeds; s++)
        for (size_t i = 0; i < q->n_problems; i++)
            for (size_t m = 0; m < q->n_methods; m++) {
                const struct problem *p = q->problems[i];
                uint64_t seed = (uint64_t)(q->set.first_seed + s);
                const struct trace *t = traces_find(&q->traces, p->def->name, q->methods[m].name,
                                                    q->methods[m].slots, seed);
                if ((t != NULL && t->n >= n) || absent[m] || place++ % (size_t)q->set.jobs != job)
                    continue;
                as_status st = run_one(q, p, &q->methods[m], seed, err);
                absent[m] = st == AS_E_UNAVAILABLE;
                if (absent[m])
                    (void)fprintf(stderr, "search-quality: %s is left out: %s\n",
                                  q->methods[m].label, err->msg);
                else if (st < 0)
                    return st;
            }
    return AS_OK;
}

/* jobs_share: each process has peers of its own. */
static as_status run_share(void *ctx, size_t job, struct as_err *err)
{
    as_status st = run_sweeps(ctx, job, err);
    peer_close();
    return st;
}

static as_status load_all(struct quality *q, struct as_err *err)
{
    traces_done(&q->traces);
    as_status st = q->set.load != NULL ? traces_load(&q->traces, q->set.load, err) : AS_OK;
    return st == AS_OK ? traces_load(&q->traces, q->set.csv, err) : st;
}

static as_status make_temporary(struct quality *q, struct as_err *err)
{
    if (q->set.csv != NULL)
        return AS_OK;
    (void)snprintf(q->own_csv, sizeof q->own_csv, "/tmp/search-quality-XXXXXX");
    int fd = mkstemp(q->own_csv);
    if (fd < 0)
        return as_fail(err, AS_E_IO, "no temporary file");
    (void)close(fd);
    q->set.csv = q->own_csv;
    return AS_OK;
}

static as_status run(struct quality *q, struct as_err *err)
{
    as_status st = open_problems(q, err);
    if (st < 0)
        return st;
    st = cut_methods(q, err);
    if (st < 0)
        return st;
    st = make_temporary(q, err);
    if (st < 0)
        return st;
    st = load_all(q, err);
    if (st < 0)
        return st;
    if (!q->set.no_run) {
        st = jobs_run("search-quality", (size_t)q->set.jobs, run_share, q, err);
        if (st < 0)
            return st;
    }
    st = load_all(q, err);
    if (st < 0)
        return st;
    const struct ranking_spec spec = {.problems = q->problems,
                                      .n_problems = q->n_problems,
                                      .methods = q->methods,
                                      .n_methods = q->n_methods,
                                      .traces = &q->traces,
                                      .first_seed = (uint64_t)q->set.first_seed,
                                      .seeds = (size_t)q->set.seeds};
    report_form form = q->set.json ? REPORT_JSON : q->set.markdown ? REPORT_LONG : REPORT_SHORT;
    return report_print(&spec, (size_t)q->set.trials,
                        q->traces.peer[0] != '\0' ? q->traces.peer : NULL, form, err);
}

/* One line of CSV for each problem. */
static as_status list_problems(struct quality *q, struct as_err *err)
{
    as_status st = open_problems(q, err);
    if (st < 0)
        return st;
    puts("problem,family,parameters,noise,optimum,scale");
    for (size_t i = 0; i < q->n_problems; i++) {
        const struct problem *p = q->problems[i];
        printf("%s,%s,%zu,%g,%.10g,%.6g\n", p->def->name, p->family, p->space->n, p->def->noise,
               p->optimum, p->scale);
    }
    return AS_OK;
}

static as_status check(const struct settings *s, int n_args, char **argv, struct as_err *err)
{
    if (n_args > 0)
        return as_fail(err, AS_E_INVAL, "'%s' is not expected", argv[1]);
    if (s->seeds < 1 || s->seeds > 1000 || s->trials < 1 || s->trials > 10000)
        return as_fail(err, AS_E_INVAL, "--seeds takes 1 to 1000, --trials 1 to 10000");
    if (s->slots < 1 || s->slots > MAX_SLOTS || s->jobs < 1 || s->jobs > JOBS_MAX ||
        s->first_seed < 0 || s->disguise < 0 || s->disguise > MAX_DISGUISES)
        return as_fail(err, AS_E_INVAL,
                       "--slots takes 1 to %d, --jobs 1 to %d, --disguise up to %d", MAX_SLOTS,
                       JOBS_MAX, MAX_DISGUISES);
    return AS_OK;
}

int main(int argc, char **argv)
{
    AS_AUTO(quality_done)
    struct quality q = {.set = {.seeds = 10,
                                .trials = 120,
                                .slots = 1,
                                .jobs = 1,
                                .methods = "random,sobol,gp,optuna-gp,optuna-tpe"}};
    struct settings *s = &q.set;
    const struct opt table[] = {
        {"seeds", 0, OPT_I64, &s->seeds, "N", NULL, "seeds per problem and method (10)"},
        {"first-seed", 0, OPT_I64, &s->first_seed, "N", NULL, "the first of them (0)"},
        {"trials", 0, OPT_I64, &s->trials, "N", NULL, "trials of a sweep (120)"},
        {"slots", 0, OPT_I64, &s->slots, "N", NULL, "trials under way at a time (1)"},
        {"problems", 0, OPT_STRING, &s->problems, "A,B", NULL, "these alone"},
        {"methods", 0, OPT_STRING, &s->methods, "A,B", NULL,
         "random, sobol, gp, optuna-gp, optuna-tpe (these); tpe, forest, cmaes, evolution, "
         "coordinate, mcmc, auto, "
         "optuna-cmaes, hebo, botorch; NAME:8 for 8 slots"},
        {"disguise", 0, OPT_I64, &s->disguise, "N", NULL,
         "parameters renamed and reordered, choices permuted, ranges mirrored, by N (0: not)"},
        {"csv", 0, OPT_STRING, &s->csv, "FILE", NULL, "keep traces here, and run what it lacks"},
        {"load", 0, OPT_STRING, &s->load, "FILE", NULL,
         "traces to use, such as the peers' of before"},
        {"no-run", 0, OPT_FLAG, &s->no_run, NULL, NULL, "report what the files hold, run nothing"},
        {"jobs", 0, OPT_I64, &s->jobs, "N", NULL,
         "processes (1); times are undisturbed with 1 alone"},
        {"optuna-path", 0, OPT_STRING, &s->optuna_path, "DIR", "OPTUNA_PATH",
         "a folder with another Optuna in it"},
        {"surrogate", 0, OPT_STRING, &s->surrogate, "FILE", "ASSAY_SURROGATE",
         "surrogate.py of the problems xgboost-* and lcbench-*"},
        {"json", 0, OPT_FLAG, &s->json, NULL, NULL, "a line of JSON per case"},
        {"markdown", 0, OPT_FLAG, &s->markdown, NULL, NULL, "the tables of docs/search.md"},
        {"bars", 0, OPT_FLAG, &s->bars, NULL, NULL,
         "gp against its design's bars, 21 seeds from 1000 on, instead of a comparison"},
        {"list", 0, OPT_FLAG, &s->list, NULL, NULL,
         "the problems, their optima and scales, as CSV"},
        {"help", 'h', OPT_FLAG, &s->help, NULL, NULL, "this text"},
        {0},
    };
    struct as_err err = {0};
    int n_args = 0;
    as_status st = opt_parse(table, argc, argv, &n_args, &err);
    if (st == AS_OK)
        st = check(s, n_args, argv, &err);
    if (st < 0) {
        (void)fprintf(stderr, "search-quality: %s\n", err.msg);
        return EX_USAGE_STATUS;
    }
    if (s->help) {
        puts("search-quality: methods against each other on public problems");
        opt_help(table, stdout);
        return EXIT_SUCCESS;
    }
    peer_set_path(s->optuna_path);
    surrogate_set_path(s->surrogate);
    st = s->list   ? list_problems(&q, &err)
         : s->bars ? bars_run("gp", s->problems, s->json, &err)
                   : run(&q, &err);
    if (st < 0)
        (void)fprintf(stderr, "search-quality: %s\n", err.msg);
    return st < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
