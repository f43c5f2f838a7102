/* sd_notify(3) without libsystemd: tell the service manager about our state. */
#ifndef ASSAY_API_SERVER_NOTIFY_H
#define ASSAY_API_SERVER_NOTIFY_H

/* Send one message such as "READY=1" to $NOTIFY_SOCKET; nothing happens when it is not set or
 * nobody listens. */
void notify_send(const char *message);

#endif
