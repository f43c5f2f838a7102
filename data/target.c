/* The target of a table: its task, its classes, and its columns.
 *
 * With the task `auto`, only the end of the file decides between classes and numbers. The scan
 * therefore keeps the distinct values that may still become classes, in sorted arrays: whole
 * numbers by value, texts by bytes. It stops adding to an array that is full, which then can no
 * longer become classes.
 *
 * Whole numbers up to 2^53 - 1 are compared as numbers, so that "1" and "1.0" are one class. Larger
 * ones are compared as text, because a double would merge them.
 *
 * target_name() chooses the text by which the columns are found again when the data set is loaded.
 * Names may be ambiguous (two columns with one name, a name with a comma, a name that looks like an
 * index). It tries the names, then indices, then indices from the end, and checks each by looking
 * it up. */
#include "data/target.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define LARGEST_WHOLE INT64_C(9007199254740991) /* 2^53 - 1: larger doubles skip whole numbers */

void target_scan_done(struct target_scan *s)
{
    for (size_t i = 0; i < s->n_texts; i++)
        free(s->texts[i]);
    free(s->texts);
    free(s->whole);
    *s = (struct target_scan){0};
}

static bool is_whole(double v)
{
    return v == floor(v) && fabs(v) <= (double)LARGEST_WHOLE;
}

static as_status add_whole(struct target_scan *s, int64_t v, struct as_err *err)
{
    size_t low = 0, high = s->n_whole;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->whole[mid] == v)
            return AS_OK;
        if (s->whole[mid] < v)
            low = mid + 1;
        else
            high = mid;
    }
    if (s->n_whole == DATASET_MAX_CLASSES) {
        s->whole_full = true;
        return AS_OK;
    }
    as_status st = as_reserve_one(&s->whole, s->n_whole, &s->whole_cap, sizeof *s->whole, err);
    if (st < 0)
        return st;
    memmove(s->whole + low + 1, s->whole + low, (s->n_whole - low) * sizeof *s->whole);
    s->whole[low] = v;
    s->n_whole++;
    return AS_OK;
}

static int compare_text(const char *name, const char *text, size_t len)
{
    int c = strncmp(name, text, len);
    return c ? c : name[len] != 0;
}

static as_status add_text(struct target_scan *s, const char *text, size_t len, struct as_err *err)
{
    size_t low = 0, high = s->n_texts;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = compare_text(s->texts[mid], text, len);
        if (c == 0)
            return AS_OK;
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (s->n_texts == DATASET_MAX_CLASSES) {
        s->texts_full = true;
        return AS_OK;
    }
    if (len > DATASET_MAX_CLASS_NAME)
        return as_fail(err, AS_E_INVAL, "a class name of %zu bytes, at most %zu", len,
                       DATASET_MAX_CLASS_NAME);
    as_status st = as_reserve_one(&s->texts, s->n_texts, &s->texts_cap, sizeof *s->texts, err);
    if (st < 0)
        return st;
    char *copy = as_calloc(len + 1, 1);
    if (!copy)
        return as_fail(err, AS_E_NOMEM, "out of memory for class names");
    memcpy(copy, text, len);
    memmove(s->texts + low + 1, s->texts + low, (s->n_texts - low) * sizeof *s->texts);
    s->texts[low] = copy;
    s->n_texts++;
    return AS_OK;
}

as_status target_scan_add(struct target_scan *s, const struct target_value *v, struct as_err *err)
{
    bool first_text = !v->is_number && !s->any_text;
    if (first_text && s->task == DATASET_TASK_AUTO && s->n_rows > 0)
        return as_fail(err, AS_E_INVAL,
                       "found '%.*s' in a target of numbers; if these are classes, say so with the "
                       "task classification",
                       v->len < 60 ? (int)v->len : 60, v->text);
    bool whole = v->is_number && is_whole(v->number);
    if (!whole && !v->text && s->task == DATASET_CLASSIFICATION)
        return as_fail(err, AS_E_INVAL, "found %g, expected a class (a whole number)", v->number);
    s->n_rows++;
    s->any_text = s->any_text || !v->is_number;
    s->any_fraction = s->any_fraction || (v->is_number && !whole);
    as_status st = AS_OK;
    if (s->task == DATASET_REGRESSION)
        return st;
    if (whole && !s->any_text && !s->any_fraction)
        st = add_whole(s, (int64_t)v->number, err);
    if (st != AS_OK)
        return st;
    /* with the task AUTO, text after numbers was refused above, so numbers need no text */
    if (v->text && (s->any_text || s->task == DATASET_CLASSIFICATION))
        st = add_text(s, v->text, v->len, err);
    return st;
}

