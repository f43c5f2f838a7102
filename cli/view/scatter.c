/* A plane of characters. Points of the front are drawn over other trials. Values that are not
 * finite are left out. Places are computed from halves of the values, because the difference of two
 * large numbers overflows. */
#include "cli/view/scatter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/view/text.h"

#define MAX_WIDTH 200
#define MAX_HEIGHT 60
#define LABEL_WIDTH 10 /* columns of the labels of the y axis */

struct range {
    double low, high;
};

static bool is_drawn(const struct scatter_point *p)
{
    return isfinite(p->x) && isfinite(p->y);
}

static void widen_range(struct range *r, double v, bool first)
{
    r->low = first || v < r->low ? v : r->low;
    r->high = first || v > r->high ? v : r->high;
}

/* The cell of v among n cells; the middle one if the range is empty. The values are halved before
 * the subtraction, because the difference of two large numbers overflows. */
static size_t cell_of(const struct range *r, double v, size_t n)
{
    double span = r->high / 2 - r->low / 2;
    double share = span > 0 ? (v / 2 - r->low / 2) / span : 0.5;
    size_t cell = (size_t)(share * (double)(n - 1) + 0.5);
    return cell < n ? cell : n - 1;
}

struct plane {
    char cells[MAX_HEIGHT][MAX_WIDTH]; /* 0: nothing, 1: a trial, 2: a trial of the front */
    size_t width, height;
    struct range x, y;
};

static bool fill_plane(struct plane *plane, const struct scatter_point *points, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!is_drawn(&points[i]))
            continue;
        widen_range(&plane->x, points[i].x, !any);
        widen_range(&plane->y, points[i].y, !any);
        any = true;
    }
    for (size_t i = 0; i < n && any; i++) {
        if (!is_drawn(&points[i]))
            continue;
        size_t row = plane->height - 1 - cell_of(&plane->y, points[i].y, plane->height);
        char *cell = &plane->cells[row][cell_of(&plane->x, points[i].x, plane->width)];
        char mark = points[i].is_front ? 2 : 1;
        *cell = mark > *cell ? mark : *cell;
    }
    return any;
}

static void draw_row(const struct plane *plane, size_t row, const struct terminal *terminal,
                     struct str *b)
{
    char label[32] = "";
    if (row == 0 || row == plane->height - 1)
        (void)snprintf(label, sizeof label, "%.4g", row == 0 ? plane->y.high : plane->y.low);
    text_pad(b, label, LABEL_WIDTH, true, terminal_ellipsis(terminal));
    str_puts(b, terminal->unicode ? " │" : " |");
    size_t last = plane->width; /* no blanks at the end of a line */
    while (last > 0 && !plane->cells[row][last - 1])
        last--;
    for (size_t i = 0; i < last; i++) {
        char mark = plane->cells[row][i];
        style s = mark == 2 ? STYLE_GOOD : STYLE_DIM;
        const char *glyph = mark == 2   ? (terminal->unicode ? "●" : "o")
                            : mark == 1 ? (terminal->unicode ? "·" : ".")
                                        : " ";
        if (mark)
            terminal_style_on(terminal, s, b);
        str_puts(b, glyph);
        if (mark)
            terminal_style_off(terminal, s, b);
    }
    str_putc(b, '\n');
}

static void draw_axis(const struct plane *plane, const struct scatter_opts *opts,
                      const struct terminal *terminal, struct str *b)
{
    char low[32], high[32];
    (void)snprintf(low, sizeof low, "%.4g", plane->x.low);
    (void)snprintf(high, sizeof high, "%.4g", plane->x.high);
    text_pad(b, "", LABEL_WIDTH, false, "");
    str_puts(b, terminal->unicode ? " └" : " +");
    for (size_t i = 0; i < plane->width; i++)
        str_puts(b, terminal->unicode ? "─" : "-");
    str_putc(b, '\n');
    text_pad(b, "", LABEL_WIDTH + 2, false, "");
    size_t ends = strlen(low) + strlen(high);
    size_t room = plane->width > ends + 2 ? plane->width - ends - 2 : 0;
    str_puts(b, low);
    struct str name = {0};
    text_escape(&name, opts->x_name, strlen(opts->x_name), TEXT_ONE_LINE);
    size_t wide = text_width(str_cstr(&name));
    wide = wide < room ? wide : room;
    size_t before = 1 + (room - wide) / 2;
    text_pad(b, "", before, false, "");
    text_cut(b, str_cstr(&name), wide, terminal_ellipsis(terminal));
    text_pad(b, "", room + 2 - before - wide, false, "");
    str_printf(b, "%s\n", high);
    str_done(&name);
}

void scatter_draw(const struct scatter_point *points, size_t n, const struct scatter_opts *opts,
                  const struct terminal *terminal, struct str *b)
{
    struct plane plane = {
        .width = opts->width > MAX_WIDTH ? MAX_WIDTH
                 : opts->width < 8       ? 8
                                         : opts->width,
        .height = opts->height > MAX_HEIGHT ? MAX_HEIGHT
                  : opts->height < 3        ? 3
                                            : opts->height,
    };
    if (!fill_plane(&plane, points, n))
        return;
    str_puts(b, "  ");
    text_escape(b, opts->y_name, strlen(opts->y_name), TEXT_ONE_LINE);
    str_putc(b, '\n');
    for (size_t row = 0; row < plane.height; row++)
        draw_row(&plane, row, terminal, b);
    draw_axis(&plane, opts, terminal, b);
}
