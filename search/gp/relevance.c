/* The test of one value of a choice, and the state. A number that is dead has a constant column.
 * The strength of an effect is set by the scale of its column: that leaves the hyperparameters and
 * so the prior as they are, and evidences differ by their likelihoods alone. */
#include "search/gp/relevance.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "search/regression/warp.h"

/* The constants are of decision 4019. */
#define TRIALS_FIRST 12 /* of a value, before it is tested */
#define GROWTH 1.25
#define ROWS_MOST 48 /* of a test: the first half of the trials and the newest half */
/* With more values of choices in all, each has few trials, and of several choices that were settled
 * at the same time it cannot be told whose value silences a number. */
#define VALUES_MOST 16
/* Evidence, as a logarithm. A number dies when that of no effect is so much greater than that of an
 * effect of usual strength, and no effect explains so much more; it revives when one explains so
 * much more. */
#define DEATH 3.0
#define WEAK_EFFECT 0.5
#define REVIVAL 2.0
#define FIT_EVALS 60

/* Lengthscales of effects: the usual ones first. */
static const double lengths[] = {0.35, 0.7, 1.4, 2.8, 5.6};
#define N_LENGTHS (sizeof lengths / sizeof lengths[0])
#define N_USUAL 3

void relevance_done(struct relevance *r)
{
    free(r->dead);
    free(r->values);
    *r = (struct relevance){0};
}

static as_status out_of_memory(struct as_err *err)
{
    return as_fail(err, AS_E_NOMEM, "out of memory for what is learned of the parameters");
}

static bool pair_precedes(const struct dead_pair *a, const struct dead_pair *b)
{
    if (a->param != b->param)
        return a->param < b->param;
    return a->choice != b->choice ? a->choice < b->choice : a->level < b->level;
}

/* ---- the state: {"dead": [[param, choice, level], …], "tested": [n, …]} ---- */

static as_status list_values(const struct encoding *e, struct relevance *r, struct as_err *err)
{
    uint64_t n = 0;
    for (size_t j = 0; j < e->n; j++)
        n += encoding_may_kill(e, j) ? e->params[j].levels : 0;
    if (n > VALUES_MOST)
        return AS_OK;
    r->values = as_calloc(n, sizeof *r->values);
    r->dead = as_calloc(n * e->n, sizeof *r->dead);
    if (!r->values || !r->dead)
        return out_of_memory(err);
    for (size_t j = 0; j < e->n; j++)
        for (uint64_t v = 0; encoding_may_kill(e, j) && v < e->params[j].levels; v++)
            r->values[r->n_values++] = (struct relevance_value){j, v, 0};
    return AS_OK;
}

/* Add a pair in its place, unless it is there. */
static void insert_pair(struct relevance *r, struct dead_pair p)
{
    size_t at = 0;
    while (at < r->n_dead && pair_precedes(&r->dead[at], &p))
        at++;
    if (at < r->n_dead && !pair_precedes(&p, &r->dead[at]))
        return;
    memmove(r->dead + at + 1, r->dead + at, (r->n_dead - at) * sizeof p);
    r->dead[at] = p;
    r->n_dead++;
}

/* A pair that the space cannot have is left out. */
static void read_pairs(const struct encoding *e, const json_t *list, struct relevance *r)
{
    size_t i;
    const json_t *item;
    json_array_foreach((json_t *)list, i, item)
    {
        json_int_t param, choice, level;
        if (json_unpack((json_t *)item, "[I,I,I]", &param, &choice, &level) < 0 || param < 0 ||
            choice < 0 || level < 0 || (size_t)param >= e->n || (size_t)choice >= e->n ||
            !encoding_may_die(e, (size_t)param) || !encoding_may_kill(e, (size_t)choice) ||
            (uint64_t)level >= e->params[choice].levels)
            continue;
        insert_pair(r, (struct dead_pair){(size_t)param, (size_t)choice, (uint64_t)level});
    }
}

as_status relevance_read(const struct search_spec *spec, const json_t *state, struct relevance *ret,
                         struct as_err *err)
{
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    AS_AUTO(relevance_done) struct relevance r = {0};
    if (spec->n_objectives > 1 || spec->earlier)
        return AS_OK;
    as_status st = encoding_create(spec->space, &e, err);
    if (st < 0 || e->has_conditions)
        return st;
    if ((st = list_values(e, &r, err)) < 0)
        return st;
    const json_t *tested = json_object_get(state, "tested");
    for (size_t i = 0; i < r.n_values && json_array_size(tested) == r.n_values; i++) {
        json_int_t n = json_integer_value(json_array_get(tested, i));
        r.values[i].n_trials = n > 0 ? (size_t)n : 0;
    }
    if (r.n_values)
        read_pairs(e, json_object_get(state, "dead"), &r);
    *ret = r;
    r = (struct relevance){0};
    return AS_OK;
}

