/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of a statement, as PostgreSQL's lexer cuts them. It is no parser: what
 * is really wrong Postgres says. The invariant: a statement that names no
 * events never passes.
 */
#include "sinks/sink_statement.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define WORD_SIZE 64

/* Behind the text up to the end mark, or the end of all. */
static const char *skip_to(const char *at, const char *end_mark)
{
    const char *end = strstr(at, end_mark);
    return end == NULL ? at + strlen(at) : end + strlen(end_mark);
}

/* Behind a string between dollar signs, with or without a tag; NULL: it is none. */
static const char *skip_dollars(const char *at)
{
    char tag[WORD_SIZE];
    size_t size = 1;
    while (isalnum((unsigned char)at[size]) || at[size] == '_') {
        size++;
    }
    if (at[0] != '$' || at[size] != '$' || size + 2 > sizeof tag) {
        return NULL;
    }
    memcpy(tag, at, size + 1);
    tag[size + 1] = '\0';
    return skip_to(at + size + 1, tag);
}

/* Behind a string, a quoted name or a comment; NULL: none begins here. A doubled quote ends one and begins the next. */
static const char *skip_opaque(const char *at)
{
    if (*at == '\'' || *at == '"') {
        const char mark[2] = {*at, '\0'};
        return skip_to(at + 1, mark);
    }
    if (strncmp(at, "--", 2) == 0) {
        return skip_to(at, "\n");
    }
    if (strncmp(at, "/*", 2) == 0) {
        return skip_to(at + 2, "*/");
    }
    return skip_dollars(at);
}

/* The next word, cut to size; "" at the end. Returns where to go on. */
static const char *next_word(const char *at, char ret_word[WORD_SIZE])
{
    ret_word[0] = '\0';
    while (*at != '\0' && !isalpha((unsigned char)*at) && *at != '_') {
        const char *behind = skip_opaque(at);
        at = behind == NULL ? at + 1 : behind;
    }
    size_t size = 0;
    for (; isalnum((unsigned char)*at) || *at == '_'; at++) {
        if (size + 1 < WORD_SIZE) {
            ret_word[size++] = *at;
        }
    }
    ret_word[size] = '\0';
    return at;
}

static bool is_word(const char *word, const char *const *words)
{
    while (*words != NULL && strcasecmp(word, *words) != 0) {
        words++;
    }
    return *words != NULL;
}

bool sink_statement_check(const char *statement, struct err *err)
{
    static const char *const writing[] = {"insert", "update", "delete", "merge", NULL};
    static const char *const targets[] = {"into", "update", NULL};
    char word[WORD_SIZE];
    char before[WORD_SIZE] = "";
    bool has_with = false;
    bool is_writing = false;
    bool reads_events = false;
    for (const char *at = next_word(statement, word); word[0] != '\0'; at = next_word(at, word)) {
        has_with = has_with || (before[0] == '\0' && strcasecmp(word, "with") == 0);
        is_writing = is_writing || ((has_with || before[0] == '\0') && is_word(word, writing));
        reads_events = reads_events || (strcasecmp(word, "events") == 0 && !is_word(before, targets));
        (void)text_copy(before, sizeof before, word);
    }
    if (!is_writing) {
        return err_set(
            err, ERR_PERMANENT, "sink_statement_invalid",
            "must be one INSERT, UPDATE, DELETE or MERGE, with or without a WITH: else events have no effect");
    }
    return reads_events || err_set(err, ERR_PERMANENT, "sink_statement_invalid",
                                   "does not read the table expression events, so the events would have no effect");
}
