-- The key of this installation for the tokens of attempts.
-- Why: a trial's process gets a token that is good for its attempt alone. The token is a MAC under this key, so that no
-- attempt needs a row for it, and every server of the installation makes and checks the same one.
-- Locks: none that anybody could wait for; it only creates. A server of the version before gives no such tokens.

create table installation_key (
    name text primary key,
    key  text not null check (key ~ '^[0-9a-f]{64}$')
);

-- gen_random_uuid() has 122 bits of the system's strong random numbers.
insert into installation_key (name, key)
values ('attempt', encode(sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text ||
                                            gen_random_uuid()::text, 'UTF8')), 'hex'));
