/* Rows for the ranks of an attempt. Members are listed by rank; the others are counted, those that
 * are coming apart from those that have left, because only members take part in a step. */
#include "cli/view/gang_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/view/format.h"

static int64_t integer(const json_t *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

static const char *text(const json_t *o, const char *name)
{
    return json_string_value(json_object_get(o, name));
}

/* A seat has a rank while it is a member of the current world. */
static bool is_member(const json_t *seat)
{
    return json_is_integer(json_object_get(seat, "rank"));
}

/* It has not been a member yet, and may become one. */
static bool is_coming(const json_t *seat)
{
    const char *state = text(seat, "state");
    return as_streq(state, "seated") || as_streq(state, "listening");
}

static size_t count_members(const json_t *seats)
{
    size_t i, n = 0;
    json_t *seat;
    json_array_foreach((json_t *)seats, i, seat)
    {
        n += is_member(seat);
    }
    return n;
}

static void add_summary(struct pairs *p, const json_t *gang)
{
    AS_AUTO(str_done) struct str b = {0};
    char size[32];
    size_t members = count_members(json_object_get(gang, "seats"));
    str_printf(&b, "%zu of %" PRId64, members, integer(gang, "ranks"));
    if (integer(gang, "min_ranks") < integer(gang, "ranks"))
        str_printf(&b, " (at least %" PRId64 ")", integer(gang, "min_ranks"));
    str_printf(&b, ", %s, epoch %" PRId64, text(gang, "state") ? text(gang, "state") : "?",
               integer(gang, "epoch"));
    if (json_is_integer(json_object_get(gang, "step")))
        str_printf(&b, ", step %" PRId64, integer(gang, "step"));
    str_printf(&b, ", %" PRId64 " lost, %s sent", integer(gang, "deaths"),
               format_size(integer(gang, "sent_bytes"), size));
    pairs_add(p, "ranks", STYLE_PLAIN, str_cstr(&b));
}

static void add_seat(struct pairs *p, const json_t *seat)
{
    AS_AUTO(str_done) struct str b = {0};
    char label[40], size[32];
    const char *state = text(seat, "state"), *runner = text(seat, "runner");
    const char *host = text(seat, "host"), *reason = text(seat, "reason");
    if (is_member(seat))
        (void)snprintf(label, sizeof label, "rank %" PRId64, integer(seat, "rank"));
    else
        (void)snprintf(label, sizeof label, "seat %" PRId64, integer(seat, "seat"));
    str_printf(&b, "%s on %s", state ? state : "?", runner ? runner : "?");
    if (host && *host && !as_streq(host, runner))
        str_printf(&b, " (%s)", host);
    if (is_member(seat) && integer(seat, "seat") != integer(seat, "rank"))
        str_printf(&b, ", seat %" PRId64, integer(seat, "seat"));
    if (json_is_integer(json_object_get(seat, "joined_epoch")))
        str_printf(&b, ", since epoch %" PRId64, integer(seat, "joined_epoch"));
    if (json_is_integer(json_object_get(seat, "step")))
        str_printf(&b, ", step %" PRId64, integer(seat, "step"));
    if (integer(seat, "sent_bytes") > 0)
        str_printf(&b, ", %s sent", format_size(integer(seat, "sent_bytes"), size));
    if (reason && *reason)
        str_printf(&b, ": %s", reason);
    pairs_add(p, label, is_member(seat) || is_coming(seat) ? STYLE_PLAIN : STYLE_WARN,
              str_cstr(&b));
}

static void add_rest(struct pairs *p, size_t n, const char *what)
{
    if (n > GANG_VIEW_SEATS)
        pairs_addf(p, "…", "%zu more %s; --json shows all", n - GANG_VIEW_SEATS, what);
}

void gang_view_rows(struct pairs *p, const json_t *gang)
{
    const json_t *seats = json_object_get(gang, "seats");
    size_t n = json_array_size(seats), here = 0, gone = 0;
    if (!json_is_object(gang))
        return;
    add_summary(p, gang);
    for (size_t i = 0; i < n; i++) {
        const json_t *seat = json_array_get(seats, i);
        if ((is_member(seat) || is_coming(seat)) && here++ < GANG_VIEW_SEATS)
            add_seat(p, seat);
    }
    add_rest(p, here, "ranks");
    for (size_t i = n; i-- > 0;) {
        const json_t *seat = json_array_get(seats, i);
        if (!is_member(seat) && !is_coming(seat) && gone++ < GANG_VIEW_SEATS)
            add_seat(p, seat);
    }
    add_rest(p, gone, "that are no members any more");
}
