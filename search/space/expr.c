/* Evaluation of expressions. Operands come before their nodes and all types are checked, so
 * evaluation cannot fail. The depth of the recursion is at most the number of nodes. */
#include "search/space/expr.h"

#include <math.h>

#include "search/space/expr_priv.h"

void expr_free(struct expr *e)
{
    if (!e)
        return;
    free(e->text);
    free(e->nodes);
    free(e->values);
    free(e->names);
    free(e);
}

const char *expr_text(const struct expr *e)
{
    return e->text;
}

bool expr_names(const struct expr *e, size_t param)
{
    for (size_t i = 0; i < e->n_names; i++)
        if (e->names[i].param == param)
            return true;
    return false;
}

/* ---- evaluation ---- */

struct evaluation {
    const struct expr *e;
    const struct space *space;
    const struct config *c;
    bool bad; /* a part was not finite: the result is undefined */
};

static struct value eval_node(struct evaluation *x, size_t node);

static struct value eval_param(const struct evaluation *x, const struct node *n)
{
    const struct space_param *p = &x->space->params[n->a];
    union param_value v = x->c->entries[n->a].value;
    if (p->kind == PARAM_FLOAT)
        return (struct value){NUMBER, v.real};
    if (p->kind == PARAM_INT)
        return (struct value){NUMBER, (double)v.integer};
    return x->e->values[n->b + v.choice];
}

/* As in Python: a - b floor(a / b). */
static double modulo(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static double compute_arithmetic(expr_op op, double a, double b)
{
    switch (op) {
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
        return a * b;
    case OP_DIV:
        return a / b;
    case OP_MOD:
        return modulo(a, b);
    case OP_POW:
        return pow(a, b);
    case OP_MIN:
        return fmin(a, b);
    case OP_MAX:
        return fmax(a, b);
    case OP_NEG:
        return -a;
    case OP_ABS:
        return fabs(a);
    case OP_LOG:
        return log(a);
    case OP_LOG2:
        return log2(a);
    case OP_EXP:
        return exp(a);
    case OP_SQRT:
        return sqrt(a);
    case OP_FLOOR:
        return floor(a);
    case OP_CEIL:
        return ceil(a);
    default:
        return NAN;
    }
}

static bool compare_values(expr_op op, double a, double b)
{
    switch (op) {
    case OP_LT:
        return a < b;
    case OP_LE:
        return a <= b;
    case OP_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static bool same_value(struct value a, struct value b)
{
    return a.type == b.type && a.v == b.v;
}

static bool eval_in(struct evaluation *x, const struct node *n)
{
    struct value v = eval_node(x, n->a);
    for (size_t i = 0; i < n->n; i++)
        if (same_value(v, x->e->values[n->b + i]))
            return true;
    return false;
}

static bool eval_truth(struct evaluation *x, const struct node *n)
{
    struct value a;
    switch (n->op) {
    case OP_IN:
        return eval_in(x, n);
    case OP_NOT:
        return eval_node(x, n->a).v == 0;
    case OP_AND:
        return eval_node(x, n->a).v != 0 && !x->bad && eval_node(x, n->b).v != 0;
    case OP_OR:
        return eval_node(x, n->a).v != 0 || x->bad || eval_node(x, n->b).v != 0;
    case OP_EQ:
        a = eval_node(x, n->a);
        return same_value(a, eval_node(x, n->b));
    case OP_NE:
        a = eval_node(x, n->a);
        return !same_value(a, eval_node(x, n->b));
    default:
        a = eval_node(x, n->a);
        return compare_values(n->op, a.v, eval_node(x, n->b).v);
    }
}

static struct value eval_node(struct evaluation *x, size_t node)
{
    const struct node *n = &x->e->nodes[node];
    if (n->op == OP_CONST)
        return (struct value){n->type, n->v};
    if (n->op == OP_PARAM)
        return eval_param(x, n);
    if (n->type == BOOLEAN)
        return (struct value){BOOLEAN, eval_truth(x, n)};
    double a = eval_node(x, n->a).v, b = 0;
    if (n->op <= OP_POW || n->op == OP_MIN || n->op == OP_MAX)
        b = eval_node(x, n->b).v;
    double v = compute_arithmetic(n->op, a, b);
    x->bad |= !isfinite(v);
    return (struct value){NUMBER, v};
}

bool expr_holds(const struct expr *e, const struct space *s, const struct config *c)
{
    for (size_t i = 0; i < e->n_names; i++)
        if (!c->entries[e->names[i].param].active)
            return true;
    struct evaluation x = {.e = e, .space = s, .c = c};
    bool holds = eval_node(&x, e->n_nodes - 1).v != 0;
    return holds && !x.bad;
}

/* ---- how far from holding ---- */

#define EXCESS_UNDEFINED 2.0
#define EXCESS_LEAST 1e-9 /* of what does not hold, although the sides differ by rounding alone */

static double number_gap(struct evaluation *x, const struct node *n)
{
    double a = eval_node(x, n->a).v, b = eval_node(x, n->b).v;
    return x->bad ? EXCESS_UNDEFINED : fabs(a - b) / (1 + fabs(a) + fabs(b));
}

/* The smallest gap between a number and the values of an `in` list. */
static double list_gap(struct evaluation *x, const struct node *n)
{
    struct value v = eval_node(x, n->a);
    double least = 1;
    for (size_t i = 0; i < n->n; i++) {
        struct value w = x->e->values[n->b + i];
        if (v.type == NUMBER && w.type == NUMBER)
            least = fmin(least, fabs(v.v - w.v) / (1 + fabs(v.v) + fabs(w.v)));
    }
    return x->bad ? EXCESS_UNDEFINED : least;
}

/* Is a gap a measure of how far this node is from being `want`? */
static bool has_gap(const struct evaluation *x, const struct node *n, bool want)
{
    if (n->op == OP_LT || n->op == OP_LE || n->op == OP_GT || n->op == OP_GE)
        return true;
    bool equals = (n->op == OP_EQ && want) || (n->op == OP_NE && !want);
    return equals && x->e->nodes[n->a].type == NUMBER && x->e->nodes[n->b].type == NUMBER;
}

static double node_excess(struct evaluation *x, size_t node, bool want)
{
    const struct node *n = &x->e->nodes[node];
    if (n->op == OP_NOT)
        return node_excess(x, n->a, !want);
    if (n->op == OP_AND || n->op == OP_OR) {
        double a = node_excess(x, n->a, want), b = node_excess(x, n->b, want);
        return (n->op == OP_AND) == want ? a + b : fmin(a, b);
    }
    x->bad = false;
    bool holds = (eval_node(x, node).v != 0) == want && !x->bad;
    if (holds)
        return 0;
    x->bad = false;
    if (n->op == OP_IN && want)
        return fmax(EXCESS_LEAST, list_gap(x, n));
    return has_gap(x, n, want) ? fmax(EXCESS_LEAST, number_gap(x, n)) : 1;
}

double expr_excess(const struct expr *e, const struct space *s, const struct config *c)
{
    if (expr_holds(e, s, c))
        return 0;
    struct evaluation x = {.e = e, .space = s, .c = c};
    return fmax(EXCESS_LEAST, node_excess(&x, e->n_nodes - 1, true));
}
