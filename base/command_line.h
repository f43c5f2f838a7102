/* trial.command with the parameters of one trial: the arguments of its program.
 *
 * Each element is a text, a number, or a list of these:
 *
 *   "--lr=${lr}"                   one argument; references as in template.h
 *   ["--momentum", "${momentum}"]  its elements, or none of them if a name in it is inactive or
 *                                  null
 *   "${nesterov?--nesterov}"       --nesterov if the parameter is true, else no argument at all
 *   "${args}"                      --name=value for each active parameter, in the document's order;
 *                                  none for null
 *   "${args:hydra}"                name=value, name=null
 *   "${args:short}"                --name value, two arguments
 *
 * A parameter that is named `args` hides "${args}", but not "${args:long}", which means the
 * same. */
#ifndef ASSAY_BASE_COMMAND_LINE_H
#define ASSAY_BASE_COMMAND_LINE_H

#include <jansson.h>

#include "base/status.h"
#include "base/template.h"

#define COMMAND_LINE_MAX 4096 /* arguments after all references are replaced */

/* What is known of the names when a sweep is created; `arg` is passed on. */
struct command_rules {
    template_known_fn *known;       /* is it a parameter, or a file "file:path"? */
    template_known_fn *conditional; /* may it be inactive? */
    template_known_fn *boolean;     /* are its values true and false? */
    const void *arg;
};

/* Check one element of a command. `is_strict` refuses what runs but is hardly meant: a name that
 * may be inactive, without a default and outside of a list. AS_E_INVAL with the pointer. */
AS_MUST_CHECK as_status command_line_check(const json_t *element, const char *pointer,
                                           const struct command_rules *rules, bool is_strict,
                                           struct as_err *err);
/* The same for a text that becomes one text: of trial.env, trial.files, trial.directory. */
AS_MUST_CHECK as_status command_text_check(const json_t *text, const char *pointer,
                                           const struct command_rules *rules, bool is_strict,
                                           struct as_err *err);

/* The arguments, a new reference to a list of texts.
 *   params     {name: value} of the active parameters, which "${args}" stands for
 *   inactive   names of the others, a list; NULL: none
 *   names      {name: value} of all that a reference may name: the parameters, and others such as
 *              "file:path"
 * AS_E_INVAL: an element is neither text, number nor list, or a reference is not well formed;
 * AS_E_TOO_LARGE: more than COMMAND_LINE_MAX arguments; AS_E_NOMEM. */
AS_MUST_CHECK as_status command_line_expand(const json_t *command, const json_t *params,
                                            const json_t *inactive, const json_t *names,
                                            json_t **ret, struct as_err *err);

#endif
