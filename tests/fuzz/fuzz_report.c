/* The report parser: whatever a trial writes, and however it is cut, metrics are finite-or-named
 * numbers, steps whole, and the same bytes in other pieces give the same measurements. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "trial-runner/reports/report_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t digest;
    size_t items, bad;
};

static as_status on_item(void *arg, int64_t step, json_t *metrics, struct as_err *err)
{
    struct seen *s = arg;
    const char *name;
    json_t *v;
    (void)err;
    assert(step >= 0 && step <= REPORT_MAX_STEP);
    assert(json_object_size(metrics) >= 1 && json_object_size(metrics) <= REPORT_MAX_METRICS);
    json_object_foreach(metrics, name, v)
    {
        double d;
        assert(json_number_get(v, &d));
    }
    s->digest = s->digest * 31 + (uint64_t)step * 7 + json_object_size(metrics);
    s->items++;
    json_decref(metrics);
    return AS_OK;
}

static void on_bad(void *arg, size_t line, const char *why)
{
    struct seen *s = arg;
    assert(line > 0 && *why);
    s->bad++;
}

static struct seen read_all(const uint8_t *data, size_t size, size_t piece)
{
    struct report_reader r = {0};
    struct seen s = {0};
    struct report_fns fns = {.on_item = on_item, .on_bad = on_bad, .arg = &s};
    as_status st = AS_OK;
    for (size_t at = 0; st == AS_OK && at < size; at += piece) {
        size_t left = size - at;
        st = report_reader_feed(&r, (const char *)data + at, left < piece ? left : piece, &fns,
                                NULL);
    }
    if (st == AS_OK)
        st = report_reader_end(&r, &fns, NULL);
    assert(st == AS_OK);
    report_reader_done(&r);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = read_all(data, size, size ? size : 1), bytes = read_all(data, size, 3);
    assert(whole.digest == bytes.digest && whole.items == bytes.items && whole.bad == bytes.bad);
    return 0;
}
