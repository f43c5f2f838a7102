/* Table trial_note. */
#include "scheduler/store/note_store.h"

#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { NOTE_PUT, NOTE_LIST };

#define NOTE_FIELDS(FIRST, NEXT)                                                                   \
    FIRST(text, name, "name")                                                                      \
    NEXT(text, text, "text")
COLUMNS_WHOLE_ROW(struct trial_note, NOTE_FIELDS)
COLUMNS_READER(note, struct trial_note, NOTE_FIELDS)
#define NOTE_COLUMNS COLUMNS_SQL(NOTE_FIELDS)

static const struct stmt stmts[] = {
    [NOTE_PUT] =
        {"note_put",
         "with known as (select name from trial_note where sweep_key = $1 and number = $2), "
         "given as (select p.name, p.text, k.name is not null as is_known, row_number() "
         "over (partition by k.name is null order by p.place) as nth from "
         "unnest($3::text[], $4::text[]) with ordinality as p(name, text, place) left "
         "join known k on k.name = p.name) insert into trial_note (sweep_key, number, name, "
         "text) select $1, $2, name, text from given where is_known or nth <= $5 - (select "
         "count(*) from known) on conflict (sweep_key, number, name) do update set text = "
         "excluded.text"},
    [NOTE_LIST] = {"note_list", "select " NOTE_COLUMNS " from trial_note where sweep_key = $1 and "
                                "number = $2 order by name"},
};
const struct stmt_set note_stmts = {"note", stmts, AS_ARRAY_LEN(stmts)};

as_status store_note_put(struct tx *t, int64_t sweep_key, int64_t number,
                         const struct trial_note *notes, size_t n, struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0}, texts = {0};
    int changed = 0;
    array_open(&names);
    array_open(&texts);
    for (size_t i = 0; i < n; i++) {
        array_str(&names, notes[i].name);
        array_str(&texts, notes[i].text);
    }
    array_close(&names);
    array_close(&texts);
    if (names.failed || texts.failed)
        return as_fail_nomem(err);
    return tx_exec(t, &stmts[NOTE_PUT],
                   ARGS(arg_i64(sweep_key), arg_i64(number), arg_str(str_cstr(&names)),
                        arg_str(str_cstr(&texts)), arg_i64(TRIAL_NOTES_MAX)),
                   &changed, err);
}

as_status store_note_put_many(struct tx *t, const struct trial_notes *sets, size_t n,
                              struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = store_note_put(t, sets[i].sweep_key, sets[i].number, sets[i].notes, sets[i].n, err);
    return st;
}

as_status store_note_list(struct tx *t, struct arena *a, int64_t sweep_key, int64_t number,
                          struct trial_note **ret, size_t *ret_n, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[NOTE_LIST], ARGS(arg_i64(sweep_key), arg_i64(number)), &r, err);
    if (st != AS_OK || (st = read_note_rows(&r, r.rows, a, ret, err)) != AS_OK)
        return st;
    *ret_n = (size_t)r.rows;
    return AS_OK;
}
