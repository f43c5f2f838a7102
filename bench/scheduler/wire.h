/* Kept connections to a server on this machine: HTTP/1.1 requests written as they are, answers read
 * as far as a load generator needs. It takes little of the processor that it shares with the
 * server. An error that no server should cause ends the program. One thread. */
#ifndef ASSAY_BENCH_SCHEDULER_WIRE_H
#define ASSAY_BENCH_SCHEDULER_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/str.h"

struct wire {
    int fd;
    char *in; /* bytes of the answer */
    size_t have, cap;
    struct str out; /* the latest request, for wire_repeat() */
    /* Set by the owner: the server may end, so a connection that is lost is no error. */
    bool may_end;
    bool has_ended; /* then: no more comes, open it again */
};

/* A view of the connection until its next request. */
struct answer {
    int status;
    const char *body; /* NUL-terminated */
    size_t len;
};

_Noreturn void wire_give_up(const char *what, const char *detail);

void wire_open(struct wire *w, int port);
/* Connect again, perhaps to another server; the latest request is kept for wire_repeat(). Returns
 * false, and the connection has ended, if nobody listens there. */
bool wire_reopen(struct wire *w, int port);
void wire_close(struct wire *w);

/* Send a request. `fields` are whole lines of the head, each with its CRLF; `body` may be NULL. */
void wire_send(struct wire *w, const char *method, const char *path, const char *fields,
               const struct str *body);
/* Send the latest request once more. */
void wire_repeat(struct wire *w);

/* Read what has arrived; blocks if nothing has. Returns true if *ret is the whole answer. Look at
 * has_ended where it is false. */
bool wire_receive(struct wire *w, struct answer *ret);

/* Send, and wait for the answer. */
struct answer wire_call(struct wire *w, const char *method, const char *path, const char *fields,
                        const struct str *body);

#endif
