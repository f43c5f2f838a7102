/* What stands around the processes of trials.
 *
 * No new privileges: a program that is set-user-ID, or has capabilities in its file, runs as the
 * user who starts it. A runner of root also empties the bounding set and the capabilities of the
 * process itself, so that a trial of root owns files and nothing more.
 *
 * The number of processes is limited by the control group; where there is no controller, by
 * RLIMIT_NPROC, which counts all processes of a user on the machine, so the default leaves room for
 * large machines. The kernel does not hold root to it. Memory without a controller is the size of
 * what one process may have allocated (RLIMIT_DATA). */
#include "trial-runner/process/confinement.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"

#define PROCESSES_PER_CPU 512
/* A socket's path has 107 bytes, and Python adds 32 to the folder. */
#define TMP_PATH_MAX 72
#define TMP_NAME "/XXXXXX"

static as_status prepare_tmp(const char *work, char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *tmp = file_join(work, "tmp");
    if (!tmp)
        return as_fail_nomem(err);
    as_status st = file_remove_tree(tmp, err);
    if (st < 0 || getenv("TMPDIR") || strlen(tmp) + strlen(TMP_NAME) > TMP_PATH_MAX)
        return st;
    st = file_own_folder(tmp, err);
    if (st == AS_OK)
        *ret = as_steal(tmp);
    return st;
}

as_status confinement_open(const struct confinement_limits *limits, const char *work,
                           struct confinement *ret, struct as_err *err)
{
    struct as_err why = {0};
    ret->limits = *limits;
    as_status st = cgroup_home_open("", &ret->cgroups, &why);
    if (st == AS_E_NOMEM)
        return as_fail_nomem(err);
    if (st < 0)
        (void)snprintf(ret->why_none, sizeof ret->why_none, "%s", why.msg);
    return prepare_tmp(work, &ret->tmp, err);
}

void confinement_done(struct confinement *c)
{
    cgroup_home_close(c->cgroups);
    free(c->tmp);
    *c = (struct confinement){0};
}

as_status confinement_tmp(const struct confinement *c, char **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    if (!c->tmp)
        return AS_OK;
    str_printf(&path, "%s" TMP_NAME, c->tmp);
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    if (!mkdtemp(path.s)) /* mode 0700 */
        return as_fail(err, AS_E_IO, "a folder for temporary files in %.150s: %s", c->tmp,
                       strerror(errno));
    *ret = str_take(&path);
    return *ret ? AS_OK : as_fail_nomem(err);
}

static struct cgroup_controllers controllers(const struct confinement *c)
{
    return c->cgroups ? cgroup_home_controllers(c->cgroups) : (struct cgroup_controllers){0};
}

/* The kernel does not hold root to RLIMIT_NPROC. */
static bool limits_processes(const struct confinement *c)
{
    return controllers(c).processes || geteuid() != 0;
}

void confinement_words(const struct confinement *c, struct str *ret)
{
    const struct {
        const char *word;
        bool is;
    } walls[] = {
        {"no_new_privileges", !c->limits.keeps_privileges},
        {"no_capabilities", !c->limits.keeps_privileges},
        {"private_tmp", c->tmp != NULL},
        {"cgroup", c->cgroups != NULL},
        {"processes", limits_processes(c)},
        {"memory", c->limits.memory_bytes > 0},
        {"cpu", controllers(c).cpu},
        {"files", c->limits.files > 0},
        {"file_size", c->limits.file_bytes > 0},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(walls); i++)
        if (walls[i].is)
            str_printf(ret, "%s%s", ret->len ? " " : "", walls[i].word);
}

/* ---- in the child ---- */

/* Never above what the runner has. */
static bool set_limit(__rlimit_resource_t what, int64_t v)
{
    struct rlimit has;
    if (v <= 0)
        return true;
    if (getrlimit(what, &has) < 0)
        return false;
    rlim_t bound = (rlim_t)v < has.rlim_max ? (rlim_t)v : has.rlim_max;
    return setrlimit(what, &(struct rlimit){bound, bound}) == 0;
}

/* Without a controller, all of a user's processes count. */
static int64_t user_processes(const struct confinement *c)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t least = cpus > 0 ? cpus * PROCESSES_PER_CPU : 0;
    bool is_given = c->limits.processes != CONFINEMENT_PROCESSES;
    return is_given || least < c->limits.processes ? c->limits.processes : least;
}

static bool set_limits(const struct confinement *c)
{
    struct cgroup_controllers by_group = controllers(c);
    return set_limit(RLIMIT_NOFILE, c->limits.files) &&
           set_limit(RLIMIT_FSIZE, c->limits.file_bytes) &&
           (by_group.memory || set_limit(RLIMIT_DATA, c->limits.memory_bytes)) &&
           (by_group.processes || set_limit(RLIMIT_NPROC, user_processes(c)));
}

static bool drop_privileges(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return false;
    unsigned long cap = 0;
    while (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
        cap++;
    if (errno != EINVAL &&
        errno != EPERM) /* after the last; only root may, and only root has any */
        return false;
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &head, none) == 0;
}

bool confinement_enter(const struct confinement *c, int entry, bool is_engine)
{
    if (entry >= 0 && write(entry, "0", 1) != 1)
        return false;
    return set_limits(c) && (is_engine || c->limits.keeps_privileges || drop_privileges());
}
