-- Events of one kind, of trials of one sweep, that one transaction writes are one row.
-- Why: an event had a row with two entries in indexes, and a batch of fifty cycles wrote 150 of them.
-- Locks: none; what is there stays as it is, and is read with the new rows. A server of the version before does not see what
-- a server of this one writes here: clients that follow events through it get them when it has been replaced.

-- The ids of its events are `first` to `id`, without gaps; each array has their fields in this order.
create table event_set (
    id        bigint primary key,
    first     bigint not null,
    type      text not null,
    time      timestamptz not null default clock_timestamp(),
    sweep_key bigint not null,
    sweep     text,
    number    integer[] not null,
    state     text[] not null,
    attempt   integer[] not null,
    value     double precision[] not null,
    reason    text[] not null,
    runner    text[] not null,
    constraint event_set_whole check (cardinality(number) = id - first + 1)
);
create index event_set_sweep on event_set (sweep_key, id);

-- All events, for people who look. Servers read the two tables themselves, to read no more than a page needs.
create view event_each as
    select id, type, time, sweep_key, sweep, number, state, attempt, value, reason, runner, epoch, seat, model from event
    union all
    select s.first + x.place - 1, s.type, s.time, s.sweep_key, s.sweep, x.number, x.state, x.attempt, x.value, x.reason,
        x.runner, null, null, null
    from event_set s cross join lateral unnest(s.number, s.state, s.attempt, s.value, s.reason, s.runner)
        with ordinality as x(number, state, attempt, value, reason, runner, place);
