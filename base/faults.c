#include "base/faults.h"

#include <stdbool.h>
#include <string.h>

void faults_done(struct faults *f)
{
    free(f->list);
    *f = (struct faults){0};
}

static bool is_fault(as_status st)
{
    return st == AS_E_INVAL || st == AS_E_TOO_LARGE || st == AS_E_UNSUPPORTED;
}

size_t faults_find(const struct faults *f, const char *pointer)
{
    size_t i = 0;
    while (i < f->n && strcmp(f->list[i].pointer, pointer) != 0)
        i++;
    return i;
}

as_status faults_note(struct faults *f, as_status st, struct as_err *err)
{
    if (!f || !err || !is_fault(st))
        return st;
    if (faults_find(f, err->pointer) < f->n)
        return f->n < FAULTS_MAX ? AS_OK : st;
    const struct as_err fault = *err; /* as_grow may fill err */
    as_status grown = as_grow(&f->list, f->n + 1, sizeof *f->list, err);
    if (grown != AS_OK)
        return grown;
    f->list[f->n++] = fault;
    return f->n < FAULTS_MAX ? AS_OK : st;
}

as_status faults_first(const struct faults *f, struct as_err *err)
{
    if (!f || f->n == 0)
        return AS_OK;
    if (err)
        *err = f->list[0];
    return f->list[0].code;
}
