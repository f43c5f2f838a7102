/* Events as statements of several files read them: rows of `event`, and the events of each row of
 * `event_set`. Only store_event_add_many() knows which events go where. */
#ifndef ASSAY_SCHEDULER_STORE_SQL_EVENTS_PRIV_H
#define ASSAY_SCHEDULER_STORE_SQL_EVENTS_PRIV_H

/* The events of the rows `s` of event_set, as `x`, with the id SQL_EVENT_ID. */
#define SQL_EVENT_UNPACKED                                                                         \
    " cross join lateral unnest(s.number, s.state, s.attempt, s.value, s.reason, s.runner) with "  \
    "ordinality as x(number, state, attempt, value, reason, runner, place)"
#define SQL_EVENT_ID "s.first + x.place - 1"

/* The first $3 events, and some after them, with ids above $1 and below $2. A row of a set has its
 * highest id; of the rows in reach only those are unpacked that may have one of the first $3
 * events. `also`: a further condition, or "". */
#define SQL_EVENTS_FROM(also)                                                                      \
    "((select id, type, time, sweep, number, state, attempt, value, reason, runner, epoch, seat, " \
    "model, dataset from event where id > $1 and id < $2 " also                                    \
    " order by id limit $3) union all (select "                                                    \
    "" SQL_EVENT_ID ", s.type, s.time, s.sweep, x.number, x.state, x.attempt, x.value, x.reason, " \
    "x.runner, null, null, null, null from (select *, sum(id - greatest(first - 1, $1)) over "     \
    "(order by "                                                                                   \
    "id) - (id - greatest(first - 1, $1)) as n_before from (select * from event_set where id > "   \
    "$1 and id < $2 " also " order by id limit $3) n) s" SQL_EVENT_UNPACKED                        \
    " where s.n_before < $3 and " SQL_EVENT_ID " > $1)) e"

#endif
