/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing JSON: answers, events, lines for machines. name is the member's name
 * inside an object, and NULL inside an array or at the top.
 *
 *   struct wire_writer writer = wire_write_begin(&buf);
 *   wire_write_object(&writer, NULL);
 *   wire_write_text(&writer, "status", "queued");
 *   wire_write_object_end(&writer);
 */
#ifndef WIRE_WIRE_WRITE_H
#define WIRE_WIRE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Appends to out, which the caller checks once at the end. */
struct wire_writer {
    struct buf *out;
    bool needs_comma;
    int depth;
};

struct wire_writer wire_write_begin(struct buf *out);

void wire_write_object(struct wire_writer *writer, const char *name);
void wire_write_object_end(struct wire_writer *writer);
void wire_write_array(struct wire_writer *writer, const char *name);
void wire_write_array_end(struct wire_writer *writer);

/* NULL is written as null. What is no UTF-8 becomes U+FFFD, so that the text is JSON whatever it is told. */
void wire_write_text(struct wire_writer *writer, const char *name, const char *text);
void wire_write_text_size(struct wire_writer *writer, const char *name, const char *text, size_t size);
void wire_write_int(struct wire_writer *writer, const char *name, int64_t number);
void wire_write_bool(struct wire_writer *writer, const char *name, bool is_true);
void wire_write_null(struct wire_writer *writer, const char *name);

/* Bytes that are JSON already. */
void wire_write_raw(struct wire_writer *writer, const char *name, const void *json, size_t size);

#endif
