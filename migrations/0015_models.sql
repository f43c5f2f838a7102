-- Models: versions under a name that outlive their sweeps.
-- Why: what a sweep found could be looked at and not used. A version is one file, content as any other, so a model holds
-- its content itself; it refers to no sweep, because a sweep may be deleted.
-- Locks: event exclusively and briefly; its check reads its rows once. A server of the version before may go on, and would
-- remove content to which only a model refers: do not let it run for a day beside this one.

-- A row stays when its model is deleted, because it knows which numbers were given.
create table model (
    name       text primary key check (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    newest     integer not null default 0 check (newest >= 0),    -- the number given last; none is given again
    created_at timestamptz not null default now(),
    changed_at timestamptz not null default now(),
    deleted_at timestamptz                                          -- null: it exists
);

create table model_version (
    model       text not null references model,
    version     integer not null check (version >= 1),
    sha256      text not null references blob,                      -- of the model file
    size        bigint not null check (size > 0),
    kind        text not null check (kind in ('trial', 'ensemble')),
    task        text not null,
    input       text not null,
    inputs      json not null,                                      -- [{name, kind, …}, …]
    outputs     json not null,                                      -- {classes} or {targets}
    members     json not null,                                      -- [{trial, attempt, seed, weight, kind}, …]
    metrics     jsonb not null,
    measured_on text not null,
    lineage     json not null,                                      -- json: the order of the document's parameters counts
    created_by  text,                                               -- the id of a token; no foreign key
    created_at  timestamptz not null default now(),
    primary key (model, version),
    constraint model_version_content unique (model, sha256)
);
create index model_version_blob on model_version (sha256);

create table model_alias (
    model      text not null,
    alias      text not null check (alias ~ '^[A-Za-z][A-Za-z0-9._-]{0,63}$' and alias <> 'default'),
    version    integer not null,
    changed_at timestamptz not null default now(),
    primary key (model, alias),
    foreign key (model, version) references model_version
);

create trigger model_version_released after delete on model_version referencing old table as gone
    for each statement execute function content_released();

alter table event
    drop constraint event_type_check,
    add constraint event_type_check check (type in ('sweep.created', 'sweep.changed', 'trial.changed', 'trial.measured',
        'ensemble.ready', 'runner.changed', 'gang.changed', 'model.changed')),
    add column model text;
