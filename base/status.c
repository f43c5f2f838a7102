#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

void as_err_set(struct as_err *err, as_status code, const char *pointer, const char *fmt, ...)
{
    if (!err)
        return;
    /* The arguments may point into *err: format into a copy first. */
    char msg[AS_ERR_MSG_MAX], at[AS_ERR_POINTER_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    (void)snprintf(at, sizeof at, "%s", pointer);
    as_utf8_repair(msg); /* a format may have cut quoted text, and messages are sent as JSON */
    as_utf8_repair(at);
    err->code = code;
    memcpy(err->msg, msg, sizeof msg);
    memcpy(err->pointer, at, sizeof at);
}

void as_err_set_prefix(struct as_err *err, as_status code, const char *fmt, ...)
{
    if (!err)
        return;
    char prefix[AS_ERR_MSG_MAX], whole[AS_ERR_MSG_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    (void)snprintf(whole, sizeof whole, "%s: %s", prefix, err->msg);
    as_utf8_repair(whole);
    memcpy(err->msg, whole, sizeof whole);
    err->code = code;
}

const char *as_status_name(as_status st)
{
    switch (st) {
    case AS_OK:
        return "ok";
    case AS_E_INVAL:
        return "invalid";
    case AS_E_NOMEM:
        return "out_of_memory";
    case AS_E_IO:
        return "io";
    case AS_E_NOT_FOUND:
        return "not_found";
    case AS_E_CONFLICT:
        return "conflict";
    case AS_E_STALE:
        return "stale_attempt";
    case AS_E_UNAVAILABLE:
        return "unavailable";
    case AS_E_NUMERIC:
        return "numeric";
    case AS_E_DENIED:
        return "denied";
    case AS_E_TOO_LARGE:
        return "too_large";
    case AS_E_UNSUPPORTED:
        return "unsupported";
    case AS_E_TIMEOUT:
        return "timeout";
    case AS_E_EXHAUSTED:
        return "exhausted";
    case AS_E_INTERNAL:
        return "internal";
    case AS_E_USAGE:
        return "usage";
    }
    return "unknown";
}
