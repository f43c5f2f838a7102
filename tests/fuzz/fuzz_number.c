/* Numbers and durations that people write: what is accepted is decimal, as a whole, and finite. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_number(const char *text)
{
    double v;
    size_t n = as_decimal_len(text);
    if (n > strlen(text) || strspn(text, "0123456789+-.eE") < n)
        abort();
    if (as_parse_double(text, &v, NULL) == AS_OK && (text[n] || !isfinite(v)))
        abort();
}

static void check_duration(const char *text)
{
    int64_t ms;
    if (as_parse_duration_ms(text, &ms, NULL) < 0)
        return;
    size_t n = strspn(text, "0123456789.");
    if (ms < 0 || n == 0 || text[n + strspn(text + n, "msdh")])
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_AUTO(as_freep) char *text = malloc(size + 1);
    int64_t whole;
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    check_number(text);
    check_duration(text);
    (void)!as_parse_i64(text, &whole, NULL);
    return 0;
}
