-- What a runner holds is found by a range of an index that moves on, not among all that it ever held.
-- Why: the entries of trials that ended stay in the index while any transaction of the database is open, and each claim read
-- those of its runner: a thousand after a minute.
-- Locks: trial and runner exclusively and briefly; rows of running trials are written. Servers of the version before must
-- have stopped.

create sequence trial_begun;
alter table trial add column begun bigint;          -- the order in which trials began, by their latest claim
update trial set begun = nextval('trial_begun') where state = 'running';
alter table trial
    alter column begun set default nextval('trial_begun'),
    add constraint trial_begun check (state <> 'running' or begun is not null);
drop index trial_runner;
create index trial_runner on trial (runner, begun) where state = 'running';

-- No running trial of the runner began before. A claim, which holds the runner's row, moves it on (CLAIMS_EXTEND).
alter table runner add column begun_from bigint not null default 0;

create or replace view held as
    select r.name as runner, t.epoch, t.sweep_key, t.number, t.attempt, null::integer as seat, t.group_id
    -- `offset 0`: the runner's row is read before its trials, whatever the statistics say.
    from runner r cross join lateral (select * from trial where runner = r.name and begun >= r.begun_from and state = 'running'
                                      offset 0) t
    union all
    select runner, epoch, sweep_key, number, attempt, seat, null from gang_seat
    where state in ('seated', 'listening', 'running')
    union all
    select runner, epoch, null, null, null, null, null from gathering_seat
    where until_at > now() and exists (select from gathering where sweep_key is not null);
