/* Recursive descent into an array of nodes. Each function parses one level of precedence and checks
 * the types of its operands, so that an error names the column where the user made it. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "search/space/expr_priv.h"

static const char *const type_words[] = {"a number", "a text", "a boolean",
                                         "a value of several types"};

static bool at_sign(const struct parser *p, const char *sign)
{
    return p->token == T_SIGN && strcmp(p->sign, sign) == 0;
}

static bool expect_sign(struct parser *p, const char *sign)
{
    if (at_sign(p, sign))
        return expr_scan_next(p);
    return expr_refuse(p, AS_E_INVAL, p->start, "expected %s", sign);
}

/* ---- nodes ---- */

static value_type type_at(const struct parser *p, size_t node)
{
    return p->e->nodes[node].type;
}

static bool add_node(struct parser *p, struct node node, size_t *ret)
{
    if (p->e->n_nodes == EXPR_MAX_NODES)
        return expr_refuse(p, AS_E_TOO_LARGE, p->start,
                           "the expression has more than %d parts; split it, all constraints hold "
                           "together",
                           EXPR_MAX_NODES);
    p->st = as_reserve_one(&p->e->nodes, p->e->n_nodes, &p->node_cap, sizeof *p->e->nodes, p->err);
    if (p->st < 0)
        return false;
    *ret = p->e->n_nodes;
    p->e->nodes[p->e->n_nodes++] = node;
    return true;
}

static bool add_value(struct parser *p, struct value v)
{
    struct expr *e = p->e;
    p->st = as_reserve_one(&e->values, e->n_values, &p->value_cap, sizeof *e->values, p->err);
    if (p->st < 0)
        return false;
    e->values[e->n_values++] = v;
    return true;
}

static bool value_of_json(struct parser *p, const json_t *j, struct value *ret)
{
    if (json_is_string(j)) {
        ret->type = TEXT;
        return expr_intern(p, json_string_value(j), &ret->v);
    }
    ret->type = json_is_boolean(j) ? BOOLEAN : NUMBER;
    ret->v = json_is_boolean(j) ? json_is_true(j) : json_number_value(j);
    return true;
}

static bool add_name(struct parser *p, size_t param)
{
    struct expr *e = p->e;
    const struct space_param *sp = &p->space->params[param];
    struct name name = {.param = param, .at = e->n_values, .type = NUMBER};
    for (size_t i = 0; param_is_choice(sp) && i < sp->n_values; i++) {
        struct value v;
        if (!value_of_json(p, json_array_get(sp->values, i), &v) || !add_value(p, v))
            return false;
        name.type = i == 0 || name.type == v.type ? v.type : MIXED;
    }
    p->st = as_reserve_one(&e->names, e->n_names, &p->name_cap, sizeof *e->names, p->err);
    if (p->st < 0)
        return false;
    e->names[e->n_names++] = name;
    return true;
}

/* Expressions compute with numbers, texts and booleans. */
static bool check_scalars(struct parser *p, const struct space_param *sp)
{
    for (size_t i = 0; i < sp->n_values; i++) {
        const json_t *v = json_array_get(sp->values, i);
        if (json_is_null(v) || json_is_array(v))
            return expr_refuse(p, AS_E_INVAL, p->start,
                               "values of '%s' are lists or null, which `when` and `forbidden` "
                               "compare, and expressions do not",
                               sp->name);
    }
    return true;
}

static bool param_node(struct parser *p, size_t *ret)
{
    size_t i = 0;
    if (!check_scalars(p, &p->space->params[p->param]))
        return false;
    while (i < p->e->n_names && p->e->names[i].param != p->param)
        i++;
    if (i == p->e->n_names && !add_name(p, p->param))
        return false;
    const struct name *name = &p->e->names[i];
    struct node n = {.op = OP_PARAM, .type = name->type, .a = name->param, .b = name->at};
    return add_node(p, n, ret) && expr_scan_next(p);
}

/* Operands of `what` must be of one type. */
static bool want_type(struct parser *p, size_t node, value_type type, const char *what, size_t byte)
{
    if (type_at(p, node) == type)
        return true;
    return expr_refuse(p, AS_E_INVAL, byte, "%s needs %s, found %s", what, type_words[type],
                       type_words[type_at(p, node)]);
}

static bool make_arithmetic(struct parser *p, expr_op op, const char *what, size_t byte, size_t a,
                            size_t b, size_t *ret)
{
    struct node n = {.op = op, .type = NUMBER, .a = a, .b = b};
    return want_type(p, a, NUMBER, what, byte) && want_type(p, b, NUMBER, what, byte) &&
           add_node(p, n, ret);
}

