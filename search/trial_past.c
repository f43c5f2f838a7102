#include "search/trial_past.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

trial_view trial_past_view(const struct past_end *ends, size_t n, int64_t finish_seq, int64_t seen)
{
    if (finish_seq > 0 && finish_seq <= seen)
        return TRIAL_SEEN_ENDED;
    for (size_t i = n; i-- > 0;) {
        if (ends[i].retry_seq <= seen)
            return TRIAL_SEEN_PENDING;
        if (ends[i].finish_seq <= seen)
            return ends[i].is_cancelled ? TRIAL_SEEN_CANCELLED : TRIAL_SEEN_FAILED;
    }
    return TRIAL_SEEN_PENDING;
}

static as_status read_end(const json_t *j, int64_t after, const char *at, struct past_end *ret,
                          struct as_err *err)
{
    const char *state = json_string_value(json_object_get(j, "state"));
    int64_t end = json_integer_value(json_object_get(j, "finish_seq"));
    int64_t retry = json_integer_value(json_object_get(j, "retry_seq"));
    bool is_cancelled = as_streq(state, "cancelled");
    if ((!is_cancelled && !as_streq(state, "failed")) || end <= after || retry <= end)
        return as_fail_at(err, AS_E_INVAL, at,
                          "%s: expected a state (failed or cancelled), and finish_seq and "
                          "retry_seq in ascending order",
                          at);
    *ret = (struct past_end){.finish_seq = end, .retry_seq = retry, .is_cancelled = is_cancelled};
    return AS_OK;
}

as_status trial_past_read(const json_t *retries, const char *pointer, struct past_end **ret,
                          size_t *ret_n, struct as_err *err)
{
    size_t n = json_array_size(retries);
    *ret = NULL;
    *ret_n = 0;
    if (!retries || json_is_null(retries) || (json_is_array(retries) && n == 0))
        return AS_OK;
    if (!json_is_array(retries))
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: expected a list or null", pointer);
    AS_AUTO(as_freep) struct past_end *ends = as_calloc(n, sizeof *ends);
    if (!ends)
        return as_fail(err, AS_E_NOMEM, "out of memory for the retries of a trial");
    for (size_t i = 0; i < n; i++) {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index(pointer, i, at);
        as_status st =
            read_end(json_array_get(retries, i), i ? ends[i - 1].retry_seq : 0, at, &ends[i], err);
        if (st != AS_OK)
            return st;
    }
    *ret = as_steal(ends);
    *ret_n = n;
    return AS_OK;
}
