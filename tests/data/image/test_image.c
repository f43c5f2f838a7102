/* PNG and JPEG: what the libraries write is read back, in all kinds of PNG; damage, cut files and
 * images that are too large are refused; resizing against values computed by hand. */
#include "data/image/image.h"

#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <png.h>

#include "base/str.h"
#include "tests/support/check_main.h"
#include "tests/support/temp_folder.h"

static struct as_err err;

static void add_bytes(png_structp png, png_bytep bytes, size_t n)
{
    str_add(png_get_io_ptr(png), (const char *)bytes, n);
}

static void no_flush(png_structp png)
{
    (void)png;
}

/* A PNG of rows of `bits` per sample; every byte of the rows is its place. */
static void make_png(size_t h, size_t w, int type, int bits, int interlace, struct str *ret)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    static png_color palette[4] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {9, 9, 9}};
    static unsigned char rows[64][512];
    static png_bytep at[64];
    ck_assert(png && info && h <= 64);
    png_set_write_fn(png, ret, add_bytes, no_flush);
    png_set_IHDR(png, info, (png_uint_32)w, (png_uint_32)h, bits, type, interlace,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, palette, 4);
    png_write_info(png, info);
    for (size_t y = 0; y < h; y++) {
        for (size_t i = 0; i < sizeof rows[y]; i++)
            rows[y][i] = (unsigned char)(type == PNG_COLOR_TYPE_PALETTE ? (y + i) % 4 : y * 40 + i);
        at[y] = rows[y];
    }
    png_write_image(png, at);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

START_TEST(kinds_of_png)
{
    static const struct {
        int type, bits, interlace;
        size_t channels;
        unsigned char second[3]; /* the pixel in row 1, column 1 */
    } cases[] = {
        {PNG_COLOR_TYPE_GRAY, 8, PNG_INTERLACE_NONE, 1, {41}},
        {PNG_COLOR_TYPE_GRAY, 8, PNG_INTERLACE_ADAM7, 1, {41}},
        {PNG_COLOR_TYPE_GRAY, 16, PNG_INTERLACE_NONE, 1, {42}},
        {PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_NONE, 3, {43, 44, 45}},
        {PNG_COLOR_TYPE_RGB_ALPHA, 8, PNG_INTERLACE_ADAM7, 3, {44, 45, 46}},
        {PNG_COLOR_TYPE_GRAY_ALPHA, 8, PNG_INTERLACE_NONE, 1, {42}},
        {PNG_COLOR_TYPE_PALETTE, 8, PNG_INTERLACE_NONE, 3, {0, 0, 255}},
        {PNG_COLOR_TYPE_GRAY, 1, PNG_INTERLACE_NONE, 1, {0}}, /* 40 = 00101000 */
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(str_done) struct str b = {0};
        AS_AUTO(image_done) struct image image = {0};
        struct image size = {0};
        make_png(3, 5, cases[i].type, cases[i].bits, cases[i].interlace, &b);
        ck_ok(image_parse(b.s, b.len, &image, &err), err);
        ck_ok(image_parse_size(b.s, b.len, &size, &err), err);
        ck_assert(size.height == 3 && size.width == 5 && size.channels == image.channels);
        ck_assert_uint_eq(image.channels, cases[i].channels);
        ck_assert_msg(
            memcmp(image.pixels + (5 + 1) * image.channels, cases[i].second, image.channels) == 0,
            "case %zu: %d", i, image.pixels[6 * image.channels]);
    }
}
END_TEST

/* A JPEG of one colour; `progressive` has several scans. */
static void make_jpeg(size_t h, size_t w, int channels, bool progressive, struct str *ret)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL, row[64 * 4];
    unsigned long len = 0;
    JSAMPROW at = row;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &bytes, &len);
    jpeg.image_height = (JDIMENSION)h;
    jpeg.image_width = (JDIMENSION)w;
    jpeg.input_components = channels;
    jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 95, TRUE);
    if (progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    for (size_t i = 0; i < sizeof row; i++)
        row[i] = (unsigned char)(channels == 1 ? 77 : i % 3 == 0 ? 200 : 30);
    for (size_t y = 0; y < h; y++)
        (void)jpeg_write_scanlines(&jpeg, &at, 1);
    jpeg_finish_compress(&jpeg);
    str_add(ret, (const char *)bytes, len);
    jpeg_destroy_compress(&jpeg);
    free(bytes);
}

START_TEST(kinds_of_jpeg)
{
    for (int i = 0; i < 4; i++) {
        AS_AUTO(str_done) struct str b = {0};
        AS_AUTO(image_done) struct image image = {0};
        make_jpeg(17, 33, i % 2 ? 3 : 1, i > 1, &b);
        ck_ok(image_parse(b.s, b.len, &image, &err), err);
        ck_assert(image.height == 17 && image.width == 33);
        ck_assert_uint_eq(image.channels, i % 2 ? 3 : 1);
        ck_assert_int_le(abs(image.pixels[0] - (i % 2 ? 200 : 77)), 2);
    }
    AS_AUTO(str_done) struct str b = {0};
    struct image image = {0};
    make_jpeg(8, 8, 4, false, &b);
    ck_fails(image_parse(b.s, b.len, &image, &err), AS_E_UNSUPPORTED, err, "CMYK");
}
END_TEST

