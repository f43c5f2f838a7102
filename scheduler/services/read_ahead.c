#include "scheduler/services/read_ahead.h"

#include "base/parallel.h"

/* A part is put and the next one is read, at the same time. */
struct step {
    const struct read_ahead *x;
    struct arena arenas[READ_AHEAD_PLACES];
    size_t place; /* what is put; the other one is read */
    bool puts, reads;
    bool is_left; /* after what is read */
    as_status put_status, read_status;
    struct as_err put_err, read_err;
};

/* Item 0 is to put, item 1 to read. */
static void run_step(void *arg, size_t begin, size_t end)
{
    struct step *s = arg;
    if (begin == 0 && s->puts) {
        s->put_status = s->x->put(s->x->arg, s->place, &s->put_err);
        arena_done(&s->arenas[s->place]);
    }
    if (end == 2 && s->reads)
        s->read_status = s->x->read(s->x->arg, 1 - s->place, &s->arenas[1 - s->place], &s->is_left,
                                    &s->read_err);
}

static void step_done(struct step *s)
{
    for (size_t i = 0; i < READ_AHEAD_PLACES; i++)
        arena_done(&s->arenas[i]);
}

as_status read_ahead(const struct read_ahead *x, struct as_err *err)
{
    AS_AUTO(step_done) struct step s = {.x = x, .reads = true};
    while (s.puts || s.reads) {
        s.is_left = false;
        parallel_each(2, s.puts && s.reads ? 2 : 1, run_step, &s);
        if (s.put_status != AS_OK)
            return as_fail_at(err, s.put_status, s.put_err.pointer, "%s", s.put_err.msg);
        if (s.read_status != AS_OK)
            return as_fail_at(err, s.read_status, s.read_err.pointer, "%s", s.read_err.msg);
        s.place = 1 - s.place;
        s.puts = s.reads;
        s.reads = s.is_left;
    }
    return AS_OK;
}

as_status read_again(const struct read_again *x, struct store *db, const struct table_news *news,
                     struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < news->n_changes && st == AS_OK; i += x->most) {
        AS_AUTO(arena_done) struct arena a = {0};
        size_t n = news->n_changes - i < x->most ? news->n_changes - i : x->most;
        struct tx_run run = tx_run_start(db, TX_READ, err);
        while (tx_run_again(&run))
            run.status = x->read(x->arg, run.tx, &a, news->changes + i, n, err);
        st = run.status == AS_OK ? x->put(x->arg, err) : run.status;
    }
    return st;
}
