#include "search/problem/problem.h"

void suggestion_done(struct suggestion *s)
{
    config_free(s->config);
    json_decref(s->reason);
    json_decref(s->state);
    *s = (struct suggestion){0};
}
