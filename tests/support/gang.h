/* A large trial in real processes of assay-train: this plays the runners and the server. It tells
 * the ranks their worlds, and gives them a new one whenever a rank ends or is lost. */
#ifndef ASSAY_TESTS_SUPPORT_GANG_H
#define ASSAY_TESTS_SUPPORT_GANG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/support/rig.h"
#include "trial-runner/protocol/control.h"

#define GANG_MAX 16

struct gang_rank {
    pid_t pid; /* 0: this place is free */
    int fd;
    char dir[160];      /* DIR/TAG/rN: out, err, report, artifacts/ */
    char endpoint[256]; /* "": it does not listen yet */
    bool member;        /* of the current world */
    int64_t joined;     /* the last epoch that it has joined, and at which step */
    int64_t step;
    struct control_lines lines;
};

struct gang {
    struct rig *rig;
    const char *tag;
    const struct trial *trial;
    struct gang_rank ranks[GANG_MAX];
    size_t n; /* places that were ever used */
    int64_t epoch;
    uint8_t secret[32];
    int ended[GANG_MAX]; /* the exit status, or minus the signal; -1000: it runs, or never did */
    size_t deaths;
};

/* Starts `n` ranks of the trial. Files of rank i go to DIR/TAG/rI/, but checkpoints and artifacts to
 * folders that all share, DIR/TAG/checkpoints and DIR/TAG/artifacts. */
void gang_start(struct gang *g, struct rig *rig, const char *tag, const struct trial *t, size_t n);
/* Starts one more rank, which joins when it listens. Returns its place. */
size_t gang_add(struct gang *g);
/* Waits for messages and ends for at most this long, and answers them. Returns false when no rank
 * is left. */
bool gang_turn(struct gang *g, int timeout_ms);
/* Runs until no rank is left. */
void gang_run(struct gang *g);
void gang_kill(struct gang *g, size_t place, int signal);
size_t gang_alive(const struct gang *g);
void gang_done(struct gang *g);

#endif
