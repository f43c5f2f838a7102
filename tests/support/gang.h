/* A large trial in real processes of assay-train: this plays the runners and the server. It tells
 * the ranks their worlds, and gives them a new one whenever a rank ends or is lost. */
#ifndef ASSAY_TESTS_SUPPORT_GANG_H
#define ASSAY_TESTS_SUPPORT_GANG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/support/rig.h"
#include "trial-runner/protocol/control.h"

#define GANG_MAX 512
#define GANG_HOSTS 2

/* All fields may be zero. */
struct gang_opts {
    bool no_checkpoints; /* a state that no rank holds any more is gone */
    bool hold;  /* who is out of the world, or comes after the first one, waits for gang_admit() */
    bool alone; /* each is a plain trainer, no rank of anything */
    void (*environment)(size_t place); /* called in the rank's process before it begins; NULL: no */
    bool unwatched;             /* the end of a process is not seen: its peers must miss it */
    bool apart;                 /* ranks of one host take each other for ranks of others: TCP */
    const char *silence, *join; /* options of assay-train, such as "2s"; NULL: its defaults */
    struct gang_host {          /* place i runs on host i % n_hosts, but for gang_add_on() */
        const char *netns;      /* NULL: this process's */
        const char *address;    /* where its ranks listen */
    } hosts[GANG_HOSTS];
    size_t n_hosts; /* 0: one, 127.0.0.1 */
};

struct gang_rank {
    pid_t pid; /* 0: this place is free */
    bool
        dying; /* it was sent SIGKILL: it holds nothing any more, although its end is not seen yet */
    int fd;
    size_t host;
    char dir[160];      /* DIR/TAG/rN: out, err, report, artifacts/ */
    char endpoint[256]; /* "": it does not listen yet */
    bool member;        /* of the current world */
    bool out;           /* accused in an epoch that it was a member of */
    int64_t joined;     /* the last epoch that it has joined, and at which step */
    int64_t step;
    int64_t reached; /* the step at which it was when it said so last; 0: not yet */
    int64_t step_ns; /* the mean time of its steps, as it said then */
    struct control_lines lines;
};

struct gang {
    struct rig *rig;
    const char *tag;
    const struct trial *trial;
    struct gang_opts opts;
    struct gang_rank ranks[GANG_MAX];
    size_t n; /* places that were ever used */
    int64_t epoch;
    uint8_t secret[32];
    int ended[GANG_MAX]; /* the exit status, or minus the signal; -1000: it runs, or never did */
    size_t deaths;
    int64_t first_step; /* at which the first world joined; -1: none yet */
    int64_t top_step;   /* the highest at which a world has joined */
    size_t steps_back;  /* times that a world joined at a step below top_step */
    size_t stale;       /* accusations that were refused: of another epoch, or by no member */
    int64_t accused_ns; /* CLOCK_MONOTONIC when a rank last accused another, or a process ended */
    int64_t missed_ns;  /* when a rank first said so since this was 0, also in vain */
    int64_t changed_ns; /* when the last world was announced */
};

/* Starts `n` ranks of the trial. Files of rank i go to DIR/TAG/rI/, but checkpoints and artifacts
 * to folders that all share, DIR/TAG/checkpoints and DIR/TAG/artifacts. If they exist, the ranks go
 * on from what is there. opts are copied; their texts are borrowed. */
void gang_start(struct gang *g, struct rig *rig, const char *tag, const struct trial *t, size_t n);
void gang_start_with(struct gang *g, struct rig *rig, const char *tag, const struct trial *t,
                     size_t n, const struct gang_opts *opts);
/* Starts one more rank, which joins when it listens. Returns its place. */
size_t gang_add(struct gang *g);
/* The same, and the others stand still until it listens: on a busy machine they would be done
 * before. Not where silence is a subject. */
size_t gang_add_in_time(struct gang *g);
size_t gang_add_on(struct gang *g, size_t host);
/* Adds a rank that is not assay-train: a process of its own that runs `play` with the rank's end of
 * the socket, and ends with 0 when that returns. */
size_t gang_add_guest(struct gang *g, void (*play)(int fd, const void *arg), const void *arg);
/* Waits for messages and ends for at most this long, and answers them. Returns false when no rank
 * is left. */
bool gang_turn(struct gang *g, int timeout_ms);
/* Turns for this long, or until no rank is left. */
void gang_pass(struct gang *g, int64_t us);
/* Runs until no rank is left. */
void gang_run(struct gang *g);
/* Turns until exactly `n` ranks are members and all have joined the current epoch; false if the
 * trial is over before. */
bool gang_gather(struct gang *g, size_t n);
void gang_kill(struct gang *g, size_t place, int signal);
/* Asks every rank that runs to stop at its next checkpoint. One may have ended meanwhile. */
void gang_ask_to_stop(struct gang *g);
/* The next world has this rank again. */
void gang_admit(struct gang *g, size_t place);
/* The next world is without this rank, as when the lease of its runner has ended. */
void gang_put_out(struct gang *g, size_t place);
size_t gang_alive(const struct gang *g);
/* Does it live, and hold the newest state at which a world has joined? One that joined earlier may
 * be behind: it was interrupted in a step that others completed, and has not caught up yet. */
bool gang_holds(const struct gang *g, size_t place);
size_t gang_holders(const struct gang *g);
/* The place of the current world's rank, or GANG_MAX. */
size_t gang_place(const struct gang *g, int64_t rank);
bool gang_is_over(const struct gang *g); /* a rank has ended well */
void gang_done(struct gang *g);

#endif
