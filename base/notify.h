/* sd_notify(3) without libsystemd: report the state of the program to the service manager. */
#ifndef ASSAY_BASE_NOTIFY_H
#define ASSAY_BASE_NOTIFY_H

#include <stdint.h>

/* Send one message such as "READY=1" to $NOTIFY_SOCKET. Does nothing if the variable is not set or
 * no program listens there. */
void notify_send(const char *message);

/* How often the service manager wants to hear "WATCHDOG=1": half of the time after which it kills
 * the program ($WATCHDOG_USEC, if $WATCHDOG_PID is not another process). 0: it does not. */
int64_t notify_watchdog_ns(void);

/* The watchdog of one loop, which says by it that it goes round. Begin with every_ns from
 * notify_watchdog_ns() and due_ns 0. */
struct notify_watchdog {
    int64_t every_ns, due_ns; /* clock_mono_ns() */
};

/* Send "WATCHDOG=1" if it is due. Once in each round. */
void notify_beat(struct notify_watchdog *w);

#endif
