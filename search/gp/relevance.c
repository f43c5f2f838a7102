/* The test of one value of a choice, and the state. A number that is dead has a constant column. */
#include "search/gp/relevance.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "search/gp/effect.h"
#include "search/gp/leading_choice.h"

/* The constants are of decision 4019. */
#define TRIALS_FIRST 12 /* of a value, before it is tested */
#define GROWTH 1.25
/* Decision 4044: the share of trials with one value of another choice, past which that value
 * explains as much; and the distance below which a choice loses its pairs. */
#define ONE_VALUE 0.75
#define MATTERS_STILL (0.5 * CHOICE_MATTERS)
/* With more values of choices in all, each has few trials, and of several choices that were settled
 * at the same time it cannot be told whose value silences a number. */
#define VALUES_MOST 16
/* Evidence, as a logarithm. A number dies when that of no effect is so much greater than that of an
 * effect of usual strength, and no effect explains so much more; it revives when one explains so
 * much more. */
#define DEATH 3.0
#define REVIVAL 2.0

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

/* The trials of one value. */
struct test {
    struct effects e;
    const struct relevance_value *v;
    const struct relevance *r;
    const double *distance; /* [enc->n], of each choice */
};

static void test_done(struct test *x)
{
    effects_done(&x->e);
}

static bool has_level(const struct training_set *s, size_t i, size_t choice, uint64_t level)
{
    return encoding_level(s->enc, choice, training_set_point(s, i)[choice]) == level;
}

static bool is_of_value(const struct training_set *s, size_t i, const struct relevance_value *v)
{
    return s->state[i] == OBSERVED_COMPLETED && has_level(s, i, v->choice, v->level);
}

static bool is_in_test(const struct training_set *s, size_t i, const void *arg)
{
    const struct test *x = arg;
    return is_of_value(s, i, x->v);
}

/* Is the number dead in the trial through a choice that matters more than this one? */
static bool is_explained(const struct training_set *s, const struct relevance *r,
                         const double *distance, size_t i, size_t param, size_t choice)
{
    for (size_t k = 0; k < r->n_dead; k++) {
        const struct dead_pair *p = &r->dead[k];
        if (p->param == param && distance[p->choice] > distance[choice] &&
            has_level(s, i, p->choice, p->level))
            return true;
    }
    return false;
}

static bool is_silent(const struct training_set *s, size_t i, size_t param, const void *arg)
{
    const struct test *x = arg;
    return is_explained(s, x->r, x->distance, i, param, x->v->choice);
}

static size_t count_trials(const struct training_set *s, const struct relevance_value *v)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += is_of_value(s, i, v);
    return n;
}

static bool is_pair_of(const struct dead_pair *p, const struct test *x, size_t c)
{
    return p->param == x->e.t.param[c] && p->choice == x->v->choice && p->level == x->v->level;
}

static as_status reserve(struct test *x, const struct training_set *s, struct as_err *err)
{
    as_status st = effects_reserve(&x->e, s, err);
    for (size_t c = 0; c < x->e.t.columns.n_real && st == AS_OK; c++)
        for (size_t k = 0; k < x->r->n_dead; k++)
            x->e.is_left_out[c] |= is_pair_of(&x->r->dead[k], x, c);
    return st;
}

/* ---- verdicts ---- */

/* Are nearly all rows that say something of column c of one value of a choice that matters more?
 * Then that value explains as much. */
static bool is_of_one_value(const struct test *x, size_t c)
{
    const struct trial_rows *t = &x->e.t;
    size_t n = effects_rows(&x->e, c);
    for (size_t k = 0; k < x->r->n_values; k++) {
        const struct relevance_value *u = &x->r->values[k];
        size_t n_same = 0;
        if (!(x->distance[u->choice] > x->distance[x->v->choice]))
            continue;
        for (size_t i = 0; i < t->rows.n; i++)
            n_same += !effects_is_silent(&x->e, i, c) &&
                      has_level(t->s, t->trial[i], u->choice, u->level);
        if ((double)n_same > ONE_VALUE * (double)n)
            return true;
    }
    return false;
}

