#include "data/formats/foreign_format.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define SHEET "save its sheet as CSV (UTF-8)"
#define PANDAS(read) "with pandas, " read "(FILE).to_csv(\"table.csv\", index=False) writes one"
#define PAGE "was a page downloaded in place of the file?"

static const struct {
    const char *begins;
    size_t len;
    bool is_text; /* a header may begin so, too ("PAR1,PAR2"): then a NUL byte follows */
    const char *what, *advice;
} formats[] = {
    {"PAR1", 4, true, "a Parquet file", PANDAS("read_parquet")},
    {"ARROW1", 6, true, "an Arrow file (Feather)", PANDAS("read_feather")},
    {"ORC", 3, true, "an ORC file", PANDAS("read_orc")},
    {"\x89HDF\r\n", 6, false, "an HDF5 file", PANDAS("read_hdf")},
    {"SQLite format 3", 15, true, "an SQLite database",
     "sqlite3 -csv -header FILE 'select * from TABLE' writes one"},
    {"PK\x03\x04", 4, false, "an Excel workbook or a ZIP archive", SHEET ", or unpack it"},
    {"\xd0\xcf\x11\xe0", 4, false, "an Excel workbook", SHEET},
    {"BZh91AY&SY", 10, false, "a file packed with bzip2", "bunzip2 -k unpacks it"},
    {"\xfd\x37zXZ", 5, false, "a file packed with xz", "unxz -k unpacks it"},
    {"\x28\xb5\x2f\xfd", 4, false, "a file packed with Zstandard", "unzstd unpacks it"},
    {"7z\xbc\xaf", 4, false, "a 7z archive", "unpack it"},
    {"%PDF-", 5, false, "a PDF document", "copy its table into a spreadsheet"},
    {"\x93NUMPY", 6, false, "an NPY array", "its name has to end with .npy"},
    {"<!DOCTYPE html", 14, false, "a page of HTML", PAGE},
    {"<html", 5, false, "a page of HTML", PAGE},
};

const char *foreign_format(const char *bytes, size_t len, const char **ret_advice)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(formats); i++) {
        size_t n = formats[i].len;
        const char *begins = formats[i].begins;
        bool is_html = begins[0] == '<';
        if (len < n || (is_html ? strncasecmp(bytes, begins, n) : memcmp(bytes, begins, n)) != 0)
            continue;
        if (formats[i].is_text && !memchr(bytes, '\0', len))
            continue;
        *ret_advice = formats[i].advice;
        return formats[i].what;
    }
    return NULL;
}
