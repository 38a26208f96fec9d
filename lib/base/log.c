/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines. The invariant: one call makes one write(2) of one line, and no
 * byte below 0x20 but the final newline is in it.
 */
#include "base/log.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

#define MARK_OF_CUT "…"

static struct {
    const char *prog;
    enum log_level level;
    int fd;
} logger = {.prog = "onceward", .level = LOG_INFO, .fd = STDERR_FILENO};

const char *const log_level_names[] = {"debug", "info", "warning", "error", NULL};

/* The line being built. What does not fit is dropped and the line is marked as cut. */
struct line {
    char text[LOG_LINE_SIZE_MAX];
    size_t size;
    bool is_cut;
};

static void put(struct line *line, const char *text, size_t size)
{
    size_t room = sizeof line->text - sizeof MARK_OF_CUT - 1 - line->size;
    if (line->is_cut || size > room) {
        line->is_cut = true;
        return;
    }
    memcpy(line->text + line->size, text, size);
    line->size += size;
}

static void put_text(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* Text with control characters (and, inside quotes, quotes and backslashes) escaped. */
static void put_escaped(struct line *line, const char *text, bool is_quoted)
{
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20 || byte == 0x7F) {
            char escape[8];
            text_format(escape, sizeof escape, byte == '\n' ? "\\n" : "\\x%02x", byte);
            put_text(line, escape);
        } else if (is_quoted && (byte == '"' || byte == '\\')) {
            put(line, (const char[]){'\\', *text}, 2);
        } else {
            size_t size = 1;
            while (((unsigned char)text[size] & 0xC0U) == 0x80U) {
                size++; /* A character stays whole also where the line is cut. */
            }
            put(line, text, size);
            text += size - 1;
        }
    }
}

static bool needs_quotes(const char *text)
{
    if (text[0] == '\0') {
        return true;
    }
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text <= ' ' || *text == 0x7F || strchr("\"\\=", *text) != NULL) {
            return true;
        }
    }
    return false;
}

static void put_field(struct line *line, const struct log_field *field)
{
    put_text(line, " ");
    put_text(line, field->name);
    put_text(line, "=");
    if (!field->is_text) {
        char number[24];
        text_format(number, sizeof number, "%lld", (long long)field->number);
        put_text(line, number);
    } else if (field->text == NULL) {
        put_text(line, "-");
    } else if (needs_quotes(field->text)) {
        put_text(line, "\"");
        put_escaped(line, field->text, true);
        put_text(line, "\"");
    } else {
        put_text(line, field->text);
    }
}

static void put_head(struct line *line, enum log_level level, const char *event)
{
    char now[CLOCK_TEXT_SIZE];
    clock_to_text(clock_realtime_us(), now);
    now[sizeof "2026-11-30T06:13:13.123" - 1] = '\0'; /* Milliseconds are enough here. */
    put_text(line, now);
    put_text(line, "Z ");
    put_text(line, log_level_names[level]);
    put_text(line, " ");
    put_text(line, logger.prog);
    put_text(line, " ");
    put_text(line, event);
}

static void log_line(enum log_level level, const char *event, const struct log_field *fields, const char *format,
                     va_list args) __attribute__((format(printf, 4, 0)));

static void log_line(enum log_level level, const char *event, const struct log_field *fields, const char *format,
                     va_list args)
{
    assert(event != NULL && format != NULL);
    if (!log_is_on(level)) {
        return;
    }
    struct line line = {.size = 0};
    put_head(&line, level, event);
    for (; fields != NULL && fields->name != NULL; fields++) {
        put_field(&line, fields);
    }
    char text[LOG_LINE_SIZE_MAX];
    bool fits = text_vformat(text, sizeof text, format, args);
    if (text[0] != '\0') {
        put_text(&line, " ");
        put_escaped(&line, text, false);
    }
    line.is_cut = line.is_cut || !fits;
    if (line.is_cut) {
        memcpy(line.text + line.size, MARK_OF_CUT, sizeof MARK_OF_CUT - 1);
        line.size += sizeof MARK_OF_CUT - 1;
    }
    line.text[line.size++] = '\n';
    assert(line.size <= sizeof line.text);
    /* A log that cannot be written is no reason to stop. */
    ssize_t written = write(logger.fd, line.text, line.size);
    (void)written;
}

void log_init(const char *prog, enum log_level level, FILE *file)
{
    assert(prog != NULL && file != NULL);
    logger.prog = prog;
    logger.level = level;
    logger.fd = fileno(file);
}

bool log_is_on(enum log_level level)
{
    return level >= logger.level;
}

#define DEFINE_LEVEL(function, level)                                                                                  \
    void function(const char *event, const struct log_field *fields, const char *format, ...)                          \
    {                                                                                                                  \
        va_list args;                                                                                                  \
        va_start(args, format);                                                                                        \
        log_line(level, event, fields, format, args);                                                                  \
        va_end(args);                                                                                                  \
    }

DEFINE_LEVEL(log_debug, LOG_DEBUG)
DEFINE_LEVEL(log_info, LOG_INFO)
DEFINE_LEVEL(log_warning, LOG_WARNING)
DEFINE_LEVEL(log_error, LOG_ERROR)
