-- Ends: a target, trials that time out and count. Content: parts, a store of files, what is free again.
-- Why: limits.target and limits.on_timeout. An upload is stored in parts of 4 MiB, so that a part that is there already is
-- not sent again. A piece may be outside of the database (assayd --blob-store). What loses its last reference is marked,
-- so that it is removed soon and not after a day.
-- Locks: sweep, trial and blob exclusively and briefly; the new columns have constant defaults, so no row is written, but
-- the checks read trial and blob once. A server of the version before reads no content that was stored in parts: stop it
-- first.

alter table sweep
    add column target          double precision check (target > '-Infinity' and target < 'Infinity'),
    add column keeps_timed_out boolean not null default false;

alter table trial
    add column timed_out boolean not null default false,    -- completed with what it had reported at trial_timeout
    add constraint trial_timed_out check (not timed_out or state = 'completed');

alter table blob
    -- rows: in blob_chunk; parts: in the blobs of blob_part; store: in the server's blob store
    add column place       text not null default 'rows' check (place in ('rows', 'parts', 'store')),
    add column released_at timestamptz;                     -- a reference to it went; null: none, or it was asked for since
create index blob_released on blob (released_at) where released_at is not null;

-- Content above 4 MiB: parts of 4 MiB each (the last one may be shorter), in order. A part has no parts.
create table blob_part (
    sha256 text not null references blob on delete cascade,
    seq    integer not null check (seq >= 0),
    part   text not null references blob,
    primary key (sha256, seq)
);
create index blob_part_part on blob_part (part);

-- Content that may be in the blob store although no row of blob names it: an upload that has begun, or content whose row
-- was removed. What is old here is removed from the blob store.
create table blob_loose (
    sha256 text primary key,
    since  timestamptz not null default now()
);

-- Marks content that lost a reference. In the order of digests: two transactions may release the same content.
create function content_released() returns trigger language plpgsql as $$
begin
    update blob set released_at = now() where sha256 in (select b.sha256 from blob b where b.sha256 in (select g.sha256 from gone g)
        order by b.sha256 for no key update);
    return null;
end $$;
create function content_part_released() returns trigger language plpgsql as $$
begin
    update blob set released_at = now() where sha256 in (select b.sha256 from blob b where b.sha256 in (select g.part from gone g)
        order by b.sha256 for no key update);
    return null;
end $$;
create trigger trial_file_released after delete on trial_file referencing old table as gone
    for each statement execute function content_released();
create trigger dataset_file_released after delete on dataset_file referencing old table as gone
    for each statement execute function content_released();
create trigger blob_part_released after delete on blob_part referencing old table as gone
    for each statement execute function content_part_released();
