/* One remark for each column, the one that matters most: a column that is empty is not called
 * constant, and one that says what the target is is not called an identifier. Each names the option
 * that helps. */
#include "data/remarks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/shell_text.h"
#include "data/csv_table.h"

#define NAME_SHOWN 80
#define TABLE_REMARKS 6 /* of the whole table, at most */

/* The one remark about a column that matters most; -1: none. */
static int remark_of(const struct look_column *c)
{
    if (c->kind == LOOK_EMPTY)
        return REMARK_EMPTY;
    if (c->is_target)
        return REMARK_TARGET;
    if (c->constant)
        return REMARK_CONSTANT;
    if (c->stray)
        return REMARK_STRAY;
    if (c->written)
        return REMARK_WRITTEN;
    if (c->bad)
        return REMARK_BAD;
    if (c->slashed)
        return REMARK_SLASHED;
    if (c->identifier)
        return REMARK_IDENTIFIER;
    if (c->too_long)
        return REMARK_LONG;
    if (c->has_code)
        return REMARK_CODE;
    if (look_rounding_matters(&c->rounding))
        return REMARK_ROUNDED;
    return c->kind == LOOK_CATEGORY && c->n_values > DATASET_MAX_CATEGORIES ? REMARK_REFUSED : -1;
}

as_status remarks_of(const struct table_look *t, struct remark **ret, size_t *ret_n,
                     struct as_err *err)
{
    size_t n = 0;
    struct remark *list = as_calloc(t->n_columns + TABLE_REMARKS, sizeof *list);
    if (!list)
        return as_fail_nomem(err);
    for (size_t i = 0; i < t->n_columns; i++) {
        int kind = remark_of(&t->columns[i]);
        if (kind >= 0)
            list[n++] = (struct remark){(remark_kind)kind, i};
    }
    if (t->written)
        list[n++] = (struct remark){REMARK_WRITTEN, SIZE_MAX};
    if (look_rounding_matters(&t->rounding))
        list[n++] = (struct remark){REMARK_ROUNDED, SIZE_MAX};
    if (t->n_unlabelled > 0)
        list[n++] = (struct remark){REMARK_UNLABELLED, SIZE_MAX};
    if (t->n_copies > 0)
        list[n++] = (struct remark){REMARK_COPIES, SIZE_MAX};
    if (t->alike[0])
        list[n++] = (struct remark){REMARK_ALIKE, SIZE_MAX};
    if (t->n_classes > 0 && t->rarest == 1)
        list[n++] = (struct remark){REMARK_RARE, SIZE_MAX};
    *ret = list;
    *ret_n = n;
    return AS_OK;
}

