/* Ctrl-C: the first one ends the request in progress and sets a flag, the second one ends the
 * program. */
#ifndef ASSAY_CLI_SESSION_INTERRUPT_H
#define ASSAY_CLI_SESSION_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

struct client;

/* Catch SIGINT, SIGTERM and SIGHUP. main() calls it once. */
void interrupt_setup(void);

/* From now until interrupt_unwatch(), a signal ends the requests of this client. At most 4 clients
 * can be watched. */
void interrupt_watch(struct client *c);
void interrupt_unwatch(struct client *c);

bool interrupt_seen(void);

/* Wait; returns false after a signal. */
bool interrupt_sleep_ms(int64_t ms);

#endif