static as_status whole_names(struct target_scan *s, struct dataset_info *info, struct as_err *err)
{
    info->classes = as_calloc(s->n_whole, sizeof *info->classes);
    if (!info->classes)
        return as_fail(err, AS_E_NOMEM, "out of memory for class names");
    for (size_t i = 0; i < s->n_whole; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "%" PRId64, s->whole[i]);
        info->classes[i] = as_strdup(name);
        if (!info->classes[i])
            return as_fail(err, AS_E_NOMEM, "out of memory for class names");
        info->n_classes = i + 1;
    }
    return AS_OK;
}

as_status target_scan_end(struct target_scan *s, struct dataset_info *info, struct as_err *err)
{
    bool whole = !s->any_text && !s->any_fraction;
    bool few = whole && !s->whole_full && s->n_whole <= DATASET_AUTO_CLASSES;
    bool classes =
        s->task == DATASET_CLASSIFICATION || (s->task == DATASET_TASK_AUTO && (s->any_text || few));
    info->task = classes ? DATASET_CLASSIFICATION : DATASET_REGRESSION;
    info->n_outputs = 1;
    if (!classes)
        return AS_OK;
    if (whole ? s->whole_full : s->texts_full)
        return as_fail(err, AS_E_TOO_LARGE, "the target has more than %zu classes",
                       DATASET_MAX_CLASSES);
    if (whole) {
        as_status st = whole_names(s, info, err);
        if (st < 0)
            return st;
    } else {
        info->classes = as_steal(s->texts);
        info->n_classes = s->n_texts;
        s->n_texts = 0;
    }
    info->n_outputs = info->n_classes;
    if (info->n_classes == 1)
        return as_fail(err, AS_E_INVAL, "the target has one class only, '%.60s'", info->classes[0]);
    return AS_OK;
}

bool target_classes_whole(const struct dataset_info *info)
{
    for (size_t i = 0; i < info->n_classes; i++) {
        int64_t v;
        if (as_parse_i64(info->classes[i], &v, NULL) < 0 || v > LARGEST_WHOLE || v < -LARGEST_WHOLE)
            return false;
    }
    return true;
}

static bool names_ascend(const struct dataset_info *info)
{
    bool whole = target_classes_whole(info);
    for (size_t i = 1; i < info->n_classes; i++) {
        const char *a = info->classes[i - 1], *b = info->classes[i];
        if (whole ? strtoll(a, NULL, 10) >= strtoll(b, NULL, 10) : strcmp(a, b) >= 0)
            return false;
    }
    return true;
}

bool target_classes_in_order(const struct dataset_info *info)
{
    const char *positive = info->options.positive;
    if (!positive)
        return names_ascend(info);
    return info->n_classes == 2 && strcmp(info->classes[1], positive) == 0 &&
           strcmp(info->classes[0], positive) != 0;
}

as_status target_order_classes(struct dataset_info *info, struct as_err *err)
{
    const char *positive = info->options.positive;
    if (!positive)
        return AS_OK;
    if (info->n_classes != 2)
        return as_fail(err, AS_E_INVAL,
                       "positive: found '%.60s', but the data set is for %s with %zu outputs: "
                       "expected two classes",
                       positive, dataset_task_name(info->task), info->n_outputs);
    if (strcmp(info->classes[0], positive) == 0) {
        char *first = info->classes[0];
        info->classes[0] = info->classes[1];
        info->classes[1] = first;
    }
    if (strcmp(info->classes[1], positive) != 0)
        return as_fail(err, AS_E_INVAL, "positive: found '%.60s', expected '%.60s' or '%.60s'",
                       positive, info->classes[0], info->classes[1]);
    return AS_OK;
}

