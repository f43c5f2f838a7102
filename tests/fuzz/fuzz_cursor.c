/* Cursors come back from clients as they please: each list's reader takes any bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/services/cursor_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        const char *list;
        size_t n;
    } lists[] = {{"sweeps", 1}, {"runners", 2}, {"trials", 5}, {"tokens", 2}};
    AS_AUTO(arena_done) struct arena a = {0};
    char *text = arena_strndup(&a, (const char *)data, size);
    for (size_t i = 0; text && i < AS_ARRAY_LEN(lists); i++) {
        const char *f[CURSOR_FIELDS_MAX];
        int64_t v;
        if (cursor_read(&a, text, lists[i].list, f, lists[i].n, NULL) != AS_OK)
            continue;
        const char *again = cursor_make(&a, lists[i].list, f, lists[i].n);
        if (!again || strcmp(again, text) != 0)
            abort(); /* what was read writes the same */
        if (cursor_i64(f[0], &v, NULL) == AS_OK && v == INT64_MIN)
            return 0;
    }
    return 0;
}
