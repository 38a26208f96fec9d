/* SPDX-License-Identifier: Apache-2.0
 *
 * The document for people: aligned columns, units, and nothing that a terminal
 * would obey (keys and reasons may hold any bytes).
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli_doc.h"

#define CELL_SIZE_MAX 4096
#define GAP "  "

/* ---- Units -------------------------------------------------------------------------------------------------- */

void cli_text_count(int64_t number, char *text, size_t size)
{
    char digits[24];
    bool fits = text_format(digits, sizeof digits, "%" PRId64, number);
    assert(fits && size >= 32);
    (void)fits;
    size_t length = strlen(digits);
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        bool is_group_start = i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0;
        if (is_group_start) {
            text[used++] = ' ';
        }
        text[used++] = digits[i];
    }
    text[used] = '\0';
}

/* A unit is used where a tenth of it is no great loss: "2 000 B", but "1.0 MiB". */
void cli_text_size(int64_t bytes, char *text, size_t size)
{
    static const struct {
        int64_t bytes;
        const char *unit;
    } UNITS[] = {{INT64_C(1) << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}};
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++) {
        bool is_whole = bytes > 0 && bytes % UNITS[i].bytes == 0;
        if (is_whole || bytes >= (i == 2 ? 10 : 1) * UNITS[i].bytes) {
            text_format(text, size, "%.*f %s", is_whole ? 0 : 1, (double)bytes / (double)UNITS[i].bytes, UNITS[i].unit);
            return;
        }
    }
    cli_text_count(bytes, text, size);
    size_t used = strlen(text);
    text_format(text + used, size - used, " B");
}

void cli_text_age(int64_t us, char *text, size_t size)
{
    int64_t s = us / 1000000;
    if (us < 0) {
        text_format(text, size, "in the future");
    } else if (s < 1) {
        text_format(text, size, "%" PRId64 " ms", us / 1000);
    } else if (s < 60) {
        text_format(text, size, "%" PRId64 ".%" PRId64 " s", s, us / 100000 % 10);
    } else if (s < 3600) {
        text_format(text, size, "%" PRId64 " min %" PRId64 " s", s / 60, s % 60);
    } else if (s < 86400) {
        text_format(text, size, "%" PRId64 " h %" PRId64 " min", s / 3600, s % 3600 / 60);
    } else {
        text_format(text, size, "%" PRId64 " d %" PRId64 " h", s / 86400, s % 86400 / 3600);
    }
}

/* ---- Cells -------------------------------------------------------------------------------------------------- */

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xC0U) == 0x80U;
}

/* Characters, as good as it gets without tables of their widths. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++) {
        width += is_continuation(*text) ? 0 : 1;
    }
    return width;
}

/* The text with its control characters and bad bytes as \xNN, cut to width_max characters (0: any). */
static void append_safely(struct buf *buf, const char *text, size_t width_max)
{
    bool is_utf8 = text_is_utf8(text, strlen(text), NULL);
    bool is_cut = width_max > 0 && width_of(text) > width_max;
    size_t left = is_cut ? width_max - 1 : SIZE_MAX;
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (!is_continuation(*text) && left-- == 0) {
            break;
        }
        /* C1 controls (U+0080 to U+009F) begin with 0xC2 and are obeyed by some terminals too. */
        bool is_c1 = byte == 0xC2 && is_continuation(text[1]) && (unsigned char)text[1] < 0xA0;
        bool is_bad = byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !is_utf8) || is_c1;
        if (is_bad) {
            buf_format(buf, "\\x%02X", is_c1 ? (unsigned char)text[1] : byte);
            text += is_c1 ? 1 : 0;
        } else {
            buf_char(buf, *text);
        }
    }
    if (is_cut) {
        buf_text(buf, "…");
    }
}

/* To the millisecond, which is what people compare. */
static void write_time(int64_t unix_us, char *text, size_t size)
{
    char whole[CLOCK_TEXT_SIZE];
    clock_to_text(unix_us, whole);
    text_format(text, size, "%.*sZ", (int)strlen("2026-11-30T06:13:13.123"), whole);
}

