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
    /* Of a name that stands in several sets the last text counts, at the place of the first. */
    [NOTE_PUT] =
        {"note_put",
         "with given as materialized (select ($1::bigint[])[p.set] as sweep_key, "
         "($2::int[])[p.set] "
         "as number, p.name, (array_agg(p.text order by p.place desc))[1] as text, min(p.place) as "
         "place from unnest($3::int[], $4::text[], $5::text[]) with ordinality as p(set, name, "
         "text, place) group by 1, 2, 3), ranked as materialized (select g.*, k.is_known is not "
         "null as is_known, row_number() over (partition by g.sweep_key, g.number, k.is_known "
         "order by g.place) as nth from given g left join lateral (select true as is_known from "
         "trial_note k where k.sweep_key = g.sweep_key and k.number = g.number and k.name = g.name "
         "limit 1) k on true) insert into trial_note (sweep_key, number, name, text) select "
         "r.sweep_key, r.number, r.name, r.text from ranked r where r.is_known or r.nth <= $6 - "
         "(select count(*) from trial_note k where k.sweep_key = r.sweep_key and k.number = "
         "r.number) on conflict (sweep_key, number, name) do update set text = excluded.text"},
    [NOTE_LIST] = {"note_list", "select " NOTE_COLUMNS " from trial_note where sweep_key = $1 and "
                                "number = $2 order by name"},
};
const struct stmt_set note_stmts = {"note", stmts, AS_ARRAY_LEN(stmts)};

struct note_columns {
    struct str keys, numbers; /* of the sets */
    struct str sets, names, texts;
};

static void note_columns_done(struct note_columns *c)
{
    str_done(&c->keys);
    str_done(&c->numbers);
    str_done(&c->sets);
    str_done(&c->names);
    str_done(&c->texts);
}

static as_status note_columns_fill(struct note_columns *c, const struct trial_notes *sets, size_t n,
                                   struct as_err *err)
{
    struct str *const arrays[] = {&c->keys, &c->numbers, &c->sets, &c->names, &c->texts};
    for (size_t i = 0; i < AS_ARRAY_LEN(arrays); i++)
        array_open(arrays[i]);
    for (size_t i = 0; i < n; i++) {
        array_i64(&c->keys, sets[i].sweep_key);
        array_i64(&c->numbers, sets[i].number);
        for (size_t k = 0; k < sets[i].n; k++) {
            array_i64(&c->sets, (int64_t)i + 1);
            array_str(&c->names, sets[i].notes[k].name);
            array_str(&c->texts, sets[i].notes[k].text);
        }
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(arrays); i++) {
        array_close(arrays[i]);
        if (arrays[i]->failed)
            return as_fail_nomem(err);
    }
    return AS_OK;
}

as_status store_note_put_many(struct tx *t, const struct trial_notes *sets, size_t n,
                              struct as_err *err)
{
    AS_AUTO(note_columns_done) struct note_columns c = {0};
    if (n == 0)
        return AS_OK;
    as_status st = note_columns_fill(&c, sets, n, err);
    if (st != AS_OK)
        return st;
    return tx_exec(t, &stmts[NOTE_PUT],
                   ARGS(arg_str(str_cstr(&c.keys)), arg_str(str_cstr(&c.numbers)),
                        arg_str(str_cstr(&c.sets)), arg_str(str_cstr(&c.names)),
                        arg_str(str_cstr(&c.texts)), arg_i64(TRIAL_NOTES_MAX)),
                   NULL, err);
}

as_status store_note_put(struct tx *t, int64_t sweep_key, int64_t number,
                         const struct trial_note *notes, size_t n, struct as_err *err)
{
    const struct trial_notes set = {
        .sweep_key = sweep_key, .number = number, .notes = notes, .n = n};
    return store_note_put_many(t, &set, 1, err);
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
