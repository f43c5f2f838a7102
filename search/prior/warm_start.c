/* Snapshots are read trial by trial; what fits the space is kept, sorted by cost, and placed. The
 * kernels are normal in numbers, with the widths of a density estimate that never fall below a
 * twentieth of the range; another choice costs a factor. */
#include "search/prior/warm_start.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "search/problem/credible.h"

#define NARROWEST 0.05 /* of the kernels, as a share of the range */
#define WIDEST 0.25
#define OTHER_CHOICE 1.4 /* what another value adds to the distance: a factor of 4 */

void warm_start_free(struct warm_start *w)
{
    if (!w)
        return;
    for (size_t k = 0; k < w->n; k++) {
        free(w->sweeps[k].name);
        free(w->sweeps[k].points);
        free(w->sweeps[k].known);
        free(w->sweeps[k].costs);
        free(w->sweeps[k].width);
    }
    json_decref(w->canonical);
    free(w);
}

bool warm_start_keeps(size_t rank, size_t n)
{
    const size_t half = WARM_START_TRIALS / 2;
    if (n <= WARM_START_TRIALS || rank < half)
        return true;
    size_t of = n - half, at = rank - half;
    return (at + 1) * half / of > at * half / of;
}

as_status earlier_cost_limit(const double *costs, size_t n, double *ret, struct as_err *err)
{
    return credible_limit(costs, n, CREDIBLE_FIRST, ret, err);
}

/* ---- reading ---- */

/* One trial that fits. */
struct read_trial {
    double cost;
    size_t at;      /* in the document */
    json_t *params; /* what the space knows */
};

static void free_trials(struct read_trial *list)
{
    for (size_t i = 0; list && i < WARM_START_TRIALS; i++)
        json_decref(list[i].params);
    free(list);
}
AS_DEFINE_FREEP(struct read_trial, free_trials)

static int compare_trials(const void *x, const void *y)
{
    const struct read_trial *a = x, *b = y;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static bool is_number(const struct space_param *p)
{
    return p->kind == PARAM_FLOAT || p->kind == PARAM_INT;
}

/* *ret: what the space knows of a trial's parameters; NULL if the trial does not fit. */
static as_status filter_params(const struct space *space, const json_t *params, json_t **ret,
                               struct as_err *err)
{
    JSON_AUTO kept = json_object();
    if (!kept)
        return as_fail_nomem(err);
    for (size_t i = 0; i < space->n; i++) {
        const struct space_param *p = &space->params[i];
        json_t *j = json_object_get(params, p->name);
        union param_value v;
        struct as_err why;
        if (!j || p->kind == PARAM_CONSTANT)
            continue;
        if (param_value_from_json(p, j, "", &v, &why) == AS_OK) {
            if (json_object_set(kept, p->name, j) < 0)
                return as_fail_nomem(err);
        } else if (is_number(p) && json_is_number(j)) {
            return AS_OK; /* outside of the range */
        }
    }
    if (json_object_size(kept) > 0)
        *ret = as_steal(kept);
    return AS_OK;
}

static as_status read_trial(struct json_fields *parent, const json_t *j, size_t i,
                            const char *pointer, const struct space *space, struct read_trial *ret,
                            struct as_err *err)
{
    struct json_fields f;
    char at[AS_ERR_POINTER_MAX];
    json_t *params = NULL;
    json_pointer_index(pointer, i, at);
    ret->at = i;
    as_status st = json_fields_under(&f, parent, j, at, err);
    if (st == AS_OK)
        st = json_fields_object(&f, "params", JSON_REQUIRED, &params, err);
    if (st == AS_OK)
        st = json_fields_double(&f, "cost", JSON_REQUIRED, -1e300, 1e300, &ret->cost, err);
    if (st == AS_OK)
        st = json_fields_end(&f, err);
    return st < 0 ? st : filter_params(space, params, &ret->params, err);
}

/* The point of what is known of a trial; other places are 0. */
static void place_trial(const struct encoding *e, const json_t *params, struct config *scratch,
                        double *point, bool *known)
{
    struct as_err why;
    for (size_t i = 0; i < e->n; i++) {
        const json_t *j = json_object_get(params, e->space->params[i].name);
        known[i] = j && e->params[i].kind != ENCODED_CONSTANT &&
                   param_value_from_json(&e->space->params[i], j, "", &scratch->entries[i].value,
                                         &why) == AS_OK;
        scratch->entries[i].active = known[i];
    }
    encoding_from_config(e, scratch, point);
}

static void set_widths(const struct encoding *e, struct warm_start_sweep *s)
{
    for (size_t j = 0; j < e->n; j++) {
        double n = 0, sum = 0, squares = 0;
        for (size_t i = 0; i < s->n; i++) {
            if (!s->known[i * e->n + j])
                continue;
            n++;
            sum += s->points[i * e->n + j];
            squares += s->points[i * e->n + j] * s->points[i * e->n + j];
        }
        double sd = n > 1 ? sqrt(fmax(0, squares / n - sum / n * sum / n)) : 0;
        s->width[j] = fmin(WIDEST, fmax(NARROWEST, 1.06 * sd * pow(fmax(n, 1), -0.2)));
    }
}

static as_status place_trials(const struct encoding *e, const struct read_trial *list, size_t n,
                              size_t good, struct warm_start_sweep *s, struct as_err *err)
{
    AS_AUTO(config_freep) struct config *scratch = config_create(e->space);
    s->points = as_calloc(n, e->n * sizeof *s->points);
    s->known = as_calloc(n, e->n * sizeof *s->known);
    s->costs = as_calloc(n, sizeof *s->costs);
    s->width = as_calloc(e->n, sizeof *s->width);
    if (!scratch || !s->points || !s->known || !s->costs || !s->width)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        place_trial(e, list[i].params, scratch, s->points + i * e->n, s->known + i * e->n);
        s->costs[i] = list[i].cost;
    }
    s->n_trials = n;
    s->n = n < good ? n : good;
    set_widths(e, s);
    return AS_OK;
}

