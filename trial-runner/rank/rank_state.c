/* Rows are states, columns what happens; a cell has actions and the next state. The test spells out
 * every cell, so a change here is a change there. What happens is computed from the world
 * (rank_meaning()) and not from how the news arrived: a world may come as an answer, from the
 * long-poll, or with a process's end. */
#include "trial-runner/rank/rank_state.h"

struct row {
    unsigned actions;
    rank_state next;
};

#define STAY(s)                                                                                    \
    {                                                                                              \
        0, s                                                                                       \
    }

/* clang-format off */
static const struct row table[RANK_STATES][RANK_HAPPENINGS] = {
    [RANK_SEATED] = {
        [RANK_LISTENS] = {RANK_TELL, RANK_ANNOUNCED},
        [RANK_IN] = STAY(RANK_SEATED), [RANK_IN_ALONE] = STAY(RANK_SEATED),
        [RANK_WAITS] = STAY(RANK_SEATED), [RANK_WAITS_ALONE] = STAY(RANK_SEATED),
        [RANK_NOT_IN] = STAY(RANK_SEATED), /* the gang runs, and this rank comes to it */
        [RANK_IS_OVER] = {RANK_DROP, RANK_OUT},
        [RANK_DRAINS] = {RANK_QUIT, RANK_SEATED},
        [RANK_ENDS_EARLY] = STAY(RANK_SEATED),
        [RANK_ENDS] = {0, RANK_GONE}},
    [RANK_ANNOUNCED] = {
        [RANK_LISTENS] = STAY(RANK_ANNOUNCED),
        [RANK_IN] = {RANK_MEET, RANK_MEMBER}, [RANK_IN_ALONE] = {RANK_MEET, RANK_ALONE},
        [RANK_WAITS] = {0, RANK_SHORT}, [RANK_WAITS_ALONE] = {0, RANK_SHORT_ALONE},
        [RANK_NOT_IN] = STAY(RANK_ANNOUNCED), /* a world from before the server knew it */
        [RANK_IS_OVER] = {RANK_DROP, RANK_OUT},
        [RANK_DRAINS] = {RANK_QUIT, RANK_ANNOUNCED},
        [RANK_ENDS_EARLY] = STAY(RANK_ANNOUNCED),
        [RANK_ENDS] = {0, RANK_GONE}},
    [RANK_MEMBER] = {
        [RANK_LISTENS] = STAY(RANK_MEMBER),
        [RANK_IN] = {RANK_MEET, RANK_MEMBER}, [RANK_IN_ALONE] = {RANK_MEET, RANK_ALONE},
        [RANK_WAITS] = {0, RANK_SHORT}, [RANK_WAITS_ALONE] = {0, RANK_SHORT_ALONE},
        [RANK_NOT_IN] = {RANK_DROP, RANK_OUT}, [RANK_IS_OVER] = {RANK_DROP, RANK_OUT},
        [RANK_DRAINS] = {RANK_LEAVE, RANK_LEAVING},
        [RANK_ENDS_EARLY] = {RANK_FINISH, RANK_STOPPING},
        [RANK_ENDS] = {0, RANK_GONE}},
    [RANK_ALONE] = {
        [RANK_LISTENS] = STAY(RANK_ALONE),
        [RANK_IN] = {RANK_MEET, RANK_MEMBER}, [RANK_IN_ALONE] = {RANK_MEET, RANK_ALONE},
        [RANK_WAITS] = {0, RANK_SHORT}, [RANK_WAITS_ALONE] = {0, RANK_SHORT_ALONE},
        [RANK_NOT_IN] = {RANK_DROP, RANK_OUT}, [RANK_IS_OVER] = {RANK_DROP, RANK_OUT},
        [RANK_DRAINS] = {RANK_FINISH, RANK_STOPPING},
        [RANK_ENDS_EARLY] = {RANK_FINISH, RANK_STOPPING},
        [RANK_ENDS] = {0, RANK_GONE}},
    [RANK_SHORT] = {
        [RANK_LISTENS] = STAY(RANK_SHORT),
        [RANK_IN] = {RANK_MEET, RANK_MEMBER}, [RANK_IN_ALONE] = {RANK_MEET, RANK_ALONE},
        [RANK_WAITS] = STAY(RANK_SHORT), [RANK_WAITS_ALONE] = {0, RANK_SHORT_ALONE},
        [RANK_NOT_IN] = {RANK_DROP, RANK_OUT}, [RANK_IS_OVER] = {RANK_DROP, RANK_OUT},
        [RANK_DRAINS] = {RANK_LEAVE, RANK_LEAVING},
        [RANK_ENDS_EARLY] = {RANK_FINISH, RANK_STOPPING},
        [RANK_ENDS] = {0, RANK_GONE}},
    [RANK_SHORT_ALONE] = { /* to write its checkpoint it has to meet itself, and do one more step */
        [RANK_LISTENS] = STAY(RANK_SHORT_ALONE),
        [RANK_IN] = {RANK_MEET, RANK_MEMBER}, [RANK_IN_ALONE] = {RANK_MEET, RANK_ALONE},
        [RANK_WAITS] = {0, RANK_SHORT}, [RANK_WAITS_ALONE] = STAY(RANK_SHORT_ALONE),
        [RANK_NOT_IN] = {RANK_DROP, RANK_OUT}, [RANK_IS_OVER] = {RANK_DROP, RANK_OUT},
        [RANK_DRAINS] = {RANK_MEET | RANK_FINISH, RANK_STOPPING},
        [RANK_ENDS_EARLY] = {RANK_MEET | RANK_FINISH, RANK_STOPPING},
        [RANK_ENDS] = {0, RANK_GONE}},
    [RANK_LEAVING] = {
        [RANK_LISTENS] = STAY(RANK_LEAVING),
        [RANK_IN] = {RANK_MEET | RANK_LEAVE, RANK_LEAVING}, /* another was faster: ask again */
        [RANK_IN_ALONE] = {RANK_MEET | RANK_FINISH, RANK_STOPPING},
        [RANK_WAITS] = {RANK_LEAVE, RANK_LEAVING},
        [RANK_WAITS_ALONE] = {RANK_MEET | RANK_FINISH, RANK_STOPPING},
        [RANK_NOT_IN] = {RANK_DROP, RANK_OUT}, [RANK_IS_OVER] = {RANK_DROP, RANK_OUT},
        [RANK_DRAINS] = STAY(RANK_LEAVING),
        [RANK_ENDS_EARLY] = {RANK_FINISH, RANK_STOPPING},
        [RANK_ENDS] = {0, RANK_GONE}},
    [RANK_STOPPING] = {
        [RANK_LISTENS] = STAY(RANK_STOPPING),
        [RANK_IN] = {RANK_MEET, RANK_STOPPING}, [RANK_IN_ALONE] = {RANK_MEET, RANK_STOPPING},
        [RANK_WAITS] = STAY(RANK_STOPPING), [RANK_WAITS_ALONE] = STAY(RANK_STOPPING),
        [RANK_NOT_IN] = {RANK_DROP, RANK_OUT}, [RANK_IS_OVER] = {RANK_DROP, RANK_OUT},
        [RANK_DRAINS] = STAY(RANK_STOPPING),
        [RANK_ENDS_EARLY] = STAY(RANK_STOPPING),
        [RANK_ENDS] = {0, RANK_GONE}},
    [RANK_OUT] = {
        [RANK_LISTENS] = STAY(RANK_OUT), [RANK_IN] = STAY(RANK_OUT),
        [RANK_IN_ALONE] = STAY(RANK_OUT), [RANK_WAITS] = STAY(RANK_OUT),
        [RANK_WAITS_ALONE] = STAY(RANK_OUT), [RANK_NOT_IN] = STAY(RANK_OUT),
        [RANK_IS_OVER] = STAY(RANK_OUT), [RANK_DRAINS] = STAY(RANK_OUT),
        [RANK_ENDS_EARLY] = STAY(RANK_OUT),
        [RANK_ENDS] = STAY(RANK_OUT)}, /* stays: the server hears nothing of it */
    [RANK_GONE] = {
        [RANK_LISTENS] = STAY(RANK_GONE), [RANK_IN] = STAY(RANK_GONE),
        [RANK_IN_ALONE] = STAY(RANK_GONE), [RANK_WAITS] = STAY(RANK_GONE),
        [RANK_WAITS_ALONE] = STAY(RANK_GONE), [RANK_NOT_IN] = {RANK_DROP, RANK_OUT},
        [RANK_IS_OVER] = {RANK_DROP, RANK_OUT}, [RANK_DRAINS] = STAY(RANK_GONE),
        [RANK_ENDS_EARLY] = STAY(RANK_GONE),
        [RANK_ENDS] = STAY(RANK_GONE)},
};
/* clang-format on */

