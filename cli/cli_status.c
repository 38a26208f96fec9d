/* SPDX-License-Identifier: Apache-2.0
 *
 * One screen that says whether everything flows, and what to look at if not.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli.h"
#include "db/db.h"
#include "db/db_status.h"
#include "kafka/kafka_admin.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* An event that waits longer than this is not on its way, it is stuck: the poll's longest pause is half a second. */
#define BACKLOG_AGE_UNWELL_US (INT64_C(30) * 1000000)
#define STILL_AGE_UNWELL_US (INT64_C(10) * 1000000)

/* ---- Outbox ------------------------------------------------------------------------------------------------- */

static const struct cli_column OUTBOX_COLUMNS[] = {
    {"backlog", "backlog", CLI_COUNT, 0},
    {"is_backlog_more", NULL, CLI_BOOL, 0},
    {"claimed", "  of it claimed", CLI_COUNT, 0},
    {"oldest_age_seconds", "oldest", CLI_AGE, 0},
    {"deferred", "deferred", CLI_COUNT, 0},
    {"parked", "  of it parked", CLI_COUNT, 0},
    {"dead_letters", "dead letters", CLI_COUNT, 0},
    {"relays", "relays alive", CLI_COUNT, 0},
    {"last_outbox_id", "last outbox id", CLI_ID, 0},
};

static int64_t capped(int64_t count)
{
    return count > DB_STATUS_COUNT_MAX ? DB_STATUS_COUNT_MAX : count;
}

static bool add_outbox(struct cli *cli, struct err *err)
{
    struct db_status_flow flow;
    if (!db_status_flow(cli->db, &flow, err)) {
        return false;
    }
    cli_doc_single(&cli->doc, "outbox", "Outbox", OUTBOX_COLUMNS, COUNT(OUTBOX_COLUMNS));
    cli_doc_number(&cli->doc, flow.backlog_count);
    cli_doc_bool(&cli->doc, flow.is_backlog_cut);
    cli_doc_number(&cli->doc, flow.claimed_count);
    if (flow.has_oldest) {
        cli_doc_number(&cli->doc, flow.oldest_age_us < 0 ? 0 : flow.oldest_age_us);
    } else {
        cli_doc_null(&cli->doc);
    }
    cli_doc_number(&cli->doc, flow.deferred_count);
    cli_doc_number(&cli->doc, flow.parked_count);
    cli_doc_number(&cli->doc, flow.dead_letter_count);
    cli_doc_number(&cli->doc, flow.relay_count);
    cli_doc_number(&cli->doc, flow.last_outbox_id);
    if (flow.is_backlog_cut) {
        cli_doc_note(&cli->doc, "The backlog may be greater: only its first %d rows were looked at.",
                     DB_STATUS_COUNT_MAX);
    }
    if (flow.has_oldest && flow.oldest_age_us > BACKLOG_AGE_UNWELL_US) {
        cli->is_unwell = true;
        cli_doc_note(&cli->doc, "The oldest event has waited for %" PRId64 " s.", flow.oldest_age_us / 1000000);
    }
    if (flow.parked_count > 0) {
        cli->is_unwell = true;
        cli_doc_note(&cli->doc, "%" PRId64 " parked: the broker refused them; see: onceward events --status failed",
                     flow.parked_count);
    }
    if (flow.dead_letter_count > 0) {
        cli->is_unwell = true;
        cli_doc_note(&cli->doc, "%" PRId64 " dead letters in onceward.dead_letters.", flow.dead_letter_count);
    }
    return true;
}

/* ---- Lanes -------------------------------------------------------------------------------------------------- */

static const struct cli_column LANE_COLUMNS[] = {
    {"lane", "LANE", CLI_ID, 0},
    {"owner", "OWNER", CLI_TEXT, 40},
    {"is_owned", "ALIVE", CLI_BOOL, 0},
    {"position", NULL, CLI_ID, 0},
    {"claimed_to", "CLAIMED TO", CLI_ID, 0},
    {"starts", NULL, CLI_COUNT, 0},
    {"seq", NULL, CLI_ID, 0},
    {"moved_age_seconds", "MOVED AGO", CLI_AGE, 0},
};

