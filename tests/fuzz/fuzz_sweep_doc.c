/* A sweep document from JSON: what is refused names a field; what is accepted has a canonical text
 * that is accepted too and says the same, and makes its first trial. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "scheduler/sweep/sweep_doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JSON_AUTO j = NULL;
    JSON_AUTO again = NULL;
    JSON_AUTO trial = NULL;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *a = NULL;
    AS_AUTO(sweep_doc_freep) struct sweep_doc *b = NULL;
    AS_AUTO(config_freep) struct config *c = NULL;
    struct as_err err = {0};
    if (json_parse((const char *)data, size, &j, NULL) < 0)
        return 0;
    if (sweep_doc_parse(j, 1, &a, &err) < 0) {
        if (!err.msg[0])
            abort();
        return 0;
    }
    AS_AUTO(as_freep) char *x = sweep_doc_format(a);
    if (!x || json_parse(x, strlen(x), &again, &err) < 0 || sweep_doc_parse(again, 2, &b, &err) < 0)
        abort();
    AS_AUTO(as_freep) char *y = sweep_doc_format(b);
    if (!y || strcmp(x, y) != 0)
        abort();
    struct search_spec spec;
    sweep_doc_search_spec(a, &spec);
    if (search_sample(&spec, &c, &err) < 0 || sweep_doc_trial(a, c, &trial, &err) < 0)
        abort();
    return 0;
}