static as_status add_canonical(json_t *list, const struct warm_start_sweep *s, int64_t completed,
                               int64_t dropped, const struct read_trial *trials, size_t n,
                               struct as_err *err)
{
    JSON_AUTO j = json_pack("{s:s, s:I, s:[], s:I}", "sweep", s->name, "completed",
                            (json_int_t)completed, "trials", "dropped", (json_int_t)dropped);
    int bad = j ? 0 : -1;
    for (size_t i = 0; i < n && !bad; i++)
        bad = json_array_append_new(
            json_object_get(j, "trials"),
            json_pack("{s:O, s:f}", "params", trials[i].params, "cost", trials[i].cost));
    return bad || json_array_append(list, j) < 0 ? as_fail_nomem(err) : AS_OK;
}

static double log_sum(const struct warm_start_sweep *s, const struct encoding *e,
                      const double *point, double *ret_slope);

/* The trials of one snapshot, sorted; *ret_n of them fit. */
static as_status read_trials(struct json_fields *f, const json_t *trials, const struct space *space,
                             struct read_trial *list, size_t *ret_n, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    size_t n = 0;
    json_pointer_child(f->pointer, "trials", at);
    if (json_array_size(trials) > WARM_START_TRIALS)
        return as_fail_at(err, AS_E_TOO_LARGE, at, "%s: %zu trials, at most %d are allowed", at,
                          json_array_size(trials), WARM_START_TRIALS);
    for (size_t i = 0; i < json_array_size(trials); i++) {
        as_status st = read_trial(f, json_array_get(trials, i), i, at, space, &list[n], err);
        if (st < 0)
            return st;
        n += list[n].params != NULL;
    }
    qsort(list, n, sizeof *list, compare_trials);
    *ret_n = n;
    return AS_OK;
}

/* Drop the trials whose costs are not credible; they stay in the canonical list. The list is
 * sorted by cost, so its order says nothing of the time. */
static as_status drop_absurd(struct read_trial *list, size_t *n, struct as_err *err)
{
    double costs[WARM_START_TRIALS], limit;
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++)
        costs[i] = list[i].cost;
    as_status st = credible_limit(costs, *n, *n, &limit, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < *n; i++) {
        struct read_trial t = list[i];
        if (fabs(t.cost) > limit)
            continue;
        list[i] = list[kept];
        list[kept++] = t;
    }
    *n = kept;
    return AS_OK;
}

