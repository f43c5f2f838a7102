/* Printing the comparison of methods.
 *
 * The numbers come from ranking.h; this file only chooses tables and formats. A table has one row
 * for each problem and one column for each method. The best median of a row is in bold, also if
 * several methods tie. With JSON the same numbers become benchmark lines (bench.h), so that
 * bench/compare.py can compare two runs. */
#include "bench/search/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "bench/bench.h"

#define MAX_CHECKPOINTS 4

struct report {
    struct ranking_spec spec;
    struct ranked_method methods[RANKING_MAX_METHODS];
    size_t ours;
    size_t n;
    size_t trials[MAX_CHECKPOINTS];
    struct ranking *at[MAX_CHECKPOINTS];
    const char *peer;
};

static void report_done(struct report *r)
{
    for (size_t i = 0; i < r->n; i++)
        ranking_free(r->at[i]);
}

static bool has_trace(const struct ranking_spec *s, const struct ranked_method *m)
{
    for (size_t i = 0; i < s->traces->n; i++) {
        const struct trace *t = &s->traces->all[i];
        if (as_streq(t->method, m->name) && t->slots == m->slots)
            return true;
    }
    return false;
}

static void choose_methods(struct report *r, const struct ranking_spec *from)
{
    r->spec = *from;
    r->spec.methods = r->methods;
    r->spec.n_methods = 0;
    for (size_t i = 0; i < from->n_methods; i++) {
        if (!has_trace(from, &from->methods[i])) {
            (void)fprintf(stderr, "search-quality: no trace of %s: not compared\n",
                          from->methods[i].label);
            continue;
        }
        if (as_streq(from->methods[i].label, "gp"))
            r->ours = r->spec.n_methods;
        r->methods[r->spec.n_methods++] = from->methods[i];
    }
}

static as_status rank_all(struct report *r, size_t trials, struct as_err *err)
{
    static const size_t wanted[] = {30, 60, 120};
    for (size_t i = 0; i <= AS_ARRAY_LEN(wanted); i++) {
        size_t t = i < AS_ARRAY_LEN(wanted) ? wanted[i] : trials;
        if (t > trials || (r->n > 0 && r->trials[r->n - 1] == t))
            continue;
        as_status st = ranking_create(&r->spec, t, &r->at[r->n], err);
        if (st < 0)
            return st;
        r->trials[r->n++] = t;
    }
    return AS_OK;
}

/* Format with three digits ("0.0123"), in short form for small and large numbers; buf >= 24. */
static const char *number(double v, char buf[24])
{
    if (v != 0 && (fabs(v) < 1e-3 || fabs(v) >= 1e5))
        (void)snprintf(buf, 24, "%.1e", v);
    else
        (void)snprintf(buf, 24, "%.3g", v);
    return buf;
}

static void print_header(const struct report *r, const char *first)
{
    printf("| %s |", first);
    for (size_t i = 0; i < r->n; i++)
        printf(" %zu trials |", r->trials[i]);
    printf("\n| --- |");
    for (size_t i = 0; i < r->n; i++)
        printf(" --- |");
    printf("\n");
}

static void print_interval(struct interval v)
{
    char a[24], b[24], c[24];
    printf(" %s (%s to %s) |", number(v.value, a), number(v.low, b), number(v.high, c));
}

static void print_ranks(const struct report *r)
{
    print_header(r, "mean rank (95 %)");
    for (size_t m = 0; m < r->spec.n_methods; m++) {
        printf("| %s |", r->methods[m].label);
        for (size_t i = 0; i < r->n; i++)
            print_interval(ranking_mean_rank(r->at[i], m));
        printf("\n");
    }
    printf("\n");
}

static void print_ratios(const struct report *r, bool winsorised)
{
    AS_AUTO(str_done) struct str title = {0};
    str_printf(&title, "regret of %s over …%s", r->methods[r->ours].label,
               winsorised ? ", winsorised" : "");
    print_header(r, str_cstr(&title));
    for (size_t m = 0; m < r->spec.n_methods; m++) {
        if (m == r->ours)
            continue;
        printf("| %s |", r->methods[m].label);
        for (size_t i = 0; i < r->n; i++)
            print_interval(ranking_ratio(r->at[i], r->ours, m, winsorised));
        printf("\n");
    }
    printf("\n");
}

static void print_wins(const struct report *r)
{
    AS_AUTO(str_done) struct str title = {0};
    str_printf(&title, "%s: wins, ties, losses against …", r->methods[r->ours].label);
    print_header(r, str_cstr(&title));
    for (size_t m = 0; m < r->spec.n_methods; m++) {
        if (m == r->ours)
            continue;
        printf("| %s |", r->methods[m].label);
        for (size_t i = 0; i < r->n; i++) {
            size_t wins, ties;
            ranking_wins(r->at[i], r->ours, m, &wins, &ties);
            printf(" %zu, %zu, %zu |", wins, ties, ranking_problems(r->at[i]) - wins - ties);
        }
        printf("\n");
    }
    printf("\n");
}

/* One row, with the best median in bold. */
static void print_problem(const struct report *r, const struct ranking *k, size_t problem)
{
    size_t best = 0;
    char a[24], b[24], c[24];
    for (size_t m = 0; m < r->spec.n_methods; m++)
        if (ranking_compare(k, problem, m, best) < 0)
            best = m;
    printf("| %s | %s | %zu |", r->spec.problems[problem]->def->name,
           r->spec.problems[problem]->family, ranking_seeds(k, problem));
    for (size_t m = 0; m < r->spec.n_methods; m++) {
        struct interval v = ranking_regret(k, problem, m);
        const char *bold = ranking_compare(k, problem, m, best) == 0 ? "**" : "";
        printf(" %s%s%s (%s to %s) |", bold, number(v.value, a), bold, number(v.low, b),
               number(v.high, c));
    }
    printf("\n");
}

