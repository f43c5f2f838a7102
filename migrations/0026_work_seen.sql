-- What trials use of their machines over time, and runners that are to leave.
-- Why: people look for the cause of a slow trial, and take machines away for maintenance.
-- Locks: runner exclusively and attempt for the foreign key, briefly; no row is written. A server of the version before goes on
-- beside it: its heartbeats tell no runner to leave.

alter table runner add column draining boolean not null default false;    -- its next heartbeats tell it to leave

create table attempt_usage (
    sweep_key  bigint not null,
    number     integer not null,
    attempt    integer not null,
    seat       integer not null check (seat >= -1),                       -- of a rank; -1: the attempt is no gang's
    usage      json not null,                                             -- as the API answers it, without attempt and seat
    updated_at timestamptz not null default now(),
    primary key (sweep_key, number, attempt, seat),
    foreign key (sweep_key, number, attempt) references attempt on delete cascade
) with (fillfactor = 70);
