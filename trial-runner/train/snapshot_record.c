#include "trial-runner/train/snapshot_record.h"

#include <stdlib.h>

#include "base/mem.h"

void snapshots_done(struct snapshots *s)
{
    for (size_t i = 0; i < TRAIN_MAX_CYCLES; i++)
        free(s->values[i]);
    *s = (struct snapshots){0};
}

size_t snapshots_after(const struct train_spec *spec, int64_t epochs)
{
    int64_t wanted = train_spec_snapshots(spec);
    size_t n = 0;
    for (int64_t i = 0; i < wanted; i++)
        n += train_spec_cycle_end(spec, spec->schedule.cycles - wanted + i) <= epochs;
    return n;
}

as_status snapshots_alloc(struct snapshots *s, size_t n_values, struct as_err *err)
{
    float **place = &s->values[s->n];
    if (!*place)
        *place = as_calloc(n_values, sizeof **place);
    return *place
               ? AS_OK
               : as_fail(err, AS_E_NOMEM, "out of memory for a snapshot of %zu numbers", n_values);
}