/* A file that is cut anywhere, or in which a byte of the pixels differs, is refused or at least
 * never read beyond its end. */
START_TEST(damage)
{
    AS_AUTO(str_done) struct str png = {0};
    AS_AUTO(str_done) struct str jpeg = {0};
    struct image image = {0};
    make_png(20, 20, PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_NONE, &png);
    make_jpeg(20, 20, 3, false, &jpeg);
    for (size_t n = 0; n < png.len - 12; n++)
        ck_assert_int_eq(image_parse(png.s, n, &image, &err), AS_E_INVAL);
    for (size_t n = 0; n < jpeg.len - 2; n++)
        ck_assert_msg(image_parse(jpeg.s, n, &image, &err) == AS_E_INVAL, "%zu", n);
    png.s[png.len / 2] ^= 1;
    ck_fails(image_parse(png.s, png.len, &image, &err), AS_E_INVAL, err, "a damaged PNG image");
    ck_fails(image_parse("GIF89a  ", 8, &image, &err), AS_E_INVAL, err, "neither a PNG nor a JPEG");
    ck_assert_ptr_null(image.pixels);
}
END_TEST

/* The header alone claims 30,000 x 30,000 pixels. */
START_TEST(bombs)
{
    AS_AUTO(str_done) struct str b = {0};
    struct image image = {0};
    make_jpeg(8, 8, 1, false, &b);
    for (size_t i = 0; i + 9 < b.len; i++)
        if ((unsigned char)b.s[i] == 0xff && (unsigned char)b.s[i + 1] == 0xc0) {
            memcpy(b.s + i + 5, "\x75\x30\x75\x30", 4);
            break;
        }
    ck_fails(image_parse(b.s, b.len, &image, &err), AS_E_TOO_LARGE, err, "30000 x 30000 pixels");
    ck_fails(image_parse_size(b.s, b.len, &image, &err), AS_E_TOO_LARGE, err, "at most");
}
END_TEST

static void check_resize(const struct image *image, size_t h, size_t w, size_t channels,
                         const unsigned char *expected)
{
    unsigned char out[64];
    ck_ok(image_resize(image, h, w, channels, out, &err), err);
    for (size_t i = 0; i < h * w * channels; i++)
        ck_assert_msg(out[i] == expected[i], "value %zu is %d, expected %d", i, out[i],
                      expected[i]);
}

START_TEST(resizing)
{
    const struct image line = {1, 4, 1, (unsigned char[]){0, 0, 255, 255}};
    const struct image pair = {2, 1, 1, (unsigned char[]){0, 255}};
    const struct image flat = {2, 3, 1, (unsigned char[]){7, 7, 7, 7, 7, 7}};
    const struct image colour = {1, 2, 3, (unsigned char[]){255, 0, 0, 0, 0, 100}};
    check_resize(&line, 1, 4, 1, line.pixels);
    check_resize(&line, 1, 2, 1, (unsigned char[]){36, 219}); /* 255 * 0.25 / 1.75, … */
    check_resize(&line, 1, 1, 1, (unsigned char[]){128});
    check_resize(&pair, 4, 1, 1, (unsigned char[]){0, 64, 191, 255});
    check_resize(&flat, 5, 2, 1, (unsigned char[]){7, 7, 7, 7, 7, 7, 7, 7, 7, 7});
    check_resize(&colour, 1, 2, 1, (unsigned char[]){76, 11});
    check_resize(&pair, 2, 1, 3, (unsigned char[]){0, 0, 0, 255, 255, 255});
}
END_TEST

START_TEST(files)
{
    char dir[TEMP_FOLDER_SIZE], path[128];
    struct image image = {0};
    temp_folder_make(dir);
    (void)snprintf(path, sizeof path, "%s/a.png", dir);
    ck_fails(image_read(path, &image, &err), AS_E_NOT_FOUND, err, "a.png");
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fclose(f), 0);
    ck_fails(image_read(path, &image, &err), AS_E_INVAL, err, "a.png: neither");
    ck_fails(image_read(dir, &image, &err), AS_E_INVAL, err, "is a folder");
    temp_folder_remove(dir);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("image");
    TCase *t = tcase_create("image");
    tcase_add_test(t, kinds_of_png);
    tcase_add_test(t, kinds_of_jpeg);
    tcase_add_test(t, damage);
    tcase_add_test(t, bombs);
    tcase_add_test(t, resizing);
    tcase_add_test(t, files);
    suite_add_tcase(s, t);
    return s;
}
