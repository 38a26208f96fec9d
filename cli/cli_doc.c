/* SPDX-License-Identifier: Apache-2.0
 *
 * The document: memory and the rule that rows are complete.
 */
#include "cli_doc.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cli_doc_done(struct cli_doc *doc)
{
    for (size_t i = 0; i < doc->section_count; i++) {
        for (size_t j = 0; j < doc->sections[i].cell_count; j++) {
            free(doc->sections[i].cells[j].text);
        }
        free(doc->sections[i].cells);
    }
    for (size_t i = 0; i < doc->note_count; i++) {
        free(doc->notes[i]);
    }
    free(doc->notes);
    *doc = (struct cli_doc){.section_count = 0};
}

/* The same array with room for more. */
static void *grow(void *items, size_t *capacity, size_t item_size)
{
    *capacity = *capacity == 0 ? 64 : 2 * *capacity;
    void *grown = realloc(items, *capacity * item_size);
    assert(grown != NULL);
    return grown;
}

static struct cli_section *add_section(struct cli_doc *doc, const struct cli_column *columns, size_t column_count)
{
    assert(doc->section_count < CLI_DOC_SECTION_COUNT_MAX);
    assert(column_count > 0 && column_count <= CLI_DOC_COLUMN_COUNT_MAX);
    struct cli_section *section = &doc->sections[doc->section_count++];
    *section = (struct cli_section){.columns = columns, .column_count = column_count};
    return section;
}

void cli_doc_section(struct cli_doc *doc, const char *key, const char *title, const char *empty,
                     const struct cli_column *columns, size_t column_count)
{
    struct cli_section *section = add_section(doc, columns, column_count);
    section->key = key;
    section->title = title;
    section->empty = empty;
}

void cli_doc_single(struct cli_doc *doc, const char *key, const char *title, const struct cli_column *columns,
                    size_t column_count)
{
    struct cli_section *section = add_section(doc, columns, column_count);
    section->key = key;
    section->title = title;
    section->is_single = true;
}

static struct cli_cell *add_cell(struct cli_doc *doc)
{
    assert(doc->section_count > 0);
    struct cli_section *section = &doc->sections[doc->section_count - 1];
    if (section->cell_count == section->cell_capacity) {
        section->cells = grow(section->cells, &section->cell_capacity, sizeof *section->cells);
    }
    struct cli_cell *cell = &section->cells[section->cell_count++];
    *cell = (struct cli_cell){.is_null = false};
    return cell;
}

void cli_doc_text(struct cli_doc *doc, const char *text)
{
    struct cli_cell *cell = add_cell(doc);
    cell->is_null = text == NULL;
    if (text != NULL) {
        cell->text = strdup(text);
        assert(cell->text != NULL);
    }
}

void cli_doc_number(struct cli_doc *doc, int64_t number)
{
    add_cell(doc)->number = number;
}

void cli_doc_bool(struct cli_doc *doc, bool value)
{
    add_cell(doc)->number = value ? 1 : 0;
}

void cli_doc_null(struct cli_doc *doc)
{
    add_cell(doc)->is_null = true;
}

void cli_doc_text_or_null(struct cli_doc *doc, const char *text)
{
    cli_doc_text(doc, text[0] == '\0' ? NULL : text);
}

void cli_doc_number_if(struct cli_doc *doc, bool is_known, int64_t number)
{
    if (is_known) {
        cli_doc_number(doc, number);
    } else {
        cli_doc_null(doc);
    }
}

void cli_doc_note(struct cli_doc *doc, const char *format, ...)
{
    char *note = NULL;
    va_list args;
    va_start(args, format);
    int size = vasprintf(&note, format, args);
    va_end(args);
    assert(size >= 0);
    if (doc->note_count == doc->note_capacity) {
        doc->notes = grow(doc->notes, &doc->note_capacity, sizeof *doc->notes);
    }
    doc->notes[doc->note_count++] = note;
}

size_t cli_doc_rows(const struct cli_section *section)
{
    assert(section->cell_count % section->column_count == 0);
    return section->cell_count / section->column_count;
}
