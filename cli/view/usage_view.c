#include "cli/view/usage_view.h"

#include <stdio.h>

#include "base/str.h"
#include "cli/view/blocks.h"
#include "cli/view/format.h"

#define RANKS_MAX 16  /* rows of a gang; --json has all */
#define BLOCKS_MAX 40 /* characters of the picture */

/* The mean and the most of a list of samples. False: nothing is known. */
static bool sum_up(const json_t *list, double *ret_mean, double *ret_most)
{
    double sum = 0, most = 0;
    size_t known = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_number(v))
            continue;
        double x = json_number_value(v);
        sum += x;
        most = x > most ? x : most;
        known++;
    }
    if (known == 0)
        return false;
    *ret_mean = sum / (double)known;
    *ret_most = most;
    return true;
}

static void add_figures(const json_t *item, struct str *b)
{
    double mean = 0, most = 0;
    char size[32];
    if (sum_up(json_object_get(item, "cpu"), &mean, &most))
        str_printf(b, "%.3g cores (most %.3g)", mean, most);
    if (sum_up(json_object_get(item, "memory_bytes"), &mean, &most))
        str_printf(b, ", memory at most %s", format_size((int64_t)most, size));
    if (sum_up(json_object_get(item, "gpu"), &mean, &most))
        str_printf(b, ", GPUs busy %.3g (most %.3g)", mean, most);
    if (sum_up(json_object_get(item, "gpu_memory_bytes"), &mean, &most))
        str_printf(b, ", GPU memory at most %s", format_size((int64_t)most, size));
}

/* The mean of the samples from a up to b. Below 0: nothing is known. */
static double mean_of(const json_t *list, size_t a, size_t b)
{
    double sum = 0;
    size_t known = 0;
    for (size_t i = a; i < b; i++) {
        const json_t *v = json_array_get(list, i);
        sum += json_is_number(v) ? json_number_value(v) : 0;
        known += json_is_number(v);
    }
    return known > 0 ? sum / (double)known : -1;
}

/* Processor over time as blocks, from 0 to the most. */
static void add_picture(const json_t *list, struct str *b)
{
    size_t n = json_array_size(list), wide = n < BLOCKS_MAX ? n : BLOCKS_MAX;
    double mean = 0, most = 0;
    if (!sum_up(list, &mean, &most) || most <= 0)
        return;
    for (size_t i = 0; i < wide; i++) {
        double v = mean_of(list, i * n / wide, (i + 1) * n / wide);
        str_puts(b, block_of(v / most));
    }
}

void usage_view_rows(struct pairs *p, const json_t *usage)
{
    const json_t *items = json_object_get(usage, "items");
    for (size_t i = 0; i < json_array_size(items) && i < RANKS_MAX; i++) {
        AS_AUTO(str_done) struct str figures = {0}, picture = {0};
        const json_t *item = json_array_get(items, i), *seat = json_object_get(item, "seat");
        char label[40] = "used";
        if (json_is_integer(seat))
            (void)snprintf(label, sizeof label, "used, rank %" JSON_INTEGER_FORMAT,
                           json_integer_value(seat));
        add_figures(item, &figures);
        if (figures.len == 0)
            continue;
        pairs_add(p, label, STYLE_PLAIN, str_cstr(&figures));
        add_picture(json_object_get(item, "cpu"), &picture);
        if (picture.len > 0)
            pairs_add(p, "cores over time", STYLE_PLAIN, str_cstr(&picture));
    }
}
