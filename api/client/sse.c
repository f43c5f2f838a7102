/* A line is collected byte by byte, because a read may end anywhere, also between CR and LF
 * (`after_cr`). The id of an event becomes the stream's id only when the event is complete: after a
 * cut inside an event the client asks from the last complete one and loses nothing. A NUL inside a
 * line becomes a blank, because lines are handed on as C strings. */
#include "api/client/sse.h"

#include <stdio.h>
#include <string.h>

void sse_done(struct sse *s)
{
    str_done(&s->line);
    str_done(&s->data);
}

void sse_reset(struct sse *s)
{
    str_clear(&s->line);
    str_clear(&s->data);
    s->type[0] = '\0';
    s->after_cr = s->has_data = false;
    memcpy(s->next_id, s->id, sizeof s->id);
}

void sse_resume(struct sse *s, const char *id)
{
    snprintf(s->id, sizeof s->id, "%s", id);
    memcpy(s->next_id, s->id, sizeof s->id);
}

/* One field of an event: "name: value". */
static void take_field(struct sse *s, const char *name, const char *value)
{
    if (strcmp(name, "data") == 0) {
        if (s->has_data)
            str_putc(&s->data, '\n');
        str_puts(&s->data, value);
        s->has_data = true;
    } else if (strcmp(name, "event") == 0) {
        snprintf(s->type, sizeof s->type, "%s", value);
    } else if (strcmp(name, "id") == 0 && strlen(value) < sizeof s->next_id) {
        memcpy(s->next_id, value, strlen(value) + 1);
    }
}

/* Handle a complete line. Returns false if the callback ended the stream. */
static bool take_line(struct sse *s, sse_event_fn fn, void *arg)
{
    bool more = true;
    if (s->line.len == 0) {
        memcpy(s->id, s->next_id, sizeof s->id); /* only now: a cut event must be sent again */
        if (s->has_data)
            more =
                fn(arg, s->id, s->type[0] ? s->type : "message", str_cstr(&s->data), s->data.len);
        str_clear(&s->data);
        s->has_data = false;
        s->type[0] = '\0';
        return more;
    }
    char *line = s->line.s, *colon = strchr(line, ':');
    if (colon == line) { /* a comment */
        str_clear(&s->line);
        return true;
    }
    const char *value = "";
    if (colon) {
        *colon = '\0';
        value = colon[1] == ' ' ? colon + 2 : colon + 1;
    }
    take_field(s, line, value);
    str_clear(&s->line);
    return true;
}

as_status sse_feed(struct sse *s, const char *bytes, size_t len, sse_event_fn fn, void *arg,
                   bool *ret_stop, struct as_err *err)
{
    *ret_stop = false;
    for (size_t i = 0; i < len; i++) {
        char ch = bytes[i];
        bool lf_of_crlf = ch == '\n' && s->after_cr;
        s->after_cr = ch == '\r';
        if (lf_of_crlf)
            continue;
        if (ch != '\n' && ch != '\r') {
            str_putc(&s->line, ch ? ch : ' '); /* a NUL would end the C string too early */
            if (s->line.len + s->data.len > SSE_MAX_EVENT_BYTES)
                return as_fail(err, AS_E_TOO_LARGE, "an event is larger than %d bytes",
                               SSE_MAX_EVENT_BYTES);
            continue;
        }
        as_status st = str_check(&s->line, err);
        if (st < 0)
            return st;
        bool more = take_line(s, fn, arg);
        st = str_check(&s->data, err);
        if (st < 0)
            return st;
        if (!more) {
            *ret_stop = true;
            return AS_OK;
        }
    }
    return AS_OK;
}
