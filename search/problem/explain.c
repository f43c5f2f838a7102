#include "search/problem/explain.h"

#include <inttypes.h>

#include "base/json.h"

const char *explain_text(const json_t *reason, const char *field)
{
    return json_string_value(json_object_get(reason, field));
}

int64_t explain_count(const json_t *reason, const char *field)
{
    return json_integer_value(json_object_get(reason, field));
}

void explain_number(const json_t *number, const char *before, struct str *b)
{
    double v;
    if (json_is_string(number))
        str_printf(b, "%s%s", before, json_string_value(number));
    else if (json_number_get(number, &v))
        str_printf(b, "%s%.6g", before, v);
}

void explain_design(const json_t *reason, struct str *b)
{
    const char *fallback = explain_text(reason, "fallback");
    if (fallback)
        str_printf(b, "drawn to fill the space, without a model: %s", fallback);
    else
        str_printf(b, "point %" PRId64 " of the initial design, which fills the space",
                   explain_count(reason, "point"));
}

void explain_prior(const json_t *reason, struct str *b)
{
    double weight;
    if (json_number_get(json_object_get(reason, "prior"), &weight))
        str_printf(b, ", with the priors at weight %.2g", weight);
}

void explain_seen(const json_t *reason, struct str *b)
{
    int64_t observed = explain_count(reason, "observed"), failed = explain_count(reason, "failed");
    int64_t pending = explain_count(reason, "pending");
    str_printf(b, "; %" PRId64 " result%s seen", observed, observed == 1 ? "" : "s");
    if (failed > 0)
        str_printf(b, ", %" PRId64 " failed", failed);
    if (pending > 0)
        str_printf(b, ", %" PRId64 " pending", pending);
}
