/* Owen-scrambled Sobol points.
 *
 * Direction numbers: S. Joe, F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
 * projections", SIAM J. Sci. Comput. 30 (2008), table new-joe-kuo-6, its first SOBOL_MAX_DIMS
 * dimensions. Scrambling: nested uniform by hashing, B. Burley, "Practical hash-based Owen
 * scrambling", JCGT 9 (2020), with the Laine-Karras permutation in N. Vegdahl's constants. Each
 * scrambled dimension keeps the property of the net: of the first 2^k points, and of every later
 * aligned 2^k, exactly one lies in each of the 2^k equal intervals. */
#ifndef ASSAY_SEARCH_SAMPLING_SOBOL_H
#define ASSAY_SEARCH_SAMPLING_SOBOL_H

#include <stddef.h>
#include <stdint.h>

#define SOBOL_MAX_DIMS 256

/* Coordinate `dim` < SOBOL_MAX_DIMS of point `index` < 2^32, as 32 bits of fraction, not scrambled.
 */
uint32_t sobol_bits(uint32_t index, unsigned dim);

/* The same, scrambled under `seed`, in (0,1): the middle of its 2^-32 cell. After 2^32 points the
 * sequence continues under another scrambling. */
double sobol_point(uint64_t seed, uint64_t index, unsigned dim);

/* n points from index `first` on, equal to sobol_point bit for bit, in a tenth of the time. Point k
 * goes to ret[k * stride]. */
void sobol_column(uint64_t seed, uint64_t first, size_t n, unsigned dim, double *ret,
                  size_t stride);

#endif
