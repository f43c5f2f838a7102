/* UTF-8: is it, and making it so. Stands on nothing, because status.c stands on it. */
#ifndef ASSAY_BASE_UTF8_H
#define ASSAY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Is it valid UTF-8 without surrogates, overlong forms or NUL bytes? */
bool as_utf8_valid(const char *s, size_t len);

/* Characters (code points) of valid UTF-8: what lengths are counted in at the API's border. */
size_t as_utf8_length(const char *s);

/* Put '?' in place of each byte that is not part of valid UTF-8, as after cutting a text short. */
void as_utf8_repair(char *s);

#endif
