/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the one screen that is about consumers: where each partition is,
 * why it does not move, and what is in the inboxes.
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
#define STILL_AGE_UNWELL_US (INT64_C(10) * 1000000)

/* ---- Partitions --------------------------------------------------------------------------------------------- */

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
    {"stop_code", "STOPPED", CLI_TEXT, 0},
    {"stop_reason", NULL, CLI_TEXT, 0},
    {"stopped_at", NULL, CLI_TIME, 0},
};

/* A cursor beyond the end of the log has no lag: the log is not the one that it was moved on. */
static bool is_beyond(const struct db_status_partition *partition, int64_t end_offset)
{
    return end_offset >= 0 && partition->next_offset > end_offset;
}

static void add_partition(struct cli *cli, const struct db_status_partition *partition, int64_t end_offset)
{
    bool is_stopped = partition->stop_code[0] != '\0';
    bool has_lag = end_offset >= 0 && !is_beyond(partition, end_offset);
    cli_doc_text(&cli->doc, partition->consumer);
    cli_doc_text(&cli->doc, partition->scope);
    cli_doc_text(&cli->doc, partition->topic);
    cli_doc_number(&cli->doc, partition->partition);
    cli_doc_number(&cli->doc, partition->next_offset);
    cli_doc_number_if(&cli->doc, end_offset >= 0, end_offset);
    cli_doc_number_if(&cli->doc, has_lag, end_offset - partition->next_offset);
    cli_doc_text(&cli->doc, partition->owner);
    cli_doc_number(&cli->doc, partition->moved_age_us);
    cli_doc_bool(&cli->doc, partition->is_connected);
    cli_doc_number_if(&cli->doc, partition->overdue_offset >= 0, partition->overdue_offset);
    cli_doc_text(&cli->doc, is_stopped ? partition->stop_code : NULL);
    cli_doc_text(&cli->doc, is_stopped ? partition->stop_reason : NULL);
    cli_doc_number_if(&cli->doc, is_stopped, partition->stopped_at_us);
}

/* What is wrong with the partitions of one consumer: how many of each kind, and the first of each. */
struct judgement {
    size_t stopped_count;
    size_t still_count;
    size_t beyond_count;
    const struct db_status_partition *stopped;
    const struct db_status_partition *still;
    const struct db_status_partition *beyond;
    int64_t beyond_end;
};

static void count_in(const struct db_status_partition *partition, size_t *count,
                     const struct db_status_partition **first)
{
    *first = *count == 0 ? partition : *first;
    (*count)++;
}

/* A cursor that moves has its own pace; one that stands while something waits has nobody who moves it. */
static void judge_partition(const struct db_status_partition *partition, int64_t end_offset,
                            struct judgement *judgement)
{
    if (partition->stop_code[0] != '\0') {
        count_in(partition, &judgement->stopped_count, &judgement->stopped);
    } else if (is_beyond(partition, end_offset)) {
        count_in(partition, &judgement->beyond_count, &judgement->beyond);
        judgement->beyond_end = judgement->beyond == partition ? end_offset : judgement->beyond_end;
    } else if (partition->overdue_offset >= 0 && partition->moved_age_us > STILL_AGE_UNWELL_US) {
        count_in(partition, &judgement->still_count, &judgement->still);
    }
}

/* "orders.v1/0, offset 30", and of how many partitions that is one. */
static const char *first_of(const struct db_status_partition *partition, size_t count, char *text, size_t size)
{
    bool is_whole = text_format(text, size, "%s/%" PRId32 ", offset %" PRId64, partition->topic, partition->partition,
                                partition->next_offset);
    if (is_whole && count > 1) {
        size_t used = strlen(text);
        (void)text_format(text + used, size - used, " and %zu more", count - 1);
    }
    return text;
}

static void tell_consumer(struct cli *cli, const struct db_status_partition *any, const struct judgement *judgement)
{
    char place[DB_STATUS_NAME_SIZE + 64];
    if (!any->is_connected) {
        cli->is_unwell = true;
        cli_doc_note(&cli->doc,
                     "Consumer %s is gone: no process of it is connected. Start it, or: onceward consumer retire %s",
                     any->consumer, any->consumer);
    }
    if (judgement->stopped_count > 0) {
        cli->is_unwell = true;
        cli_doc_note(&cli->doc, "Consumer %s has stopped at %s: %s: %s", any->consumer,
                     first_of(judgement->stopped, judgement->stopped_count, place, sizeof place),
                     judgement->stopped->stop_code, judgement->stopped->stop_reason);
    }
    if (judgement->beyond_count > 0) {
        cli->is_unwell = true;
        cli_doc_note(&cli->doc,
                     "Consumer %s is beyond the end of the log, %" PRId64 ", at %s: the topic was made anew or cut.",
                     any->consumer, judgement->beyond_end,
                     first_of(judgement->beyond, judgement->beyond_count, place, sizeof place));
    }
    if (judgement->still_count > 0) {
        cli->is_unwell = true;
        cli_doc_note(&cli->doc, "Consumer %s stands still at %s, though %" PRId64 " was published more than %d s ago.",
                     any->consumer, first_of(judgement->still, judgement->still_count, place, sizeof place),
                     judgement->still->overdue_offset, DB_STATUS_OVERDUE_MS / 1000);
    }
}

/* Rows come in order of consumer. */
static void judge(struct cli *cli, const struct db_status_partition *partitions, const int64_t *ends, size_t count)
{
    for (size_t begin = 0, end = 0; begin < count; begin = end) {
        struct judgement judgement = {.stopped_count = 0};
        while (end < count && strcmp(partitions[end].consumer, partitions[begin].consumer) == 0) {
            judge_partition(&partitions[end], ends[end], &judgement);
            end++;
        }
        tell_consumer(cli, &partitions[begin], &judgement);
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
    }
    judge(cli, partitions, ends, count);
    free(ends);
    free(partitions);
    return true;
}

/* ---- Inboxes ------------------------------------------------------------------------------------------------ */

static const struct cli_column INBOX_COLUMNS[] = {
    {"consumer", "CONSUMER", CLI_TEXT, 40},
    {"scope", "SCOPE", CLI_TEXT, 20},
    {"completed", "COMPLETED", CLI_COUNT, 0},
    {"claimed", "CLAIMED", CLI_COUNT, 0},
    {"failed", "FAILED", CLI_COUNT, 0},
    {"is_more", NULL, CLI_BOOL, 0},
    {"dead_letters", "DEAD LETTERS", CLI_COUNT, 0},
};

static int64_t capped(int64_t count)
{
    return count > DB_STATUS_COUNT_MAX ? DB_STATUS_COUNT_MAX : count;
}

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

bool cli_status_consumers(struct cli *cli, struct err *err)
{
    return add_partitions(cli, err) && add_inboxes(cli, err);
}
