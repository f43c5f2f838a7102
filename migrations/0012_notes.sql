-- Texts that a trial writes beside its numbers: the last one of each name.
-- Why: a line of a trial's report with a text was refused as a whole, and its numbers were lost.
-- Locks: trial, briefly, for the foreign key; no row is written. A server of the version before may go on, and refuses the
-- notes of newer runners.

create table trial_note (
    sweep_key bigint not null,
    number    integer not null,
    name      text not null check (length(name) between 1 and 63),
    text      text not null check (length(text) <= 1024),
    primary key (sweep_key, number, name),
    foreign key (sweep_key, number) references trial on delete cascade
);
