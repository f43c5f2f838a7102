/* The parser of `validation`, `weights` and `patience`: which rows are held out, what rows count,
 * and when a training ends early.
 *
 * Columns are names here: whether the data set has them is checked against its record
 * (model/plan/plan_check.h). The ways to hold rows out exclude each other, and a field of another
 * way is refused, because a sweep does not search over them: all its trials hold out the same rows.
 * */
#include <stdlib.h>

#include "base/str.h"
#include "model/document/train_spec_priv.h"

static const char *const split_words[] = {"random", "stratified", NULL};

/* An optional name of a column. */
static as_status parse_column(struct json_fields *f, const char *name, char **ret,
                              struct as_err *err)
{
    const char *text = NULL;
    as_status st = json_fields_text(f, name, JSON_OPTIONAL, 1, TRAIN_MAX_COLUMN_NAME, &text, err);
    if (st != AS_OK || !text)
        return st;
    free(*ret);
    *ret = as_strdup(text);
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* The ways that name a column, and the fields that each of them takes beside its own. */
static const struct way {
    const char *field;
    train_holdout holdout;
    const char *also[4];
} ways[] = {
    {"column", TRAIN_HOLD_COLUMN, {NULL}},
    {"order", TRAIN_HOLD_ORDER, {"last", NULL}},
    {"groups", TRAIN_HOLD_GROUPS, {"fraction", "seed", NULL}},
};
static const struct way by_chance = {NULL, TRAIN_HOLD_SHARE, {NULL}};
static const struct way by_folds = {"folds", TRAIN_HOLD_FOLDS, {"seed", "split", "refit", NULL}};

static bool takes(const struct way *way, const char *field)
{
    if (!way->field)
        return !as_streq(field, "last") && !as_streq(field, "refit");
    for (size_t i = 0; way->also[i]; i++)
        if (as_streq(way->also[i], field))
            return true;
    return false;
}

/* A field that stands without the one that it belongs to. */
static as_status fail_alone(const char *at, const char *field, struct as_err *err)
{
    if (as_streq(field, "refit"))
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: found without folds, expected folds: what is measured is theirs",
                          at);
    return as_fail_at(err, AS_E_INVAL, at,
                      "%s: found without order, expected order: the name of the column whose last "
                      "rows are held out",
                      at);
}

/* Refuse fields of another way. */
static as_status check_fields(const struct json_fields *f, const struct way *way,
                              struct as_err *err)
{
    static const char *const fields[] = {"fraction", "seed", "split", "last", "refit"};
    for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++) {
        const json_t *j = json_object_get(f->obj, fields[i]);
        char at[AS_ERR_POINTER_MAX];
        if (!j || json_is_null(j) || takes(way, fields[i]))
            continue;
        json_pointer_child(f->pointer, fields[i], at);
        if (!way->field)
            return fail_alone(at, fields[i], err);
        return as_fail_at(err, AS_E_INVAL, at, "%s: found beside %s, which does not use it", at,
                          way->field);
    }
    return AS_OK;
}

/* Find the way that the section chooses, and its column. */
static as_status parse_way(struct json_fields *f, struct train_spec *spec, const struct way **ret,
                           struct as_err *err)
{
    *ret = &by_chance;
    for (size_t i = 0; i < AS_ARRAY_LEN(ways); i++) {
        char *column = NULL;
        as_status st = parse_column(f, ways[i].field, &column, err);
        if (st != AS_OK)
            return st;
        if (!column)
            continue;
        free(spec->holdout_column);
        spec->holdout_column = column;
        if ((*ret)->field) {
            char at[AS_ERR_POINTER_MAX];
            json_pointer_child(f->pointer, ways[i].field, at);
            return as_fail_at(err, AS_E_INVAL, at, "%s: found beside %s, expected one of them", at,
                              (*ret)->field);
        }
        *ret = &ways[i];
        spec->holdout = ways[i].holdout;
    }
    return AS_OK;
}

/* `folds` beside the columns of other ways. */
static as_status parse_folds(struct json_fields *f, struct train_spec *spec, const struct way **way,
                             struct as_err *err)
{
    const struct train_integer folds = {"folds", 2, TRAIN_MAX_FOLDS, &spec->folds};
    as_status st = train_spec_integers(f, &folds, 1, err);
    if (st != AS_OK || spec->folds == 0)
        return st;
    if ((*way)->field) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child(f->pointer, "folds", at);
        return as_fail_at(err, AS_E_INVAL, at, "%s: found beside %s, expected one of them", at,
                          (*way)->field);
    }
    *way = &by_folds;
    spec->holdout = TRAIN_HOLD_FOLDS;
    spec->validation_fraction = 1 / (double)spec->folds;
    return AS_OK;
}

as_status train_spec_parse_validation(struct json_fields *doc, struct train_spec *spec,
                                      struct as_err *err)
{
    struct json_fields f;
    const struct way *way = NULL;
    bool there;
    as_status st = train_spec_section(doc, "validation", &f, &there, err);
    if (st < 0 || !there)
        return st;
    const struct train_number shares[] = {
        {"fraction", 1e-6, 1 - 1e-6, &spec->validation_fraction},
        {"last", 1e-6, 1 - 1e-6, &spec->validation_fraction},
    };
    const struct train_integer seed = {"seed", 0, INT64_MAX, &spec->validation_seed};
    st = parse_way(&f, spec, &way, err);
    if (st == AS_OK)
        st = parse_folds(&f, spec, &way, err);
    if (st != AS_OK)
        return st;
    st = train_spec_numbers(&f, shares, AS_ARRAY_LEN(shares), err);
    if (st != AS_OK)
        return st;
    st = train_spec_integers(&f, &seed, 1, err);
    if (st != AS_OK)
        return st;
    int split = spec->validation_split;
    st = json_fields_word(&f, "split", JSON_OPTIONAL, split_words, &split, err);
    if (st != AS_OK)
        return st;
    spec->validation_split = (train_split)split;
    st = json_fields_bool(&f, "refit", JSON_OPTIONAL, &spec->refit, err);
    if (st != AS_OK)
        return st;
    st = check_fields(&f, way, err);
    return st != AS_OK ? st : json_fields_end(&f, err);
}

as_status train_spec_parse_weights(struct json_fields *doc, struct train_spec *spec,
                                   struct as_err *err)
{
    const struct train_integer patience = {"patience", 1, TRAIN_MAX_EPOCHS, &spec->patience};
    as_status st = parse_column(doc, "weights", &spec->weights, err);
    if (st == AS_OK)
        st = parse_column(doc, "buckets", &spec->buckets, err);
    return st != AS_OK ? st : train_spec_integers(doc, &patience, 1, err);
}
