/* Images: what is decoded has the size that its header says, and can be resized. */
#include <stdint.h>
#include <stdlib.h>

#include "data/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct as_err err;
    struct image header = {0};
    AS_AUTO(image_done) struct image image = {0};
    unsigned char out[7 * 5 * 3];
    if (image_parse_size(data, size, &header, &err) != AS_OK)
        return 0;
    if (header.height * header.width > 1 << 20 || image_parse(data, size, &image, &err) != AS_OK)
        return 0;
    if (image.height != header.height || image.width != header.width ||
        image.channels != header.channels)
        abort();
    if (image_resize(&image, 7, 5, 3, out, &err) != AS_OK ||
        image_resize(&image, 5, 7, 1, out, &err) != AS_OK)
        abort();
    return 0;
}
