-- Who may speak for a runner, and for a client that asks for trials.
-- Why: all runners of an installation may share one token, and one of them could end the trials of another. A runner
-- shows a secret of its own beside the token; a client is bound to the token that it first asked with.
-- null: the row is from before this migration, or from a server of the version before. Nothing is asked for it.
-- Locks: runner, client and attempt, exclusively and briefly; no row is written.
-- A server of the version before goes on, and checks no secrets.

alter table runner
    add column secret text,                             -- SHA-256 of the secret that the runner registered with
    add constraint runner_secret check (secret ~ '^[0-9a-f]{64}$');

alter table client
    add column token text;                              -- id of the token that asked

-- What the holder must show. Kept with the attempt, because a late end still counts when the name of its runner has
-- gone to another one.
alter table attempt
    add column secret text,
    add column token  text,
    add constraint attempt_proof check ((secret is null or runner is not null) and (token is null or client is not null));
