/* Texts that statements about what runners hold share. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_RUNNER_SQL_PRIV_H
#define ASSAY_SCHEDULER_STORE_RUNNER_SQL_PRIV_H

#include "scheduler/store/pg_priv.h"

/* Is the lease of the runner r extended? Ten times a second at most: each change leaves a version
 * of the row. */
#define IS_DUE "r.seen_at < clock_timestamp() - interval '100 ms'"

/* Does a trial that needs its machine to itself run on the machine of the runner r? `other`: a
 * condition on what is held, h, and its sweep, x. */
#define IS_SHUT(other)                                                                             \
    "exists (select from sweep_base x join held h on h.sweep_key = x.key join runner o on o.name " \
    "= h.runner where x.exclusive and (o.name = r.name or o.machine = r.machine) and " other ")"

/* What other runners of the machine take of the cores or the memory of the runner r, which it
 * shares with them. */
#define TAKEN_BY_OTHERS(what)                                                                      \
    "case when r.shares and exists (select from sweep_base x where x.cpus > 0 or x.memory_bytes "  \
    "> 0) then (select o." what " from needs_of_others(r.name, r.machine) o) else 0 end"

/* What the runner r holds and needs for it, as a subquery. is_first: of a group, which needs no
 * more than one of its members. */
#define HELD_NEEDS                                                                                 \
    "(select n.*, n.group_id is null or row_number() over (partition by n.group_id) = 1 as "       \
    "is_first from held_needs n where n.runner = r.name)"

/* The cores or the memory of the runner r that are taken, over the rows t of HELD_NEEDS. */
#define TAKEN(what)                                                                                \
    "coalesce(sum(t." what ") filter (where t.is_first), 0) + " TAKEN_BY_OTHERS(what)

/* What a runner r holds: attempts, ranks, and slots that are kept free (those are not running). */
#define COUNTS_HELD "count(t.number) as running, " SQL_SLOTS " as used, "
#define COUNTS_TAKEN TAKEN("cpus") " as cpus_used, " TAKEN("memory_bytes") " as memory_used, "
#define HELD_COUNTS                                                                                \
    "(select " COUNTS_HELD COUNTS_TAKEN IS_SHUT("true") " as is_shut from " HELD_NEEDS " t)"

#endif
