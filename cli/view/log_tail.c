#include "cli/view/log_tail.h"

#include "base/mem.h"

as_status log_tail_overlap(const char *before, size_t before_len, const char *now, size_t now_len,
                           size_t *ret, struct as_err *err)
{
    /* The prefix function of `now` (Knuth, Morris, Pratt), then run over the end of `before`. */
    AS_AUTO(as_freep) size_t *fall = as_calloc(now_len + 1, sizeof *fall);
    if (!fall)
        return as_fail_nomem(err);
    for (size_t i = 1, k = 0; i < now_len; i++) {
        while (k > 0 && now[i] != now[k])
            k = fall[k];
        k += now[i] == now[k];
        fall[i + 1] = k;
    }
    size_t k = 0;
    for (size_t i = before_len > now_len ? before_len - now_len : 0; i < before_len; i++) {
        while (k > 0 && (k == now_len || before[i] != now[k]))
            k = fall[k];
        k += k < now_len && before[i] == now[k];
    }
    *ret = k;
    return AS_OK;
}
