/* sd_notify(3) without libsystemd: report the state of the program to the service manager. */
#ifndef ASSAY_API_HTTP_NOTIFY_H
#define ASSAY_API_HTTP_NOTIFY_H

/* Send one message such as "READY=1" to $NOTIFY_SOCKET. Does nothing if the variable is not set or
 * no program listens there. */
void notify_send(const char *message);

#endif
