#include "base/prometheus.h"

void prometheus_head(struct str *b, const char *name, const char *type, const char *help)
{
    str_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_one(struct str *b, const char *name, const char *type, const char *help, int64_t v)
{
    prometheus_head(b, name, type, help);
    str_printf(b, "%s %lld\n", name, (long long)v);
}

void prometheus_counter(struct str *b, const char *name, const char *help, int64_t v)
{
    add_one(b, name, "counter", help, v);
}

void prometheus_gauge(struct str *b, const char *name, const char *help, int64_t v)
{
    add_one(b, name, "gauge", help, v);
}
