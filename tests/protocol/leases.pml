/* The protocol of leases: claims, measurements, ends, registrations, heartbeats, expiry.
 *
 * README.md says which part stands for which code, what is left out, and what is checked. Time does
 * not pass here: whatever may be late may be late by any amount. A step that could only be caused
 * by a fault (a copy of a message, a lost reply, a lease that ends although its runner lives) takes
 * one of FAULTS, so every execution ends, and a trial that is not over at the end is lost.
 *
 *   -DFAULTS=n    how many faults may happen (default 2)
 *   -DRESTARTS=n  max_restarts of the sweep (default 1)
 * Planted errors, each of which the checks must find:
 *   -DNO_FENCE    the attempt of an end or a measurement is not compared with the trial's
 *   -DEARLY       a batch is answered before its COMMIT
 *   -DNO_WAIT     a batch is answered after its COMMIT, before it is on the disk
 *   -DCARRY       the values of an attempt stay in the trial when another attempt begins
 *   -DFORGET      nobody looks at attempts that their runner does not hold
 * Checks that the model does what it is for; each must fail:
 *   -DSEE_SECOND  "no second attempt completes a trial"
 *   -DSEE_LATE    "no end is accepted while its trial is in the queue" */

#ifndef FAULTS
#define FAULTS 2
#endif
#ifndef RESTARTS
#define RESTARTS 1
#endif

#define TRIALS 2
#define RUNNERS 2
#define SERVERS 2
#define ATTEMPTS (RESTARTS + 1) /* numbered from 1; every loss uses a restart */
#define NOBODY 7
#define BIT(attempt) (1 << (attempt))

/* States of a trial. */
#define QUEUED 0
#define RUNNING 1
#define COMPLETED 2
#define FAILED 3

/* What a runner asks for. */
#define NOTHING 0
#define CLAIM 1
#define MEASURE 2
#define END 3
#define REGISTER 4

/* Answers. */
#define DONE 1
#define STALE 2

typedef Trial {
    byte state;
    byte attempt;
    byte runner; /* that runs the attempt */
    byte claim;  /* the number of the runner's claim that got it */
    byte losses;
    byte values;   /* attempts whose values are in the trial */
    byte measured; /* attempts with a measurement */
    byte ended     /* attempts whose end was reported and accepted */
};

typedef Store {
    Trial trial[TRIALS];
    byte epoch[RUNNERS];
    bit live[RUNNERS]
};

Store store; /* what transactions see */
Store disk;  /* what a power cut leaves */
Store nothing;
#ifdef EARLY
Store before; /* what a rollback restores */
#endif

/* A message of a runner to a server. */
typedef Message {
    byte kind;
    byte epoch;   /* CLAIM */
    byte claim;   /* CLAIM; REGISTER: which of its requests */
    byte trial;   /* MEASURE, END; REGISTER: the attempt that it still has */
    byte attempt; /* 0: none */
    byte answer   /* in a server's hands */
};

/* On the way to the servers: the runner's last message, and a copy of it or of an older one. */
typedef Way {
    Message message[2]
};
Way way[RUNNERS];

/* One member of a batch in a server's hands, for each runner and slot of its way. */
typedef Hand {
    Message member[RUNNERS]
};
Hand hand[SERVERS];
#define MEMBER hand[s].member[r]

#define IDLE 0
#define COMMITTED 1 /* visible, not on the disk */
#define DURABLE 2
byte batch[SERVERS];

/* What a runner knows. */
#define FREE 0
#define RUNS 1
#define HAS_RESULT 2 /* in its journal */
typedef Runner {
    bit alive;
    bit registered;
    byte epoch;
    byte claim; /* the number of its claim, and of its registration */
    byte phase;
    byte trial;
    byte attempt;
    bit has_measured;
    byte waits; /* kind of the message that it waits for, NOTHING if it waits for none */
    bit again   /* nothing of it is on the way: send it again */
};
Runner runner[RUNNERS];

byte faults = FAULTS;

