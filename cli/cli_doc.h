/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command has to say, before it is text or JSON: sections of rows whose
 * cells have a type. One description gives both forms, so they cannot differ.
 *
 *     static const struct cli_column COLUMNS[] = { { "topic", "TOPIC", CLI_TEXT }, { "age", "AGE", CLI_AGE } };
 *     cli_doc_section(doc, "topics", "Topics", COLUMNS, COUNT_OF_COLUMNS);
 *     for each topic: cli_doc_text(doc, topic); cli_doc_number(doc, age_us);
 *
 * A program that runs for a moment and holds a screen of text: it has no answer
 * to a lack of memory but to stop, so that is asserted.
 */
#ifndef CLI_DOC_H
#define CLI_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CLI_DOC_SECTION_COUNT_MAX 16
#define CLI_DOC_COLUMN_COUNT_MAX 24

/* The JSON's own version: it rises when a member changes its meaning or goes. */
#define CLI_DOC_FORMAT 1

enum cli_type {
    CLI_TEXT,
    CLI_WORDS, /* A text of words between commas; an array of strings in JSON. */
    CLI_COUNT, /* Digits in groups of three; a plain number in JSON. */
    CLI_ID,    /* A number that is a name: no groups. */
    CLI_SIZE,  /* Bytes, as KiB or MiB where that is exact enough; a plain number in JSON. */
    CLI_AGE,   /* Microseconds, as "2.1 s"; seconds with a fraction in JSON. */
    CLI_TIME,  /* Unix microseconds, as RFC 3339. */
    CLI_BOOL,
};

struct cli_column {
    const char *key;     /* In JSON. */
    const char *heading; /* In text; NULL: in JSON only. */
    enum cli_type type;
    size_t width_max; /* In text, longer ones are cut; 0: never. */
};

struct cli_cell {
    bool is_null;
    int64_t number;
    char *text;
};

struct cli_section {
    const char *key;
    const char *title; /* NULL: no line above. */
    const char *empty; /* Text where there is no row; NULL: nothing at all. */
    const struct cli_column *columns;
    size_t column_count;
    bool is_single; /* One row, as an object in JSON and as lines of "heading value" in text. */
    struct cli_cell *cells;
    size_t cell_count;
    size_t cell_capacity;
};

struct cli_doc {
    struct cli_section sections[CLI_DOC_SECTION_COUNT_MAX];
    size_t section_count;
    char **notes; /* What is not well, or to be known. */
    size_t note_count;
    size_t note_capacity;
};

void cli_doc_done(struct cli_doc *doc);

/* Starts a section of many rows, or of one. Everything but cells is borrowed for the document's life. */
void cli_doc_section(struct cli_doc *doc, const char *key, const char *title, const char *empty,
                     const struct cli_column *columns, size_t column_count);
void cli_doc_single(struct cli_doc *doc, const char *key, const char *title, const struct cli_column *columns,
                    size_t column_count);

/* Each adds the next cell of the last section. Text is copied, NULL is null. */
void cli_doc_text(struct cli_doc *doc, const char *text);
void cli_doc_number(struct cli_doc *doc, int64_t number);
void cli_doc_bool(struct cli_doc *doc, bool value);
void cli_doc_null(struct cli_doc *doc);
/* The same where something may not be there: null for "", and for what is not known. */
void cli_doc_text_or_null(struct cli_doc *doc, const char *text);
void cli_doc_number_if(struct cli_doc *doc, bool is_known, int64_t number);

/* One line for the reader below the tables; a member of "notes" in JSON. */
void cli_doc_note(struct cli_doc *doc, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Rows of the section. */
size_t cli_doc_rows(const struct cli_section *section);

/* Writes all of it: cli_text.c, cli_json.c. */
void cli_text_write(const struct cli_doc *doc, FILE *out);
void cli_json_write(const struct cli_doc *doc, FILE *out);

/* One JSON string with its quotes; bytes that are no UTF-8 become U+FFFD. */
void cli_json_string(const char *text, FILE *out);

/* "1 204", "1.5 MiB", "2 min 5 s" into text (of at least 32 bytes). */
void cli_text_count(int64_t number, char *text, size_t size);
void cli_text_size(int64_t bytes, char *text, size_t size);
void cli_text_age(int64_t us, char *text, size_t size);

#endif
