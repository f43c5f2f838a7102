/* Files of columns: every value of what parses can be read, and writing it again gives a file with
 * the same values. */
#include <stdlib.h>
#include <string.h>

#include "data/formats/columnar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const struct columnar *a, const struct columnar *b)
{
    if (a->n_rows != b->n_rows || a->n_columns != b->n_columns || a->is_whole != b->is_whole)
        abort();
    for (size_t i = 0; i < a->n_columns; i++) {
        const struct columnar_column *x = &a->columns[i], *y = &b->columns[i];
        if (x->type != y->type || x->n_words != y->n_words || strcmp(x->name, y->name) != 0 ||
            memcmp(x->values, y->values, a->n_rows * columnar_type_size(x->type)) != 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_AUTO(arena_done) struct arena a = {0};
    AS_AUTO(str_done) struct str bytes = {0}, again = {0};
    struct as_err err;
    struct columnar f, g;
    str_add(&bytes, (const char *)data, size);
    if (columnar_parse(str_cstr(&bytes), size, &a, &f, &err) < 0)
        return 0;
    if (columnar_write(&f, &again, &err) < 0 ||
        columnar_parse(again.s, again.len, &a, &g, &err) < 0)
        abort();
    compare(&f, &g);
    return 0;
}
