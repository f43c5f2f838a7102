/* Resampling with a triangle filter, first across and then down, in double precision. */
#include <math.h>

#include "data/image/image.h"

/* The weights of one output pixel: input pixels first .. first + n - 1. */
struct taps {
    size_t first, n;
    const double *weight; /* a view; they sum to 1 */
};

/* Weights of all output pixels of a side. */
struct filter {
    struct taps *taps;
    double *weights;
};

static void filter_done(struct filter *f)
{
    free(f->taps);
    free(f->weights);
}

static as_status filter_create(size_t from, size_t to, struct filter *ret, struct as_err *err)
{
    double scale = (double)from / (double)to, support = scale > 1 ? scale : 1;
    size_t most = (size_t)ceil(2 * support) + 2;
    ret->taps = as_calloc(to, sizeof *ret->taps);
    ret->weights = as_calloc(to * most, sizeof *ret->weights);
    if (!ret->taps || !ret->weights)
        return as_fail_nomem(err);
    for (size_t i = 0; i < to; i++) {
        double centre = ((double)i + 0.5) * scale, sum = 0, *w = ret->weights + i * most;
        double low = floor(centre - support), high = ceil(centre + support);
        size_t first = low > 0 ? (size_t)low : 0;
        size_t end = high < (double)from ? (size_t)high : from;
        size_t n = end - first < most ? end - first : most;
        for (size_t k = 0; k < n; k++) {
            double distance = fabs(((double)(first + k) + 0.5 - centre) / support);
            w[k] = distance < 1 ? 1 - distance : 0;
            sum += w[k];
        }
        for (size_t k = 0; k < n; k++)
            w[k] /= sum;
        ret->taps[i] = (struct taps){first, n, w};
    }
    return AS_OK;
}

/* One row of the image with the wanted channels. */
static void convert_row(const struct image *image, size_t row, size_t channels, double *ret)
{
    const unsigned char *p = image->pixels + row * image->width * image->channels;
    for (size_t x = 0; x < image->width; x++, p += image->channels) {
        if (image->channels == channels)
            for (size_t c = 0; c < channels; c++)
                ret[x * channels + c] = p[c];
        else if (channels == 1)
            ret[x] = floor((299.0 * p[0] + 587.0 * p[1] + 114.0 * p[2]) / 1000 + 0.5);
        else
            ret[3 * x] = ret[3 * x + 1] = ret[3 * x + 2] = p[0];
    }
}

/* A row of `width` pixels from one of the image. */
static void filter_row(const struct filter *f, const double *row, size_t width, size_t channels,
                       double *ret)
{
    for (size_t x = 0; x < width; x++)
        for (size_t c = 0; c < channels; c++) {
            const struct taps *t = &f->taps[x];
            double sum = 0;
            for (size_t k = 0; k < t->n; k++)
                sum += t->weight[k] * row[(t->first + k) * channels + c];
            ret[x * channels + c] = sum;
        }
}

as_status image_resize(const struct image *image, size_t height, size_t width, size_t channels,
                       unsigned char *ret, struct as_err *err)
{
    AS_AUTO(filter_done) struct filter across = {0};
    AS_AUTO(filter_done) struct filter down = {0};
    size_t n = width * channels;
    AS_AUTO(as_freep) double *row = as_calloc(image->width * channels, sizeof *row);
    AS_AUTO(as_freep) double *rows = as_calloc(image->height * n, sizeof *rows);
    if (!row || !rows)
        return as_fail_nomem(err);
    as_status st = filter_create(image->width, width, &across, err);
    if (st == AS_OK)
        st = filter_create(image->height, height, &down, err);
    if (st != AS_OK)
        return st;
    for (size_t y = 0; y < image->height; y++) {
        convert_row(image, y, channels, row);
        filter_row(&across, row, width, channels, rows + y * n);
    }
    for (size_t y = 0; y < height; y++)
        for (size_t i = 0; i < n; i++) {
            const struct taps *t = &down.taps[y];
            double sum = 0;
            for (size_t k = 0; k < t->n; k++)
                sum += t->weight[k] * rows[(t->first + k) * n + i];
            ret[y * n + i] = (unsigned char)fmin(fmax(floor(sum + 0.5), 0), 255);
        }
    return AS_OK;
}