/* Compare a class name with a value, as strcmp() does. */
static int compare_class(const char *name, bool whole, const struct target_value *v)
{
    if (!whole)
        return compare_text(name, v->text, v->len);
    double d = strtod(name, NULL);
    return (d > v->number) - (d < v->number);
}

as_status target_class_of(const struct dataset_info *info, bool whole, const struct target_value *v,
                          int32_t *ret, struct as_err *err)
{
    size_t low = 0, high = info->n_classes;
    bool descends = info->options.positive && !names_ascend(info);
    while ((whole ? v->is_number : v->text != NULL) && low < high) {
        size_t mid = low + (high - low) / 2;
        int c = compare_class(info->classes[mid], whole, v);
        if (c == 0) {
            *ret = (int32_t)mid;
            return AS_OK;
        }
        if ((c < 0) != descends)
            low = mid + 1;
        else
            high = mid;
    }
    if (v->text)
        return as_fail(err, AS_E_INVAL, "found '%.*s', which is none of the %zu classes",
                       v->len < 60 ? (int)v->len : 60, v->text, info->n_classes);
    return as_fail(err, AS_E_INVAL, "found %g, which is none of the %zu classes", v->number,
                   info->n_classes);
}

static as_status fail_no_column(const char *target, size_t n, const char *const *names,
                                struct as_err *err)
{
    AS_AUTO(str_done) struct str list = {0};
    struct as_nearest near = {.given = target};
    for (size_t i = 0; names && target && i < n; i++)
        as_nearest_offer(&near, names[i]);
    for (size_t i = 0; names && i < n && list.len < 240; i++)
        str_printf(&list, "%s%.60s", i ? ", " : "", names[i]);
    if (!names)
        str_printf(&list, "0 to %zu, or -1 for the last", n - 1);
    else if (list.len >= 240)
        str_printf(&list, ", … (%zu in all)", n);
    if (!target)
        return as_fail(err, AS_E_INVAL, "no target column is named; the columns are: %s",
                       str_cstr(&list));
    if (near.name)
        return as_fail(err, AS_E_INVAL,
                       "there is no target column '%.60s'; did you mean '%.60s'? The columns are: "
                       "%s",
                       target, near.name, str_cstr(&list));
    return as_fail(err, AS_E_INVAL, "there is no target column '%.80s'; the columns are: %s",
                   target, str_cstr(&list));
}

as_status target_find_column(const char *target, size_t n, const char *const *names, size_t *ret,
                             struct as_err *err)
{
    size_t found = n, hits = 0;
    for (size_t i = 0; target && names && i < n; i++)
        if (strcmp(names[i], target) == 0) {
            found = i;
            hits++;
        }
    if (hits > 1)
        return as_fail(err, AS_E_INVAL,
                       "%zu columns are named '%.80s'; name the target by its index", hits, target);
    int64_t index;
    if (hits == 0 && target && as_parse_i64(target, &index, NULL) == AS_OK) {
        index += index < 0 ? (int64_t)n : 0;
        found = index >= 0 && (size_t)index < n ? (size_t)index : n;
    }
    if (found == n)
        return fail_no_column(target, n, names, err);
    *ret = found;
    return AS_OK;
}

static as_status add_column(size_t column, size_t *columns, size_t *n, struct as_err *err)
{
    if (*n == DATASET_MAX_TARGETS)
        return as_fail(err, AS_E_TOO_LARGE, "more than %zu target columns", DATASET_MAX_TARGETS);
    for (size_t i = 0; i < *n; i++)
        if (columns[i] == column)
            return as_fail(err, AS_E_INVAL, "the target names column %zu twice", column);
    columns[(*n)++] = column;
    return AS_OK;
}

