/* The document was accepted, so fields that are there have their types, or are "${…}" of a
 * parameter: of such a field nothing is known, and nothing is said. */
#include "cli/files/strategy_note.h"

#include "base/json.h"

#define SEE "docs/distributed.md, What a strategy costs in loss"
#define ROUNDING 1e-9

static bool is_given(const json_t *section, const char *name)
{
    const json_t *j = json_object_get(section, name);
    return j && !json_is_null(j);
}

static bool is_word(const json_t *section, const char *name, const char *word)
{
    const char *found = json_string_value(json_object_get(section, name));
    return found && as_streq(found, word);
}

/* Is it the strategy that `strategy` chooses, or else that of its section? */
static bool is_chosen(const json_t *distributed, const char *name)
{
    return is_given(distributed, "strategy") ? is_word(distributed, "strategy", name)
                                             : is_given(distributed, name);
}

/* Without a kind it is adamw. */
static bool is_adaptive(const json_t *optimizer)
{
    const char *kind = json_string_value(json_object_get(optimizer, "kind"));
    return !kind || (!as_starts_with(kind, "${") && !as_streq(kind, "sgd"));
}

/* By how much the weights move farther than by plain averages; 1 if that is not known. */
static double reach_of(const json_t *outer, double momentum)
{
    double lr;
    (void)json_number_get(json_object_get(outer, "momentum"), &momentum);
    if (!json_number_get(json_object_get(outer, "lr"), &lr) || momentum >= 1)
        return 1;
    return lr / (1 - momentum);
}

static void note_local_sgd(const json_t *train, const json_t *local, struct str *ret)
{
    const json_t *outer = json_object_get(local, "outer");
    const json_t *block = json_object_get(local, "block_momentum");
    double reach = json_is_object(outer)   ? reach_of(outer, 0.3)
                   : json_is_object(block) ? reach_of(block, 0)
                                           : 1;
    if (reach > 1 + ROUNDING)
        str_printf(
            ret,
            "Blocks of local_sgd move the weights %.3g times as far as their mean: on the "
            "digits that ended 7%% (twice as far) to 200%% (7 times) above plain training. A "
            "lr of 1 - momentum does not (" SEE ")",
            reach);
    else if (is_adaptive(json_object_get(train, "optimizer")))
        str_puts(ret, "Workers of local_sgd with an adaptive optimizer lag behind plain training "
                      "where the loss still falls at the end: up to 1.4 times its loss (" SEE ")");
}

void strategy_note(const json_t *document, struct str *ret)
{
    const json_t *train = json_object_get(json_object_get(document, "trial"), "train");
    const json_t *distributed = json_object_get(train, "distributed");
    const json_t *ranks = json_object_get(json_object_get(document, "resources"), "ranks");
    if (!distributed || !ranks || (json_is_integer(ranks) && json_integer_value(ranks) < 2))
        return;
    if (is_chosen(distributed, "gossip"))
        str_puts(ret, "gossip lags behind plain training where the loss still falls at the end: up "
                      "to 1.6 times its loss (" SEE ")");
    else if (is_chosen(distributed, "local_sgd"))
        note_local_sgd(train, json_object_get(distributed, "local_sgd"), ret);
    else if (is_chosen(distributed, "server") &&
             is_word(json_object_get(distributed, "server"), "mode", "async"))
        str_puts(ret, "server with mode async uses gradients of older weights: up to 1.4 times the "
                      "loss of plain training. A lower momentum, or mode ssp, is nearer (" SEE ")");
}
