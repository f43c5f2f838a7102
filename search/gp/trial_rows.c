#include "search/gp/trial_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "search/regression/warp.h"

void trial_rows_done(struct trial_rows *t)
{
    free(t->trial);
    free(t->param);
    free(t->x);
    free(t->y);
    free(t->z);
}

as_status trial_rows_reserve(struct trial_rows *t, const struct training_set *s, struct as_err *err)
{
    const struct encoding *e = s->enc;
    *t = (struct trial_rows){.s = s};
    t->trial = as_calloc(TRIAL_ROWS_MOST, sizeof *t->trial);
    t->param = as_calloc(e->n, sizeof *t->param);
    t->x = as_calloc(TRIAL_ROWS_MOST, e->n * sizeof *t->x);
    t->z = as_calloc(TRIAL_ROWS_MOST, e->n * sizeof *t->z);
    t->y = as_calloc(TRIAL_ROWS_MOST, sizeof *t->y);
    if (!t->trial || !t->param || !t->x || !t->z || !t->y)
        return as_fail(err, AS_E_NOMEM, "out of memory for what is learned of the parameters");
    for (size_t j = 0; j < e->n; j++)
        if (e->params[j].real >= 0)
            t->param[t->columns.n_real++] = j;
    t->columns.n_groups = t->columns.n_real;
    t->columns.n_cat = e->n_category;
    t->rows.x = t->x;
    t->rows.z = t->z;
    return AS_OK;
}

static void set_categories(struct trial_rows *t)
{
    const struct encoding *e = t->s->enc;
    for (size_t i = 0; i < t->rows.n; i++)
        for (size_t j = 0; j < e->n; j++)
            if (e->params[j].category >= 0)
                t->z[i * e->n_category + (size_t)e->params[j].category] =
                    (int32_t)encoding_level(e, j, training_set_point(t->s, t->trial[i])[j]);
}

as_status trial_rows_fill(struct trial_rows *t, size_t n_all,
                          bool (*takes)(const struct training_set *s, size_t i, const void *arg),
                          const void *arg, struct as_err *err)
{
    const struct training_set *s = t->s;
    AS_AUTO(gp_warp_freep) struct gp_warp *warp = NULL;
    for (size_t i = 0, seen = 0; i < s->n; i++) {
        if (!takes(s, i, arg))
            continue;
        bool is_row = seen < TRIAL_ROWS_MOST / 2 || n_all - seen <= TRIAL_ROWS_MOST / 2;
        seen++;
        if (!is_row)
            continue;
        t->trial[t->rows.n] = i;
        t->y[t->rows.n++] = s->costs[i];
    }
    for (size_t i = 0; i < t->rows.n; i++)
        for (size_t c = 0; c < t->columns.n_real; c++)
            trial_rows_put(t, i, c, trial_rows_place(t, i, c), 1);
    set_categories(t);
    as_status st = gp_warp_create(WARP_HALF_RANK, t->y, t->rows.n, &warp, err);
    if (st == AS_OK)
        memcpy(t->y, gp_warp_values(warp), t->rows.n * sizeof *t->y);
    return st;
}