void remark_count(struct str *b, size_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%zu", n);
    for (int i = 0; i < len; i++)
        str_printf(b, "%s%c", i > 0 && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

/* The option for a column, as it can be pasted. */
static void add_option(const char *option, const char *name, struct str *b)
{
    AS_AUTO(str_done) struct str pattern = {0};
    dataset_name_pattern(name, &pattern);
    str_printf(b, "--%s ", option);
    shell_word(b, str_cstr(&pattern));
    b->failed = b->failed || pattern.failed;
}

/* What becomes of the column without the option. */
static void add_treatment(const struct look_column *c, struct str *b)
{
    if (c->kind == LOOK_TEXT) {
        str_puts(b, "treated as free text");
    } else if (c->n_values > DATASET_MAX_CATEGORIES) {
        str_puts(b, "these are more than 1,024 categories, which are refused");
    } else if (c->n_values == c->n_text + c->n_numbers) {
        str_puts(b, "a column with another text in each row is refused");
    } else {
        str_puts(b, "treated as ");
        remark_count(b, c->n_values);
        str_puts(b, c->n_values == 1 ? " category" : " categories");
    }
    str_puts(b, "; ");
    add_option("numeric", c->name, b);
}

static void add_stray(const struct look_column *c, struct str *b)
{
    remark_count(b, c->n_text);
    str_puts(b, " of ");
    remark_count(b, c->n_text + c->n_numbers);
    str_printf(b, " values %s no number ('%.40s', line %zu); ", c->n_text == 1 ? "is" : "are",
               c->text, c->text_line);
    add_treatment(c, b);
    str_printf(b, " makes %s missing", c->n_text == 1 ? "it" : "them");
}

static void add_written(const struct look_column *c, struct str *b)
{
    str_printf(b, "numbers that are written with signs ('%.40s', line %zu); ", c->text,
               c->text_line);
    add_treatment(c, b);
    str_puts(b, " reads them as numbers");
}

static void add_code(const struct look_column *c, struct str *b)
{
    str_printf(b, "%.12g stands in ", c->code.value);
    remark_count(b, c->code.n);
    str_puts(b, " of ");
    remark_count(b, c->n_numbers);
    str_printf(
        b,
        " values, far from all others (%.6g to %.6g): if it means that the value is missing, "
        "--missing %.12g says so",
        c->code.least, c->code.most, c->code.value);
}

static void add_rounding(const struct look_rounding *r, struct str *b)
{
    str_printf(
        b,
        "tables are kept as float32, which rounds its values by up to %.3g, and their standard "
        "deviation is %.3g: subtract a number such as %.12g from them",
        r->most, sqrt(r->m2 / r->n), round(r->mean));
}

/* What is to be done about the column, or known of it; it stays. False: of another kind. */
static bool add_kept(const struct look_column *c, remark_kind kind, struct str *b)
{
    switch (kind) {
    case REMARK_STRAY:
        add_stray(c, b);
        return true;
    case REMARK_WRITTEN:
        add_written(c, b);
        return true;
    case REMARK_BAD:
        str_printf(b, "%s, which is refused; ", c->bad);
        add_option("numeric", c->name, b);
        str_puts(b, " makes it missing");
        return true;
    case REMARK_LONG:
        str_printf(b, "a text of more than %zu bytes, which is refused as a category; ",
                   DATASET_MAX_CLASS_NAME);
        add_option("text", c->name, b);
        str_puts(b, " hashes the words");
        return true;
    case REMARK_ROUNDED:
        add_rounding(&c->rounding, b);
        return true;
    case REMARK_CODE:
        add_code(c, b);
        return true;
    case REMARK_SLASHED:
        str_printf(b,
                   "days whose order is not certain ('%.40s', line %zu), so they are no dates: "
                   "write them as 2021-12-31 or 31.12.2021",
                   c->text, c->text_line);
        return true;
    default:
        return false;
    }
}

static void add_column(const struct look_column *c, remark_kind kind, const char *target,
                       struct str *b)
{
    if (*c->name)
        str_printf(b, "`%.*s`: ", NAME_SHOWN, c->name);
    else
        str_puts(b, "the column without a name: ");
    if (add_kept(c, kind, b))
        return;
    switch (kind) {
    case REMARK_IDENTIFIER:
        str_puts(b, "another value in each row, an identifier, which says nothing about new rows");
        break;
    case REMARK_REFUSED:
        str_printf(
            b,
            "more than %zu different texts, such as '%.40s' (line %zu), which are refused as "
            "categories; ",
            DATASET_MAX_CATEGORIES, c->text, c->text_line);
        add_option("text", c->name, b);
        str_puts(b, " hashes their words");
        break;
    case REMARK_EMPTY:
        str_puts(b, "every value is missing");
        break;
    case REMARK_CONSTANT:
        str_puts(b, "one value in all rows, which says nothing");
        break;
    default:
        str_printf(b,
                   "its values say what `%.*s` is: is it known when a prediction is needed, or the "
                   "target under another name?",
                   NAME_SHOWN, target);
    }
    str_puts(b, kind == REMARK_TARGET ? " " : "; ");
    add_option("drop", c->name, b);
    str_puts(b, " leaves it out");
}

static void add_unlabelled(const struct table_look *t, struct str *b)
{
    remark_count(b, t->n_unlabelled);
    str_puts(b, " of ");
    remark_count(b, t->n_rows + t->n_unlabelled);
    bool one = t->n_unlabelled == 1;
    str_printf(b, " rows lack%s `%.*s` (the first: line %zu)", one ? "s" : "", NAME_SHOWN,
               t->target, t->unlabelled_line);
    if (t->drop_unlabelled)
        str_printf(b, " and %s left out", one ? "is" : "are");
    else
        str_printf(b, ", and nothing can be learned from %s; --drop-unlabelled leaves %s out",
                   one ? "it" : "them", one ? "it" : "them");
}

static void add_copies(const struct table_look *t, struct str *b)
{
    remark_count(b, t->n_copies);
    str_puts(b, " of ");
    remark_count(b, t->n_rows);
    str_printf(b,
               " rows %s a copy of an earlier one: where both sides of a split have %s, figures "
               "are too good",
               t->n_copies == 1 ? "is" : "are", t->n_copies == 1 ? "it" : "them");
}

void remark_format(const struct table_look *t, const struct remark *r, struct str *b)
{
    if (r->column != SIZE_MAX) {
        add_column(&t->columns[r->column], r->kind, t->target, b);
    } else if (r->kind == REMARK_RARE) {
        str_printf(b, "`%.*s`: ", NAME_SHOWN, t->target);
        if (t->n_single > 1)
            str_printf(b, "%zu of %zu classes have one row each (the first: '%.40s')", t->n_single,
                       t->n_classes, t->rarest_name);
        else
            str_printf(b, "the class '%.40s' has one row", t->rarest_name);
        str_puts(b, ", and cannot be both learned and tested");
    } else if (r->kind == REMARK_WRITTEN) {
        str_printf(b, "`%.*s`: numbers that are written with signs ('%.40s'); treated as classes; ",
                   NAME_SHOWN, t->target, t->written);
        add_option("numeric", t->target, b);
        str_puts(b, " reads them as numbers");
    } else if (r->kind == REMARK_ALIKE) {
        str_printf(
            b,
            "`%.*s`: '%.40s' and '%.40s' differ by the case of letters alone, and are two of "
            "%zu classes",
            NAME_SHOWN, t->target, t->alike[0], t->alike[1], t->n_classes);
    } else if (r->kind == REMARK_ROUNDED) {
        str_printf(b, "`%.*s`: ", NAME_SHOWN, t->target);
        add_rounding(&t->rounding, b);
    } else if (r->kind == REMARK_UNLABELLED) {
        add_unlabelled(t, b);
    } else {
        add_copies(t, b);
    }
}
