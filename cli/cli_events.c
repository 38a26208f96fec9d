/* SPDX-License-Identifier: Apache-2.0
 *
 * Events: a list with filters, or one event's way from submit to effect.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/uuid.h"
#include "cli.h"
#include "db/db.h"
#include "db/db_status.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- List --------------------------------------------------------------------------------------------------- */

static const struct cli_column LIST_COLUMNS[] = {
    {"event_id", "EVENT", CLI_TEXT, 0}, {"outbox_id", "OUTBOX ID", CLI_ID, 0}, {"time", "SUBMITTED", CLI_TIME, 0},
    {"tenant", NULL, CLI_TEXT, 0},      {"type", "TYPE", CLI_TEXT, 30},        {"key", NULL, CLI_TEXT, 0},
    {"lane", NULL, CLI_ID, 0},          {"topic", "TOPIC", CLI_TEXT, 30},      {"partition", "PARTITION", CLI_ID, 0},
    {"offset", "OFFSET", CLI_ID, 0},    {"status", "STATUS", CLI_TEXT, 0},     {"deferred", NULL, CLI_TEXT, 0},
    {"reason_code", NULL, CLI_TEXT, 0}, {"reason", "REASON", CLI_TEXT, 60},
};

static void add_event(struct cli *cli, const struct db_status_event *event)
{
    cli_doc_text(&cli->doc, event->event_id);
    cli_doc_number(&cli->doc, event->outbox_id);
    cli_doc_number(&cli->doc, event->time_us);
    cli_doc_text(&cli->doc, event->tenant);
    cli_doc_text(&cli->doc, event->type);
    cli_doc_text(&cli->doc, event->key);
    cli_doc_number(&cli->doc, event->lane);
    cli_doc_text(&cli->doc, event->topic);
    cli_doc_number_if(&cli->doc, event->has_place, event->partition);
    cli_doc_number_if(&cli->doc, event->has_place && event->offset >= 0, event->offset);
    cli_doc_text(&cli->doc, event->status);
    cli_doc_text_or_null(&cli->doc, event->deferred_state);
    cli_doc_text_or_null(&cli->doc, event->reason_code);
    cli_doc_text_or_null(&cli->doc, event->reason);
}

static bool list_events(struct cli *cli, struct err *err)
{
    const struct cli_settings *settings = cli->settings;
    struct db_status_filter filter = {
        .status = settings->status,
        .tenant = settings->tenant,
        .topic = settings->topic,
        .key = settings->key,
        .type = settings->type,
        .before = settings->before,
        .limit = (int32_t)settings->limit + 1, /* One more tells whether there is more. */
    };
    struct db_status_event *events = NULL;
    size_t count = 0;
    if (!db_status_event_list(cli->db, &filter, &events, &count, err)) {
        return false;
    }
    bool has_more = count > (size_t)settings->limit;
    count -= has_more ? 1 : 0;
    cli_doc_section(&cli->doc, "events", NULL, "No event.", LIST_COLUMNS, COUNT(LIST_COLUMNS));
    for (size_t i = 0; i < count; i++) {
        add_event(cli, &events[i]);
    }
    if (has_more) {
        cli_doc_note(&cli->doc, "More: --before %" PRId64, events[count - 1].outbox_id);
    }
    free(events);
    return true;
}

/* ---- One event ---------------------------------------------------------------------------------------------- */

static const struct cli_column EVENT_COLUMNS[] = {
    {"event_id", "event", CLI_TEXT, 0}, {"type", "type", CLI_TEXT, 0},         {"tenant", "tenant", CLI_TEXT, 0},
    {"key", "key", CLI_TEXT, 0},        {"value_bytes", "value", CLI_SIZE, 0}, {"status", "status", CLI_TEXT, 0},
};

static const struct cli_column SUBMISSION_COLUMNS[] = {
    {"request_id", "request", CLI_TEXT, 0},
    {"submitted_at", "submitted", CLI_TIME, 0},
    {"documents", "documents", CLI_COUNT, 0},
};

static const struct cli_column OUTBOX_COLUMNS[] = {
    {"outbox_id", "OUTBOX ID", CLI_ID, 0}, {"lane", "LANE", CLI_ID, 0},
    {"time", "QUEUED", CLI_TIME, 0},       {"status", "STATUS", CLI_TEXT, 0},
    {"topic", "TOPIC", CLI_TEXT, 0},       {"partition", "PARTITION", CLI_ID, 0},
    {"offset", "OFFSET", CLI_ID, 0},       {"settled_at", "SETTLED", CLI_TIME, 0},
    {"deferred", "DEFERRED", CLI_TEXT, 0}, {"reason_code", NULL, CLI_TEXT, 0},
    {"reason", "REASON", CLI_TEXT, 200},
};

static const struct cli_column DELIVERY_COLUMNS[] = {
    {"consumer", "CONSUMER", CLI_TEXT, 0}, {"scope", "SCOPE", CLI_TEXT, 0},
    {"status", "STATUS", CLI_TEXT, 0},     {"at", "AT", CLI_TIME, 0},
    {"topic", NULL, CLI_TEXT, 0},          {"partition", NULL, CLI_ID, 0},
    {"offset", NULL, CLI_ID, 0},           {"reason_code", NULL, CLI_TEXT, 0},
    {"reason", "REASON", CLI_TEXT, 200},   {"source", NULL, CLI_TEXT, 0},
};

