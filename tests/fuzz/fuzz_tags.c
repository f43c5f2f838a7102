/* Requests for tags of trials: what parses holds the rules, a refusal says why. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "scheduler/services/trial_tags.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_tags(const char *const *tags, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!*tags[i] || strchr(tags[i], ',') || as_utf8_length(tags[i]) > TRIAL_TAG_TEXT_MAX)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_AUTO(arena_done) struct arena a = {0};
    JSON_AUTO body = NULL;
    struct tags_request q = {0};
    struct as_err err = {0};
    if (json_parse((const char *)data, size, &body, NULL) != AS_OK)
        return 0;
    if (tags_request_parse(body, &a, &q, &err) != AS_OK) {
        if (err.msg[0] == '\0')
            abort();
        return 0;
    }
    if (q.n_add + q.n_remove == 0 || q.n_numbers > TRIAL_TAGS_AT_ONCE)
        abort();
    check_tags(q.add, q.n_add);
    check_tags(q.remove, q.n_remove);
    return 0;
}
