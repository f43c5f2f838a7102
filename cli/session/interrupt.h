/* Ctrl-C: the first ends the call in progress and is remembered, the second ends the program. */
#ifndef ASSAY_CLI_SESSION_INTERRUPT_H
#define ASSAY_CLI_SESSION_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

struct client;

/* Catch SIGINT, SIGTERM and SIGHUP. Once, from main. */
void interrupt_setup(void);

/* Let it end calls of this client (at most 4), until interrupt_unwatch. */
void interrupt_watch(struct client *c);
void interrupt_unwatch(struct client *c);

bool interrupt_seen(void);

/* Wait; false when interrupted. */
bool interrupt_sleep_ms(int64_t ms);

#endif