/* What was acknowledged, for the checks. */
byte told_end[TRIALS];      /* the attempt whose end was acknowledged */
byte told_measured[TRIALS]; /* attempts whose measurement was acknowledged */
byte handed[TRIALS];        /* the highest attempt that was handed out */
typedef Owners {
    byte to[ATTEMPTS + 1]
};
Owners owner[TRIALS]; /* runner + 1 that an attempt was handed to */

byte i, j; /* of loops within one step; 0 between steps */

inline copy_store(to, from)
{
    i = 0;
    do
    :: i < TRIALS ->
        to.trial[i].state = from.trial[i].state;
        to.trial[i].attempt = from.trial[i].attempt;
        to.trial[i].runner = from.trial[i].runner;
        to.trial[i].claim = from.trial[i].claim;
        to.trial[i].losses = from.trial[i].losses;
        to.trial[i].values = from.trial[i].values;
        to.trial[i].measured = from.trial[i].measured;
        to.trial[i].ended = from.trial[i].ended;
        i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < RUNNERS ->
        to.epoch[i] = from.epoch[i];
        to.live[i] = from.live[i];
        i++
    :: else -> break
    od;
    i = 0
}

/* A fault happens. After the last one nothing reads the disk. */
inline fault()
{
    faults--;
    if
    :: faults == 0 -> copy_store(disk, nothing)
    :: else
    fi;
    skip
}

/* What was committed reaches the disk. */
inline save()
{
    if
    :: faults > 0 -> copy_store(disk, store)
    :: else
    fi;
    skip
}

/* A transaction that is no member of a batch. Before its COMMIT is on the disk it may be taken back,
 * which is as if it came later. */
inline save_alone()
{
    if
    :: batch[0] == COMMITTED || batch[1] == COMMITTED
    :: else -> save()
    fi;
    skip
}

/* One attempt: exactly one bit of 1, 2, 3. */
#define IS_ONE(bits) ((bits) == BIT(1) || (bits) == BIT(2) || (bits) == BIT(3))

/* The promises, in every state of the store. */
inline check_store()
{
    i = 0;
    do
    :: i < TRIALS ->
        /* At most one attempt contributes a value. */
        assert(store.trial[i].state != COMPLETED || IS_ONE(store.trial[i].values));
        /* An acknowledged result is in the store. */
        assert(!told_end[i] || (store.trial[i].state == COMPLETED &&
                                store.trial[i].values == BIT(told_end[i])));
        assert((told_measured[i] & store.trial[i].measured) == told_measured[i]);
        /* Attempts rise. */
        assert(store.trial[i].attempt >= handed[i]);
        /* A trial is given up only after its last restart. */
        assert(store.trial[i].losses <= ATTEMPTS);
        assert((store.trial[i].state == FAILED) == (store.trial[i].losses == ATTEMPTS));
        i++
    :: else -> break
    od;
    i = 0
}

/* lifecycle/transition: trials_lose(). */
inline lose(t)
{
    store.trial[t].losses++;
    store.trial[t].runner = NOBODY;
    store.trial[t].claim = 0;
    if
    :: store.trial[t].losses == ATTEMPTS -> store.trial[t].state = FAILED
    :: else -> store.trial[t].state = QUEUED
    fi
}

/* May an end or a measurement of this attempt be written? lifecycle/attempts. */
#ifdef NO_FENCE
#define IS_CURRENT(t, n) true
#else
#define IS_CURRENT(t, n) (store.trial[t].attempt == (n))
#endif
#define MAY_WRITE(t, n)                                                                            \
    (IS_CURRENT(t, n) && (store.trial[t].state == RUNNING || store.trial[t].state == QUEUED))

