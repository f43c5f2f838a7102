#include "cli/session/disk_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/temp_file.h"

#define PAGE_ITEMS 200

as_status disk_list_open(struct disk_list *s, struct as_err *err)
{
    int fd;
    as_status st = temp_file_open(&fd, err);
    if (st < 0)
        return st;
    s->n = 0;
    s->f = fdopen(fd, "w+");
    if (s->f)
        return AS_OK;
    (void)close(fd);
    return as_fail_nomem(err);
}

void disk_list_done(struct disk_list *s)
{
    if (s->f)
        (void)fclose(s->f);
    s->f = NULL;
}

/* One item for each line: compact JSON has no line feed. */
as_status disk_list_add(struct disk_list *s, const json_t *items, struct as_err *err)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)items, i, item)
    {
        AS_AUTO(as_freep) char *text = json_format_ordered(item);
        if (!text)
            return as_fail_nomem(err);
        if (fputs(text, s->f) < 0 || fputc('\n', s->f) < 0)
            return temp_file_fail(err);
        s->n++;
    }
    return AS_OK;
}

/* Read at most PAGE_ITEMS lines; an empty array at the end. */
static as_status read_page(struct disk_list *s, char **line, size_t *cap, json_t **ret,
                           struct as_err *err)
{
    JSON_AUTO items = json_array();
    if (!items)
        return as_fail_nomem(err);
    while (json_array_size(items) < PAGE_ITEMS) {
        ssize_t len = getline(line, cap, s->f);
        if (len < 0 && ferror(s->f))
            return as_fail(err, AS_E_IO, "cannot read a temporary file: %s", strerror(errno));
        if (len < 0)
            break;
        json_t *item = json_loadb(*line, (size_t)len, 0, NULL);
        if (!item || json_array_append_new(items, item) != 0)
            return as_fail_nomem(err);
    }
    *ret = as_steal(items);
    return AS_OK;
}

as_status disk_list_pages(struct disk_list *s, request_page_fn page, void *arg, struct as_err *err)
{
    AS_AUTO(as_freep) char *line = NULL;
    size_t cap = 0;
    if (fflush(s->f) != 0 || fseek(s->f, 0, SEEK_SET) != 0)
        return temp_file_fail(err);
    for (;;) {
        JSON_AUTO items = NULL;
        as_status st = read_page(s, &line, &cap, &items, err);
        if (st < 0 || json_array_size(items) == 0)
            return st;
        st = page(arg, items, err);
        if (st < 0)
            return st;
    }
}
