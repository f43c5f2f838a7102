/* Stored records of preprocessing. The first byte says which data set the record is of ("t": a
 * table with categories, "p": a plain table, "i": images, else text). A record that is read gives
 * the same record again, and encodes rows within its own layout. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "data/preprocess/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS 4

static char *names[] = {(char *)"a", (char *)"b"};
static struct dataset_column columns[] = {
    {.name = (char *)"x", .n_missing = 1},
    {.name = (char *)"c", .categorical = true, .n_missing = 1, .n_values = 2, .values = names},
    {.name = (char *)"y"}};
static const struct dataset_info table = {.task = DATASET_REGRESSION,
                                          .n_rows = ROWS,
                                          .n_features = 3,
                                          .n_outputs = 1,
                                          .columns = columns};
static const struct dataset_info plain = {
    .task = DATASET_CLASSIFICATION, .n_rows = ROWS, .n_features = 3, .n_outputs = 2};
static const struct dataset_info image = {.task = DATASET_CLASSIFICATION,
                                          .input = DATASET_IMAGE,
                                          .n_rows = ROWS,
                                          .n_features = 4,
                                          .n_outputs = 2,
                                          .height = 1,
                                          .width = 2,
                                          .channels = 2};
static const struct dataset_info text = {.task = DATASET_LANGUAGE_MODELING,
                                         .input = DATASET_TOKEN_TEXT,
                                         .n_rows = ROWS,
                                         .n_features = 1,
                                         .n_outputs = 7};

static void fill_rows(const struct dataset_info *info, struct dataset *d)
{
    size_t n = info->n_rows * info->n_features;
    *d = (struct dataset){
        .n_rows = info->n_rows, .n_features = info->n_features, .n_outputs = info->n_outputs};
    d->x = info->input == DATASET_TOKEN_TEXT ? NULL : as_calloc(n, sizeof *d->x);
    d->targets = info->task == DATASET_REGRESSION ? as_calloc(ROWS, sizeof *d->targets) : NULL;
    for (size_t i = 0; d->x && i < n; i++)
        d->x[i] = info->columns && i % 9 == 0 ? NAN : (float)(i % 4);
}

/* Codes are within their columns' slots; inputs are as many as the record says. */
static void check_encoding(const struct preprocess *p, const struct dataset_info *info)
{
    AS_AUTO(dataset_done) struct dataset d;
    AS_AUTO(as_freep) int32_t *codes = NULL;
    fill_rows(info, &d);
    if (preprocess_apply(p, info, &d, &codes, NULL) != AS_OK)
        abort();
    if (d.x && d.n_features != preprocess_inputs(p, info))
        abort();
    for (size_t i = 0; i < ROWS * p->n_codes; i++)
        if (codes[i] < 0 || (size_t)codes[i] >= dataset_category_slots(info))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_AUTO record = NULL;
    AS_AUTO(preprocess_done) struct preprocess p = {0}, again = {0};
    if (size == 0)
        return 0;
    const struct dataset_info *info = data[0] == 't'   ? &table
                                      : data[0] == 'p' ? &plain
                                      : data[0] == 'i' ? &image
                                                       : &text;
    if (json_parse((const char *)data + 1, size - 1, &record, NULL) != AS_OK ||
        preprocess_from_json(record, "", info, &p, NULL) != AS_OK)
        return 0;
    JSON_AUTO written = preprocess_to_json(&p, info);
    if (!written || preprocess_from_json(written, "", info, &again, NULL) != AS_OK)
        abort();
    JSON_AUTO rewritten = preprocess_to_json(&again, info);
    if (!rewritten || !json_equal(written, rewritten))
        abort();
    check_encoding(&p, info);
    return 0;
}