json_t *relevance_write(const struct relevance *r)
{
    bool any = false;
    JSON_AUTO dead = json_array();
    JSON_AUTO tested = json_array();
    for (size_t i = 0; i < r->n_values; i++) {
        any |= r->values[i].n_trials > 0;
        if (json_array_append_new(tested, json_integer((json_int_t)r->values[i].n_trials)) < 0)
            return NULL;
    }
    for (size_t i = 0; i < r->n_dead; i++) {
        const struct dead_pair *p = &r->dead[i];
        if (json_array_append_new(dead, json_pack("[I,I,I]", (json_int_t)p->param,
                                                  (json_int_t)p->choice, (json_int_t)p->level)) < 0)
            return NULL;
    }
    return any ? json_pack("{s:O, s:O}", "dead", dead, "tested", tested) : json_null();
}

size_t relevance_trials(const struct relevance *r, const struct dead_pair *pair)
{
    for (size_t i = 0; i < r->n_values; i++)
        if (r->values[i].choice == pair->choice && r->values[i].level == pair->level)
            return r->values[i].n_trials;
    return 0;
}

/* ---- the test ---- */

/* The trials of one value as rows: a column for each number, a category for each choice. */
struct test {
    const struct training_set *s;
    const struct relevance_value *v;
    struct gp_fit_work *work;
    struct gp_columns columns;
    struct gp_rows rows; /* views of x and z */
    size_t *trial;       /* of each row */
    size_t *param;       /* of each column */
    bool *is_dead;       /* of each column */
    double *effect;      /* of each column: evidence of the best effect less that of none */
    double *none;        /* of each column: evidence of none less that of a usual effect */
    double *x, *y, *theta;
    int32_t *z;
};

static void test_done(struct test *t)
{
    free(t->trial);
    free(t->param);
    free(t->is_dead);
    free(t->effect);
    free(t->none);
    free(t->x);
    free(t->y);
    free(t->theta);
    free(t->z);
}

static bool is_of_value(const struct training_set *s, size_t i, const struct relevance_value *v)
{
    return s->state[i] == OBSERVED_COMPLETED &&
           encoding_level(s->enc, v->choice, training_set_point(s, i)[v->choice]) == v->level;
}

static size_t count_trials(const struct training_set *s, const struct relevance_value *v)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += is_of_value(s, i, v);
    return n;
}

static as_status reserve(struct test *t, struct as_err *err)
{
    size_t d = t->s->enc->n;
    t->trial = as_calloc(ROWS_MOST, sizeof *t->trial);
    t->param = as_calloc(d, sizeof *t->param);
    t->is_dead = as_calloc(d, sizeof *t->is_dead);
    t->effect = as_calloc(d, sizeof *t->effect);
    t->none = as_calloc(d, sizeof *t->none);
    t->x = as_calloc(ROWS_MOST, d * sizeof *t->x);
    t->z = as_calloc(ROWS_MOST, d * sizeof *t->z);
    t->y = as_calloc(ROWS_MOST, sizeof *t->y);
    t->theta = as_calloc(d + 2, sizeof *t->theta);
    if (!t->trial || !t->param || !t->is_dead || !t->effect || !t->none || !t->x || !t->z ||
        !t->y || !t->theta)
        return out_of_memory(err);
    return AS_OK;
}

static bool is_pair_of(const struct dead_pair *p, const struct test *t, size_t c)
{
    return p->param == t->param[c] && p->choice == t->v->choice && p->level == t->v->level;
}

static void list_columns(struct test *t, const struct relevance *r)
{
    const struct encoding *e = t->s->enc;
    for (size_t j = 0; j < e->n; j++) {
        if (e->params[j].real < 0)
            continue;
        size_t c = t->columns.n_real++;
        t->param[c] = j;
        for (size_t k = 0; k < r->n_dead; k++)
            t->is_dead[c] |= is_pair_of(&r->dead[k], t, c);
    }
    t->columns.n_groups = t->columns.n_real;
    t->columns.n_cat = e->n_category;
}

/* Column c of the rows, `scale` times as wide as it is; 0 makes it constant. */
static void set_column(struct test *t, size_t c, double scale)
{
    for (size_t i = 0; i < t->rows.n; i++) {
        double place = training_set_point(t->s, t->trial[i])[t->param[c]];
        t->x[i * t->columns.n_real + c] = 0.5 + scale * (place - 0.5);
    }
}

static void set_categories(struct test *t)
{
    const struct encoding *e = t->s->enc;
    for (size_t i = 0; i < t->rows.n; i++)
        for (size_t j = 0; j < e->n; j++)
            if (e->params[j].category >= 0)
                t->z[i * e->n_category + (size_t)e->params[j].category] =
                    (int32_t)encoding_level(e, j, training_set_point(t->s, t->trial[i])[j]);
}

