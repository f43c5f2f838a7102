/* The time of `assay fit`: what has passed, and what is kept back for the end. */
#include "cli/commands/fit_run.h"

#include "base/clock.h"

int64_t fit_elapsed_ms(const struct fit *f)
{
    return (clock_mono_ns() - f->start_ns) / NS_PER_MS;
}

int64_t fit_kept_back_ms(const struct fit *f)
{
    double busy = 1 + f->wishes.load / (double)(f->wishes.cores ? f->wishes.cores : 1);
    int64_t share = (int64_t)((double)f->time_ms / 12 * busy);
    int64_t most = (f->time_ms - f->begun_ms) / 3; /* reading the table may take most of it */
    most = most > 60000 ? 60000 : most;
    share = share > most ? most : share;
    return share < 3000 ? 3000 : share;
}
