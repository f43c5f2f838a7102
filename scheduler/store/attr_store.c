/* Table user_attr. */
#include "scheduler/store/attr_store.h"

#include "base/str.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sets_priv.h"

enum { ATTR_PUT, ATTR_DROP, ATTR_SUM, ATTR_LIST };

static const struct stmt stmts[] = {
    [ATTR_PUT] = {"attr_put",
                  "insert into user_attr (sweep_key, number, name, value) select $1, $2, u.name, "
                  "u.value::json from unnest($3::text[], $4::text[]) as u(name, value) where "
                  "u.value <> '' on conflict (sweep_key, number, name) do update set value = "
                  "excluded.value"},
    [ATTR_DROP] = {"attr_drop",
                   "delete from user_attr using unnest($3::text[], $4::text[]) as u(name, value) "
                   "where sweep_key = $1 and number = $2 and user_attr.name = u.name and u.value "
                   "= ''"},
    [ATTR_SUM] = {"attr_sum",
                  "select count(*), coalesce(sum(octet_length(name) + "
                  "octet_length(value::text)), 0) from user_attr where sweep_key = $1 and number "
                  "= $2"},
    [ATTR_LIST] = {"attr_list",
                   "select u.place - 1, (select json_object_agg(x.name, x.value order by x.name) "
                   "from user_attr x where x.sweep_key = $1 and x.number = u.number) from "
                   "unnest($2::int[]) with ordinality as u(number, place)"},
};
const struct stmt_set attr_stmts = {"attr", stmts, AS_ARRAY_LEN(stmts)};

as_status store_attr_put(struct tx *t, int64_t sweep_key, int64_t number,
                         const struct user_attr *attrs, size_t n, struct as_err *err)
{
    AS_AUTO(str_done) struct str names = {0};
    AS_AUTO(str_done) struct str values = {0};
    array_open(&names);
    array_open(&values);
    for (size_t i = 0; i < n; i++) {
        array_str(&names, attrs[i].name);
        array_str(&values, attrs[i].value ? attrs[i].value : "");
    }
    array_close(&names);
    array_close(&values);
    as_status st = str_check(&names, err);
    if (st == AS_OK)
        st = str_check(&values, err);
    for (int i = ATTR_PUT; i <= ATTR_DROP && st == AS_OK; i++)
        st = tx_exec(t, &stmts[i],
                     ARGS(arg_i64(sweep_key), arg_i64(number), arg_str(str_cstr(&names)),
                          arg_str(str_cstr(&values))),
                     NULL, err);
    return st;
}

as_status store_attr_sum(struct tx *t, int64_t sweep_key, int64_t number, int64_t *ret_n,
                         int64_t *ret_bytes, struct as_err *err)
{
    RESULT_AUTO r = {0};
    as_status st =
        tx_query(t, &stmts[ATTR_SUM], ARGS(arg_i64(sweep_key), arg_i64(number)), &r, err);
    if (st != AS_OK)
        return st;
    *ret_n = result_i64(&r, 0, 0);
    *ret_bytes = result_i64(&r, 0, 1);
    return AS_OK;
}

as_status store_attr_list(struct tx *t, struct arena *a, int64_t sweep_key, const int64_t *numbers,
                          size_t n, const char **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    RESULT_AUTO r = {0};
    array_open(&list);
    for (size_t i = 0; i < n; i++)
        array_i64(&list, numbers[i]);
    array_close(&list);
    as_status st = str_check(&list, err);
    if (st == AS_OK)
        st = tx_query(t, &stmts[ATTR_LIST], ARGS(arg_i64(sweep_key), arg_str(str_cstr(&list))), &r,
                      err);
    for (int i = 0; i < r.rows && st == AS_OK; i++) {
        struct reader rd;
        reader_init(&rd, &r, i, a);
        int64_t place = read_i64(&rd);
        const char *text = read_str(&rd);
        if ((st = reader_check(&rd, err)) == AS_OK)
            ret[place] = text ? text : "{}";
    }
    return st;
}
