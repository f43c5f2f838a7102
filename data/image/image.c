/* Decoding PNG with libpng and JPEG with libjpeg-turbo.
 *
 * Both libraries report errors by longjmp. So each decoder keeps everything that it owns in one
 * struct that its caller frees, and the function with setjmp has no variable that changes after it.
 *
 * Memory: libpng gets limits for sides and chunks, and the size in the header is checked before
 * pixels are allocated. A progressive JPEG may have thousands of scans over all pixels, which is
 * time without memory: their number is bounded. libjpeg fills what a cut file lacks with grey and
 * only warns; the warnings for that are errors here. */
#include "data/image/image.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>
#include <jerror.h>
#include <png.h>

#include "base/file.h"

#define MAX_CHUNK ((png_alloc_size_t)8 << 20)
#define MAX_SCANS 200

void image_done(struct image *image)
{
    free(image->pixels);
    *image = (struct image){0};
}

static as_status check_size(const struct image *image, struct as_err *err)
{
    if (image->height == 0 || image->width == 0)
        return as_fail(err, AS_E_INVAL, "the image is empty");
    if (image->height > IMAGE_MAX_SIDE || image->width > IMAGE_MAX_SIDE ||
        image->height * image->width > IMAGE_MAX_PIXELS)
        return as_fail(err, AS_E_TOO_LARGE,
                       "an image of %zu x %zu pixels, at most %zu pixels and %zu on a side",
                       image->height, image->width, IMAGE_MAX_PIXELS, IMAGE_MAX_SIDE);
    return AS_OK;
}

static as_status alloc_pixels(struct image *image, struct as_err *err)
{
    as_status st = check_size(image, err);
    if (st != AS_OK)
        return st;
    image->pixels = as_calloc(image->height * image->width, image->channels);
    return image->pixels
               ? AS_OK
               : as_fail(err, AS_E_NOMEM, "out of memory for an image of %zu x %zu pixels",
                         image->height, image->width);
}

/* ---- PNG ---- */

struct png_reader {
    png_structp png;
    png_infop info;
    const unsigned char *bytes;
    size_t len, at;
    char why[120]; /* libpng's message */
    png_bytep *rows;
    struct image image;
};

static void png_reader_done(struct png_reader *r)
{
    png_destroy_read_struct(&r->png, &r->info, NULL);
    free(r->rows);
    image_done(&r->image);
}

static void on_png_error(png_structp png, png_const_charp why)
{
    struct png_reader *r = png_get_error_ptr(png);
    (void)snprintf(r->why, sizeof r->why, "%s", why);
    png_longjmp(png, 1);
}

static void on_png_warning(png_structp png, png_const_charp why)
{
    (void)png;
    (void)why;
}

static void read_png_bytes(png_structp png, png_bytep to, size_t n)
{
    struct png_reader *r = png_get_io_ptr(png);
    if (n > r->len - r->at)
        png_error(png, "cut short");
    memcpy(to, r->bytes + r->at, n);
    r->at += n;
}

/* Read the header, and ask for rows of 8-bit grey or RGB. */
static as_status start_png(struct png_reader *r, struct as_err *err)
{
    if (setjmp(png_jmpbuf(r->png)))
        return as_fail(err, AS_E_INVAL, "a damaged PNG image: %s", r->why);
    png_set_user_limits(r->png, IMAGE_MAX_SIDE, IMAGE_MAX_SIDE);
    png_set_chunk_malloc_max(r->png, MAX_CHUNK);
    png_set_read_fn(r->png, r, read_png_bytes);
    png_read_info(r->png, r->info);
    png_set_expand(r->png);
    png_set_strip_16(r->png);
    png_set_strip_alpha(r->png);
    (void)png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    r->image.height = png_get_image_height(r->png, r->info);
    r->image.width = png_get_image_width(r->png, r->info);
    r->image.channels = png_get_channels(r->png, r->info);
    return AS_OK;
}

static as_status finish_png(struct png_reader *r, struct as_err *err)
{
    if (setjmp(png_jmpbuf(r->png)))
        return as_fail(err, AS_E_INVAL, "a damaged PNG image: %s", r->why);
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL);
    return AS_OK;
}

static as_status parse_png(const void *bytes, size_t len, bool pixels, struct image *ret,
                           struct as_err *err)
{
    AS_AUTO(png_reader_done) struct png_reader r = {.bytes = bytes, .len = len};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_png_error, on_png_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    if (!r.info)
        return as_fail_nomem(err);
    as_status st = start_png(&r, err);
    if (st == AS_OK && r.image.channels != 1 && r.image.channels != 3)
        st = as_fail(err, AS_E_INVAL, "a PNG image of %zu channels", r.image.channels);
    if (st == AS_OK)
        st = pixels ? alloc_pixels(&r.image, err) : check_size(&r.image, err);
    if (st == AS_OK && pixels) {
        size_t row = r.image.width * r.image.channels;
        r.rows = as_calloc(r.image.height, sizeof *r.rows);
        for (size_t i = 0; r.rows && i < r.image.height; i++)
            r.rows[i] = r.image.pixels + i * row;
        st = r.rows ? finish_png(&r, err) : as_fail_nomem(err);
    }
    if (st != AS_OK)
        return st;
    *ret = r.image;
    r.image = (struct image){0};
    return AS_OK;
}

/* ---- JPEG ---- */

struct jpeg_reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    char why[JMSG_LENGTH_MAX];
    bool cut; /* a warning says so */
    struct image image;
};

static void jpeg_reader_done(struct jpeg_reader *r)
{
    jpeg_destroy_decompress(&r->jpeg);
    image_done(&r->image);
}

static void on_jpeg_error(j_common_ptr jpeg)
{
    struct jpeg_reader *r = jpeg->client_data;
    jpeg->err->format_message(jpeg, r->why);
    longjmp(r->jump, 1);
}

