/* Table trial, read for the order of a list. */
#include "scheduler/store/order_store.h"

#include "base/str.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/sql_ran_priv.h"

enum { ORDER_ROWS, ORDER_ROWS_OF };

/* $2: the sort, $3: a name, $4: words. NaN counts as no value. An infinity is a text in
 * `metrics`. */
#define SORT_KEY                                                                                   \
    "(case $2::int when 1 then nullif(value, 'NaN') when 2 then extract(epoch from "               \
    "started_at)::float8 when 3 then extract(epoch from finished_at)::float8 when 4 then case "    \
    "when finished_at is not null then coalesce(" SQL_RAN_MS(                                      \
        "trial") "::float8 / 1000, "                                                               \
                 "extract(epoch from finished_at - started_at)::float8) end when 5 then "          \
                 "extract(epoch from "                                                             \
                 "created_at)::float8 when 6 then array_position($4::text[], state)::float8 when " \
                 "7 then "                                                                         \
                 "nullif((metrics->>$3::text)::float8, 'NaN') else case when $4::text[] is null "  \
                 "then "                                                                           \
                 "(params->>$3::text)::float8 else array_position($4::text[], "                    \
                 "params->>$3::text)::float8 end "                                                 \
                 "end)"

#define ROW_FIELDS(FIRST, NEXT)                                                                    \
    FIRST(i64, number, "number")                                                                   \
    NEXT(trial_state, state, "state")                                                              \
    NEXT(bool, has_key, SORT_KEY " is not null")                                                   \
    NEXT(f64, key, SORT_KEY)
COLUMNS_WHOLE_ROW(struct order_row, ROW_FIELDS)
COLUMNS_READER(row, struct order_row, ROW_FIELDS)
#define ROW_SELECT                                                                                 \
    "select " COLUMNS_SQL(ROW_FIELDS) " from trial where sweep_key = $1 and ($5::text is null "    \
                                      "or group_id = $5) and number "

static const struct stmt stmts[] = {
    [ORDER_ROWS] = {"order_rows", ROW_SELECT ">= $6 and number < $7"},
    [ORDER_ROWS_OF] = {"order_rows_of", ROW_SELECT "= any ($6::int[])"},
};
const struct stmt_set order_stmts = {"order", stmts, AS_ARRAY_LEN(stmts)};

static as_status read_rows(const struct result *r, struct arena *a, struct order_row **ret,
                           size_t *ret_n, struct as_err *err)
{
    struct order_row *rows = arena_alloc(a, (size_t)r->rows + 1, sizeof *rows);
    if (!rows)
        return as_fail_nomem(err);
    for (int i = 0; i < r->rows; i++) {
        struct reader rd;
        reader_init(&rd, r, i, a);
        read_row(&rd, &rows[i]);
        as_status st = reader_check(&rd, err);
        if (st != AS_OK)
            return st;
    }
    *ret = rows;
    *ret_n = (size_t)r->rows;
    return AS_OK;
}

/* The words as an array; an empty text: there are none. */
static as_status words_format(const struct order_key *k, struct str *ret, struct as_err *err)
{
    if (!k->words)
        return AS_OK;
    array_open(ret);
    for (size_t i = 0; i < k->n_words; i++)
        array_str(ret, k->words[i]);
    array_close(ret);
    return str_check(ret, err);
}

as_status store_order_rows(struct tx *t, struct arena *a, int64_t sweep_key,
                           const struct order_key *k, int64_t from, int64_t to,
                           struct order_row **ret, size_t *ret_n, struct as_err *err)
{
    AS_AUTO(str_done) struct str words = {0};
    RESULT_AUTO r = {0};
    as_status st = words_format(k, &words, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[ORDER_ROWS],
                      ARGS(arg_i64(sweep_key), arg_i64(k->sort), arg_str(k->name),
                           arg_str(k->words ? str_cstr(&words) : NULL), arg_str(k->group),
                           arg_i64(from), arg_i64(to)),
                      &r, err);
    return st == AS_OK ? read_rows(&r, a, ret, ret_n, err) : st;
}

as_status store_order_rows_of(struct tx *t, struct arena *a, int64_t sweep_key,
                              const struct order_key *k, const struct table_change *changes,
                              size_t n, struct order_row **ret, size_t *ret_n, struct as_err *err)
{
    AS_AUTO(str_done) struct str words = {0};
    AS_AUTO(str_done) struct str numbers = {0};
    RESULT_AUTO r = {0};
    array_open(&numbers);
    for (size_t i = 0; i < n; i++)
        array_i64(&numbers, changes[i].number);
    array_close(&numbers);
    as_status st = words_format(k, &words, err);
    if (st == AS_OK)
        st = str_check(&numbers, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[ORDER_ROWS_OF],
                      ARGS(arg_i64(sweep_key), arg_i64(k->sort), arg_str(k->name),
                           arg_str(k->words ? str_cstr(&words) : NULL), arg_str(k->group),
                           arg_str(str_cstr(&numbers))),
                      &r, err);
    return st == AS_OK ? read_rows(&r, a, ret, ret_n, err) : st;
}
