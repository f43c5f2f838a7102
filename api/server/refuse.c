#include "api/server/refuse.h"

#include "api/server/call.h"
#include "api/server/dispatch_parts.h"
#include "base/clock.h"
#include "base/disk_room.h"
#include "base/str.h"

void refuse(struct call *c, problem_kind kind, const struct as_err *err)
{
    c->settled_ns = clock_mono_ns();
    c->x->answer.n_headers = 0;
    bool is_first = c->faults.n > 0 && as_streq(c->faults.list[0].msg, err->msg);
    problem_answer(c->x, kind, c->request_id, err, is_first ? &c->faults : NULL);
}

void refuse_with(struct call *c, problem_kind kind, as_status st, const char *detail)
{
    struct as_err err = {0};
    (void)as_fail(&err, st, "%s", detail);
    refuse(c, kind, &err);
}

bool refuse_is_for_disk(const struct dispatch *d, char *ret_text, size_t size)
{
    return d->disk && disk_room_is_short(d->disk, DISK_ROOM_POSTGRES, ret_text, size);
}
