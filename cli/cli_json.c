/* SPDX-License-Identifier: Apache-2.0
 *
 * The document as one JSON object. What scripts read: members stay, times are
 * RFC 3339, ages are seconds, nothing is shortened.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli_doc.h"

#define WORD_SIZE_MAX 256
#define STRING_SIZE_MAX ((size_t)64 * 1024 * 1024)

void cli_json_string(const char *text, FILE *out)
{
    struct buf buf;
    buf_init(&buf, STRING_SIZE_MAX);
    buf_json_string(&buf, text, strlen(text));
    assert(!buf.has_overflowed); /* Half a string would still look like an answer. */
    fwrite(buf.data, 1, buf.size, out);
    buf_done(&buf);
}

static void write_time(int64_t unix_us, FILE *out)
{
    char text[CLOCK_TEXT_SIZE];
    clock_to_text(unix_us, text);
    fprintf(out, "\"%s\"", text);
}

static void write_seconds(int64_t us, FILE *out)
{
    uint64_t absolute = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;
    fprintf(out, "%s%" PRIu64 ".%06" PRIu64, us < 0 ? "-" : "", absolute / 1000000, absolute % 1000000);
}

static void write_words(const char *words, FILE *out)
{
    char word[WORD_SIZE_MAX];
    fputc('[', out);
    for (const char *at = words; *at != '\0';) {
        size_t size = strcspn(at, ",");
        assert(size < sizeof word);
        memcpy(word, at, size);
        word[size] = '\0';
        fputs(at == words ? "" : ", ", out);
        cli_json_string(word, out);
        at += size + (at[size] == ',' ? 1 : 0);
    }
    fputc(']', out);
}

static void write_cell(const struct cli_column *column, const struct cli_cell *cell, FILE *out)
{
    if (cell->is_null) {
        fputs("null", out);
        return;
    }
    switch (column->type) {
    case CLI_TEXT: cli_json_string(cell->text, out); return;
    case CLI_WORDS: write_words(cell->text, out); return;
    case CLI_COUNT:
    case CLI_ID:
    case CLI_SIZE: fprintf(out, "%" PRId64, cell->number); return;
    case CLI_AGE: write_seconds(cell->number, out); return;
    case CLI_TIME: write_time(cell->number, out); return;
    case CLI_BOOL: fputs(cell->number != 0 ? "true" : "false", out); return;
    }
    assert(!"no such type");
}

static void write_row(const struct cli_section *section, size_t row, FILE *out)
{
    fputc('{', out);
    for (size_t i = 0; i < section->column_count; i++) {
        fputs(i == 0 ? "" : ", ", out);
        cli_json_string(section->columns[i].key, out);
        fputs(": ", out);
        write_cell(&section->columns[i], &section->cells[row * section->column_count + i], out);
    }
    fputc('}', out);
}

static void write_section(const struct cli_section *section, FILE *out)
{
    size_t rows = cli_doc_rows(section);
    if (section->is_single) {
        assert(rows == 1);
        write_row(section, 0, out);
        return;
    }
    fputc('[', out);
    for (size_t row = 0; row < rows; row++) {
        fputs(row == 0 ? "\n    " : ",\n    ", out);
        write_row(section, row, out);
    }
    fputs(rows == 0 ? "]" : "\n  ]", out);
}

void cli_json_write(const struct cli_doc *doc, FILE *out)
{
    fprintf(out, "{\n  \"format\": %d", CLI_DOC_FORMAT);
    for (size_t i = 0; i < doc->section_count; i++) {
        fputs(",\n  ", out);
        cli_json_string(doc->sections[i].key, out);
        fputs(": ", out);
        write_section(&doc->sections[i], out);
    }
    fputs(",\n  \"notes\": [", out);
    for (size_t i = 0; i < doc->note_count; i++) {
        fputs(i == 0 ? "" : ", ", out);
        cli_json_string(doc->notes[i], out);
    }
    fputs("]\n}\n", out);
}