static as_status find_each(const char *target, size_t n, const char *const *names, size_t *columns,
                           size_t *ret_n, struct as_err *err)
{
    AS_AUTO(as_freep) char *copy = as_strdup(target);
    if (!copy)
        return as_fail_nomem(err);
    *ret_n = 0;
    for (char *p = copy; p;) {
        char *comma = strchr(p, ',');
        size_t column = 0;
        if (comma)
            *comma++ = '\0';
        as_status st = target_find_column(p, n, names, &column, err);
        if (st != AS_OK)
            return st;
        st = add_column(column, columns, ret_n, err);
        if (st != AS_OK)
            return st;
        p = comma;
    }
    return AS_OK;
}

as_status target_find_columns(const char *target, size_t n, const char *const *names, size_t **ret,
                              size_t *ret_n, struct as_err *err)
{
    AS_AUTO(as_freep) size_t *columns = as_calloc(DATASET_MAX_TARGETS, sizeof *columns);
    size_t found = 1;
    if (!columns)
        return as_fail_nomem(err);
    as_status st = target_find_column(target, n, names, &columns[0], err);
    if (st == AS_E_INVAL && target && strchr(target, ','))
        st = find_each(target, n, names, columns, &found, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(columns);
    *ret_n = found;
    return AS_OK;
}

/* The names of the columns, separated by commas; their indices if `names` is NULL. With `minus` the
 * number of all columns, the indices are negative and count from the end. */
static as_status join_names(const size_t *columns, size_t n, const char *const *names, size_t minus,
                            char **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str b = {0};
    for (size_t i = 0; i < n; i++) {
        str_puts(&b, i ? "," : "");
        if (names)
            str_puts(&b, names[columns[i]]);
        else
            str_printf(&b, "%" PRId64, (int64_t)columns[i] - (int64_t)minus);
    }
    as_status st = str_check(&b, err);
    if (st != AS_OK)
        return st;
    free(*ret);
    *ret = as_strdup(str_cstr(&b));
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* AS_OK if target_find_columns() finds these columns by the text. AS_E_INVAL, for example when two
 * columns have the name or the name has a comma; AS_E_NOMEM. */
static as_status finds_again(const char *text, const size_t *columns, size_t n, size_t n_columns,
                             const char *const *names, struct as_err *err)
{
    AS_AUTO(as_freep) size_t *found = NULL;
    size_t n_found = 0;
    as_status st = target_find_columns(text, n_columns, names, &found, &n_found, err);
    if (st != AS_OK)
        return st;
    if (n_found != n || memcmp(found, columns, n * sizeof *columns) != 0)
        return as_fail(err, AS_E_INVAL,
                       "the target's column has a name that others have, and others are named like "
                       "its index: rename them");
    return AS_OK;
}

as_status target_name(const size_t *columns, size_t n, size_t n_columns, const char *const *names,
                      char **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *text = NULL;
    as_status st = join_names(columns, n, names, 0, &text, err);
    if (st == AS_OK && names)
        st = finds_again(text, columns, n, n_columns, names, err);
    if (st == AS_E_INVAL && (st = join_names(columns, n, NULL, 0, &text, err)) == AS_OK)
        st = finds_again(text, columns, n, n_columns, names, err);
    if (st == AS_E_INVAL && (st = join_names(columns, n, NULL, n_columns, &text, err)) == AS_OK)
        st = finds_again(text, columns, n, n_columns, names, err);
    if (st != AS_OK)
        return st;
    *ret = as_steal(text);
    return AS_OK;
}

as_status target_several(dataset_task task, size_t n, struct dataset_info *info, struct as_err *err)
{
    if (task == DATASET_CLASSIFICATION)
        return as_fail(err, AS_E_INVAL,
                       "%zu targets are numbers of a regression, the task says classification", n);
    info->task = DATASET_REGRESSION;
    info->n_outputs = n;
    return AS_OK;
}

as_status target_check_float(double v, struct as_err *err)
{
    if (!isfinite(v))
        return as_fail(err, AS_E_INVAL, "found %g, expected a finite number", v);
    if (fabs(v) > (double)FLT_MAX)
        return as_fail(err, AS_E_INVAL, "found %g, which is too large for float32", v);
    return AS_OK;
}
