/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings file. The invariant: every byte of it counts. What cannot be
 * part of a setting (a NUL, another control character, the rest of an endless
 * line) is a mistake with its line, never skipped and never read as something
 * else.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "config_private.h"

#define LINE_SIZE_MAX 65535
#define FILE_SIZE_MAX (1 << 20)

/* Where the reader is. */
struct reader {
    struct config_report *report;
    FILE *file;
    const char *path;
    size_t size; /* Bytes read so far. */
    int number;  /* Of the line. */
    char place[CONFIG_PLACE_SIZE];
};

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t size = strlen(text);
    while (size > 0 && isspace((unsigned char)text[size - 1])) {
        text[--size] = '\0';
    }
    return text;
}

/* Takes the quotation marks and the escapes out of a value, in place. NULL, or what is wrong with it. */
static const char *unquote(char *value)
{
    static const char letters[] = "\"\\nrt";
    static const char meanings[] = "\"\\\n\r\t";
    char *to = value;
    const char *from = value + 1;
    for (; *from != '"'; from++) {
        if (*from == '\0') {
            return "the closing quotation mark is missing";
        }
        char meaning = *from;
        if (meaning == '\\') {
            from++;
            const char *letter = *from == '\0' ? NULL : strchr(letters, *from);
            if (letter == NULL) {
                return "after a backslash only \", \\, n, r and t may follow between quotation marks";
            }
            meaning = meanings[letter - letters];
        }
        *to++ = meaning;
    }
    bool is_end = from[1] == '\0';
    *to = '\0';
    return is_end ? NULL : "something follows the closing quotation mark";
}

static void read_setting(struct reader *reader, char *line)
{
    struct config_report *report = reader->report;
    char *name = trim(line);
    if (name[0] == '\0' || name[0] == '#') {
        return;
    }
    char *equals = strchr(name, '=');
    if (equals == NULL) {
        config_report_mistake(report, reader->place, "not of the form key = value");
        return;
    }
    *equals = '\0';
    name = trim(name);
    char *value = trim(equals + 1);
    const struct config_setting *setting = config_find(report->program, name);
    if (setting == NULL || setting->is_flag_only) {
        config_report_unknown(report, reader->place, name);
        return;
    }
    struct config_slot *slot = &report->slots[setting - report->program->settings];
    if (slot->is_in_file && setting->type != CONFIG_PAIRS) {
        config_report_mistake(report, reader->place, "%s is set a second time", name);
        return;
    }
    slot->is_in_file = true;
    const char *wrong = value[0] == '"' ? unquote(value) : NULL;
    if (wrong != NULL) {
        config_report_mistake(report, reader->place, "%s: %s", name, wrong);
    } else {
        config_set(report, setting, name, value, reader->place);
    }
}

/* The next line without its line feed; false at the end. line overflows where it is too long. */
static bool next_line(struct reader *reader, struct buf *line)
{
    buf_reset(line);
    int c = getc_unlocked(reader->file);
    bool is_there = c != EOF;
    for (; c != EOF && c != '\n' && reader->size < FILE_SIZE_MAX; c = getc_unlocked(reader->file)) {
        buf_char(line, (char)c);
        reader->size++;
    }
    reader->size++;
    return is_there;
}

/* A carriage return at the very end belongs to the line break; a tab is a blank. */
static bool has_control_character(struct reader *reader, const struct buf *line)
{
    for (size_t i = 0; i < line->size; i++) {
        unsigned char c = (unsigned char)line->data[i];
        bool is_line_end = c == '\r' && i + 1 == line->size;
        if (iscntrl(c) && c != '\t' && !is_line_end) {
            config_report_mistake(reader->report, reader->place, "a control character (0x%02x) at byte %zu", c, i + 1);
            return true;
        }
    }
    return false;
}

static void read_lines(struct reader *reader)
{
    struct buf line;
    buf_init(&line, LINE_SIZE_MAX);
    while (next_line(reader, &line)) {
        if (reader->size > FILE_SIZE_MAX) {
            config_report_mistake(reader->report, reader->path, "larger than %d bytes", FILE_SIZE_MAX);
            break;
        }
        text_format(reader->place, sizeof reader->place, "%s:%d", reader->path, ++reader->number);
        if (line.has_overflowed) {
            config_report_mistake(reader->report, reader->place, "longer than %d bytes", LINE_SIZE_MAX);
        } else if (!has_control_character(reader, &line)) {
            read_setting(reader, line.data);
        }
    }
    buf_done(&line);
}

void config_file_read(struct config_report *report, const char *path)
{
    struct reader reader = {.report = report, .file = fopen(path, "re"), .path = path};
    if (reader.file == NULL) {
        config_report_mistake(report, path, "cannot be read: %s", strerror(errno));
        return;
    }
    read_lines(&reader);
    if (ferror(reader.file)) {
        config_report_mistake(report, path, "cannot be read: %s", strerror(errno));
    }
    fclose(reader.file);
}