static bool add_lanes(struct cli *cli, struct err *err)
{
    struct db_status_lane *lanes = NULL;
    size_t count = 0;
    if (!db_status_lanes(cli->db, &lanes, &count, err)) {
        return false;
    }
    int64_t ownerless = 0;
    cli_doc_section(&cli->doc, "lanes", "Lanes", NULL, LANE_COLUMNS, COUNT(LANE_COLUMNS));
    for (size_t i = 0; i < count; i++) {
        cli_doc_number(&cli->doc, lanes[i].lane);
        cli_doc_text(&cli->doc, lanes[i].owner[0] == '\0' ? NULL : lanes[i].owner);
        cli_doc_bool(&cli->doc, lanes[i].is_owned);
        cli_doc_number(&cli->doc, lanes[i].position);
        cli_doc_number(&cli->doc, lanes[i].claimed_to);
        cli_doc_number(&cli->doc, lanes[i].starts);
        cli_doc_number(&cli->doc, lanes[i].seq);
        cli_doc_number(&cli->doc, lanes[i].moved_age_us);
        ownerless += lanes[i].is_owned ? 0 : 1;
    }
    free(lanes);
    if (ownerless > 0) { /* Whatever is pending, or comes, waits for it. */
        cli->is_unwell = true;
        cli_doc_note(&cli->doc, "%" PRId64 " lanes have no live relay: start outbox-relay.", ownerless);
    }
    return true;
}

/* ---- Consumers ---------------------------------------------------------------------------------------------- */

static const struct cli_column PARTITION_COLUMNS[] = {
    {"consumer", "CONSUMER", CLI_TEXT, 40},
    {"scope", "SCOPE", CLI_TEXT, 20},
    {"topic", "TOPIC", CLI_TEXT, 50},
    {"partition", "PARTITION", CLI_ID, 0},
    {"next_offset", "NEXT", CLI_ID, 0},
    {"end_offset", "END", CLI_ID, 0},
    {"lag", "LAG", CLI_COUNT, 0},
    {"owner", "OWNER", CLI_TEXT, 40},
    {"moved_age_seconds", "MOVED AGO", CLI_AGE, 0},
    {"is_connected", "ALIVE", CLI_BOOL, 0},
    {"overdue_offset", NULL, CLI_ID, 0},
};

static void add_partition(struct cli *cli, const struct db_status_partition *partition, int64_t end_offset)
{
    cli_doc_text(&cli->doc, partition->consumer);
    cli_doc_text(&cli->doc, partition->scope);
    cli_doc_text(&cli->doc, partition->topic);
    cli_doc_number(&cli->doc, partition->partition);
    cli_doc_number(&cli->doc, partition->next_offset);
    if (end_offset >= 0) {
        int64_t lag = end_offset - partition->next_offset;
        cli_doc_number(&cli->doc, end_offset);
        cli_doc_number(&cli->doc, lag < 0 ? 0 : lag);
    } else {
        cli_doc_null(&cli->doc);
        cli_doc_null(&cli->doc);
    }
    cli_doc_text(&cli->doc, partition->owner);
    cli_doc_number(&cli->doc, partition->moved_age_us);
    cli_doc_bool(&cli->doc, partition->is_connected);
    if (partition->overdue_offset >= 0) {
        cli_doc_number(&cli->doc, partition->overdue_offset);
    } else {
        cli_doc_null(&cli->doc);
    }
}

/* A cursor that moves has its own pace; one that stands while something waits has nobody who moves it. */
static void judge_partition(struct cli *cli, const struct db_status_partition *partition)
{
    if (partition->overdue_offset >= 0 && partition->moved_age_us > STILL_AGE_UNWELL_US) {
        cli->is_unwell = true;
        cli_doc_note(&cli->doc,
                     "Consumer %s stands still at %s/%" PRId32 ", offset %" PRId64 ", though %" PRId64
                     " was published more than %d s ago.",
                     partition->consumer, partition->topic, partition->partition, partition->next_offset,
                     partition->overdue_offset, DB_STATUS_OVERDUE_MS / 1000);
    }
}

/* Rows come in order of consumer, so each is named once. */
static void judge_consumer(struct cli *cli, const struct db_status_partition *partition, const char *consumer_before)
{
    if (!partition->is_connected && strcmp(partition->consumer, consumer_before) != 0) {
        cli->is_unwell = true;
        cli_doc_note(&cli->doc, "Consumer %s is gone: no process of it is connected.", partition->consumer);
    }
}

