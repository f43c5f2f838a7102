/* An expression over a fixed space: what is refused says at which column; what parses gives the
 * same answer twice, and does not touch what is not active. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "search/space/expr.h"
#include "search/sampling/sampler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const space_text =
    "{\"batch\": {\"type\": \"int\", \"min\": 0, \"max\": 8192},"
    " \"accumulate\": {\"type\": \"int\", \"min\": 0, \"max\": 64},"
    " \"x\": {\"type\": \"float\", \"min\": -1, \"max\": 1},"
    " \"opt\": {\"type\": \"categorical\", \"values\": [\"sgd\", \"adamw\"]},"
    " \"momentum\": {\"type\": \"float\", \"min\": 0, \"max\": 1, \"when\": {\"opt\": \"sgd\"}},"
    " \"nesterov\": {\"type\": \"bool\"},"
    " \"size\": {\"type\": \"ordinal\", \"values\": [16, 32, 64]},"
    " \"mixed\": {\"type\": \"categorical\", \"values\": [1, \"one\", true]},"
    " \"a\": {\"type\": \"int\", \"min\": 0, \"max\": 3},"
    " \"b\": {\"type\": \"int\", \"min\": 0, \"max\": 3},"
    " \"a-b\": {\"type\": \"int\", \"min\": 0, \"max\": 3},"
    " \"a/b\": {\"type\": \"int\", \"min\": 0, \"max\": 3},"
    " \"learning rate\": {\"type\": \"int\", \"min\": 0, \"max\": 3},"
    " \"log(x)\": {\"type\": \"int\", \"min\": 0, \"max\": 3},"
    " \"β\": {\"type\": \"int\", \"min\": 0, \"max\": 3},"
    " \"in\": {\"type\": \"bool\"}}";

static struct space *fixed_space(void)
{
    static struct space *s; /* one for the process; the sanitizer sees that it is still reachable */
    JSON_AUTO j = NULL;
    if (!s && (json_parse(space_text, strlen(space_text), &j, NULL) < 0 ||
               space_parse(j, "", &s, NULL) < 0))
        abort();
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct space *s = fixed_space();
    AS_AUTO(as_freep) char *text = calloc(size + 1, 1);
    AS_AUTO(expr_freep) struct expr *e = NULL;
    AS_AUTO(expr_freep) struct expr *again = NULL;
    struct as_err err = {0};
    if (!text)
        return 0;
    memcpy(text, data, size);
    as_status st = expr_parse(s, text, "/c/0", &e, &err);
    if (st < 0) {
        if ((st != AS_E_INVAL && st != AS_E_TOO_LARGE) || strcmp(err.pointer, "/c/0") != 0 ||
            (!strstr(err.msg, "column") && !strstr(err.msg, "bytes")))
            abort();
        return 0;
    }
    if (expr_parse(s, expr_text(e), "", &again, NULL) < 0)
        abort();
    for (uint64_t t = 0; t < 4; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        if (sampler_draw(s, SAMPLER_RANDOM, 1, t, &c, NULL, NULL) < 0)
            abort();
        bool holds = expr_holds(e, s, c);
        if (holds != expr_holds(again, s, c))
            abort();
        for (size_t i = 0; i < s->n; i++)
            if (expr_names(e, i) && !c->entries[i].active && !holds)
                abort();
    }
    return 0;
}