/* A text that the parameter never takes is a typing error of the user. */
static bool check_taken(struct parser *p, size_t node, struct value v, size_t byte)
{
    const struct node *n = &p->e->nodes[node];
    if (n->op != OP_PARAM || v.type != TEXT)
        return true;
    const struct space_param *sp = &p->space->params[n->a];
    for (size_t i = 0; i < sp->n_values; i++)
        if (p->e->values[n->b + i].type == v.type && p->e->values[n->b + i].v == v.v)
            return true;
    return expr_refuse(p, AS_E_INVAL, byte, "'%s' never takes this value", sp->name);
}

static bool make_equality(struct parser *p, expr_op op, size_t byte, size_t a, size_t b,
                          size_t *ret)
{
    value_type x = type_at(p, a), y = type_at(p, b);
    if (x != y && x != MIXED && y != MIXED)
        return expr_refuse(p, AS_E_INVAL, byte, "%s is never equal to %s", type_words[x],
                           type_words[y]);
    const struct node *na = &p->e->nodes[a], *nb = &p->e->nodes[b];
    if (na->op == OP_CONST && !check_taken(p, b, (struct value){na->type, na->v}, byte))
        return false;
    if (nb->op == OP_CONST && !check_taken(p, a, (struct value){nb->type, nb->v}, byte))
        return false;
    struct node n = {.op = op, .type = BOOLEAN, .a = a, .b = b};
    return add_node(p, n, ret);
}

/* ---- the grammar, from tight to loose ---- */

static bool parse_or(struct parser *p, size_t *ret);
static bool parse_factor(struct parser *p, size_t *ret);

static bool enter_level(struct parser *p)
{
    if (p->depth == EXPR_MAX_DEPTH)
        return expr_refuse(p, AS_E_TOO_LARGE, p->start, "it is nested deeper than %d",
                           EXPR_MAX_DEPTH);
    p->depth++;
    return true;
}

static bool parse_call(struct parser *p, size_t *ret)
{
    expr_op f = p->function;
    size_t byte = p->start, args = 0, more;
    char what[32];
    (void)snprintf(what, sizeof what, "%.*s()", (int)(p->next - p->start), p->e->text + p->start);
    bool is_list = f == OP_MIN || f == OP_MAX;
    if (!enter_level(p) || !expr_scan_next(p) || !expect_sign(p, "("))
        return false;
    do {
        if (args && !expr_scan_next(p))
            return false;
        if (!parse_or(p, &more))
            return false;
        if (args == 0) {
            *ret = more;
            if (!want_type(p, more, NUMBER, what, byte))
                return false;
        } else if (!is_list) {
            return expr_refuse(p, AS_E_INVAL, byte, "%s takes one number", what);
        } else if (!make_arithmetic(p, f, what, byte, *ret, more, ret)) {
            return false;
        }
        args++;
    } while (at_sign(p, ","));
    if (is_list && args < 2)
        return expr_refuse(p, AS_E_INVAL, byte, "%s takes two numbers or more", what);
    if (!expect_sign(p, ")"))
        return false;
    p->depth--;
    struct node n = {.op = f, .type = NUMBER, .a = *ret};
    return is_list || add_node(p, n, ret);
}

static bool parse_atom(struct parser *p, size_t *ret)
{
    struct node n = {.op = OP_CONST, .v = p->v};
    switch (p->token) {
    case T_NUMBER:
    case T_TEXT:
    case T_BOOLEAN:
        n.type = p->token == T_NUMBER ? NUMBER : p->token == T_TEXT ? TEXT : BOOLEAN;
        return add_node(p, n, ret) && expr_scan_next(p);
    case T_PARAM:
        return param_node(p, ret);
    case T_FUNCTION:
        return parse_call(p, ret);
    default:
        break;
    }
    if (!at_sign(p, "("))
        return expr_refuse(p, AS_E_INVAL, p->start, "expected a number, a name or (%s",
                           p->token == T_END ? ", found the end" : "");
    if (!enter_level(p) || !expr_scan_next(p) || !parse_or(p, ret) || !expect_sign(p, ")"))
        return false;
    p->depth--;
    return true;
}

static bool parse_power(struct parser *p, size_t *ret)
{
    size_t right, byte;
    if (!parse_atom(p, ret))
        return false;
    if (!at_sign(p, "**"))
        return true;
    byte = p->start;
    if (!enter_level(p) || !expr_scan_next(p) || !parse_factor(p, &right))
        return false;
    p->depth--;
    return make_arithmetic(p, OP_POW, "**", byte, *ret, right, ret);
}

