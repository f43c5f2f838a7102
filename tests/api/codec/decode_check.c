#include "tests/api/codec/decode_check.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/nth.h"

json_t *decode_parse(const char *text)
{
    struct as_err err;
    json_t *j = NULL;
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    return j;
}

static as_status decode(const void *arg, struct str *out, struct as_err *err)
{
    const struct decode_case *c = ((const struct decode_case *const *)arg)[0];
    const json_t *doc = ((const json_t *const *)arg)[1];
    struct arena a = {0};
    (void)out;
    as_status st = c->decode(doc, &a, err);
    arena_done(&a);
    return st;
}

void decode_check(const struct decode_case *c, bool says_where)
{
    struct arena a = {0};
    struct as_err err = {0};
    JSON_AUTO doc = decode_parse(c->text);
    as_status st = c->decode(doc, &a, &err);
    if (c->pointer) {
        ck_assert_msg(st < 0, "%s was accepted", c->text);
        ck_assert_msg(strcmp(err.pointer, c->pointer) == 0, "%s: at '%s', wanted '%s'", c->text,
                      err.pointer, c->pointer);
        ck_assert_str_ne(err.msg, "");
        ck_assert_msg(!says_where || strncmp(err.msg, err.pointer, strlen(err.pointer)) == 0,
                      "%s: '%s'", c->text, err.msg);
    } else {
        ck_assert_msg(st == AS_OK, "%s: %s", c->text, err.msg);
        (void)nth_each(c->text, decode, (const void *const[]){c, doc}, 0);
    }
    arena_done(&a);
}
