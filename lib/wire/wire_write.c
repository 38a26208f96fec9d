/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing JSON. The invariant: whatever it is told, what comes out is UTF-8,
 * and the same text always gives the same bytes.
 */
#include "wire/wire_write.h"

#include <assert.h>
#include <string.h>

struct wire_writer wire_write_begin(struct buf *out)
{
    return (struct wire_writer){.out = out};
}

/* What stands before a value: the comma, the member's name. */
static void lead_in(struct wire_writer *writer, const char *name)
{
    if (writer->needs_comma) {
        buf_char(writer->out, ',');
    }
    if (name != NULL) {
        buf_json_string(writer->out, name, strlen(name));
        buf_char(writer->out, ':');
    }
    writer->needs_comma = true;
}

static void open_bracket(struct wire_writer *writer, const char *name, char bracket)
{
    lead_in(writer, name);
    buf_char(writer->out, bracket);
    writer->needs_comma = false;
    writer->depth++;
}

static void close_bracket(struct wire_writer *writer, char bracket)
{
    assert(writer->depth > 0);
    buf_char(writer->out, bracket);
    writer->needs_comma = true;
    writer->depth--;
}

void wire_write_object(struct wire_writer *writer, const char *name)
{
    open_bracket(writer, name, '{');
}

void wire_write_object_end(struct wire_writer *writer)
{
    close_bracket(writer, '}');
}

void wire_write_array(struct wire_writer *writer, const char *name)
{
    open_bracket(writer, name, '[');
}

void wire_write_array_end(struct wire_writer *writer)
{
    close_bracket(writer, ']');
}

void wire_write_text(struct wire_writer *writer, const char *name, const char *text)
{
    if (text == NULL) {
        wire_write_null(writer, name);
    } else {
        wire_write_text_size(writer, name, text, strlen(text));
    }
}

void wire_write_text_size(struct wire_writer *writer, const char *name, const char *text, size_t size)
{
    lead_in(writer, name);
    buf_json_string(writer->out, text, size);
}

void wire_write_int(struct wire_writer *writer, const char *name, int64_t number)
{
    lead_in(writer, name);
    buf_format(writer->out, "%lld", (long long)number);
}

void wire_write_bool(struct wire_writer *writer, const char *name, bool is_true)
{
    lead_in(writer, name);
    buf_text(writer->out, is_true ? "true" : "false");
}

void wire_write_null(struct wire_writer *writer, const char *name)
{
    lead_in(writer, name);
    buf_text(writer->out, "null");
}

void wire_write_raw(struct wire_writer *writer, const char *name, const void *json, size_t size)
{
    lead_in(writer, name);
    buf_append(writer->out, json, size);
}
