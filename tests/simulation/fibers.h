/* Threads of a simulation: fibers that one thread runs one after another, and a clock that stands
 * still while they run. A seed decides which one goes on, so a run can be repeated bit for bit.
 *
 * The program is linked with --wrap for the functions of pthreads and of base/clock.h that the
 * committer uses (meson.build): within a fiber they are those of this file, elsewhere the real
 * ones. A fiber that stops for any reason other than a condition must hold no mutex; that is
 * asserted, because the rule of the committer is that none is held over a round trip. */
#ifndef ASSAY_TESTS_SIMULATION_FIBERS_H
#define ASSAY_TESTS_SIMULATION_FIBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

#define SIM_NODES 8

/* Begin at time 0. */
void sim_begin(uint64_t seed);
/* Run until no fiber is left. Fails the program, with the places of all fibers, if those that are
 * left wait for each other. */
void sim_run(void);
/* Free what the fibers had. */
void sim_end(void);

/* A fiber of a node. `fn` begins when it is chosen. What it begins itself belongs to its node. */
void sim_spawn(int node, void (*fn)(void *), void *arg);
/* The node of the fiber that runs. */
int sim_node(void);
/* No fiber of this node runs before that time (SIGSTOP, SIGCONT). */
void sim_stop_node(int node, int64_t until_ns);

/* ---- for fibers ---- */

/* What the fiber that runs keeps for itself; NULL at its begin. */
void **sim_own(void);

/* Let others run. */
void sim_yield(void);
void sim_sleep_ms(double ms);
int64_t sim_now_ns(void);
/* Wait for sim_wake() with the same place, at most until that time (INT64_MAX: for ever). `what` is
 * shown when it comes in vain. False: the time is over. */
bool sim_wait(const void *place, int64_t until_ns, const char *what);
void sim_wake(const void *place);

/* The draws of the simulation. */
extern struct rng sim_rng;
bool sim_chance(double p);
/* Below `ms`. */
void sim_pause(double ms);

/* How often a fiber was chosen. */
extern uint64_t sim_steps;

#endif
