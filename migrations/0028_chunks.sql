-- Points are stored in chunks: a row has up to 64 points of one metric of one attempt.
-- Why: a row for each point cost more than the point: 20 million points took 4 GB with their index, and a curve was read row by
-- row.
-- Locks: measurement exclusively, while it is rewritten (about a minute for 20 million points). A server of the version before
-- may go on: it reads and inserts through the view. It cannot delete sweeps.

create table measurement_chunk (
    sweep_key  bigint not null,
    number     integer not null,
    metric     text not null,
    attempt    integer not null,
    first_step bigint not null check (first_step >= 0),
    steps      bigint[] not null,                    -- ascending
    measured   double precision[] not null,          -- the value at each step
    recorded   bigint[] not null,                    -- when it arrived, in microseconds since 1970; null: older than 0022
    primary key (sweep_key, number, metric, attempt, first_step),
    constraint measurement_chunk_whole check (cardinality(steps) between 1 and 64 and steps[1] = first_step
        and cardinality(measured) = cardinality(steps) and cardinality(recorded) = cardinality(steps))
) with (fillfactor = 60);                            -- the last chunk of a series grows in place
-- The chunks of a series do not overlap: between two of them no other one begins. Their writer, who holds the trial's row,
-- sees to it (scheduler/store/measurement_store.c).

insert into measurement_chunk
    select sweep_key, number, metric, attempt, min(step), array_agg(step order by step), array_agg(value order by step),
        array_agg((extract(epoch from recorded_at) * 1000000)::bigint order by step)
    from (select *, (row_number() over (partition by sweep_key, number, metric, attempt order by step) - 1) / 64 as chunk
          from measurement) p
    group by sweep_key, number, metric, attempt, chunk;
drop table measurement;

-- All points. Servers read the chunks themselves where a series may be long.
create view measurement as
    select c.sweep_key, c.number, c.metric, c.attempt, p.step, p.value, to_timestamp(p.at / 1000000.0) as recorded_at
    from measurement_chunk c cross join lateral unnest(c.steps, c.measured, c.recorded) as p(step, value, at);

-- A point that is inserted through the view: by a server of the version before, or by hand. One that exists stays.
create function measurement_inserted() returns trigger language plpgsql as $$
declare
    c measurement_chunk;                             -- the chunk that the point falls into, or the one before it
    at bigint := extract(epoch from coalesce(new.recorded_at, now())) * 1000000;
    place integer;                                   -- of the last step below it
begin
    select * into c from measurement_chunk m
        where m.sweep_key = new.sweep_key and m.number = new.number and m.metric = new.metric and m.attempt = new.attempt
            and m.first_step <= new.step order by m.first_step desc limit 1;
    if new.step = any (c.steps) then
        return null;
    end if;
    if new.step < c.steps[cardinality(c.steps)] then -- cut it in two: the new point begins the second part
        place := (select count(*) from unnest(c.steps) as s(step) where s.step < new.step);
        update measurement_chunk m set steps = c.steps[:place], measured = c.measured[:place], recorded = c.recorded[:place]
            where m.sweep_key = c.sweep_key and m.number = c.number and m.metric = c.metric and m.attempt = c.attempt
                and m.first_step = c.first_step;
        insert into measurement_chunk values (c.sweep_key, c.number, c.metric, c.attempt, new.step,
            new.step || c.steps[place + 1:], new.value || c.measured[place + 1:], at || c.recorded[place + 1:]);
    else
        insert into measurement_chunk values (new.sweep_key, new.number, new.metric, new.attempt, new.step,
            array[new.step], array[new.value], array[at]);
    end if;
    return new;
end $$;
create trigger measurement_inserted instead of insert on measurement
    for each row execute function measurement_inserted();