static char *cell_text(const struct cli_column *column, const struct cli_cell *cell)
{
    struct buf buf;
    buf_init(&buf, CELL_SIZE_MAX);
    char text[64] = "";
    if (cell->is_null) {
        buf_char(&buf, '-');
    } else {
        switch (column->type) {
        case CLI_TEXT:
        case CLI_WORDS: append_safely(&buf, cell->text, column->width_max); break;
        case CLI_COUNT: cli_text_count(cell->number, text, sizeof text); break;
        case CLI_ID: text_format(text, sizeof text, "%" PRId64, cell->number); break;
        case CLI_SIZE: cli_text_size(cell->number, text, sizeof text); break;
        case CLI_AGE: cli_text_age(cell->number, text, sizeof text); break;
        case CLI_TIME: write_time(cell->number, text, sizeof text); break;
        case CLI_BOOL: text_format(text, sizeof text, "%s", cell->number != 0 ? "yes" : "no"); break;
        }
    }
    buf_text(&buf, text);
    char *taken = buf_take(&buf, NULL);
    buf_done(&buf);
    assert(taken != NULL);
    return taken;
}

static bool is_right(enum cli_type type)
{
    return type == CLI_COUNT || type == CLI_ID || type == CLI_SIZE || type == CLI_AGE;
}

static void write_spaces(size_t count, FILE *out)
{
    fprintf(out, "%*s", (int)count, "");
}

/* ---- Sections ----------------------------------------------------------------------------------------------- */

/* The last visible column, which gets no blanks behind it. */
static size_t last_visible(const struct cli_section *section)
{
    size_t last = 0;
    for (size_t i = 0; i < section->column_count; i++) {
        last = section->columns[i].heading != NULL ? i : last;
    }
    return last;
}

static void write_padded(const char *text, size_t width, bool to_right, bool is_last, FILE *out)
{
    size_t blanks = width - width_of(text);
    write_spaces(to_right ? blanks : 0, out);
    fputs(text, out);
    if (!is_last) {
        write_spaces(to_right ? 0 : blanks, out);
        fputs(GAP, out);
    }
}

static void write_table(const struct cli_section *section, char **texts, const char *indent, FILE *out)
{
    size_t rows = cli_doc_rows(section);
    size_t widths[CLI_DOC_COLUMN_COUNT_MAX] = {0};
    for (size_t i = 0; i < section->column_count; i++) {
        widths[i] = section->columns[i].heading == NULL ? 0 : width_of(section->columns[i].heading);
        for (size_t row = 0; row < rows; row++) {
            size_t width = width_of(texts[row * section->column_count + i]);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    size_t last = last_visible(section);
    for (size_t line = 0; line <= rows; line++) {
        fputs(indent, out);
        for (size_t i = 0; i < section->column_count; i++) {
            const struct cli_column *column = &section->columns[i];
            if (column->heading != NULL) {
                const char *text = line == 0 ? column->heading : texts[(line - 1) * section->column_count + i];
                write_padded(text, widths[i], is_right(column->type), i == last, out);
            }
        }
        fputc('\n', out);
    }
}

static void write_lines(const struct cli_section *section, char **texts, const char *indent, FILE *out)
{
    size_t width = 0;
    for (size_t i = 0; i < section->column_count; i++) {
        const char *heading = section->columns[i].heading;
        width = heading != NULL && width_of(heading) > width ? width_of(heading) : width;
    }
    for (size_t i = 0; i < section->column_count; i++) {
        if (section->columns[i].heading != NULL) {
            fputs(indent, out);
            write_padded(section->columns[i].heading, width, false, false, out);
            fprintf(out, "%s\n", texts[i]);
        }
    }
}

static void write_section(const struct cli_section *section, FILE *out)
{
    const char *indent = section->title == NULL ? "" : "  ";
    if (cli_doc_rows(section) == 0) {
        if (section->empty != NULL) {
            fprintf(out, "%s%s\n", indent, section->empty);
        }
        return;
    }
    char **texts = calloc(section->cell_count, sizeof *texts);
    assert(texts != NULL);
    for (size_t i = 0; i < section->cell_count; i++) {
        texts[i] = cell_text(&section->columns[i % section->column_count], &section->cells[i]);
    }
    if (section->is_single) {
        write_lines(section, texts, indent, out);
    } else {
        write_table(section, texts, indent, out);
    }
    for (size_t i = 0; i < section->cell_count; i++) {
        free(texts[i]);
    }
    free(texts);
}

void cli_text_write(const struct cli_doc *doc, FILE *out)
{
    bool is_first = true;
    for (size_t i = 0; i < doc->section_count; i++) {
        const struct cli_section *section = &doc->sections[i];
        if (cli_doc_rows(section) == 0 && section->empty == NULL) {
            continue;
        }
        fputs(is_first ? "" : "\n", out);
        if (section->title != NULL) {
            fprintf(out, "%s\n", section->title);
        }
        write_section(section, out);
        is_first = false;
    }
    for (size_t i = 0; i < doc->note_count; i++) {
        fprintf(out, "%s%s\n", i == 0 && !is_first ? "\n" : "", doc->notes[i]);
    }
}