inline apply_end(s, r)
{
    if
    :: store.trial[MEMBER.trial].ended & BIT(MEMBER.attempt) -> MEMBER.answer = DONE /* a repeat */
    :: else ->
        if
        :: MAY_WRITE(MEMBER.trial, MEMBER.attempt) ->
#ifdef SEE_SECOND
            assert(MEMBER.attempt < 2);
#endif
#ifdef SEE_LATE
            assert(store.trial[MEMBER.trial].state == RUNNING);
#endif
            store.trial[MEMBER.trial].state = COMPLETED;
            store.trial[MEMBER.trial].runner = NOBODY;
            store.trial[MEMBER.trial].claim = 0;
            store.trial[MEMBER.trial].values = store.trial[MEMBER.trial].values | BIT(MEMBER.attempt);
            store.trial[MEMBER.trial].ended = store.trial[MEMBER.trial].ended | BIT(MEMBER.attempt);
            MEMBER.answer = DONE
        :: else -> MEMBER.answer = STALE
        fi
    fi
}

inline apply_measure(s, r)
{
    if
    :: MAY_WRITE(MEMBER.trial, MEMBER.attempt) ->
        store.trial[MEMBER.trial].measured = store.trial[MEMBER.trial].measured | BIT(MEMBER.attempt);
        store.trial[MEMBER.trial].values = store.trial[MEMBER.trial].values | BIT(MEMBER.attempt);
        MEMBER.answer = DONE
    :: else -> MEMBER.answer = STALE
    fi
}

/* The trial that the claim got before, or NOBODY. */
#define GOT_BEFORE(t, r, m)                                                                        \
    (store.trial[t].state == RUNNING && store.trial[t].runner == r && store.trial[t].claim == m.claim)
#define HOLDS(r)                                                                                   \
    ((store.trial[0].state == RUNNING && store.trial[0].runner == r) ||                            \
     (store.trial[1].state == RUNNING && store.trial[1].runner == r))

/* assign/claims. A claim waits in a server until there is work, so it is taken from the way only
 * then: CAN_ANSWER. In a batch that took the last trial it goes back. */
#define CAN_ANSWER(r, m)                                                                           \
    (store.epoch[r] != m.epoch || !store.live[r] || GOT_BEFORE(0, r, m) || GOT_BEFORE(1, r, m) ||  \
     (!HOLDS(r) && (store.trial[0].state == QUEUED || store.trial[1].state == QUEUED)))

inline take(s, r, t)
{
    store.trial[t].state = RUNNING;
    store.trial[t].attempt++;
    store.trial[t].runner = r;
    store.trial[t].claim = MEMBER.claim;
#ifndef CARRY
    store.trial[t].values = 0;
#endif
    MEMBER.trial = t;
    MEMBER.attempt = store.trial[t].attempt;
    MEMBER.answer = DONE
}

inline apply_claim(s, r)
{
    if
    :: store.epoch[r] != MEMBER.epoch || !store.live[r] -> MEMBER.answer = STALE
    :: else ->
        if
        :: GOT_BEFORE(0, r, MEMBER) -> MEMBER.trial = 0; MEMBER.attempt = store.trial[0].attempt; MEMBER.answer = DONE
        :: GOT_BEFORE(1, r, MEMBER) -> MEMBER.trial = 1; MEMBER.attempt = store.trial[1].attempt; MEMBER.answer = DONE
        :: else ->
            if
            :: !HOLDS(r) && store.trial[0].state == QUEUED -> take(s, r, 0)
            :: !HOLDS(r) && store.trial[1].state == QUEUED && store.trial[0].state != QUEUED ->
                take(s, r, 1)
            :: else -> MEMBER.answer = NOTHING
            fi
        fi
    fi
}

/* services/runners: register_runner(). What it holds and does not list is lost. */
inline apply_register(s, r)
{
    store.epoch[r]++;
    store.live[r] = 1;
    i = 0;
    do
    :: i < TRIALS ->
        if
        :: store.trial[i].state == RUNNING && store.trial[i].runner == r &&
           !(MEMBER.attempt == store.trial[i].attempt && MEMBER.trial == i) -> lose(i)
        :: else
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    MEMBER.epoch = store.epoch[r];
    MEMBER.answer = DONE
}

#define ON_WAY(r, k) (way[r].message[k].kind)
#define TAKEN(s, r) (hand[s].member[r].kind)