static as_status read_sweep(struct json_fields *parent, const json_t *j, const char *at,
                            const struct encoding *e, struct warm_start *w, struct as_err *err)
{
    struct json_fields f;
    struct warm_start_sweep *s = &w->sweeps[w->n];
    const char *name = NULL;
    json_t *trials = NULL;
    int64_t completed = 0, dropped = 0;
    size_t n = 0;
    if (json_is_string(j))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found a name, which the server replaces by the sweep's best trials "
                          "when it creates a sweep; expected an object",
                          at);
    as_status st = json_fields_under(&f, parent, j, at, err);
    if (st < 0 || (st = json_fields_text(&f, "sweep", JSON_REQUIRED, 1, 80, &name, err)) < 0 ||
        (st = json_fields_i64(&f, "completed", JSON_REQUIRED, 0, 1000000000, &completed, err)) <
            0 ||
        (st = json_fields_i64(&f, "dropped", JSON_OPTIONAL, 0, 1000000000, &dropped, err)) < 0 ||
        (st = json_fields_array(&f, "trials", JSON_REQUIRED, &trials, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    AS_AUTO(free_trialsp)
    struct read_trial *list = as_calloc(WARM_START_TRIALS + 1, sizeof *list);
    if (!list || !(s->name = as_strdup(name)))
        return as_fail_nomem(err);
    w->n++;
    st = read_trials(&f, trials, e->space, list, &n, err);
    if (st < 0)
        return st;
    dropped += (int64_t)(json_array_size(trials) - n);
    st = add_canonical(w->canonical, s, completed, dropped, list, n, err);
    size_t good = (size_t)ceil(WARM_START_SHARE * (double)completed);
    good = good > WARM_START_GOOD ? WARM_START_GOOD : good < 1 ? 1 : good;
    if (st < 0 || (st = drop_absurd(list, &n, err)) < 0 || n == 0)
        return st;
    st = place_trials(e, list, n, good, s, err);
    s->highest = -INFINITY;
    for (size_t i = 0; i < s->n && st == AS_OK; i++)
        s->highest = fmax(s->highest, log_sum(s, e, s->points + i * e->n, NULL));
    return st;
}

as_status warm_start_parse(struct json_fields *f, const struct space *space,
                           struct warm_start **ret, struct as_err *err)
{
    json_t *list = NULL;
    char at[AS_ERR_POINTER_MAX];
    as_status st = json_fields_array(f, "prior", JSON_OPTIONAL, &list, err);
    if (st < 0 || !list || !space)
        return st;
    json_pointer_child(f->pointer, "prior", at);
    if (json_array_size(list) > WARM_START_SWEEPS)
        return as_fail_at(err, AS_E_TOO_LARGE, at, "%s: %zu sweeps, at most %d are allowed", at,
                          json_array_size(list), WARM_START_SWEEPS);
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    AS_AUTO(warm_start_freep) struct warm_start *w = as_calloc(1, sizeof *w);
    if (!w || !(w->canonical = json_array()))
        return as_fail_nomem(err);
    st = encoding_create(space, &e, err);
    if (st < 0)
        return st;
    w->d = e->n;
    for (size_t i = 0; i < json_array_size(list); i++) {
        char item[AS_ERR_POINTER_MAX];
        json_pointer_index(at, i, item);
        st = read_sweep(f, json_array_get(list, i), item, e, w, err);
        if (st < 0)
            return st;
    }
    if (w->n > 0)
        *ret = as_steal(w);
    return AS_OK;
}

/* ---- distances ---- */

/* Minus half the squared distance to trial i. An inactive parameter is as far as another choice. */
static double kernel_log(const struct warm_start_sweep *s, const struct encoding *e, size_t i,
                         const double *point, const bool *active)
{
    double sum = 0;
    for (size_t j = 0; j < e->n; j++) {
        if (!s->known[i * e->n + j])
            continue;
        double off = point[j] - s->points[i * e->n + j];
        if (!active[j] || e->params[j].kind == ENCODED_CHOICE)
            sum += active[j] && off == 0 ? 0 : OTHER_CHOICE;
        else
            sum += 0.5 * off / s->width[j] * off / s->width[j];
    }
    return -sum;
}

/* The logarithm of the sum of the kernels. ret_slope: NULL, or [d]: the gradient is written
 * there. */
static double log_sum(const struct warm_start_sweep *s, const struct encoding *e,
                      const double *point, double *ret_slope)
{
    bool active[SPACE_MAX_PARAMS];
    double logs[WARM_START_GOOD], most = -INFINITY, sum = 0;
    encoding_active(e, point, active);
    for (size_t i = 0; i < s->n; i++)
        most = fmax(most, logs[i] = kernel_log(s, e, i, point, active));
    for (size_t i = 0; i < s->n; i++)
        sum += logs[i] = exp(logs[i] - most);
    for (size_t j = 0; ret_slope && j < e->n; j++) {
        ret_slope[j] = 0;
        if (!active[j] || e->params[j].kind == ENCODED_CHOICE)
            continue;
        for (size_t i = 0; i < s->n; i++)
            if (s->known[i * e->n + j])
                ret_slope[j] -= logs[i] / sum * (point[j] - s->points[i * e->n + j]) /
                                (s->width[j] * s->width[j]);
    }
    return most + log(sum);
}

double warm_start_distance(const struct warm_start *w, size_t k, const struct encoding *e,
                           const double *point, double *ret_slope)
{
    const struct warm_start_sweep *s = &w->sweeps[k];
    double off = s->highest - log_sum(s, e, point, ret_slope);
    for (size_t j = 0; ret_slope && j < e->n; j++)
        ret_slope[j] = off > 0 ? -ret_slope[j] : 0;
    return fmax(0, off);
}

void warm_start_place(const struct warm_start *w, size_t k, size_t i, double *point)
{
    const struct warm_start_sweep *s = &w->sweeps[k];
    for (size_t j = 0; j < w->d; j++)
        if (s->known[i * w->d + j])
            point[j] = s->points[i * w->d + j];
}