static void print_problems(const struct report *r, size_t i)
{
    printf("Median regret after %zu trials (quartiles):\n\n| problem | family | seeds |",
           r->trials[i]);
    for (size_t m = 0; m < r->spec.n_methods; m++)
        printf(" %s |", r->methods[m].label);
    printf("\n| --- | --- | ---: |");
    for (size_t m = 0; m < r->spec.n_methods; m++)
        printf(" --- |");
    printf("\n");
    for (size_t p = 0; p < r->spec.n_problems; p++)
        if (ranking_seeds(r->at[i], p) > 0)
            print_problem(r, r->at[i], p);
    printf("\n");
}

static void print_markdown(const struct report *r, bool is_long)
{
    size_t cells = 0, last = r->n - 1;
    for (size_t p = 0; p < r->spec.n_problems; p++)
        cells += ranking_seeds(r->at[last], p);
    printf("%zu of %zu problems, %zu sweeps of each method%s%s. Floor of regret: %g of a problem's "
           "scale.\n\n",
           ranking_problems(r->at[last]), r->spec.n_problems, cells, r->peer != NULL ? ", " : "",
           r->peer != NULL ? r->peer : "", RANKING_FLOOR);
    print_ranks(r);
    if (r->spec.n_methods > 1) {
        print_ratios(r, false);
        print_ratios(r, true);
        print_wins(r);
    }
    for (size_t i = is_long ? 0 : last; i < r->n; i++)
        print_problems(r, i);
}

/* Our method's figures; the peer is Optuna's GP, if it ran. */
static void report_checkpoint(const struct report *r, size_t i, size_t peer)
{
    const struct ranking *k = r->at[i];
    bool has_peer = peer < r->spec.n_methods && peer != r->ours;
    char name[80], note[120];
    for (size_t m = 0; m < r->spec.n_methods; m++) {
        struct interval v = ranking_mean_rank(k, m);
        (void)snprintf(name, sizeof name, "mean rank of %s, %zu trials", r->methods[m].label,
                       r->trials[i]);
        (void)snprintf(note, sizeof note, "95 %%: %.2f to %.2f; %zu problems", v.low, v.high,
                       ranking_problems(k));
        bench_report(name, v.value, "rank", 1, has_peer ? ranking_mean_rank(k, peer).value : NAN,
                     has_peer ? r->peer : NULL, note);
    }
    for (size_t m = 0; m < r->spec.n_methods; m++) {
        if (m == r->ours)
            continue;
        struct interval v = ranking_ratio(k, r->ours, m, false),
                        w = ranking_ratio(k, r->ours, m, true);
        size_t wins, ties;
        ranking_wins(k, r->ours, m, &wins, &ties);
        (void)snprintf(name, sizeof name, "regret over %s's, %zu trials", r->methods[m].label,
                       r->trials[i]);
        (void)snprintf(note, sizeof note,
                       "95 %%: %.2g to %.2g; winsorised %.2g (%.2g to %.2g); %zu wins, %zu ties",
                       v.low, v.high, w.value, w.low, w.high, wins, ties);
        bench_report(name, v.value, "ratio", NAN, 1, r->methods[m].label, note);
    }
    for (size_t p = 0; p < r->spec.n_problems; p++) {
        if (ranking_seeds(k, p) == 0)
            continue;
        struct interval v = ranking_regret(k, p, r->ours);
        (void)snprintf(name, sizeof name, "%s, %zu trials", r->spec.problems[p]->def->name,
                       r->trials[i]);
        (void)snprintf(note, sizeof note, "quartiles %.3g to %.3g; %zu seeds", v.low, v.high,
                       ranking_seeds(k, p));
        bench_report(name, v.value, "regret", NAN,
                     has_peer ? ranking_regret(k, p, peer).value : NAN, has_peer ? r->peer : NULL,
                     note);
    }
}

static void print_json(const struct report *r)
{
    char *argv[] = {(char *)"search-quality", (char *)"--json", NULL};
    size_t peer = 0;
    (void)bench_start("search-quality", "", 2, argv);
    while (peer < r->spec.n_methods && !as_streq(r->methods[peer].label, "optuna-gp"))
        peer++;
    for (size_t i = 0; i < r->n; i++)
        report_checkpoint(r, i, peer);
}

as_status report_print(const struct ranking_spec *spec, size_t trials, const char *peer,
                       report_form form, struct as_err *err)
{
    AS_AUTO(report_done) struct report r = {.peer = peer};
    choose_methods(&r, spec);
    if (r.spec.n_methods == 0)
        return as_fail(err, AS_E_NOT_FOUND, "there is no trace to report");
    as_status st = rank_all(&r, trials, err);
    if (st < 0)
        return st;
    if (ranking_problems(r.at[r.n - 1]) == 0)
        return as_fail(err, AS_E_NOT_FOUND,
                       "no problem and seed has traces of every method; compare fewer");
    if (form == REPORT_JSON)
        print_json(&r);
    else
        print_markdown(&r, form == REPORT_LONG);
    return AS_OK;
}