inline wipe(x)
{
    x.kind = NOTHING; x.epoch = 0; x.claim = 0; x.trial = 0; x.attempt = 0; x.answer = 0
}

inline move(to, from)
{
    to.kind = from.kind; to.epoch = from.epoch; to.claim = from.claim; to.trial = from.trial;
    to.attempt = from.attempt; to.answer = from.answer
}

/* A batch ends when its members have their answers. */
inline rest(s)
{
    if
    :: batch[s] == DURABLE && !TAKEN(s, 0) && !TAKEN(s, 1) -> batch[s] = IDLE
    :: else
    fi;
    skip
}

/* A message of runner r, or its reply, is gone. If it was what the runner waits for, the runner
 * sends it again when its patience ends. */
inline gone(s, r)
{
    if
    :: runner[r].alive && runner[r].waits == MEMBER.kind -> runner[r].again = 1
    :: else
    fi;
    wipe(MEMBER)
}

/* A server that ends, or a transaction that the power cut took back: nobody in the batch gets an
 * answer. */
inline drop_batch(s)
{
    j = 0;
    do
    :: j < RUNNERS ->
        if
        :: hand[s].member[j].kind -> gone(s, j)
        :: else
        fi;
        j++
    :: else -> break
    od;
    j = 0;
    batch[s] = IDLE
}

/* Send, behind what is on the way; a full way loses the newer message. */
inline send(r, k)
{
    if
    :: !ON_WAY(r, 0) -> j = 0
    :: else -> j = 1
    fi;
    wipe(way[r].message[j]);
    way[r].message[j].kind = k;
    if
    :: k == CLAIM ->
        way[r].message[j].epoch = runner[r].epoch;
        way[r].message[j].claim = runner[r].claim
    :: else ->
        way[r].message[j].trial = runner[r].trial;
        way[r].message[j].attempt = runner[r].attempt
    fi;
    if
    :: k == REGISTER ->
        runner[r].claim++;
        way[r].message[j].claim = runner[r].claim
    :: else
    fi;
    j = 0;
    runner[r].waits = k;
    runner[r].again = 0
}

#define IS_IDLE(r) (runner[r].alive && runner[r].waits == NOTHING)

/* What a runner does at once when it waits for nothing. A result goes first: a predecessor's is
 * delivered before the registration. */
inline next(r)
{
    if
    :: !IS_IDLE(r)
    :: IS_IDLE(r) && runner[r].phase == HAS_RESULT -> send(r, END)
    :: IS_IDLE(r) && runner[r].phase != HAS_RESULT && !runner[r].registered -> send(r, REGISTER)
    :: IS_IDLE(r) && runner[r].phase == FREE && runner[r].registered -> send(r, CLAIM)
    :: else
    fi;
    skip
}

inline forget(r)
{
    runner[r].phase = FREE;
    runner[r].trial = 0;
    runner[r].attempt = 0;
    runner[r].has_measured = 0
}

/* A message that is lost on its way. */
inline lose_message(r)
{
    if
    :: !ON_WAY(r, 1) && runner[r].alive && runner[r].waits == ON_WAY(r, 0) -> runner[r].again = 1
    :: else
    fi;
    move(way[r].message[0], way[r].message[1]);
    wipe(way[r].message[1])
}