static as_status fill_rows(struct test *t, size_t n_trials, struct as_err *err)
{
    const struct training_set *s = t->s;
    AS_AUTO(gp_warp_freep) struct gp_warp *warp = NULL;
    for (size_t i = 0, seen = 0; i < s->n; i++) {
        if (!is_of_value(s, i, t->v))
            continue;
        bool is_row = seen < ROWS_MOST / 2 || n_trials - seen <= ROWS_MOST / 2;
        seen++;
        if (!is_row)
            continue;
        t->trial[t->rows.n] = i;
        t->y[t->rows.n++] = s->costs[i];
    }
    t->rows.x = t->x;
    t->rows.z = t->z;
    for (size_t c = 0; c < t->columns.n_real; c++)
        set_column(t, c, !t->is_dead[c]);
    set_categories(t);
    as_status st = gp_warp_create(WARP_HALF_RANK, t->y, t->rows.n, &warp, err);
    if (st == AS_OK)
        memcpy(t->y, gp_warp_values(warp), t->rows.n * sizeof *t->y);
    return st;
}

/* Minus the log posterior with column c so wide. */
static as_status value_at(struct test *t, size_t c, double scale, double *ret, struct as_err *err)
{
    set_column(t, c, scale);
    return gp_fit_value(&t->columns, &t->rows, t->y, t->theta, t->work, ret, NULL, err);
}

static as_status weigh(struct test *t, size_t c, struct as_err *err)
{
    double none, at[N_LENGTHS], usual = 0, best = -INFINITY, own = exp(t->theta[c]);
    as_status st = value_at(t, c, 0, &none, err);
    for (size_t k = 0; k < N_LENGTHS && st == AS_OK; k++)
        st = value_at(t, c, own / lengths[k], &at[k], err);
    if (st < 0)
        return st;
    for (size_t k = 0; k < N_LENGTHS; k++) {
        best = fmax(best, none - at[k]);
        usual += k < N_USUAL ? exp(fmin(300, none - at[k])) / N_USUAL : 0;
    }
    t->effect[c] = best;
    t->none[c] = -log(usual);
    return AS_OK;
}

static as_status weigh_all(struct test *t, struct as_err *err)
{
    struct gp_fit_opts opts = {.cold = true, .max_evals = FIT_EVALS};
    as_status st = gp_fit(&t->columns, &t->rows, t->y, &opts, t->work, t->theta, NULL, err);
    for (size_t c = 0; c < t->columns.n_real && st == AS_OK; c++) {
        if (!encoding_may_die(t->s->enc, t->param[c]))
            continue;
        st = weigh(t, c, err);
        set_column(t, c, !t->is_dead[c]);
    }
    return st;
}

/* ---- verdicts ---- */

static bool is_to_be_dead(const struct test *t, size_t c)
{
    if (t->is_dead[c])
        return t->effect[c] <= REVIVAL;
    return t->none[c] > DEATH && t->effect[c] < WEAK_EFFECT;
}

static void remove_pair(struct relevance *r, const struct test *t, size_t c)
{
    for (size_t k = 0; k < r->n_dead; k++)
        if (is_pair_of(&r->dead[k], t, c)) {
            r->n_dead--;
            memmove(r->dead + k, r->dead + k + 1, (r->n_dead - k) * sizeof *r->dead);
        }
}

/* Returns whether any has changed. */
static bool take_verdicts(const struct test *t, struct relevance *r)
{
    bool changed = false;
    for (size_t c = 0; c < t->columns.n_real; c++) {
        if (!encoding_may_die(t->s->enc, t->param[c]) || is_to_be_dead(t, c) == t->is_dead[c])
            continue;
        changed = true;
        if (t->is_dead[c])
            remove_pair(r, t, c);
        else
            insert_pair(r, (struct dead_pair){t->param[c], t->v->choice, t->v->level});
    }
    return changed;
}

/* The value whose trials have grown most since its test; NULL: none is due. */
static struct relevance_value *most_due(const struct training_set *s, const struct relevance *r,
                                        size_t *ret_n)
{
    struct relevance_value *due = NULL;
    double most = GROWTH;
    for (size_t i = 0; i < r->n_values; i++) {
        struct relevance_value *v = &r->values[i];
        size_t n = count_trials(s, v);
        size_t before = v->n_trials ? v->n_trials : 1;
        if (n < TRIALS_FIRST || (double)n / (double)before < most)
            continue;
        most = (double)n / (double)before;
        due = v;
        *ret_n = n;
    }
    return due;
}

as_status relevance_learn(const struct training_set *s, struct gp_fit_work **work,
                          struct relevance *r, bool *ret_changed, struct as_err *err)
{
    size_t n = 0;
    *ret_changed = false;
    struct relevance_value *v = most_due(s, r, &n);
    if (!v)
        return AS_OK;
    if (!*work && !(*work = gp_fit_work_create()))
        return out_of_memory(err);
    AS_AUTO(test_done) struct test t = {.s = s, .v = v, .work = *work};
    v->n_trials = n;
    as_status st = reserve(&t, err);
    if (st < 0)
        return st;
    list_columns(&t, r);
    st = fill_rows(&t, n, err);
    if (st == AS_OK)
        st = weigh_all(&t, err);
    if (st == AS_OK)
        *ret_changed = take_verdicts(&t, r);
    return st == AS_E_NUMERIC ? AS_OK : st;
}
