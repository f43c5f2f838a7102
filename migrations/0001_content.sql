-- Content and data sets.
-- Why: all state is in PostgreSQL, so that any number of servers may come and go: uploaded files too.
-- Locks: none that anybody could wait for; it only creates.

create table blob (
    sha256     text primary key check (sha256 ~ '^[0-9a-f]{64}$'),
    size       bigint not null check (size >= 0),
    touched_at timestamptz not null default now()   -- last uploaded or asked for; what is old and unused is removed
);

create index blob_age on blob (touched_at);

-- 1 MiB each, in order. Not compressed: that makes reading a part of a piece cheap.
create table blob_chunk (
    sha256  text not null references blob on delete cascade,
    seq     integer not null check (seq >= 0),
    content bytea not null check (octet_length(content) between 1 and 1048576),
    primary key (sha256, seq)
);
alter table blob_chunk alter column content set storage external;

create table dataset (
    name        text primary key check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    format      text not null check (format in ('csv', 'npy')),
    task        text not null check (task in ('classification', 'regression')),
    target      json,                               -- a string or a whole number, as it was given
    n_rows      bigint not null check (n_rows > 0),
    n_features  bigint not null check (n_features > 0),
    n_outputs   bigint not null check (n_outputs > 0),
    classes     json,
    sha256      text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    description text,
    created_at  timestamptz not null default now(),
    check ((task = 'classification') = (classes is not null))
);

-- A blob that is referred to cannot be removed.
create table dataset_file (
    dataset text not null references dataset on delete cascade,
    role    text not null check (role in ('table', 'features', 'targets')),
    sha256  text not null references blob,
    size    bigint not null check (size >= 0),
    primary key (dataset, role)
);
create index dataset_file_blob on dataset_file (sha256);