/* The runner takes the answer, if it still waits for it. */
inline deliver(s, r)
{
    if
    :: !runner[r].alive || runner[r].waits != MEMBER.kind
    :: MEMBER.kind == CLAIM && runner[r].waits == CLAIM && runner[r].alive &&
       MEMBER.claim == runner[r].claim && MEMBER.epoch == runner[r].epoch ->
        if
        :: MEMBER.answer == DONE ->
            assert(owner[MEMBER.trial].to[MEMBER.attempt] == 0 || owner[MEMBER.trial].to[MEMBER.attempt] == r + 1);
            owner[MEMBER.trial].to[MEMBER.attempt] = r + 1;
            if
            :: MEMBER.attempt > handed[MEMBER.trial] -> handed[MEMBER.trial] = MEMBER.attempt
            :: else
            fi;
            runner[r].phase = RUNS;
            runner[r].trial = MEMBER.trial;
            runner[r].attempt = MEMBER.attempt;
            runner[r].claim++
        :: MEMBER.answer == STALE -> runner[r].registered = 0
        fi;
        runner[r].waits = NOTHING;
        runner[r].again = 0
    :: (MEMBER.kind == MEASURE || MEMBER.kind == END) && runner[r].alive && runner[r].waits == MEMBER.kind &&
       MEMBER.trial == runner[r].trial && MEMBER.attempt == runner[r].attempt ->
        if
        :: MEMBER.answer == STALE || MEMBER.kind == END ->
            if
            :: MEMBER.answer == DONE -> told_end[MEMBER.trial] = MEMBER.attempt
            :: else
            fi;
            forget(r)
        :: else ->
            told_measured[MEMBER.trial] = told_measured[MEMBER.trial] | BIT(MEMBER.attempt);
            runner[r].has_measured = 1
        fi;
        runner[r].waits = NOTHING;
        runner[r].again = 0
    :: MEMBER.kind == REGISTER && runner[r].alive && runner[r].waits == REGISTER &&
       MEMBER.claim == runner[r].claim ->
        runner[r].registered = 1;
        runner[r].epoch = MEMBER.epoch;
        runner[r].waits = NOTHING;
        runner[r].again = 0
    :: else
    fi;
    wipe(MEMBER);
    next(r)
}


#ifdef EARLY
#define IS_LOCKED (batch[0] == COMMITTED || batch[1] == COMMITTED)
#else
#define IS_LOCKED false
#endif
#if defined(EARLY) || defined(NO_WAIT)
#define MAY_REPLY(s) (batch[s] != IDLE)
#else
#define MAY_REPLY(s) (batch[s] == DURABLE)
#endif

/* Results come before claims. A registration is a transaction of its own; the members beside it
 * concern another runner. */
inline apply_results(s, r)
{
    if
    :: TAKEN(s, r) == END -> apply_end(s, r)
    :: TAKEN(s, r) == MEASURE -> apply_measure(s, r)
    :: TAKEN(s, r) == REGISTER -> apply_register(s, r)
    :: else
    fi
}

/* A claim that finds nothing stays on its way. */
inline apply_claims(s, r)
{
    if
    :: TAKEN(s, r) == CLAIM ->
        apply_claim(s, r);
        if
        :: MEMBER.answer == NOTHING ->
            if
            :: !ON_WAY(r, 0) -> move(way[r].message[0], MEMBER)
            :: ON_WAY(r, 0) && !ON_WAY(r, 1) -> move(way[r].message[1], MEMBER)
            :: else /* a copy of it is there */
            fi;
            wipe(MEMBER)
        :: else
        fi
    :: else
    fi
}

/* Which message of each runner's way the batch takes. A claim waits until it can be answered. */
#define MAY_TAKE(r, k)                                                                             \
    (ON_WAY(r, k) && (ON_WAY(r, k) != CLAIM || CAN_ANSWER(r, way[r].message[k])))

/* The message leaves the way, unless a fault leaves a copy. The older message is at place 0. */
inline take_from_way(s, r, k)
{
    move(hand[s].member[r], way[r].message[k]);
    if
    :: faults > 0 -> fault()
    :: true ->
        if
        :: k == 0 -> move(way[r].message[0], way[r].message[1])
        :: else
        fi;
        wipe(way[r].message[1])
    fi
}

/* Two idle servers are equal: the first begins. */
#define IS_TURN(s) (batch[s] == IDLE && (s == 0 || batch[0] != IDLE) && !IS_LOCKED)

