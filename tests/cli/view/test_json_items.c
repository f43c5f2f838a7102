#include "cli/view/json_items.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"

/* In pieces of any size the bytes are those of the whole. */
START_TEST(same_as_the_whole)
{
    static const char *const lists[] = {"[]", "[1]",
                                        "[{\"a\":1,\"b\":[2,{\"c\":\"x\\ny\"}]},{},[]]"};
    for (size_t i = 0; i < AS_ARRAY_LEN(lists); i++) {
        for (int named = 0; named < 2; named++) {
            struct as_err err;
            AS_AUTO(str_done) struct str b = {0}, want = {0};
            JSON_AUTO items = NULL;
            JSON_AUTO first = json_pack("{s:{s:[i]}, s:s}", "doc", "x", 1, "id", "s");
            size_t n = 0, at;
            json_t *item;
            ck_ok(json_parse(lists[i], strlen(lists[i]), &items, &err), err);
            JSON_AUTO whole = named ? json_pack("{s:O, s:O}", "sweep", first, "items", items)
                                    : json_pack("{s:O}", "items", items);
            json_items_begin(&b, named ? "sweep" : NULL, first);
            json_array_foreach(items, at, item)
            {
                JSON_AUTO page = json_pack("[O]", item);
                json_items_add(&b, page, &n);
            }
            json_items_end(&b, n);
            AS_AUTO(as_freep) char *text = json_format_pretty(whole);
            str_printf(&want, "%s\n", text);
            ck_assert_str_eq(str_cstr(&b), str_cstr(&want));
            ck_assert_uint_eq(n, json_array_size(items));
        }
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("json_items");
    TCase *t = tcase_create("json_items");
    tcase_add_test(t, same_as_the_whole);
    suite_add_tcase(s, t);
    return s;
}
