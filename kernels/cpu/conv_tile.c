/* A target_clones function has one source, and so one size of tile, for all instruction sets. The
 * tile here depends on the number and width of the registers. So one body is included with three
 * sizes. */
#include "kernels/cpu/conv_tile.h"

#include <string.h>

#include "base/cpu_clones.h"

#define LANES 4
#define ROWS 6
#define NAME(x) plain_##x
#include "kernels/cpu/conv_tile_body.inc"

#ifdef CPU_HAS_CLONES

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define LANES 8
#define ROWS 6
#define NAME(x) v3_##x
#include "kernels/cpu/conv_tile_body.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
#define LANES 16
#define ROWS 8
#define NAME(x) v4_##x
#include "kernels/cpu/conv_tile_body.inc"
#pragma GCC pop_options

const struct conv_tile *conv_tile(void)
{
    if (__builtin_cpu_supports("x86-64-v4"))
        return &v4_tile;
    return __builtin_cpu_supports("x86-64-v3") ? &v3_tile : &plain_tile;
}

#else

const struct conv_tile *conv_tile(void)
{
    return &plain_tile;
}

#endif
