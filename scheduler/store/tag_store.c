#include "scheduler/store/tag_store.h"

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"

enum { TAG_TRIALS };

#define TAGGED_FIELDS(FIRST, NEXT)                                                                 \
    FIRST(i64, number, "number")                                                                   \
    NEXT(trial_state, state, "state")                                                              \
    NEXT(i64, attempt, "attempt")                                                                  \
    NEXT(i64, n_tags, "coalesce(cardinality(tags), 0)")
COLUMNS_WHOLE_ROW(struct tagged_trial, TAGGED_FIELDS)
COLUMNS_READER(tagged, struct tagged_trial, TAGGED_FIELDS)
#define TAGGED_COLUMNS COLUMNS_SQL(TAGGED_FIELDS)

static const struct stmt stmts[] = {
    [TAG_TRIALS] =
        {"tag_trials",
         "with held as materialized (select number, coalesce(tags, '{}') as tags from trial where "
         "sweep_key = $1 and number = any ($2::int[]) order by number for no key update), wanted "
         "as "
         "materialized (select h.number, h.tags, array(select distinct g from unnest(h.tags || "
         "$3::text[]) g where g <> all ($4::text[]) order by g) as after from held h), tagged as "
         "(update trial t set tags = nullif(w.after, '{}') from wanted w where t.sweep_key = $1 "
         "and t.number = w.number and w.after <> w.tags returning t.number, t.state, t.attempt, "
         "t.tags) select " TAGGED_COLUMNS " from tagged order by number"},
};
const struct stmt_set tag_stmts = {"tag", stmts, AS_ARRAY_LEN(stmts)};

as_status store_trial_tag(struct tx *t, struct arena *a, int64_t sweep_key,
                          const struct trial_tagging *q, struct tagged_trial **ret, size_t *ret_n,
                          struct as_err *err)
{
    ARRAYS_AUTO x = {0};
    RESULT_AUTO r = {0};
    arrays_open(&x);
    for (size_t i = 0; i < q->n_numbers; i++)
        array_i64(&x.c[0], q->numbers[i]);
    for (size_t i = 0; i < q->n_add; i++)
        array_str(&x.c[1], q->add[i]);
    for (size_t i = 0; i < q->n_remove; i++)
        array_str(&x.c[2], q->remove[i]);
    as_status st = arrays_close(&x, err);
    if (st == AS_OK)
        st =
            tx_query(t, &stmts[TAG_TRIALS],
                     ARGS(arg_i64(sweep_key), arg_array(&x, 0), arg_array(&x, 1), arg_array(&x, 2)),
                     &r, err);
    if (st == AS_OK)
        st = read_tagged_rows(&r, r.rows, a, ret, err);
    if (st == AS_OK)
        *ret_n = (size_t)r.rows;
    return st;
}