/* scheduler/commit: one batch after the other. */
proctype Server(byte s)
{
end:
    do
    :: atomic {
        IS_TURN(s) && (MAY_TAKE(0, 0) || MAY_TAKE(0, 1) || MAY_TAKE(1, 0) || MAY_TAKE(1, 1)) ->
        if
        :: MAY_TAKE(0, 0) -> take_from_way(s, 0, 0)
        :: MAY_TAKE(0, 1) -> take_from_way(s, 0, 1)
        :: MAY_TAKE(1, 0) || MAY_TAKE(1, 1)
        fi;
        if
        :: MAY_TAKE(1, 0) -> take_from_way(s, 1, 0)
        :: MAY_TAKE(1, 1) -> take_from_way(s, 1, 1)
        :: TAKEN(s, 0)
        fi;
        d_step {
#ifdef EARLY
            copy_store(before, store);
#endif
            apply_results(s, 0);
            apply_results(s, 1);
            apply_claims(s, 0);
            apply_claims(s, 1);
            check_store();
            batch[s] = COMMITTED
        } }
    :: d_step { MAY_REPLY(s) && TAKEN(s, 0) -> deliver(s, 0); rest(s) }
    :: d_step { MAY_REPLY(s) && TAKEN(s, 1) -> deliver(s, 1); rest(s) }
    /* The reply is lost on its way. */
    :: d_step { MAY_REPLY(s) && TAKEN(s, 0) && faults > 0 -> fault(); gone(s, 0); rest(s) }
    :: d_step { MAY_REPLY(s) && TAKEN(s, 1) && faults > 0 -> fault(); gone(s, 1); rest(s) }
    /* kill -9 of the server after its COMMIT, and another one starts. A server that is killed
     * before has changed nothing: its messages are lost, as on their way. */
    :: d_step { batch[s] != IDLE && faults > 0 ->
        fault();
#ifdef EARLY
        if
        :: batch[s] == COMMITTED -> copy_store(store, before); check_store()
        :: else
        fi;
#endif
        drop_batch(s) }
    od
}

/* PostgreSQL's disk. */
proctype Disk()
{
end:
    do
    /* What was committed reaches the disk, in order. */
    :: d_step { batch[0] == COMMITTED || batch[1] == COMMITTED ->
        save();
        if
        :: batch[0] == COMMITTED -> batch[0] = DURABLE; rest(0)
        :: else
        fi;
        if
        :: batch[1] == COMMITTED -> batch[1] = DURABLE; rest(1)
        :: else
        fi;
        skip }
#ifndef EARLY
    /* A power cut takes back what had not. Members of such a batch get "unavailable". */
    :: d_step { faults > 0 && (batch[0] == COMMITTED || batch[1] == COMMITTED) ->
        copy_store(store, disk);
        fault();
        if
        :: batch[0] == COMMITTED -> drop_batch(0)
        :: else
        fi;
        if
        :: batch[1] == COMMITTED -> drop_batch(1)
        :: else
        fi;
        check_store() }
#endif
    od
}

/* The network loses requests. */
proctype Network()
{
end:
    do
    :: d_step { faults > 0 && ON_WAY(0, 0) -> fault(); lose_message(0) }
    :: d_step { faults > 0 && ON_WAY(1, 0) -> fault(); lose_message(1) }
    od
}

/* Does a server hold a claim of this runner whose trial the runner has not heard of? */
#define IS_HANDED_BY(s, r, t)                                                                      \
    (TAKEN(s, r) == CLAIM && hand[s].member[r].answer == DONE && hand[s].member[r].trial == t)
#define KNOWS(r, t)                                                                                \
    (runner[r].attempt == store.trial[t].attempt && runner[r].trial == t && runner[r].phase != FREE)
#define IS_MISSING(t)                                                                              \
    (store.trial[t].state == RUNNING && !KNOWS(store.trial[t].runner, t) &&                        \
     runner[store.trial[t].runner].registered && !IS_HANDED_BY(0, store.trial[t].runner, t) &&     \
     !IS_HANDED_BY(1, store.trial[t].runner, t))

/* lifecycle/reaper, and what a heartbeat misses. A lease of a runner that lives ends by a fault (it
 * was stopped or cut off). */
inline expire(r)
{
    store.live[r] = 0;
    if
    :: store.trial[0].state == RUNNING && store.trial[0].runner == r -> lose(0)
    :: else
    fi;
    if
    :: store.trial[1].state == RUNNING && store.trial[1].runner == r -> lose(1)
    :: else
    fi;
    check_store();
    save_alone()
}

