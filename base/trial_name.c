#include "base/trial_name.h"

#include <string.h>

#include "base/str.h"

as_status trial_name_parse(const char *text, struct trial_name *ret, struct as_err *err)
{
    const char *slash = text ? strrchr(text, '/') : NULL;
    size_t len = slash ? (size_t)(slash - text) : 0;
    if (len > 0 && len < sizeof ret->sweep && slash[1] >= '0' && slash[1] <= '9' &&
        as_parse_i64(slash + 1, &ret->number, NULL) == AS_OK) {
        memcpy(ret->sweep, text, len);
        ret->sweep[len] = '\0';
        return AS_OK;
    }
    return as_fail(err, AS_E_INVAL, "found '%.80s', expected a trial: SWEEP/NUMBER",
                   text ? text : "");
}
