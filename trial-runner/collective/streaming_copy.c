#include "trial-runner/collective/streaming_copy.h"

#include <emmintrin.h>
#include <stdint.h>
#include <string.h>

#define LINE 64 /* bytes of the cache; a line that is written in part would be read first */

void streaming_copy(void *to, const void *from, size_t n)
{
    char *d = to;
    const char *s = from;
    size_t before = -(uintptr_t)d % LINE, i;
    before = before < n ? before : n;
    memcpy(d, s, before);
    for (i = before; i + LINE <= n; i += LINE)
        for (size_t j = i; j < i + LINE; j += sizeof(__m128i))
            _mm_stream_si128((__m128i *)(d + j), _mm_loadu_si128((const __m128i *)(s + j)));
    memcpy(d + i, s + i, n - i);
    _mm_sfence(); /* other threads see the bytes before whatever this one writes next */
}
