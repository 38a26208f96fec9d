/* SPDX-License-Identifier: Apache-2.0
 *
 * Dead letters: list, show, acknowledge. Nothing here deletes one.
 */
#include "db/db_dlq.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- dlq list ----------------------------------------------------------------------------------------------- */

static const struct cli_column LIST_COLUMNS[] = {
    {"dead_letter_id", "ID", CLI_ID, 0},    {"created_at", "SET ASIDE", CLI_TIME, 0},
    {"consumer", "CONSUMER", CLI_TEXT, 40}, {"scope", NULL, CLI_TEXT, 0},
    {"topic", "TOPIC", CLI_TEXT, 30},       {"partition", "PARTITION", CLI_ID, 0},
    {"offset", "OFFSET", CLI_ID, 0},        {"event_id", "EVENT", CLI_TEXT, 36},
    {"source", NULL, CLI_TEXT, 0},          {"reason_code", "CODE", CLI_TEXT, 30},
    {"reason", "REASON", CLI_TEXT, 60},     {"acknowledged_at", "ACKNOWLEDGED", CLI_TIME, 0},
    {"acknowledged_by", NULL, CLI_TEXT, 0}, {"acknowledged_reason", NULL, CLI_TEXT, 0},
};

static const struct cli_column SHOW_COLUMNS[] = {
    {"dead_letter_id", "dead letter", CLI_ID, 0},
    {"created_at", "set aside", CLI_TIME, 0},
    {"consumer", "consumer", CLI_TEXT, 0},
    {"scope", "scope", CLI_TEXT, 0},
    {"topic", "topic", CLI_TEXT, 0},
    {"partition", "partition", CLI_ID, 0},
    {"offset", "offset", CLI_ID, 0},
    {"event_id", "event", CLI_TEXT, 0},
    {"source", "source", CLI_TEXT, 0},
    {"reason_code", "code", CLI_TEXT, 0},
    {"reason", "reason", CLI_TEXT, 0},
    {"acknowledged_at", "acknowledged", CLI_TIME, 0},
    {"acknowledged_by", "  by", CLI_TEXT, 0},
    {"acknowledged_reason", "  reason", CLI_TEXT, 0},
};

static void add_letter(struct cli *cli, const struct db_dlq_letter *letter)
{
    struct cli_doc *doc = &cli->doc;
    cli_doc_number(doc, letter->dead_letter_id);
    cli_doc_number(doc, letter->created_at_us);
    cli_doc_text(doc, letter->consumer);
    cli_doc_text(doc, letter->scope);
    cli_doc_text(doc, letter->topic);
    cli_doc_number(doc, letter->partition);
    cli_doc_number(doc, letter->offset);
    cli_doc_text_or_null(doc, letter->event_id);
    cli_doc_text_or_null(doc, letter->source);
    cli_doc_text(doc, letter->reason_code);
    cli_doc_text(doc, letter->reason);
    cli_doc_number_if(doc, letter->is_acknowledged, letter->acknowledged_at_us);
    cli_doc_text_or_null(doc, letter->acknowledged_by);
    cli_doc_text_or_null(doc, letter->acknowledged_reason);
}

bool cli_dlq_list(struct cli *cli, struct err *err)
{
    const struct cli_settings *settings = cli->settings;
    const struct db_dlq_filter filter = {
        .consumer = settings->consumer,
        .reason_code = settings->reason_code,
        .is_open_only = !settings->all,
        .before = settings->before,
        .limit = (int32_t)settings->limit + 1, /* One more tells whether there is more. */
    };
    struct db_dlq_letter *letters = NULL;
    size_t count = 0;
    if (!db_dlq_list(cli->db, &filter, &letters, &count, err)) {
        return false;
    }
    bool has_more = count > (size_t)settings->limit;
    count -= has_more ? 1 : 0;
    cli_doc_section(&cli->doc, "dead_letters", NULL, "No dead letter.", LIST_COLUMNS, COUNT(LIST_COLUMNS));
    for (size_t i = 0; i < count; i++) {
        add_letter(cli, &letters[i]);
    }
    if (has_more) {
        cli_doc_note(&cli->doc, "More: --before %" PRId64, letters[count - 1].dead_letter_id);
    }
    free(letters);
    return true;
}

/* ---- dlq show ----------------------------------------------------------------------------------------------- */

static const struct cli_column PART_COLUMNS[] = {
    {"part", "PART", CLI_TEXT, 0},   {"name", "NAME", CLI_TEXT, 0}, {"bytes", "BYTES", CLI_COUNT, 0},
    {"text", "TEXT", CLI_TEXT, 400}, {"hex", NULL, CLI_TEXT, 0},
};

static void add_hex(struct cli *cli, const struct db_dlq_part *part)
{
    static const char digits[] = "0123456789abcdef";
    char *hex = malloc(2 * part->size + 1);
    assert(hex != NULL);
    for (size_t i = 0; i < part->size; i++) {
        hex[2 * i] = digits[(unsigned char)part->data[i] >> 4];
        hex[2 * i + 1] = digits[(unsigned char)part->data[i] & 15];
    }
    hex[2 * part->size] = '\0';
    cli_doc_text(&cli->doc, hex);
    free(hex);
}

