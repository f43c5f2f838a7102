/* CSV of a trial: whatever is written, and however it is cut, the measurements are the same, and
 * are no more after the file began again. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/trial-runner/reports/seen.h"
#include "trial-runner/reports/csv_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct csv_reader *r, struct seen *s, const uint8_t *data, size_t size,
                     size_t piece)
{
    struct report_fns fns = seen_fns(s);
    as_status st = AS_OK;
    for (size_t at = 0; st == AS_OK && at < size; at += piece)
        st = csv_reader_feed(r, (const char *)data + at, size - at < piece ? size - at : piece,
                             &fns, NULL);
    if (st == AS_OK)
        st = csv_reader_end(r, &fns, NULL);
    assert(st == AS_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct csv_reader a = {.step_column = "epoch"}, b = {.step_column = "epoch"};
    struct seen whole = {0}, pieces = {0};
    read_all(&a, &whole, data, size, size ? size : 1);
    read_all(&b, &pieces, data, size, 3);
    assert(as_streq(str_cstr(&whole.text), str_cstr(&pieces.text)));
    size_t items = whole.items;
    csv_reader_restart(&a);
    read_all(&a, &whole, data, size, 7);
    assert(whole.items == items || items > CSV_MAX_KNOWN);
    csv_reader_done(&a);
    csv_reader_done(&b);
    str_done(&whole.text);
    str_done(&pieces.text);
    return 0;
}
