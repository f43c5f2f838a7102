#include "tests/search/spaces.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/yaml_reader.h"

as_status space_from_yaml(const char *yaml, struct space **ret, struct as_err *err)
{
    JSON_AUTO j = NULL;
    as_status st = yaml_parse(yaml, strlen(yaml), &j, err);
    return st < 0 ? st : space_parse(j, "/parameters", ret, err);
}

static void add_domain(struct str *b, struct rng *r)
{
    switch (rng_below(r, 7)) {
    case 0:
        str_puts(b, "type: bool");
        break;
    case 1:
        str_puts(b, "type: constant, value: fixed");
        break;
    case 2:
        str_printf(b, "type: categorical, values: [a, 1, true%s]", rng_below(r, 2) ? ", 2.5" : "");
        break;
    case 3:
        str_printf(b, "type: int, min: %d, max: %d", (int)rng_below(r, 3),
                   2 + (int)rng_below(r, 4));
        break;
    case 4:
        str_printf(b, "type: int, min: 1, max: %d, scale: log, points: %d",
                   5 + (int)rng_below(r, 40), 2 + (int)rng_below(r, 4));
        break;
    case 5:
        str_printf(b, "type: float, min: -1, max: %d, step: 0.7", 1 + (int)rng_below(r, 2));
        break;
    default:
        str_printf(b, "type: float, min: 1e-3, max: 10, scale: log, points: %d",
                   2 + (int)rng_below(r, 3));
    }
}

/* A value that parameter p can take, as YAML. */
static void add_value(struct str *b, struct rng *r, const struct space_param *p)
{
    union param_value v = param_level(p, rng_below(r, param_levels(p)));
    JSON_AUTO j = param_value_to_json(p, v);
    json_format_to(b, j);
}

/* Parameter i may depend on one or two of those before it. */
static void add_when(struct str *b, struct rng *r, const struct space *before)
{
    size_t parents = before && rng_below(r, 2) ? 1 + rng_below(r, 2) : 0, named = 0, last = 0;
    for (size_t k = 0; k < parents; k++) {
        size_t i = (size_t)rng_below(r, before->n);
        if (before->params[i].kind == PARAM_FLOAT || (named && i == last))
            continue;
        str_printf(b, "%s%s: ", named ? ", " : ", when: {", before->params[i].name);
        add_value(b, r, &before->params[i]);
        last = i;
        named++;
    }
    if (named)
        str_puts(b, "}");
}

struct space *space_at_random(uint64_t seed)
{
    struct rng r;
    rng_init(&r, seed, 77);
    AS_AUTO(str_done) struct str text = {0};
    struct space *s = NULL;
    size_t n = 1 + rng_below(&r, 8);
    while (!s || s->n < n) {
        struct as_err err = {0};
        struct space *next = NULL;
        size_t keep = text.len;
        str_printf(&text, "p%zu: {", s ? s->n : 0);
        add_domain(&text, &r);
        add_when(&text, &r, s);
        str_puts(&text, "}\n");
        if (space_from_yaml(str_cstr(&text), &next, &err) == AS_OK) {
            space_free(s);
            s = next;
            continue;
        }
        /* two conditions that exclude each other are the one thing that may go wrong */
        ck_assert_msg(strstr(err.msg, "can never hold") != NULL, "%s\n%s", err.msg,
                      str_cstr(&text));
        text.len = keep;
        text.s[keep] = 0;
    }
    return s;
}
