#include "base/host_id.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"

#define ID_FILE_MAX 4096

/* Add the first line of a file. False: there is none, or it is empty. */
static bool add_line(struct str *b, const char *path)
{
    AS_AUTO(as_freep) char *text = NULL;
    size_t len;
    if (file_read(path, ID_FILE_MAX, &text, &len, NULL) < 0)
        return false;
    text[strcspn(text, "\r\n")] = 0;
    str_printf(b, "\n%s", text);
    return *text != 0;
}

as_status host_id_read(char ret[HOST_ID_SIZE], struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    char name[256] = "", hex[SHA256_HEX_SIZE];
    (void)gethostname(name, sizeof name - 1);
    str_printf(&b, "assay host\n%s", name);
    if (!add_line(&b, "/etc/machine-id") && !add_line(&b, "/proc/sys/kernel/random/boot_id"))
        return as_fail(err, AS_E_UNSUPPORTED,
                       "this machine has neither /etc/machine-id nor a boot id");
    as_status st = str_check(&b, err);
    if (st == AS_OK)
        st = sha256_of(b.s, b.len, hex, err);
    if (st == AS_OK)
        (void)snprintf(ret, HOST_ID_SIZE, "%.32s", hex);
    return st;
}
