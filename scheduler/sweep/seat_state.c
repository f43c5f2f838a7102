/* The table of transitions of seats, and the rules for a gang's world.
 *
 * A row is one allowed transition. A pair of state and event without a row is a conflict: a rank
 * that was declared lost stays lost, because the others went on without it, so whatever it says
 * later changes nothing. Who takes its place gets another seat. */
#include "scheduler/sweep/seat_state.h"

#include "base/mem.h"
#include "base/str.h"

static const char *const seat_words[SEAT_STATES] = {
    [SEAT_SEATED] = "seated", [SEAT_LISTENING] = "listening", [SEAT_RUNNING] = "running",
    [SEAT_LEFT] = "left",     [SEAT_LOST] = "lost",           [SEAT_ENDED] = "ended"};

static const char *const event_words[SEAT_EVENTS] = {[SEAT_EV_LISTEN] = "listen",
                                                     [SEAT_EV_JOIN] = "join",
                                                     [SEAT_EV_LEAVE] = "leave",
                                                     [SEAT_EV_LOSE] = "lose",
                                                     [SEAT_EV_END] = "end"};

static const char *const gang_words[GANG_STATES] = {[GANG_GATHERING] = "gathering",
                                                    [GANG_RUNNING] = "running",
                                                    [GANG_WAITING] = "waiting",
                                                    [GANG_OVER] = "over"};

static const struct {
    seat_state from;
    seat_event ev;
    seat_state to;
} rows[] = {
    {SEAT_SEATED, SEAT_EV_LISTEN, SEAT_LISTENING},    {SEAT_SEATED, SEAT_EV_LEAVE, SEAT_LEFT},
    {SEAT_SEATED, SEAT_EV_LOSE, SEAT_LOST},           {SEAT_SEATED, SEAT_EV_END, SEAT_ENDED},
    {SEAT_LISTENING, SEAT_EV_LISTEN, SEAT_LISTENING}, /* a repeat */
    {SEAT_LISTENING, SEAT_EV_JOIN, SEAT_RUNNING},     {SEAT_LISTENING, SEAT_EV_LEAVE, SEAT_LEFT},
    {SEAT_LISTENING, SEAT_EV_LOSE, SEAT_LOST},        {SEAT_LISTENING, SEAT_EV_END, SEAT_ENDED},
    {SEAT_RUNNING, SEAT_EV_LISTEN, SEAT_RUNNING}, /* a repeat whose first answer was lost */
    {SEAT_RUNNING, SEAT_EV_JOIN, SEAT_RUNNING},   /* the next epoch */
    {SEAT_RUNNING, SEAT_EV_LEAVE, SEAT_LEFT},         {SEAT_RUNNING, SEAT_EV_LOSE, SEAT_LOST},
    {SEAT_RUNNING, SEAT_EV_END, SEAT_ENDED},
};

as_status seat_step(seat_state from, seat_event ev, seat_state *ret, struct as_err *err)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
        if (rows[i].from != from || rows[i].ev != ev)
            continue;
        *ret = rows[i].to;
        return AS_OK;
    }
    return as_fail(err, AS_E_CONFLICT, "a rank that is %s does not take the event %s",
                   seat_words[from], event_words[ev]);
}

bool seat_state_is_live(seat_state s)
{
    return s == SEAT_SEATED || s == SEAT_LISTENING || s == SEAT_RUNNING;
}

const char *seat_state_format(seat_state s)
{
    return seat_words[s];
}

const char *seat_event_format(seat_event e)
{
    return event_words[e];
}

const char *gang_state_format(gang_state s)
{
    return gang_words[s];
}

as_status seat_state_parse(const char *name, seat_state *ret, struct as_err *err)
{
    for (int i = 0; i < SEAT_STATES; i++) {
        if (!as_streq(name, seat_words[i]))
            continue;
        *ret = (seat_state)i;
        return AS_OK;
    }
    return as_fail(err, AS_E_INVAL, "'%.40s' is not the state of a rank", name);
}

as_status gang_state_parse(const char *name, gang_state *ret, struct as_err *err)
{
    for (int i = 0; i < GANG_STATES; i++) {
        if (!as_streq(name, gang_words[i]))
            continue;
        *ret = (gang_state)i;
        return AS_OK;
    }
    return as_fail(err, AS_E_INVAL, "'%.40s' is not the state of a gang", name);
}

int64_t gang_deaths_max(int64_t ranks, int64_t max_restarts)
{
    return 3 * ranks + max_restarts;
}

int64_t gang_pause_ms(int64_t losses)
{
    if (losses <= 0)
        return 0;
    return losses > 5 ? 60000 : INT64_C(1000) << losses;
}

gang_verdict gang_verdict_of(const struct gang_standing *s)
{
    if (!s->elastic) {
        if (s->lost > 0)
            return GANG_IS_LOST;
        if (s->epoch > 0)
            return s->completed == s->ranks ? GANG_COMPLETES : GANG_GOES_ON;
        return s->listening == s->ranks ? GANG_NEW_EPOCH : GANG_GOES_ON;
    }
    if (s->live == 0 || (s->has_joined && s->joined == 0))
        return GANG_IS_LOST;
    if (s->idle_deaths > gang_deaths_max(s->ranks, s->max_restarts))
        return GANG_KEEPS_DYING;
    if (s->epoch == 0)
        return s->listening >= s->ranks ? GANG_NEW_EPOCH : GANG_GOES_ON;
    return s->gone > 0 || s->listening > s->members ? GANG_NEW_EPOCH : GANG_GOES_ON;
}
