/* Columns that hold rows out: each line is a cell. Whatever is accepted has rows on both sides, and
 * keeps what each way promises. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/preprocess/holdout.h"

#define MAX_ROWS 500

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(const unsigned char *part, size_t n, size_t ret[3])
{
    for (size_t i = 0; i < n; i++) {
        if (part[i] > HOLDOUT_UNUSED)
            abort();
        ret[part[i]]++;
    }
    if (ret[HOLDOUT_TRAIN] == 0 || ret[HOLDOUT_HELD] == 0)
        abort();
}

static void try_all(const struct dataset_cells *c)
{
    unsigned char part[MAX_ROWS];
    float weights[MAX_ROWS];
    struct as_err err;
    size_t held = 1 + c->n / 4, rows[4][3] = {{0}};
    if (holdout_by_words(c, "w", part, &err) == AS_OK)
        count(part, c->n, rows[0]);
    if (c->n > held && holdout_by_order(c, "o", held, part, &err) == AS_OK) {
        count(part, c->n, rows[1]);
        if (rows[1][HOLDOUT_HELD] != held)
            abort();
    }
    if (holdout_by_groups(c, "g", held, 7, part, &err) == AS_OK) {
        count(part, c->n, rows[2]);
        for (size_t i = 0; i < c->n; i++)
            for (size_t k = 0; k < i; k++)
                if (strcmp(dataset_cell(c, i), dataset_cell(c, k)) == 0 && part[i] != part[k])
                    abort();
    }
    if (holdout_weights(c, "w", weights, &err) == AS_OK)
        for (size_t i = 0; i < c->n; i++)
            if (!(weights[i] >= 0) || !isfinite(weights[i]))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_AUTO(dataset_cells_done) struct dataset_cells c = {0};
    struct as_err err;
    for (size_t at = 0; at < size && c.n < MAX_ROWS;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t len = end ? (size_t)(end - data) - at : size - at;
        if (dataset_cells_add(&c, (const char *)data + at, len, &err) != AS_OK)
            return 0;
        at += len + 1;
    }
    if (c.n >= 2)
        try_all(&c);
    return 0;
}
