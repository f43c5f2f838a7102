/* A column is left out only if it can say nothing about new rows; what might say something stays
 * (decision 9011). The number of inputs of a network is an estimate: the record of the data set has
 * the exact one, after the table was registered. */
#include "cli/fit/fit_facts.h"

#include <string.h>

#include "data/csv_table.h"

#define TEXT_INPUTS 256 /* DATASET_BUCKETS */
#define DATE_INPUTS 5   /* days, weekday, month */

void fit_columns_done(struct fit_columns *c)
{
    str_done(&c->drop);
    str_done(&c->numeric);
    str_done(&c->text);
}

typedef enum use { USE_AS_IS, USE_NOT, USE_AS_NUMBER, USE_AS_TEXT } use;

static use use_of(const struct look_column *c)
{
    if (c->kind == LOOK_EMPTY || c->constant || c->identifier)
        return USE_NOT;
    if (c->stray || c->written || c->bad)
        return USE_AS_NUMBER;
    bool no_category = c->too_long || c->n_values > DATASET_MAX_CATEGORIES;
    return c->kind == LOOK_CATEGORY && no_category ? USE_AS_TEXT : USE_AS_IS;
}

static void add_name(struct str *list, const char *name)
{
    str_puts(list, list->len ? "," : "");
    dataset_name_pattern(name, list);
}

static as_status fail_groups(const struct table_look *look, const char *groups, struct as_err *err)
{
    struct as_nearest near = {.given = groups};
    if (as_streq(look->target, groups))
        return as_fail(err, AS_E_INVAL, "--groups: found the target, '%.80s'", groups);
    for (size_t i = 0; i < look->n_columns; i++)
        as_nearest_offer(&near, look->columns[i].name);
    if (near.name)
        return as_fail(err, AS_E_INVAL,
                       "--groups: there is no column '%.80s'; did you mean '%.80s'?", groups,
                       near.name);
    return as_fail(err, AS_E_INVAL, "--groups: there is no column '%.80s' beside the target",
                   groups);
}

as_status fit_columns_choose(const struct table_look *look, const char *groups,
                             struct fit_columns *ret, struct as_err *err)
{
    size_t left = 0;
    bool found = !groups;
    for (size_t i = 0; i < look->n_columns; i++) {
        const struct look_column *c = &look->columns[i];
        use how = use_of(c);
        if (groups && as_streq(c->name, groups)) {
            found = true;
            if (c->constant)
                return as_fail(err, AS_E_INVAL,
                               "--groups: column '%.80s' has one value in all rows, expected two "
                               "groups or more: one is held out",
                               groups);
            if (c->n_missing > 0)
                return as_fail(
                    err, AS_E_INVAL,
                    "--groups: column '%.80s' lacks %zu values: each row needs its group", groups,
                    c->n_missing);
            continue;
        }
        if (how == USE_NOT)
            add_name(&ret->drop, c->name);
        if (how == USE_AS_NUMBER)
            add_name(&ret->numeric, c->name);
        if (how == USE_AS_TEXT)
            add_name(&ret->text, c->name);
        left += how != USE_NOT;
    }
    if (!found)
        return fail_groups(look, groups, err);
    if (left == 0)
        return as_fail(
            err, AS_E_INVAL,
            "no column says anything about '%.80s': each is empty, an identifier, or has "
            "one value in all rows",
            look->target);
    return ret->drop.failed || ret->numeric.failed || ret->text.failed ? as_fail_nomem(err) : AS_OK;
}

static size_t inputs_of(const struct look_column *c, use how)
{
    if (how == USE_AS_NUMBER || c->kind == LOOK_NUMBER)
        return 1 + (c->n_missing > 0);
    if (how == USE_AS_TEXT || c->kind == LOOK_TEXT)
        return TEXT_INPUTS;
    if (c->kind == LOOK_DATE)
        return DATE_INPUTS;
    return c->n_values + 1;
}

as_status fit_facts_check(const struct table_look *look, struct as_err *err)
{
    if (look->one_value)
        return as_fail(err, AS_E_INVAL, "column '%.80s': %s %.12g in all rows%s", look->target,
                       look->rounding.m2 > 0 ? "as float32 the values are" : "the value is",
                       look->rounding.m2 > 0 ? (double)look->rounding.least : look->rounding.mean,
                       look->rounding.m2 > 0 ? ", although they differ: subtract that number first"
                                             : ", so there is nothing to predict");
    if (look->n_single > 1 && look->n_single == look->n_rows)
        return as_fail(err, AS_E_INVAL,
                       "column '%.80s': each of the %zu rows has a class of its own ('%.60s', …), "
                       "expected classes that several rows have, or numbers: is it an identifier, "
                       "or a text?",
                       look->target, look->n_rows, look->rarest_name);
    if (look->n_classes != 2 || look->rarest > 1)
        return AS_OK;
    return as_fail(err, AS_E_INVAL,
                   "column '%.80s': the class '%.60s' has one row, expected 2 or more of each: one "
                   "to learn from, and one to judge the model by",
                   look->target, look->rarest_name);
}

static void count_category(const struct look_column *c, use how, struct fit_facts *f)
{
    if (how != USE_AS_IS || c->kind != LOOK_CATEGORY)
        return;
    f->categories++;
    f->category_inputs += inputs_of(c, how);
    f->most_values = c->n_values > f->most_values ? c->n_values : f->most_values;
}

struct fit_facts fit_facts_of(const struct table_look *look, const char *groups)
{
    struct fit_facts f = {.rows = look->n_rows,
                          .targets = look->n_targets,
                          .classes = look->n_classes,
                          .rarest = look->rarest};
    f.transform = skewness_transform(&look->skewness, &f.skewness_left);
    for (size_t i = 0; i < look->n_columns; i++) {
        const struct look_column *c = &look->columns[i];
        use how = use_of(c);
        if (how == USE_NOT || (groups && as_streq(c->name, groups)))
            continue;
        f.columns++;
        f.inputs += inputs_of(c, how);
        count_category(c, how, &f);
        f.texts += how == USE_AS_TEXT || c->kind == LOOK_TEXT;
    }
    return f;
}
