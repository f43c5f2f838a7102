/* Reads and writes the fields of pbt in `early_stopping`. Parameters are named in the document and
 * bits here, so that a specification is a value that can be copied: names are those of the space,
 * which whoever reads or writes the section has beside it. */
#include "search/stopping/pbt_spec.h"

#include "base/str.h"

#define WORD_BITS 64
#define DEFAULT_POPULATION 20
#define DEFAULT_QUANTILE 0.2
#define DEFAULT_DOWN 0.8
#define DEFAULT_UP 1.2
#define DEFAULT_RESAMPLE 0.25

bool pbt_explores(const struct pbt_spec *p, size_t i)
{
    return p->explored[i / WORD_BITS] >> i % WORD_BITS & 1;
}

size_t pbt_share(const struct pbt_spec *p, size_t n)
{
    /* 0.2 * 15 is 3.0000000000000004 in one order of factors and 2.9999999999999996 in another */
    return (size_t)((double)n * p->quantile + 1e-9);
}

/* ---- from JSON ---- */

static as_status read_factors(struct json_fields *f, struct pbt_spec *p, struct as_err *err)
{
    json_t *list = NULL;
    char at[AS_ERR_POINTER_MAX];
    double down = 0, up = 0;
    as_status st = json_fields_array(f, "perturb", JSON_OPTIONAL, &list, err);
    if (st != AS_OK || !list)
        return st;
    json_pointer_child(f->pointer, "perturb", at);
    if (json_array_size(list) == 2 && json_number_get(json_array_get(list, 0), &down) &&
        json_number_get(json_array_get(list, 1), &up) && down > 0 && down < 1 && up > 1 &&
        up <= 1e6) {
        p->down = down;
        p->up = up;
        return AS_OK;
    }
    AS_AUTO(as_freep) char *found = json_format(list);
    st = as_fail_at(err, AS_E_INVAL, at,
                    "%s: found %.60s, expected two factors, one between 0 and 1 and one above 1, "
                    "such as [%g, %g]",
                    at, found ? found : "a list", DEFAULT_DOWN, DEFAULT_UP);
    return json_fields_note(f, st, err);
}

static as_status read_explored(const json_t *item, const char *at, const struct space *space,
                               struct pbt_spec *p, struct as_err *err)
{
    const char *name = json_string_value(item);
    int i = name ? space_find(space, name) : -1;
    if (i < 0)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found %s%.64s%s, expected the name of a parameter", at,
                          name ? "'" : "", name ? name : json_type_name(item), name ? "'" : "");
    if (space->params[i].kind == PARAM_CONSTANT)
        return as_fail_at(err, AS_E_INVAL, at, "%s: '%.64s' is a constant and cannot change", at,
                          name);
    if (pbt_explores(p, (size_t)i))
        return as_fail_at(err, AS_E_INVAL, at, "%s: '%.64s' is named twice", at, name);
    p->explored[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
    return AS_OK;
}

static bool explores_any(const struct pbt_spec *p)
{
    uint64_t any = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(p->explored); i++)
        any |= p->explored[i];
    return any != 0;
}

static as_status read_explore(struct json_fields *f, const struct space *space, struct pbt_spec *p,
                              struct as_err *err)
{
    json_t *list = NULL, *item;
    size_t i;
    char at[AS_ERR_POINTER_MAX], item_at[AS_ERR_POINTER_MAX];
    as_status st = json_fields_array(f, "explore", JSON_OPTIONAL, &list, err);
    if (st != AS_OK)
        return st;
    json_pointer_child(f->pointer, "explore", at);
    for (i = 0; !list && i < space->n; i++)
        if (space->params[i].kind != PARAM_CONSTANT)
            p->explored[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
    json_array_foreach(list, i, item)
    {
        json_pointer_index(at, i, item_at);
        st = json_fields_note(f, read_explored(item, item_at, space, p, err), err);
        if (st != AS_OK)
            return st;
    }
    if (explores_any(p) || json_array_size(list) > 0)
        return AS_OK;
    st = as_fail_at(err, AS_E_INVAL, at,
                    "%s: no parameter may change, expected at least one: a fork with its parent's "
                    "parameters learns nothing new",
                    at);
    return json_fields_note(f, st, err);
}

/* Categories and truth values change by resample alone. */
static as_status check_changes(struct json_fields *f, const struct space *space,
                               const struct pbt_spec *p, struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX];
    for (size_t i = 0; i < space->n; i++)
        if (pbt_explores(p, i) && space->params[i].kind != PARAM_CATEGORICAL &&
            space->params[i].kind != PARAM_BOOL)
            return AS_OK;
    if (p->resample > 0 || !explores_any(p))
        return AS_OK;
    json_pointer_child(f->pointer, "resample", at);
    as_status st = as_fail_at(err, AS_E_INVAL, at,
                              "%s: found 0, expected more: categories and truth values change in "
                              "no other way, so all forks would have their parents' parameters",
                              at);
    return json_fields_note(f, st, err);
}

as_status pbt_spec_parse(struct json_fields *f, const struct space *space, struct pbt_spec *ret,
                         struct as_err *err)
{
    struct pbt_spec p = {.population = DEFAULT_POPULATION,
                         .period = 1,
                         .quantile = DEFAULT_QUANTILE,
                         .down = DEFAULT_DOWN,
                         .up = DEFAULT_UP,
                         .resample = DEFAULT_RESAMPLE};
    as_status st = json_fields_i64(f, "population", JSON_OPTIONAL, PBT_MIN_POPULATION,
                                   PBT_MAX_POPULATION, &p.population, err);
    if (st == AS_OK)
        st = json_fields_i64(f, "period", JSON_REQUIRED, 1, PBT_MAX_PERIOD, &p.period, err);
    if (st == AS_OK)
        st = json_fields_double(f, "quantile", JSON_OPTIONAL, 0.01, PBT_MAX_QUANTILE, &p.quantile,
                                err);
    if (st == AS_OK)
        st = json_fields_double(f, "resample", JSON_OPTIONAL, 0, 1, &p.resample, err);
    if (st == AS_OK)
        st = read_factors(f, &p, err);
    if (st == AS_OK)
        st = read_explore(f, space, &p, err);
    if (st == AS_OK)
        st = check_changes(f, space, &p, err);
    if (st == AS_OK)
        *ret = p;
    return st;
}

/* ---- to JSON ---- */

int pbt_spec_add_json(const struct pbt_spec *p, const struct space *space, json_t *section)
{
    JSON_AUTO names = json_array();
    int bad = !names;
    for (size_t i = 0; i < space->n; i++)
        if (pbt_explores(p, i))
            bad |= json_array_append_new(names, json_string(space->params[i].name));
    bad |= json_object_set_new(section, "population", json_integer(p->population));
    bad |= json_object_set_new(section, "period", json_integer(p->period));
    bad |= json_object_set_new(section, "quantile", json_real(p->quantile));
    bad |= json_object_set_new(section, "perturb", json_pack("[f,f]", p->down, p->up));
    bad |= json_object_set_new(section, "resample", json_real(p->resample));
    bad |= json_object_set(section, "explore", names);
    return bad;
}
