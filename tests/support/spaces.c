/* Spaces for tests: from YAML, and random ones.
 *
 * A random space is written as YAML and parsed, so it goes through the same checks as a user's. It
 * has every kind of parameter, and conditions refer only to earlier parameters. Constraints are
 * added to the parsed space. Some of them are refused (conditions that exclude each other) and some
 * leave no configuration: both are cases that the search must handle. */
#include "tests/support/spaces.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/yaml_reader.h"
#include "tests/support/check_main.h"

as_status space_from_yaml(const char *yaml, struct space **ret, struct as_err *err)
{
    JSON_AUTO j = NULL;
    as_status st = yaml_parse(yaml, strlen(yaml), &j, err);
    return st < 0 ? st : space_parse(j, "/parameters", ret, err);
}

struct space *space_of_yaml(const char *yaml)
{
    struct space *s = NULL;
    struct as_err err = {0};
    ck_ok(space_from_yaml(yaml, &s, &err), err);
    return s;
}

static void add_domain(struct str *b, struct rng *r)
{
    switch (rng_below(r, 8)) {
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
    case 6:
        str_printf(b, "type: ordinal, values: [%s]",
                   rng_below(r, 2) ? "small, medium, large, huge" : "8, 2, 4");
        break;
    default:
        str_printf(b, "type: float, min: 1e-3, max: 10, scale: log, points: %d",
                   2 + (int)rng_below(r, 3));
    }
}

/* Append a random value that parameter p can take, as JSON. */
static void add_value(struct str *b, struct rng *r, const struct space_param *p)
{
    uint64_t levels = param_levels(p);
    JSON_AUTO j = param_value_to_json(p, levels ? param_level(p, rng_below(r, levels))
                                                : param_decode(p, rng_uniform(r)));
    json_format_to(b, j);
}

/* Append a range of p, with one end or both; the ends are not always in order. */
static void add_range(struct str *b, struct rng *r, const struct space_param *p)
{
    uint64_t ends = rng_below(r, 3);
    str_puts(b, "{");
    if (ends != 1) {
        str_puts(b, "min: ");
        add_value(b, r, p);
    }
    if (ends == 2)
        str_puts(b, ", ");
    if (ends != 0) {
        str_puts(b, "max: ");
        add_value(b, r, p);
    }
    str_puts(b, "}");
}

static void add_cond(struct str *b, struct rng *r, const struct space_param *p)
{
    bool ordered = p->kind == PARAM_FLOAT || p->kind == PARAM_INT || p->kind == PARAM_ORDINAL;
    if (ordered && (p->kind == PARAM_FLOAT || rng_below(r, 2)))
        add_range(b, r, p);
    else
        add_value(b, r, p);
}

/* Let a parameter depend on one or two of those before it. */
static void add_when(struct str *b, struct rng *r, const struct space *before)
{
    size_t parents = before && rng_below(r, 2) ? 1 + rng_below(r, 2) : 0, named = 0, last = 0;
    for (size_t k = 0; k < parents; k++) {
        size_t i = (size_t)rng_below(r, before->n);
        if (named && i == last)
            continue;
        str_printf(b, "%s%s: ", named ? ", " : ", when: {", before->params[i].name);
        add_cond(b, r, &before->params[i]);
        last = i;
        named++;
    }
    if (named)
        str_puts(b, "}");
}

static json_t *list_from_yaml(const char *yaml)
{
    struct as_err err = {0};
    json_t *j = NULL;
    ck_assert_msg(yaml_parse(yaml, strlen(yaml), &j, &err) == AS_OK, "%s\n%s", err.msg, yaml);
    return j;
}

static bool is_number(const struct space_param *p)
{
    return p->kind == PARAM_FLOAT || p->kind == PARAM_INT ||
           (p->kind == PARAM_ORDINAL && json_is_number(json_array_get(p->values, 0)));
}

static void constrain_by_expressions(struct space *s, struct rng *r)
{
    struct as_err err = {0};
    size_t a = (size_t)rng_below(r, s->n), b = (size_t)rng_below(r, s->n);
    if (!is_number(&s->params[a]) || !is_number(&s->params[b]))
        return;
    AS_AUTO(str_done) struct str text = {0};
    str_printf(&text, "['%s %s %s <= %d']", s->params[a].name, rng_below(r, 2) ? "*" : "-",
               s->params[b].name, (int)rng_below(r, 12) - 2);
    JSON_AUTO j = list_from_yaml(str_cstr(&text));
    ck_assert_msg(space_parse_constraints(s, j, "/parameter_constraints", &err) == AS_OK, "%s",
                  err.msg);
}

void space_constrain_at_random(struct space *s, uint64_t seed)
{
    struct rng r;
    struct as_err err = {0};
    rng_init(&r, seed, 78);
    AS_AUTO(str_done) struct str text = {0};
    str_puts(&text, "[");
    for (size_t k = rng_below(&r, 3); k-- > 0;) {
        size_t a = (size_t)rng_below(&r, s->n), b = (size_t)rng_below(&r, s->n);
        str_printf(&text, "{%s: ", s->params[a].name);
        add_value(&text, &r, &s->params[a]);
        if (b != a) {
            str_printf(&text, ", %s: ", s->params[b].name);
            add_cond(&text, &r, &s->params[b]);
        }
        str_puts(&text, k ? "}, " : "}");
    }
    str_puts(&text, "]");
    JSON_AUTO j = list_from_yaml(str_cstr(&text));
    as_status st = space_parse_forbidden(s, j, "/forbidden", &err);
    ck_assert_msg(st == AS_OK || strstr(err.msg, "never takes a value in this range"), "%s",
                  err.msg);
    constrain_by_expressions(s, &r);
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
        /* conditions that exclude each other and empty ranges may be refused */
        ck_assert_msg(strstr(err.msg, "can never hold") || strstr(err.msg, "in this range"),
                      "%s\n%s", err.msg, str_cstr(&text));
        text.len = keep;
        text.s[keep] = 0;
    }
    return s;
}
