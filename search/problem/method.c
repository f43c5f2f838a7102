#include "search/problem/method.h"

as_status search_prepare(const struct search_method *m, const struct space *space,
                         const char *pointer, struct search_prepared **ret, uint64_t *ret_total,
                         struct as_err *err)
{
    if (m->prepare)
        return m->prepare(space, pointer, ret, ret_total, err);
    *ret = NULL;
    *ret_total = 0;
    return AS_OK;
}

void search_prepared_free(const struct search_method *m, struct search_prepared *p)
{
    if (p)
        m->prepared_free(p);
}

as_status search_check(const struct search_spec *spec, struct as_err *err)
{
    return spec->method->check ? spec->method->check(spec, err) : AS_OK;
}

as_status search_sample(const struct search_spec *spec, struct config **ret, struct as_err *err)
{
    return spec->method->sample(spec, ret, err);
}
