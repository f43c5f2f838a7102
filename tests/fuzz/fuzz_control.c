/* The lines between runner and trainer: whatever bytes come, and however they are cut, the same
 * lines come out; what parses is written and read again as the same text. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trial-runner/protocol/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_request(const char *line, size_t len)
{
    struct control_request r, again;
    if (control_request_parse(line, len, &r, NULL) != AS_OK)
        return;
    struct str one = {0}, two = {0};
    as_status st = control_request_format(&r, &one, NULL);
    assert(st == AS_OK || st == AS_E_TOO_LARGE);
    if (st == AS_OK) {
        st = control_request_parse(one.s, one.len - 1, &again, NULL);
        assert(st == AS_OK && again.op == r.op && as_streq(again.id, r.id));
        assert(again.member.seed == r.member.seed);
        st = control_request_format(&again, &two, NULL);
        assert(st == AS_OK && strcmp(one.s, two.s) == 0);
        control_request_done(&again);
    }
    str_done(&one);
    str_done(&two);
    control_request_done(&r);
}

static void check_event(const char *line, size_t len)
{
    struct control_event e, again;
    if (control_event_parse(line, len, &e, NULL) != AS_OK)
        return;
    struct str one = {0}, two = {0};
    as_status st = control_event_format(&e, &one, NULL);
    assert(st == AS_OK || st == AS_E_TOO_LARGE);
    if (st == AS_OK) {
        st = control_event_parse(one.s, one.len - 1, &again, NULL);
        assert(st == AS_OK && again.kind == e.kind && as_streq(again.id, e.id));
        st = control_event_format(&again, &two, NULL);
        assert(st == AS_OK && strcmp(one.s, two.s) == 0);
        control_event_done(&again);
    }
    str_done(&one);
    str_done(&two);
    control_event_done(&e);
}

/* A digest of the lines, fed in pieces of `piece` bytes. */
static uint64_t lines_of(const uint8_t *data, size_t size, size_t piece, size_t *ret_lines)
{
    struct control_lines l = {0};
    uint64_t digest = 0;
    for (size_t at = 0; at < size; at += piece) {
        size_t left = size - at, len;
        as_status st =
            control_lines_feed(&l, (const char *)data + at, left < piece ? left : piece, NULL);
        assert(st == AS_OK);
        for (const char *line; (line = control_lines_next(&l, &len)); ++*ret_lines) {
            for (size_t i = 0; i < len; i++)
                digest = digest * 31 + (uint8_t)line[i];
            check_request(line, len);
            check_event(line, len);
        }
    }
    control_lines_done(&l);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t one = 0, two = 0;
    if (size > CONTROL_MAX_LINE)
        return 0;
    uint64_t whole = lines_of(data, size, size ? size : 1, &one);
    assert(whole == lines_of(data, size, 3, &two) && one == two);
    return 0;
}
