#include "tests/scheduler/services/columns.h"

#include <check.h>
#include <string.h>

#include "tests/support/check_main.h"

struct columnar parse_columns(struct arena *a, const char *bytes, size_t len)
{
    struct columnar f;
    struct as_err err = {0};
    char *copy = arena_alloc(a, len + 1, 1); /* aligned */
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, len);
    ck_ok(columnar_parse(copy, len, a, &f, &err), err);
    return f;
}

const struct columnar_column *column(const struct columnar *f, const char *name)
{
    const struct columnar_column *c = columnar_find(f, name);
    ck_assert_msg(c != NULL, "no column %s", name);
    return c;
}

double number(const struct columnar *f, const char *name, size_t row)
{
    const struct columnar_column *c = column(f, name);
    ck_assert_uint_lt(row, f->n_rows);
    switch (c->type) {
    case COLUMNAR_U8:
        return ((const uint8_t *)c->values)[row];
    case COLUMNAR_U32:
        return ((const uint32_t *)c->values)[row];
    case COLUMNAR_F32:
        return (double)((const float *)c->values)[row];
    case COLUMNAR_F64:
        return ((const double *)c->values)[row];
    case COLUMNAR_DICT:
        break;
    }
    ck_abort_msg("%s has words", name);
}

const char *word(const struct columnar *f, const char *name, size_t row)
{
    const struct columnar_column *c = column(f, name);
    ck_assert_int_eq((int)c->type, COLUMNAR_DICT);
    uint32_t i = ((const uint32_t *)c->values)[row];
    return i == COLUMNAR_NO_WORD ? NULL : c->words[i];
}
