#include "trial-runner/attempt/directive.h"

#include "base/log.h"

static const char *text_of(const json_t *obj, const char *name)
{
    const char *s = json_string_value(json_object_get(obj, name));
    return s ? s : "";
}

static const struct {
    const char *action;
    stop_why why;
} actions[] = {{"stop", STOP_DROPPED}, {"pause", STOP_PAUSE}, {"prune", STOP_PRUNE}};

/* STOP_NONE: this runner does not know the action. */
static stop_why meaning_of(const json_t *directive)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(actions); i++)
        if (as_streq(text_of(directive, "action"), actions[i].action))
            return actions[i].why;
    return STOP_NONE;
}

void directives_take_one(struct attempt *a, const json_t *directives)
{
    size_t i;
    json_t *d;
    json_array_foreach(directives, i, d)
    {
        struct attempt_id id = attempt_id_of(d);
        if (id.seat == ATTEMPT_NO_SEAT) /* of all ranks */
            id.seat = a->id.seat;
        stop_why why = meaning_of(d);
        if (!attempt_is(a, &id) || attempt_asked(a) >= why)
            continue;
        log_write(LOG_INFO, "the server stops a trial", "%s action=%s reason=\"%s\"", a->label,
                  text_of(d, "action"), text_of(d, "reason"));
        if (why == STOP_DROPPED)
            attempt_ask_stop(a, why);
        else
            attempt_end_early(a, why, text_of(d, "reason"));
    }
}
