#include "trial-runner/collective/workspace.h"

#include <stdint.h>
#include <stdlib.h>

void workspace_done(struct workspace *w)
{
    for (size_t i = 0; i < WORKSPACE_USES; i++)
        free(w->pieces[i]);
    *w = (struct workspace){0};
}

void *workspace_get(struct workspace *w, workspace_use use, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    if (w->pieces[use] && w->bytes[use] >= bytes)
        return w->pieces[use];
    free(w->pieces[use]);
    w->bytes[use] = 0;
    w->pieces[use] = as_calloc(bytes ? bytes : 1, 1);
    if (w->pieces[use])
        w->bytes[use] = bytes;
    return w->pieces[use];
}