unsigned rank_step(rank_state *state, rank_happens happens)
{
    struct row r = table[*state][happens];
    *state = r.next;
    return r.actions;
}

rank_happens rank_meaning(const struct rank_world *w, int64_t seat)
{
    if (w->state == GANG_OVER)
        return RANK_IS_OVER;
    if (w->state == GANG_GATHERING || rank_world_rank(w, seat) < 0)
        return RANK_NOT_IN;
    if (w->state == GANG_WAITING)
        return w->n == 1 ? RANK_WAITS_ALONE : RANK_WAITS;
    return w->n == 1 ? RANK_IN_ALONE : RANK_IN;
}

const char *rank_state_word(rank_state s)
{
    static const char *const words[] = {"seated",      "announced", "member",   "alone", "short",
                                        "short-alone", "leaving",   "stopping", "out",   "gone"};
    return words[s];
}

rank_way rank_way_of(bool elastic, int64_t rank, size_t n, rank_state state, outcome o,
                     bool by_signal)
{
    if (state == RANK_OUT || o == OUTCOME_NONE)
        return RANK_WAY_NOTHING;
    if (rank != 0)
        return RANK_WAY_END;
    bool others_go_on = elastic && n > 1 &&
                        (by_signal || o == OUTCOME_RETRY || o == OUTCOME_RELEASED) &&
                        o != OUTCOME_TIMEOUT && o != OUTCOME_PAUSED && o != OUTCOME_PRUNED;
    return others_go_on ? RANK_WAY_END : RANK_WAY_COMPLETE;
}