proctype Reaper()
{
end:
    do
    :: d_step { !IS_LOCKED && store.live[0] && !runner[0].alive && HOLDS(0) -> expire(0) }
    :: d_step { !IS_LOCKED && store.live[1] && !runner[1].alive && HOLDS(1) -> expire(1) }
    :: d_step { !IS_LOCKED && store.live[0] && runner[0].alive && faults > 0 -> fault(); expire(0) }
    :: d_step { !IS_LOCKED && store.live[1] && runner[1].alive && faults > 0 -> fault(); expire(1) }
#ifndef FORGET
    :: d_step { !IS_LOCKED && IS_MISSING(0) -> lose(0); check_store(); save_alone() }
    :: d_step { !IS_LOCKED && IS_MISSING(1) -> lose(1); check_store(); save_alone() }
#endif
    od
}

#define IS_OTHERS(r) /* what it runs is no longer its own */                                       \
    (store.trial[runner[r].trial].attempt != runner[r].attempt ||                                  \
     store.trial[runner[r].trial].state != RUNNING)

/* trial-runner/agent. */
proctype Agent(byte r)
{
end:
    do
#ifndef NO_MEASURES
    :: d_step { IS_IDLE(r) && runner[r].phase == RUNS && !runner[r].has_measured ->
        send(r, MEASURE) }
#endif
    :: d_step { IS_IDLE(r) && runner[r].phase == RUNS -> runner[r].phase = HAS_RESULT; next(r) }
    /* Its patience with a message that is gone ended. */
    :: d_step { runner[r].alive && runner[r].again -> send(r, runner[r].waits) }
    /* A heartbeat: a lost runner lives again; an old epoch registers again; what is no longer its
     * own is dropped, but a result is sent all the same. */
    :: d_step { !IS_LOCKED && runner[r].alive && runner[r].registered &&
                runner[r].epoch == store.epoch[r] && !store.live[r] ->
        store.live[r] = 1;
        save_alone() }
    :: d_step { IS_IDLE(r) && runner[r].registered && runner[r].epoch != store.epoch[r] ->
        runner[r].registered = 0;
        next(r) }
    :: d_step { IS_IDLE(r) && runner[r].registered && runner[r].phase == RUNS && IS_OTHERS(r) ->
        forget(r);
        next(r) }
    /* kill -9: the kernel ends its trial. A result in the journal stays; what was not sent is not. */
    :: atomic { runner[r].alive && faults > 0 ->
        if
        :: wipe(way[r].message[0]); wipe(way[r].message[1])
        :: ON_WAY(r, 0)
        fi;
        d_step {
            fault();
            runner[r].alive = 0;
            runner[r].registered = 0;
            runner[r].epoch = 0;
            runner[r].claim++;
            runner[r].waits = NOTHING;
            runner[r].again = 0;
            runner[r].has_measured = 0;
            if
            :: runner[r].phase != HAS_RESULT -> forget(r)
            :: else
            fi;
            skip
        } }
    :: d_step { !runner[r].alive -> runner[r].alive = 1; next(r) }
    od
}

#define IS_OVER(t) (store.trial[t].state == COMPLETED || store.trial[t].state == FAILED)

init
{
    d_step {
        store.trial[0].runner = NOBODY;
        store.trial[1].runner = NOBODY;
        i = 0;
        do
        :: i < RUNNERS ->
            store.epoch[i] = 1;
            store.live[i] = 1;
            runner[i].alive = 1;
            runner[i].registered = 1;
            runner[i].epoch = 1;
            i++
        :: else -> break
        od;
        i = 0;
        save();
        next(0);
        next(1)
    };
    atomic {
        run Server(0);
        run Server(1);
        run Disk();
        run Network();
        run Reaper();
        run Agent(0);
        run Agent(1)
    };
    /* Progress: when nothing can happen any more, every trial is over. */
    timeout -> assert(IS_OVER(0) && IS_OVER(1))
}
