/* Bars of a line of text. */
#ifndef ASSAY_CLI_VIEW_BLOCKS_H
#define ASSAY_CLI_VIEW_BLOCKS_H

/* The block that is as high as a share of the highest; below 0: a blank. */
static inline const char *block_of(double share)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const int step = (int)(share * 8);
    return share < 0 ? " " : blocks[step < 7 ? step : 7];
}

#endif
