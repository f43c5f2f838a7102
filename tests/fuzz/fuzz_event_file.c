/* Event files: whatever is in them, and however they are cut, the measurements are the same. With
 * right checksums about the input too, so that mutations reach the messages. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/trial-runner/reports/seen.h"
#include "trial-runner/reports/event_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct seen *s, const char *data, size_t size, size_t piece)
{
    struct event_reader r = {0};
    struct report_fns fns = seen_fns(s);
    as_status st = AS_OK;
    for (size_t at = 0; st == AS_OK && at < size; at += piece)
        st = event_reader_feed(&r, data + at, size - at < piece ? size - at : piece, &fns, NULL);
    assert(st == AS_OK);
    event_reader_done(&r);
}

static void read_twice(const char *data, size_t size)
{
    struct seen whole = {0}, pieces = {0};
    read_all(&whole, data, size, size ? size : 1);
    read_all(&pieces, data, size, 5);
    assert(as_streq(str_cstr(&whole.text), str_cstr(&pieces.text)));
    str_done(&whole.text);
    str_done(&pieces.text);
}

static void put_le(struct str *b, uint64_t v, size_t n)
{
    for (; n--; v >>= 8)
        str_putc(b, (char)(v & 0xff));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_AUTO(str_done) struct str file = {0};
    read_twice((const char *)data, size);
    put_le(&file, size, 8);
    put_le(&file, event_checksum(file.s, 8), 4);
    str_add(&file, (const char *)data, size);
    put_le(&file, event_checksum(data, size), 4);
    if (!file.failed)
        read_twice(file.s, file.len);
    return 0;
}
