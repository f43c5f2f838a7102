/* Reads the scalars of a TensorBoard event file as it grows.
 *
 * The file is a sequence of records (TFRecord): the length as 8 bytes, a checksum of these, the
 * data, a checksum of the data; numbers are little-endian, and a checksum is CRC-32C, rotated and
 * shifted by a constant. The data of a record is an Event in Protocol Buffers' wire format:
 *
 *   Event    2: step (int64)         5: Summary
 *   Summary  1: Value, repeated
 *   Value    1: tag   2: simple_value (float)   8: tensor   9: metadata {1: {1: plugin's name}}
 *   Tensor   1: dtype 2: shape {2: dimension, repeated}   4: its bytes   5: floats   6: doubles
 *            7: int32s    10: int64s
 *
 * PyTorch writes simple_value, TensorFlow 2 a tensor without dimensions. Images, texts, histograms
 * and whatever else is there are skipped. Pure: bytes in, measurements out. */
#ifndef ASSAY_TRIAL_RUNNER_REPORTS_EVENT_READER_H
#define ASSAY_TRIAL_RUNNER_REPORTS_EVENT_READER_H

#include "base/str.h"
#include "trial-runner/reports/measured.h"

#define EVENT_MAX_RECORD                                                                           \
    (1 << 20) /* bytes of a record that is looked into; longer ones hold images */

struct event_reader {
    const json_t *tags; /* borrowed; {tag: metric}; NULL or empty: every tag, by metric_name_from */
    struct str record;  /* the record being read, from its length on */
    uint64_t skip;      /* bytes that are not looked at */
    size_t line;        /* records ended so far */
    bool noted;         /* on_bad was told of a checksum */
    bool broken;        /* where the next record begins is unknown: the rest is not read */
};

void event_reader_done(struct event_reader *r);

/* Read more bytes. A record of which a part is missing is kept until the rest comes; at the end of
 * the file it does not count. AS_E_NOMEM, or the status of on_item. */
AS_MUST_CHECK as_status event_reader_feed(struct event_reader *r, const char *bytes, size_t len,
                                          const struct report_fns *fns, struct as_err *err);

/* The checksum of a record's length or data, as it stands in the file. */
uint32_t event_checksum(const void *bytes, size_t len);

#endif
