/* Patterns: the first line of the input is the pattern, the rest the text. A group lies inside of
 * the text, and every match ends. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nl = memchr(data, '\n', size);
    size_t n = nl ? (size_t)(nl - data) : size;
    const char *text = (const char *)data + n;
    char *pattern = calloc(n + 1, 1);
    struct pattern *p = NULL;
    bool found = false;
    if (!pattern)
        return 0;
    memcpy(pattern, data, n);
    if (pattern_compile(pattern, &p, NULL, NULL) == AS_OK &&
        pattern_match(p, text, size - n, &found, NULL) == AS_OK && found) {
        for (size_t i = 0; i < pattern_n_names(p); i++) {
            const char *group;
            size_t len;
            if (pattern_group(p, i, &group, &len))
                assert(group >= text && len <= size - n && group + len <= text + (size - n));
        }
    }
    pattern_free(p);
    free(pattern);
    return 0;
}
