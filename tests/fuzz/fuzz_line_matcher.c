/* Output of a trial under two patterns: whatever is printed, and however it is cut, the
 * measurements are the same. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/trial-runner/reports/seen.h"
#include "trial-runner/reports/line_matcher.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct seen *s, const char *data, size_t size, size_t piece)
{
    struct line_matcher m = {0};
    struct report_fns fns = seen_fns(s);
    JSON_AUTO report = json_pack("[{s:[s,s],s:{s:s}}]", "stdout",
                                 "Epoch (?P<step>\\S+).* loss: (?P<loss>[0-9.eE+-]+)",
                                 "acc=(?P<acc>\\S+)", "groups", "acc", "val/acc");
    as_status st = line_matcher_init(&m, report, NULL);
    for (size_t at = 0; st == AS_OK && at < size; at += piece)
        st = line_matcher_feed(&m, data + at, size - at < piece ? size - at : piece, &fns, NULL);
    if (st == AS_OK)
        st = line_matcher_end(&m, &fns, NULL);
    assert(st == AS_OK);
    line_matcher_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = {0}, pieces = {0};
    read_all(&whole, (const char *)data, size, size ? size : 1);
    read_all(&pieces, (const char *)data, size, 3);
    assert(as_streq(str_cstr(&whole.text), str_cstr(&pieces.text)));
    str_done(&whole.text);
    str_done(&pieces.text);
    return 0;
}
