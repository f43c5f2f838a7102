/* UTF-8: check text, and repair it. Includes nothing of base, because status.c uses it. */
#ifndef ASSAY_BASE_UTF8_H
#define ASSAY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Is it valid UTF-8 without surrogates, overlong forms or NUL bytes? */
bool as_utf8_valid(const char *s, size_t len);

/* Characters (code points) of valid UTF-8. The API states its limits for text in characters. */
size_t as_utf8_length(const char *s);

/* The bytes of the first `max` characters of valid UTF-8, or of all of it. */
size_t as_utf8_prefix(const char *s, size_t max);

/* Replace each byte that is not part of valid UTF-8 by '?'. Cutting a text can leave such bytes. */
void as_utf8_repair(char *s);

#endif
