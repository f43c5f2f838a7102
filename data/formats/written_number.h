/* Numbers as people write them: "88,139", "$26,441.83", "64.9 %", "1'234.5", "€ 1.234,50",
 * "(250)". */
#ifndef ASSAY_DATA_FORMATS_WRITTEN_NUMBER_H
#define ASSAY_DATA_FORMATS_WRITTEN_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define WRITTEN_NUMBER_MAX ((size_t)64) /* bytes of such a text, and of the plain number + 1 */

/* The plain form of a number that is written with a sign between thousands, a sign of a currency
 * before or behind it, or a percent sign: "88139", "26441.83", "64.9".
 *   decimal   '.' or ',': the decimal sign. The other one may stand between thousands, and so may
 *             ' (also U+2019), a blank, U+00A0 and U+202F: always the same, one to three digits
 *             before the first, three behind each, and no leading 0
 *   ret       [WRITTEN_NUMBER_MAX], NUL-terminated; untouched if the text is no such number
 *   ret_sign  the bytes of the sign of a currency or of percent, the first one lowest; 0: there is
 *             none
 * Returns the length of the plain form; 0: the text is no such number. Blanks around it do not
 * count. A percentage keeps its unit: "5 %" is 5. Parentheses are a minus, as bookkeepers write. */
size_t written_number(const char *s, size_t len, char decimal, char *ret, uint32_t *ret_sign);

#endif
