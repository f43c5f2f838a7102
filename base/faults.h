/* All that is wrong with one document. A parser that is given a list notes each fault in it and
 * goes on with the next field; without a list the first fault ends it.
 *
 *   st = faults_note(faults, parse_section(…, err), err);
 *   if (st != AS_OK)
 *       return st;       no list, or out of memory, or the list is full
 *   …                    else the section may lack what was wrong; look at faults->n at the end */
#ifndef ASSAY_BASE_FAULTS_H
#define ASSAY_BASE_FAULTS_H

#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

#define FAULTS_MAX 50 /* a parser stops at this many */

/* Zeroed: empty. Each entry has its code, pointer and message. */
struct faults {
    struct as_err *list; /* in the order in which they were found; owned */
    size_t n;
};

void faults_done(struct faults *f);

/* If st is a fault of the document (AS_E_INVAL, AS_E_TOO_LARGE, AS_E_UNSUPPORTED), copy *err to the
 * list and return AS_OK: the parser goes on. Only the first fault of a pointer is kept: what is
 * wrong with one field is often found twice.
 * Returns st unchanged if it is AS_OK or another error, if f or err is NULL, or if the list holds
 * FAULTS_MAX faults afterwards. AS_E_NOMEM. */
AS_MUST_CHECK as_status faults_note(struct faults *f, as_status st, struct as_err *err);

/* The index of the fault with this pointer; f->n if there is none. */
size_t faults_find(const struct faults *f, const char *pointer);

/* AS_OK if the list is empty or f is NULL; else the code of the first fault, which is copied to
 * *err (may be NULL). */
AS_MUST_CHECK as_status faults_first(const struct faults *f, struct as_err *err);

#endif
