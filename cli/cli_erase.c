/* SPDX-License-Identifier: Apache-2.0
 *
 * `onceward erase`: removes one request's content, and says what it did and
 * what it leaves.
 */
#include <string.h>

#include "base/uuid.h"
#include "cli.h"
#include "db/db_erase.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct cli_column COLUMNS[] = {
    {"request_id", "request", CLI_TEXT, 0},
    {"tenant", "tenant", CLI_TEXT, 0},
    {"was", "was", CLI_TEXT, 0},
    {"event_id", "event", CLI_TEXT, 0},
    {"dry_run", NULL, CLI_BOOL, 0},
    {"data_bytes", "data", CLI_SIZE, 0},
    {"documents", "documents", CLI_COUNT, 0},
    {"document_bytes", "their bytes", CLI_SIZE, 0},
    {"answers", "stored answers", CLI_COUNT, 0},
    {"outbox_payloads", "outbox payloads", CLI_COUNT, 0},
    {"deferred_payloads", "deferred ones", CLI_COUNT, 0},
};

static const struct cli_column LEFT_COLUMNS[] = {
    {"submission", "submission", CLI_BOOL, 0},
    {"dead_letters", "dead letters", CLI_COUNT, 0},
    {"applied", "applied by", CLI_COUNT, 0},
};

static void describe(struct cli *cli, const char *tenant, const struct db_erase *erase)
{
    char event_id[UUID_TEXT_SIZE];
    uuid_to_text(&erase->event_id, event_id);
    cli_doc_single(&cli->doc, "erased", NULL, COLUMNS, COUNT(COLUMNS));
    cli_doc_text(&cli->doc, cli->arguments[0]);
    cli_doc_text(&cli->doc, tenant);
    cli_doc_text(&cli->doc, !erase->was_submitted ? "open" : erase->was_erased ? "erased" : "submitted");
    cli_doc_text(&cli->doc, erase->was_submitted ? event_id : NULL);
    cli_doc_bool(&cli->doc, cli->settings->dry_run);
    cli_doc_number(&cli->doc, erase->data_size);
    cli_doc_number(&cli->doc, erase->document_count);
    cli_doc_number(&cli->doc, erase->document_size);
    cli_doc_number(&cli->doc, erase->answer_count);
    cli_doc_number(&cli->doc, erase->outbox_count);
    cli_doc_number(&cli->doc, erase->deferred_count);
    cli_doc_single(&cli->doc, "left", "Left in this database", LEFT_COLUMNS, COUNT(LEFT_COLUMNS));
    cli_doc_bool(&cli->doc, erase->was_submitted);
    cli_doc_number(&cli->doc, erase->dead_letter_count);
    cli_doc_number(&cli->doc, erase->applied_count);
    if (cli->settings->dry_run) {
        cli_doc_note(&cli->doc, "a dry run: nothing was changed");
    } else if (erase->was_submitted) {
        cli_doc_note(&cli->doc, "ids, times and hashes stay, so that a repetition is still a duplicate");
        cli_doc_note(&cli->doc, "not in reach: records on topics, what consumers made of them, backups");
    }
}

bool cli_erase(struct cli *cli, struct err *err)
{
    struct uuid id;
    struct db_erase erase;
    enum db_erase_outcome outcome;
    const char *tenant = cli->settings->tenant;
    const char *text = cli->arguments[0];
    if (!uuid_from_text(text, strlen(text), &id)) {
        return err_set(err, ERR_PERMANENT, "usage", "a request's id is a UUID in lower case");
    }
    if (tenant == NULL) {
        return err_set(err, ERR_PERMANENT, "usage", "whose request? Say --tenant T");
    }
    if (!cli->settings->yes && !cli->settings->dry_run) {
        return err_set(err, ERR_PERMANENT, "not_confirmed",
                       "what is erased cannot be brought back: say --dry-run or --yes");
    }
    const struct db_erase_order order = {.tenant = tenant,
                                         .request_id = &id,
                                         .audit = cli_audit_of(cli->settings),
                                         .is_dry_run = cli->settings->dry_run};
    if (!db_erase_request(cli->db, &order, &erase, &outcome, err)) {
        return false;
    }
    if (outcome == DB_ERASE_UNKNOWN) {
        return err_set(err, ERR_PERMANENT, "request_unknown", "tenant %s has no request %s", tenant, text);
    }
    if (outcome == DB_ERASE_NOT_PUBLISHED) {
        char event_id[UUID_TEXT_SIZE];
        uuid_to_text(&erase.event_id, event_id);
        return err_set(err, ERR_PERMANENT, "event_not_published",
                       "its event %s is not yet published and needs its payload: onceward events %s", event_id,
                       event_id);
    }
    describe(cli, tenant, &erase);
    return true;
}
