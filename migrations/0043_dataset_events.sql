-- Events of data sets.
-- Why: a page that lists them asked every five seconds, because nothing told it of a new one.
-- Locks: event exclusively, while its rows are checked. A server of the version before may go on: it passes these events on
-- without the name of the data set, and writes none.
alter table event
    drop constraint event_type_check,
    add constraint event_type_check check (type in ('sweep.created', 'sweep.changed', 'trial.changed', 'trial.measured',
        'trial.rung', 'ensemble.ready', 'runner.changed', 'gang.changed', 'model.changed', 'dataset.changed')),
    add column dataset text;

create or replace view event_each as
    select id, type, time, sweep_key, sweep, number, state, attempt, value, reason, runner, epoch, seat, model, dataset from event
    union all
    select s.first + x.place - 1, s.type, s.time, s.sweep_key, s.sweep, x.number, x.state, x.attempt, x.value, x.reason,
        x.runner, null, null, null, null
    from event_set s cross join lateral unnest(s.number, s.state, s.attempt, s.value, s.reason, s.runner)
        with ordinality as x(number, state, attempt, value, reason, runner, place);
