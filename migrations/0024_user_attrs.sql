-- Values that people keep with trials and sweeps, by name.
-- Why: a client kept them in its process, where no other program saw them.
-- Locks: sweep, briefly, for the foreign key; no row is written. A server of the version before goes on beside it.

create table user_attr (
    sweep_key bigint not null references sweep on delete cascade,
    number    integer not null check (number >= -1),               -- of the trial; -1: of the sweep
    name      text not null check (length(name) between 1 and 128),
    value     json not null,
    primary key (sweep_key, number, name)
);
