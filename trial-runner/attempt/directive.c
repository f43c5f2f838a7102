#include "trial-runner/attempt/directive.h"

#include "base/log.h"

static const char *text_of(const json_t *obj, const char *name)
{
    const char *s = json_string_value(json_object_get(obj, name));
    return s ? s : "";
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
        if (!attempt_is(a, &id) || !as_streq(text_of(d, "action"), "stop") ||
            attempt_asked(a) == STOP_DROPPED)
            continue;
        log_write(LOG_INFO, "the server stops a trial", "%s reason=\"%s\"", a->label,
                  text_of(d, "reason"));
        attempt_ask_stop(a, STOP_DROPPED);
    }
}