static void add_outbox(struct cli *cli, const struct db_status_event *events, size_t count)
{
    cli_doc_section(&cli->doc, "outbox", "On its way to the topic", NULL, OUTBOX_COLUMNS, COUNT(OUTBOX_COLUMNS));
    for (size_t i = 0; i < count; i++) {
        cli_doc_number(&cli->doc, events[i].outbox_id);
        cli_doc_number(&cli->doc, events[i].lane);
        cli_doc_number(&cli->doc, events[i].time_us);
        cli_doc_text(&cli->doc, events[i].status);
        cli_doc_text(&cli->doc, events[i].topic);
        cli_doc_number_if(&cli->doc, events[i].has_place, events[i].partition);
        cli_doc_number_if(&cli->doc, events[i].has_place && events[i].offset >= 0, events[i].offset);
        cli_doc_number_if(&cli->doc, events[i].has_place, events[i].settled_at_us);
        cli_doc_text_or_null(&cli->doc, events[i].deferred_state);
        cli_doc_text_or_null(&cli->doc, events[i].reason_code);
        cli_doc_text_or_null(&cli->doc, events[i].reason);
    }
}

static bool add_submission(struct cli *cli, const struct db_status_event *event, struct err *err)
{
    struct db_status_submission submission;
    bool is_found = false;
    if (!db_status_event_submission(cli->db, event, &submission, &is_found, err)) {
        return false;
    }
    if (is_found) {
        cli_doc_single(&cli->doc, "submission", "Submitted", SUBMISSION_COLUMNS, COUNT(SUBMISSION_COLUMNS));
        cli_doc_text(&cli->doc, submission.request_id);
        cli_doc_number(&cli->doc, submission.submitted_at_us);
        cli_doc_number(&cli->doc, submission.document_count);
    }
    return true;
}

static bool add_deliveries(struct cli *cli, const char *event_id, const struct db_status_event *event,
                           size_t *ret_count, struct err *err)
{
    struct db_status_delivery *deliveries = NULL;
    if (!db_status_event_deliveries(cli->db, event_id, event, &deliveries, ret_count, err)) {
        return false;
    }
    cli_doc_section(&cli->doc, "deliveries", "At the consumers", "none yet whose inbox is in this database",
                    DELIVERY_COLUMNS, COUNT(DELIVERY_COLUMNS));
    for (size_t i = 0; i < *ret_count; i++) {
        const struct db_status_delivery *delivery = &deliveries[i];
        cli_doc_text(&cli->doc, delivery->consumer);
        cli_doc_text(&cli->doc, delivery->scope);
        cli_doc_text(&cli->doc, delivery->status);
        cli_doc_number(&cli->doc, delivery->at_us);
        cli_doc_text_or_null(&cli->doc, delivery->topic);
        cli_doc_number_if(&cli->doc, delivery->partition >= 0, delivery->partition);
        cli_doc_number_if(&cli->doc, delivery->offset >= 0, delivery->offset);
        cli_doc_text_or_null(&cli->doc, delivery->reason_code);
        cli_doc_text_or_null(&cli->doc, delivery->reason);
        cli_doc_text_or_null(&cli->doc, delivery->source);
    }
    free(deliveries);
    return true;
}

static bool add_event_head(struct cli *cli, const struct db_status_event *events, size_t count, struct err *err)
{
    if (count == 0) {
        return true;
    }
    cli_doc_single(&cli->doc, "event", NULL, EVENT_COLUMNS, COUNT(EVENT_COLUMNS));
    cli_doc_text(&cli->doc, events[0].event_id);
    cli_doc_text(&cli->doc, events[0].type);
    cli_doc_text(&cli->doc, events[0].tenant);
    cli_doc_text(&cli->doc, events[0].key);
    cli_doc_number(&cli->doc, events[0].value_size);
    cli_doc_text(&cli->doc, events[count - 1].status);
    return add_submission(cli, &events[0], err);
}

static bool show_event(struct cli *cli, struct err *err)
{
    const char *text = cli->arguments[0];
    struct uuid event_id;
    struct db_status_event *events = NULL;
    size_t event_count = 0;
    bool may_be_ours =
        uuid_from_text(text, strlen(text), &event_id); /* Else only an inbox or a dead letter knows it. */
    if (may_be_ours && !db_status_event_find(cli->db, event_id.bytes, &events, &event_count, err)) {
        return false;
    }
    size_t delivery_count = 0;
    bool ok = add_event_head(cli, events, event_count, err);
    if (ok) {
        add_outbox(cli, events, event_count);
        ok = add_deliveries(cli, text, event_count == 0 ? NULL : &events[event_count - 1], &delivery_count, err);
    }
    free(events);
    if (ok && event_count == 0 && delivery_count == 0) {
        return err_set(err, ERR_PERMANENT, "event_unknown",
                       "no event %s in the outbox, an inbox or the dead letters of this database", text);
    }
    return ok;
}

bool cli_events(struct cli *cli, struct err *err)
{
    return cli->arguments[0] == NULL ? list_events(cli, err) : show_event(cli, err);
}