/* As text where it is one, and then not as hexadecimal digits. */
static void add_part(struct cli *cli, const char *word, const struct db_dlq_part *part)
{
    cli_doc_text(&cli->doc, word);
    cli_doc_text(&cli->doc, part->name);
    if (part->data == NULL) {
        cli_doc_null(&cli->doc);
        cli_doc_null(&cli->doc);
        cli_doc_null(&cli->doc);
        return;
    }
    bool is_text = strlen(part->data) == part->size && text_is_utf8(part->data, part->size, NULL);
    cli_doc_number(&cli->doc, (int64_t)part->size);
    cli_doc_text(&cli->doc, is_text ? part->data : NULL);
    if (is_text) {
        cli_doc_null(&cli->doc);
    } else {
        add_hex(cli, part);
    }
}

static bool read_id(const char *text, int64_t *ret_id, struct err *err)
{
    return (text_to_int64(text, ret_id) && *ret_id > 0) ||
           err_set(err, ERR_PERMANENT, "usage", "\"%s\" is no id of a dead letter; see: onceward dlq list", text);
}

bool cli_dlq_show(struct cli *cli, struct err *err)
{
    int64_t id = 0;
    struct db_dlq_letter letter;
    struct db_dlq_record record;
    bool is_found = false;
    if (!read_id(cli->arguments[0], &id, err) || !db_dlq_find(cli->db, id, &letter, &record, &is_found, err)) {
        return false;
    }
    if (!is_found) {
        return err_set(err, ERR_PERMANENT, "dead_letter_unknown", "there is no dead letter %" PRId64, id);
    }
    cli_doc_single(&cli->doc, "dead_letter", NULL, SHOW_COLUMNS, COUNT(SHOW_COLUMNS));
    add_letter(cli, &letter);
    cli_doc_section(&cli->doc, "record", "The record", NULL, PART_COLUMNS, COUNT(PART_COLUMNS));
    add_part(cli, "key", &record.key);
    for (size_t i = 0; i < record.header_count; i++) {
        add_part(cli, "header", &record.headers[i]);
    }
    add_part(cli, "value", &record.value);
    db_dlq_record_done(&record);
    return true;
}

/* ---- dlq acknowledge ---------------------------------------------------------------------------------------- */

static const struct cli_column DONE_COLUMNS[] = {
    {"selected", "selected", CLI_COUNT, 0}, {"acknowledged", "acknowledged", CLI_COUNT, 0},
    {"first_id", "first", CLI_ID, 0},       {"last_id", "last", CLI_ID, 0},
    {"digest", "digest", CLI_TEXT, 0},
};

static bool read_selection(const struct cli *cli, struct db_dlq_selection *selection, struct err *err)
{
    const struct cli_settings *settings = cli->settings;
    *selection = (struct db_dlq_selection){
        .consumer = settings->consumer,
        .reason_code = settings->reason_code,
        .audit = cli_audit_of(settings),
        .digest = settings->digest,
        .is_dry = settings->dry_run,
    };
    const char *text = cli->arguments[0];
    if (settings->reason == NULL) {
        return err_set(err, ERR_PERMANENT, "usage", "say with --reason why nothing is left to be done");
    }
    if (text != NULL) {
        return read_id(text, &selection->dead_letter_id, err);
    }
    if (settings->consumer == NULL) {
        return err_set(err, ERR_PERMANENT, "usage", "name a dead letter, or with --consumer whose are meant");
    }
    if (!settings->dry_run && !settings->yes && settings->digest == NULL) {
        return err_set(err, ERR_PERMANENT, "not_confirmed",
                       "many at once need --yes, or the --digest that --dry-run shows");
    }
    return true;
}

static void tell_done(struct cli *cli, const struct db_dlq_acknowledged *done)
{
    cli_doc_single(&cli->doc, "acknowledged", NULL, DONE_COLUMNS, COUNT(DONE_COLUMNS));
    cli_doc_number(&cli->doc, done->selected_count);
    cli_doc_number(&cli->doc, done->done_count);
    cli_doc_number_if(&cli->doc, done->selected_count > 0, done->first_id);
    cli_doc_number_if(&cli->doc, done->selected_count > 0, done->last_id);
    cli_doc_text(&cli->doc, done->digest);
    if (cli->settings->dry_run) {
        cli_doc_note(&cli->doc, "Nothing was done. The same with --digest %s acknowledges just these.", done->digest);
    }
    if (done->selected_count == DB_DLQ_ACKNOWLEDGE_COUNT_MAX) {
        cli_doc_note(&cli->doc, "There may be more: a call takes the oldest %d.", DB_DLQ_ACKNOWLEDGE_COUNT_MAX);
    }
}

bool cli_dlq_acknowledge(struct cli *cli, struct err *err)
{
    struct db_dlq_selection selection;
    struct db_dlq_acknowledged done;
    if (!read_selection(cli, &selection, err) || !db_dlq_acknowledge(cli->db, &selection, &done, err)) {
        return false;
    }
    if (selection.dead_letter_id > 0 && done.selected_count == 0) {
        return err_set(err, ERR_PERMANENT, "dead_letter_unknown",
                       "no dead letter %" PRId64 " waits to be acknowledged; see: onceward dlq show %" PRId64,
                       selection.dead_letter_id, selection.dead_letter_id);
    }
    if (selection.digest != NULL && strcmp(selection.digest, done.digest) != 0) {
        return err_set(err, ERR_PERMANENT, "digest_differs",
                       "these are not the ones that the digest was shown for: now they are %" PRId64 " with digest %s",
                       done.selected_count, done.digest);
    }
    tell_done(cli, &done);
    return true;
}