/* The ends of the logs, -1 where the broker does not tell; it is asked until the first failure only. */
static void read_ends(struct cli *cli, const struct db_status_partition *partitions, size_t count, int64_t *ends)
{
    struct err err = ERR_INIT;
    struct kafka_admin *admin = NULL;
    if (cli_has_kafka(cli->settings) && count > 0) {
        admin = cli_kafka_open(cli->settings, &err);
    }
    bool is_answering = admin != NULL;
    for (size_t i = 0; i < count; i++) {
        ends[i] = -1;
        is_answering =
            is_answering && kafka_admin_log_end(admin, partitions[i].topic, partitions[i].partition, &ends[i], &err);
    }
    if (err.kind != ERR_NONE) {
        cli->is_unwell = true;
        cli_doc_note(&cli->doc, "Lag is not known, the broker says: %s.", err.text);
    } else if (admin == NULL && count > 0) {
        cli_doc_note(&cli->doc, "Lag is not known without --kafka (or ONCEWARD_KAFKA).");
    }
    kafka_admin_close(&admin);
}

static bool add_partitions(struct cli *cli, struct err *err)
{
    struct db_status_partition *partitions = NULL;
    size_t count = 0;
    if (!db_status_partitions(cli->db, &partitions, &count, err)) {
        return false;
    }
    int64_t *ends = calloc(count + 1, sizeof *ends);
    if (ends == NULL) {
        free(partitions);
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for %zu partitions", count);
    }
    read_ends(cli, partitions, count, ends);
    cli_doc_section(&cli->doc, "consumers", "Consumers", "none", PARTITION_COLUMNS, COUNT(PARTITION_COLUMNS));
    for (size_t i = 0; i < count; i++) {
        add_partition(cli, &partitions[i], ends[i]);
        judge_consumer(cli, &partitions[i], i == 0 ? "" : partitions[i - 1].consumer);
        judge_partition(cli, &partitions[i]);
    }
    free(ends);
    free(partitions);
    return true;
}

static const struct cli_column INBOX_COLUMNS[] = {
    {"consumer", "CONSUMER", CLI_TEXT, 40},
    {"scope", "SCOPE", CLI_TEXT, 20},
    {"completed", "COMPLETED", CLI_COUNT, 0},
    {"claimed", "CLAIMED", CLI_COUNT, 0},
    {"failed", "FAILED", CLI_COUNT, 0},
    {"is_more", NULL, CLI_BOOL, 0},
    {"dead_letters", "DEAD LETTERS", CLI_COUNT, 0},
};

static bool add_inboxes(struct cli *cli, struct err *err)
{
    struct db_status_inbox *inboxes = NULL;
    size_t count = 0;
    if (!db_status_inboxes(cli->db, &inboxes, &count, err)) {
        return false;
    }
    bool is_any_more = false;
    cli_doc_section(&cli->doc, "inboxes", "Inboxes", NULL, INBOX_COLUMNS, COUNT(INBOX_COLUMNS));
    for (size_t i = 0; i < count; i++) {
        const struct db_status_inbox *inbox = &inboxes[i];
        bool is_more = inbox->completed_count + inbox->claimed_count + inbox->failed_count > DB_STATUS_COUNT_MAX;
        is_any_more = is_any_more || is_more;
        cli_doc_text(&cli->doc, inbox->consumer);
        cli_doc_text(&cli->doc, inbox->scope);
        cli_doc_number(&cli->doc, capped(inbox->completed_count));
        cli_doc_number(&cli->doc, inbox->claimed_count);
        cli_doc_number(&cli->doc, inbox->failed_count);
        cli_doc_bool(&cli->doc, is_more);
        cli_doc_number(&cli->doc, inbox->dead_letter_count);
    }
    free(inboxes);
    if (is_any_more) {
        cli_doc_note(&cli->doc, "An inbox holds more than %d rows: counting stopped there.", DB_STATUS_COUNT_MAX);
    }
    return true;
}

bool cli_status(struct cli *cli, struct err *err)
{
    return add_outbox(cli, err) && add_lanes(cli, err) && add_partitions(cli, err) && add_inboxes(cli, err);
}
