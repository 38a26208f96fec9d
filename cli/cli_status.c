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

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* An event that waits longer than this is not on its way, it is stuck: the poll's longest pause is half a second. */
#define BACKLOG_AGE_UNWELL_US (INT64_C(30) * 1000000)

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
    {"is_producer_missing", NULL, CLI_BOOL, 0},
};

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
    cli_doc_number_if(&cli->doc, flow.has_oldest, flow.oldest_age_us < 0 ? 0 : flow.oldest_age_us);
    cli_doc_number(&cli->doc, flow.deferred_count);
    cli_doc_number(&cli->doc, flow.parked_count);
    cli_doc_number(&cli->doc, flow.dead_letter_count);
    cli_doc_number(&cli->doc, flow.relay_count);
    cli_doc_number(&cli->doc, flow.last_outbox_id);
    cli_doc_bool(&cli->doc, flow.is_producer_missing);
    if (flow.is_producer_missing) { /* Behind a pooler its name may not be seen: no reason for another exit code. */
        cli_doc_note(&cli->doc, "No onceward-producer has a session in this database.");
    }
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
        cli_doc_note(&cli->doc, "%" PRId64 " parked: refused by the broker; see: onceward events --status failed",
                     flow.parked_count);
    }
    if (flow.dead_letter_count > 0) {
        cli->is_unwell = true;
        cli_doc_note(&cli->doc, "%" PRId64 " dead letter%s for a person; see: onceward dlq list",
                     flow.dead_letter_count, flow.dead_letter_count == 1 ? " waits" : "s wait");
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
        cli_doc_note(&cli->doc, "%" PRId64 " lane%s no live relay: start outbox-relay.", ownerless,
                     ownerless == 1 ? " has" : "s have");
    }
    return true;
}

bool cli_status(struct cli *cli, struct err *err)
{
    return add_outbox(cli, err) && add_lanes(cli, err) && cli_status_consumers(cli, err);
}
