/* Constraints between parameters: a small language of expressions that are true or false.
 *
 *   batch * accumulate <= 4096
 *   optimizer != 'sgd' or momentum < 0.9
 *   width in [64, 128] and log2(width) >= layers
 *
 * From loose to tight: `or`; `and`; `not`; comparisons < <= > >= == != `in [..]` `not in [..]`
 * (ordered ones chain: 1 <= a < b); + -; * / %; unary -; ** (to the right). Functions: min and max
 * of 2 or more, abs, log, log2, exp, sqrt, floor, ceil. Numbers as in JSON; texts in '…' or "…";
 * true, false; the names of parameters. A name may hold - . or /; the longest name that fits is
 * taken. A name with other characters, such as a blank, and a name that is a word of the language
 * stand between `backquotes`. % has the sign of its right side, and / never rounds.
 *
 * Types are checked at parsing: a float, an int and a list of numbers is a number, a list of texts
 * is a text, a bool and a list of booleans is a boolean; a list of several types can only be
 * compared by ==, != and in. Numbers are doubles.
 *
 * There are no loops and no names except parameters. Length, depth and size are bounded; an
 * evaluation takes at most EXPR_MAX_NODES steps. */
#ifndef ASSAY_SEARCH_SPACE_EXPR_H
#define ASSAY_SEARCH_SPACE_EXPR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/space/config.h"
#include "search/space/space.h"

#define EXPR_MAX_TEXT 1000
#define EXPR_MAX_NODES 256
#define EXPR_MAX_DEPTH 32   /* of brackets, signs, nots and powers */
#define EXPR_MAX_CONSTS 256 /* values of all `in` lists */

struct expr;

/* Parse `text`; `pointer` is its place in the document. AS_E_INVAL, AS_E_TOO_LARGE with the column
 * (characters, from 1): "/parameter_constraints/0: column 9: unknown name 'bacth'; did you mean
 * 'batch'?".
 * AS_E_NOMEM. The result refers to parameters by their index and keeps no pointer to the space;
 * owned by the caller. */
AS_MUST_CHECK as_status expr_parse(const struct space *s, const char *text, const char *pointer,
                                   struct expr **ret, struct as_err *err);
void expr_free(struct expr *e);
AS_DEFINE_FREEP(struct expr, expr_free)

const char *expr_text(const struct expr *e); /* as it was written; view */
bool expr_names(const struct expr *e, size_t param);

/* Does a settled configuration of the space satisfy the expression? Yes if the expression names an
 * inactive parameter. No if an evaluated part is not finite (a division by zero, the log of 0).
 * `and` and `or` evaluate their right side only if it matters. Allocates nothing. */
bool expr_holds(const struct expr *e, const struct space *s, const struct config *c);

/* How far a settled configuration is from satisfying the expression: 0 if it holds, above 0 if not.
 * A search for an allowed configuration goes downhill on it.
 *   a < b, <=, >, >=, ==   |a - b| / (1 + |a| + |b|) if it does not hold; other comparisons 1
 *   and, or                the sum, the smaller one; `not` is moved inwards
 * A part that is not finite counts 2. Allocates nothing. */
double expr_excess(const struct expr *e, const struct space *s, const struct config *c);

#endif
