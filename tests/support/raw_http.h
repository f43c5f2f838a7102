/* A client that sends exactly the given bytes, for requests that no library would send. */
#ifndef ASSAY_TESTS_SUPPORT_RAW_HTTP_H
#define ASSAY_TESTS_SUPPORT_RAW_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* A connected socket to 127.0.0.1:port; the test fails otherwise. */
int raw_connect(int port);
void raw_send(int fd, const char *bytes, size_t len);
void raw_puts(int fd, const char *s);

/* Close it, and wait until the server has closed its end too. */
void raw_leave(int fd);

/* Read until the peer closes, `want` (NULL: none) has been seen, or wait_ms are over. Appends to
 * out. Returns true if the peer closed (or reset). */
bool raw_read(int fd, struct str *out, const char *want, int wait_ms);

/* Connect, send, read until close or `wait_ms`; the status of the first answer, 0 when there was
 * none. The text is in *out when it is not NULL (appended). */
int raw_request(int port, const char *bytes, size_t len, int wait_ms, struct str *out);

/* The status code at the start of an answer, 0 when there is none. */
int raw_status(const struct str *answer);

/* How many times `part` occurs. */
size_t raw_count(const struct str *answer, const char *part);

#endif
