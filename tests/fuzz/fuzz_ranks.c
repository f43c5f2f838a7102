/* The lines between the runner and a rank: what parses is written and read again as the same
 * text. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trial-runner/protocol/ranks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_request(const char *line, size_t len)
{
    struct rank_request r, again;
    struct str one = {0}, two = {0};
    if (rank_request_parse(line, len, &r, NULL) != AS_OK)
        return;
    as_status st = rank_request_format(&r, &one, NULL);
    assert(st == AS_OK || st == AS_E_TOO_LARGE);
    if (st == AS_OK) {
        st = rank_request_parse(one.s, one.len - 1, &again, NULL);
        assert(st == AS_OK && again.op == r.op && again.n == r.n && again.attempt == r.attempt);
        st = rank_request_format(&again, &two, NULL);
        assert(st == AS_OK && strcmp(one.s, two.s) == 0);
        rank_request_done(&again);
    }
    str_done(&one);
    str_done(&two);
    rank_request_done(&r);
}

static void check_event(const char *line, size_t len)
{
    struct rank_event e, again;
    struct str one = {0}, two = {0};
    if (rank_event_parse(line, len, &e, NULL) != AS_OK)
        return;
    as_status st = rank_event_format(&e, &one, NULL);
    assert(st == AS_OK);
    st = rank_event_parse(one.s, one.len - 1, &again, NULL);
    assert(st == AS_OK && again.kind == e.kind && again.rank == e.rank && again.step == e.step);
    st = rank_event_format(&again, &two, NULL);
    assert(st == AS_OK && strcmp(one.s, two.s) == 0);
    rank_event_done(&again);
    str_done(&one);
    str_done(&two);
    rank_event_done(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = malloc(size + 1);
    if (!line)
        return 0;
    memcpy(line, data, size);
    line[size] = '\0';
    check_request(line, size);
    check_event(line, size);
    free(line);
    return 0;
}