/* A warning has level -1. Some are harmless, such as bytes between segments. */
static void on_jpeg_message(j_common_ptr jpeg, int level)
{
    struct jpeg_reader *r = jpeg->client_data;
    int code = jpeg->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
        r->cut = true;
}

static void on_jpeg_progress(j_common_ptr jpeg)
{
    struct jpeg_reader *r = jpeg->client_data;
    if (r->jpeg.input_scan_number <= MAX_SCANS)
        return;
    (void)snprintf(r->why, sizeof r->why, "more than %d scans", MAX_SCANS);
    longjmp(r->jump, 1);
}

static as_status start_jpeg(struct jpeg_reader *r, const void *bytes, size_t len,
                            struct as_err *err)
{
    if (setjmp(r->jump))
        return as_fail(err, AS_E_INVAL, "a damaged JPEG image: %.100s", r->why);
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.client_data = r;
    jpeg_mem_src(&r->jpeg, bytes, (unsigned long)len);
    (void)jpeg_read_header(&r->jpeg, TRUE);
    bool grey = r->jpeg.jpeg_color_space == JCS_GRAYSCALE;
    if (r->jpeg.jpeg_color_space == JCS_CMYK || r->jpeg.jpeg_color_space == JCS_YCCK)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "a JPEG image in CMYK, expected grey or colours of a screen");
    r->jpeg.out_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
    r->jpeg.dct_method = JDCT_ISLOW;
    r->image.height = r->jpeg.image_height;
    r->image.width = r->jpeg.image_width;
    r->image.channels = grey ? 1 : 3;
    return AS_OK;
}

static as_status finish_jpeg(struct jpeg_reader *r, struct as_err *err)
{
    if (setjmp(r->jump))
        return as_fail(err, AS_E_INVAL, "a damaged JPEG image: %.100s", r->why);
    r->progress.progress_monitor = on_jpeg_progress;
    r->jpeg.progress = &r->progress;
    (void)jpeg_start_decompress(&r->jpeg);
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        size_t row = r->image.width * r->image.channels;
        JSAMPROW to = r->image.pixels + r->jpeg.output_scanline * row;
        (void)jpeg_read_scanlines(&r->jpeg, &to, 1);
    }
    (void)jpeg_finish_decompress(&r->jpeg);
    return r->cut ? as_fail(err, AS_E_INVAL, "a damaged JPEG image: cut short") : AS_OK;
}

static as_status parse_jpeg(const void *bytes, size_t len, bool pixels, struct image *ret,
                            struct as_err *err)
{
    AS_AUTO(jpeg_reader_done) struct jpeg_reader r = {0};
    r.jpeg.err = jpeg_std_error(&r.errors);
    r.errors.error_exit = on_jpeg_error;
    r.errors.emit_message = on_jpeg_message;
    r.jpeg.client_data = &r;
    as_status st = start_jpeg(&r, bytes, len, err);
    if (st == AS_OK)
        st = pixels ? alloc_pixels(&r.image, err) : check_size(&r.image, err);
    if (st == AS_OK && pixels)
        st = finish_jpeg(&r, err);
    if (st != AS_OK)
        return st;
    *ret = r.image;
    r.image = (struct image){0};
    return AS_OK;
}

/* ---- either ---- */

static as_status parse(const void *bytes, size_t len, bool pixels, struct image *ret,
                       struct as_err *err)
{
    const unsigned char *b = bytes;
    if (len >= 8 && png_sig_cmp(b, 0, 8) == 0)
        return parse_png(bytes, len, pixels, ret, err);
    if (len >= 3 && b[0] == 0xff && b[1] == 0xd8 && b[2] == 0xff)
        return parse_jpeg(bytes, len, pixels, ret, err);
    return as_fail(err, AS_E_INVAL, "neither a PNG nor a JPEG image");
}

as_status image_parse(const void *bytes, size_t len, struct image *ret, struct as_err *err)
{
    return parse(bytes, len, true, ret, err);
}

as_status image_parse_size(const void *bytes, size_t len, struct image *ret, struct as_err *err)
{
    return parse(bytes, len, false, ret, err);
}

static as_status read_image(const char *path, bool pixels, struct image *ret, struct as_err *err)
{
    AS_AUTO(file_closep) int fd = -1;
    AS_AUTO(as_freep) unsigned char *bytes = NULL;
    struct stat sb;
    as_status st = file_open_regular(path, &fd, err);
    if (st != AS_OK)
        return as_err_prefix(err, st, "%.160s", path);
    if (fstat(fd, &sb) != 0)
        return as_fail(err, AS_E_IO, "cannot read %.160s: %s", path, strerror(errno));
    size_t len = (size_t)sb.st_size, have = 0;
    if (len > IMAGE_MAX_BYTES)
        return as_fail(err, AS_E_TOO_LARGE, "%.160s: %zu bytes, at most %zu", path, len,
                       IMAGE_MAX_BYTES);
    bytes = as_calloc(len + 1, 1);
    if (!bytes)
        return as_fail_nomem(err);
    while (have < len) {
        ssize_t n = read(fd, bytes + have, len - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return as_fail(err, AS_E_IO, "cannot read %.160s: %s", path, strerror(errno));
        if (n == 0)
            break;
        have += (size_t)n;
    }
    st = parse(bytes, have, pixels, ret, err);
    return st == AS_OK ? AS_OK : as_err_prefix(err, st, "%.160s", path);
}

as_status image_read(const char *path, struct image *ret, struct as_err *err)
{
    return read_image(path, true, ret, err);
}

as_status image_read_size(const char *path, struct image *ret, struct as_err *err)
{
    return read_image(path, false, ret, err);
}
