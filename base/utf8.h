/* UTF-8: is it, and making it so. Stands on nothing, because status.c stands on it. */
#ifndef ASSAY_BASE_UTF8_H
#define ASSAY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Is it valid UTF-8 without surrogates, overlong forms or NUL bytes? */
bool as_utf8_valid(const char *s, size_t len);

/* Put '?' in place of each byte that is not part of valid UTF-8, as after cutting a text short. */
void as_utf8_repair(char *s);

#endif
