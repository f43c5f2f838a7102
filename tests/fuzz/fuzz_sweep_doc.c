/* A sweep document from JSON: what is refused names a field, and the parser that notes all faults
 * refuses it too, naming each field once; what is accepted has a canonical text that is accepted
 * too and says the same, and makes its first trial. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "scheduler/sweep/sweep_doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_faults(const json_t *j, as_status want)
{
    AS_AUTO(sweep_doc_freep) struct sweep_doc *d = NULL;
    AS_AUTO(faults_done) struct faults faults = {0};
    struct as_err err = {0};
    as_status st = sweep_doc_parse_noting(j, 1, &faults, &d, &err);
    if ((st == AS_OK) != (want == AS_OK) || (st == AS_OK) != (faults.n == 0) || !d != (st != AS_OK))
        abort();
    for (size_t i = 0; i < faults.n; i++)
        if (!faults.list[i].msg[0] || faults_find(&faults, faults.list[i].pointer) != i)
            abort();
}

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
    as_status st = sweep_doc_parse(j, 1, &a, &err);
    check_faults(j, st);
    if (st < 0) {
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