static bool parse_factor(struct parser *p, size_t *ret)
{
    size_t byte = p->start;
    if (!at_sign(p, "-"))
        return parse_power(p, ret);
    if (!enter_level(p) || !expr_scan_next(p) || !parse_factor(p, ret) ||
        !want_type(p, *ret, NUMBER, "-", byte))
        return false;
    p->depth--;
    struct node n = {.op = OP_NEG, .type = NUMBER, .a = *ret};
    return add_node(p, n, ret);
}

static bool parse_term(struct parser *p, size_t *ret)
{
    if (!parse_factor(p, ret))
        return false;
    while (at_sign(p, "*") || at_sign(p, "/") || at_sign(p, "%")) {
        size_t right, byte = p->start;
        const char *sign = p->sign;
        expr_op op = *sign == '*' ? OP_MUL : *sign == '/' ? OP_DIV : OP_MOD;
        if (!expr_scan_next(p) || !parse_factor(p, &right) ||
            !make_arithmetic(p, op, sign, byte, *ret, right, ret))
            return false;
    }
    return true;
}

static bool parse_sum(struct parser *p, size_t *ret)
{
    if (!parse_term(p, ret))
        return false;
    while (at_sign(p, "+") || at_sign(p, "-")) {
        size_t right, byte = p->start;
        const char *sign = p->sign;
        if (!expr_scan_next(p) || !parse_term(p, &right) ||
            !make_arithmetic(p, *sign == '+' ? OP_ADD : OP_SUB, sign, byte, *ret, right, ret))
            return false;
    }
    return true;
}

/* One value of an `in` list: the token, or a minus and a number. */
static bool parse_item(struct parser *p, size_t node)
{
    size_t byte = p->start;
    bool minus = at_sign(p, "-");
    if (minus && !expr_scan_next(p))
        return false;
    struct value v = {.v = minus ? -p->v : p->v};
    if (p->token == T_NUMBER)
        v.type = NUMBER;
    else if (p->token == T_TEXT && !minus)
        v.type = TEXT;
    else if (p->token == T_BOOLEAN && !minus)
        v.type = BOOLEAN;
    else
        return expr_refuse(p, AS_E_INVAL, p->start, "expected a number, a text, true or false");
    value_type left = type_at(p, node);
    if (left != v.type && left != MIXED)
        return expr_refuse(p, AS_E_INVAL, byte, "%s is never equal to %s", type_words[left],
                           type_words[v.type]);
    return check_taken(p, node, v, byte) && add_value(p, v) && expr_scan_next(p);
}

static bool parse_list(struct parser *p, size_t node, size_t *ret)
{
    struct node n = {.op = OP_IN, .type = BOOLEAN, .a = node, .b = p->e->n_values};
    if (!expect_sign(p, "["))
        return false;
    do {
        if (n.n && !expr_scan_next(p))
            return false;
        if (n.n == EXPR_MAX_CONSTS)
            return expr_refuse(p, AS_E_TOO_LARGE, p->start, "the list has more than %d values",
                               EXPR_MAX_CONSTS);
        if (!parse_item(p, node))
            return false;
        n.n++;
    } while (at_sign(p, ","));
    return expect_sign(p, "]") && add_node(p, n, ret);
}

static bool parse_in(struct parser *p, size_t left, size_t *ret)
{
    bool negated = p->token == T_NOT;
    if (negated && !expr_scan_next(p))
        return false;
    if (p->token != T_IN)
        return expr_refuse(p, AS_E_INVAL, p->start, "expected in");
    if (!expr_scan_next(p) || !parse_list(p, left, ret))
        return false;
    struct node n = {.op = OP_NOT, .type = BOOLEAN, .a = *ret};
    return !negated || add_node(p, n, ret);
}

static bool ordered_op(const struct parser *p, expr_op *ret)
{
    static const struct {
        const char *sign;
        expr_op op;
    } ops[] = {{"<", OP_LT}, {"<=", OP_LE}, {">", OP_GT}, {">=", OP_GE}};
    for (size_t i = 0; i < AS_ARRAY_LEN(ops); i++) {
        if (at_sign(p, ops[i].sign)) {
            *ret = ops[i].op;
            return true;
        }
    }
    return false;
}

/* a < b <= c: a < b and b <= c. The middle is evaluated twice. The cost does not multiply, because
 * the middle is a number and a number contains no comparison. */