static bool is_to_be_dead(const struct test *x, size_t c)
{
    if (effects_rows(&x->e, c) < TRIALS_FIRST)
        return false;
    if (x->e.is_left_out[c])
        return x->e.best[c] <= REVIVAL;
    return x->e.none[c] > DEATH && x->e.best[c] < EFFECT_WEAK && !is_of_one_value(x, c);
}

static void remove_at(struct relevance *r, size_t k)
{
    r->n_dead--;
    memmove(r->dead + k, r->dead + k + 1, (r->n_dead - k) * sizeof *r->dead);
}

static void remove_pair(struct relevance *r, const struct test *x, size_t c)
{
    for (size_t k = 0; k < r->n_dead; k++)
        if (is_pair_of(&r->dead[k], x, c))
            remove_at(r, k);
}

/* Returns whether any has changed. */
static bool take_verdicts(const struct test *x, struct relevance *r)
{
    bool changed = false;
    const struct trial_rows *t = &x->e.t;
    for (size_t c = 0; c < t->columns.n_real; c++) {
        if (!encoding_may_die(t->s->enc, t->param[c]) || is_to_be_dead(x, c) == x->e.is_left_out[c])
            continue;
        changed = true;
        if (x->e.is_left_out[c])
            remove_pair(r, x, c);
        else
            insert_pair(r, (struct dead_pair){t->param[c], x->v->choice, x->v->level});
    }
    return changed;
}

/* The value whose trials have grown most since its test, of a choice that matters; NULL: none is
 * due. */
static struct relevance_value *most_due(const struct training_set *s, const struct relevance *r,
                                        const double *distance, size_t *ret_n)
{
    struct relevance_value *due = NULL;
    double most = GROWTH;
    for (size_t i = 0; i < r->n_values; i++) {
        struct relevance_value *v = &r->values[i];
        size_t n = count_trials(s, v);
        size_t before = v->n_trials ? v->n_trials : 1;
        if (distance[v->choice] < CHOICE_MATTERS || n < TRIALS_FIRST ||
            (double)n / (double)before < most)
            continue;
        most = (double)n / (double)before;
        due = v;
        *ret_n = n;
    }
    return due;
}

/* Has the pair's value enough trials that it explains and no choice that matters more? */
static bool has_trials(const struct training_set *s, const struct relevance *r,
                       const double *distance, const struct dead_pair *p)
{
    const struct relevance_value v = {p->choice, p->level, 0};
    size_t n = 0;
    for (size_t i = 0; i < s->n && n < TRIALS_FIRST; i++)
        n += is_of_value(s, i, &v) && !is_explained(s, r, distance, i, p->param, p->choice);
    return n >= TRIALS_FIRST;
}

/* Remove the pairs of choices that matter no longer, and those that have lost their trials to
 * others. Returns whether there was any. */
static bool remove_baseless(const struct training_set *s, const double *distance,
                            struct relevance *r)
{
    size_t before = r->n_dead;
    for (size_t k = r->n_dead; k-- > 0;)
        if (distance[r->dead[k].choice] < MATTERS_STILL || !has_trials(s, r, distance, &r->dead[k]))
            remove_at(r, k);
    return r->n_dead < before;
}

as_status relevance_learn(const struct training_set *s, const json_t *theta,
                          struct gp_fit_work **work, struct relevance *r, bool *ret_changed,
                          struct as_err *err)
{
    double distance[SPACE_MAX_PARAMS];
    size_t n = 0;
    *ret_changed = false;
    if (!theta)
        return AS_OK;
    for (size_t j = 0; j < s->enc->n; j++)
        distance[j] = choice_distance(s->enc, j, theta);
    *ret_changed = remove_baseless(s, distance, r);
    struct relevance_value *v = most_due(s, r, distance, &n);
    if (!v)
        return AS_OK;
    AS_AUTO(test_done) struct test x = {.v = v, .r = r, .distance = distance};
    v->n_trials = n;
    as_status st = reserve(&x, s, err);
    if (st < 0)
        return st;
    st = effects_weigh(&x.e, &(struct effect_trials){n, is_in_test, is_silent, &x}, work, err);
    if (st == AS_OK && take_verdicts(&x, r)) {
        *ret_changed = true;
        remove_baseless(s, distance, r);
    }
    return st == AS_E_NUMERIC ? AS_OK : st;
}
