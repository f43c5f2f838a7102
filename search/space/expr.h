/* Constraints between parameters: a small language of expressions that are true or false.
 *
 *   batch * accumulate <= 4096
 *   optimizer != 'sgd' or momentum < 0.9
 *   width in [64, 128] and log2(width) >= layers
 *
 * From loose to tight: `or`; `and`; `not`; comparisons < <= > >= == != `in [..]` `not in [..]`
 * (ordered ones chain: 1 <= a < b); + -; * / %; unary -; ** (to the right). Functions: min and max
 * of 2 or more, abs, log, log2, exp, sqrt, floor, ceil. Numbers as in JSON; texts in '…' or "…";
 * true, false; the names of parameters, the longest that fits where they hold - or ., between
 * `backquotes` where they are words of the language. % has the sign of its right side, and / never
 * rounds.
 *
 * Types are checked when it is parsed: a float, an int and a list of numbers is a number, a list of
 * texts is a text, a bool and a list of booleans is a boolean; a list of several types can only be
 * compared by ==, != and in. Numbers are doubles.
 *
 * No loops, no names but parameters, bounded length, depth and size; the cost of an evaluation is
 * at most EXPR_MAX_NODES steps. */
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

/* Parse `text`, which stands at `pointer`. AS_E_INVAL, AS_E_TOO_LARGE with the column (characters,
 * from 1): "/parameter_constraints/0: column 9: unknown name 'bacth'; did you mean 'batch'?".
 * AS_E_NOMEM. The result speaks of this space's parameters by their places and does not keep it;
 * owned by the caller. */
AS_MUST_CHECK as_status expr_parse(const struct space *s, const char *text, const char *pointer,
                                   struct expr **ret, struct as_err *err);
void expr_free(struct expr *e);
AS_DEFINE_FREEP(struct expr, expr_free)

const char *expr_text(const struct expr *e); /* as it was written; view */
bool expr_names(const struct expr *e, size_t param);

/* Does a settled configuration of the space satisfy it? Yes where a parameter that it names is not
 * active; no where a part that is evaluated is not finite (a division by zero, the log of 0); `and`
 * and `or` evaluate their right side only where it matters. Allocates nothing. */
bool expr_holds(const struct expr *e, const struct space *s, const struct config *c);

#endif