static bool parse_chain(struct parser *p, size_t left, size_t *ret)
{
    expr_op op;
    for (bool first = true; ordered_op(p, &op); first = false) {
        size_t right = 0, one = 0, byte = p->start;
        const char *sign = p->sign;
        if (!expr_scan_next(p) || !parse_sum(p, &right) ||
            !make_arithmetic(p, op, sign, byte, left, right, &one))
            return false;
        p->e->nodes[one].type = BOOLEAN;
        struct node both = {.op = OP_AND, .type = BOOLEAN, .a = *ret, .b = one};
        if (first)
            *ret = one;
        else if (!add_node(p, both, ret))
            return false;
        left = right;
    }
    return true;
}

static bool parse_comparison(struct parser *p, size_t *ret)
{
    expr_op ordered;
    if (!parse_sum(p, ret))
        return false;
    if (ordered_op(p, &ordered)) {
        if (!parse_chain(p, *ret, ret))
            return false;
    } else if (at_sign(p, "==") || at_sign(p, "!=")) {
        size_t right, byte = p->start;
        expr_op op = at_sign(p, "==") ? OP_EQ : OP_NE;
        if (!expr_scan_next(p) || !parse_sum(p, &right) ||
            !make_equality(p, op, byte, *ret, right, ret))
            return false;
    } else if (p->token == T_IN || p->token == T_NOT) {
        if (!parse_in(p, *ret, ret))
            return false;
    } else {
        return true;
    }
    if (ordered_op(p, &ordered) || at_sign(p, "==") || at_sign(p, "!=") || p->token == T_IN)
        return expr_refuse(p, AS_E_INVAL, p->start,
                           "only < <= > >= can follow one another; use brackets or and");
    return true;
}

static bool parse_not(struct parser *p, size_t *ret)
{
    size_t byte = p->start;
    if (p->token != T_NOT)
        return parse_comparison(p, ret);
    if (!enter_level(p) || !expr_scan_next(p) || !parse_not(p, ret) ||
        !want_type(p, *ret, BOOLEAN, "not", byte))
        return false;
    p->depth--;
    struct node n = {.op = OP_NOT, .type = BOOLEAN, .a = *ret};
    return add_node(p, n, ret);
}

static bool make_logical(struct parser *p, expr_op op, const char *word, size_t byte, size_t right,
                         size_t *ret)
{
    struct node n = {.op = op, .type = BOOLEAN, .a = *ret, .b = right};
    return want_type(p, *ret, BOOLEAN, word, byte) && want_type(p, right, BOOLEAN, word, byte) &&
           add_node(p, n, ret);
}

static bool parse_and(struct parser *p, size_t *ret)
{
    if (!parse_not(p, ret))
        return false;
    while (p->token == T_AND) {
        size_t right, byte = p->start;
        if (!expr_scan_next(p) || !parse_not(p, &right) ||
            !make_logical(p, OP_AND, "and", byte, right, ret))
            return false;
    }
    return true;
}

static bool parse_or(struct parser *p, size_t *ret)
{
    if (!parse_and(p, ret))
        return false;
    while (p->token == T_OR) {
        size_t right, byte = p->start;
        if (!expr_scan_next(p) || !parse_and(p, &right) ||
            !make_logical(p, OP_OR, "or", byte, right, ret))
            return false;
    }
    return true;
}

static bool parse_all(struct parser *p)
{
    size_t root;
    if (!expr_scan_next(p) || !parse_or(p, &root))
        return false;
    if (p->token != T_END)
        return expr_refuse(p, AS_E_INVAL, p->start, "expected an operator or the end");
    if (type_at(p, root) != BOOLEAN)
        return expr_refuse(p, AS_E_INVAL, 0, "it is %s, expected a comparison such as a <= b",
                           type_words[type_at(p, root)]);
    if (p->e->n_names == 0)
        return expr_refuse(p, AS_E_INVAL, 0, "it names no parameter");
    return true;
}

as_status expr_parse(const struct space *s, const char *text, const char *pointer,
                     struct expr **ret, struct as_err *err)
{
    size_t len = strlen(text);
    if (len > EXPR_MAX_TEXT)
        return as_fail_at(err, AS_E_TOO_LARGE, pointer, "%s: %zu bytes, at most %d are allowed",
                          pointer, len, EXPR_MAX_TEXT);
    AS_AUTO(expr_freep) struct expr *e = as_calloc(1, sizeof *e);
    JSON_AUTO texts = json_object();
    if (!e || !texts || !(e->text = as_strdup(text)))
        return as_fail(err, AS_E_NOMEM, "out of memory for a constraint");
    struct parser p = {.space = s, .pointer = pointer, .err = err, .e = e, .texts = texts};
    if (!parse_all(&p))
        return p.st;
    *ret = as_steal(e);
    return AS_OK;
}
