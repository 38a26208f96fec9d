/* SPDX-License-Identifier: Apache-2.0
 *
 * The schema's versions: migrate, version.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "db/db.h"
#include "db/db_migrate.h"

static const struct cli_column COLUMNS[] = {
    {"version", "VERSION", CLI_ID, 0},
    {"name", "NAME", CLI_TEXT, 0},
    {"state", "STATE", CLI_TEXT, 0},
    {"applied_at", "APPLIED", CLI_TIME, 0},
};

static const char *state_word(enum db_migrate_state state)
{
    switch (state) {
    case DB_MIGRATE_PENDING: return "pending";
    case DB_MIGRATE_APPLIED: return "applied";
    case DB_MIGRATE_CHANGED: return "changed";
    case DB_MIGRATE_FOREIGN: return "unknown here";
    }
    return "";
}

static void add_rows(struct cli *cli, const struct db_migrate_row *rows, size_t count)
{
    cli_doc_section(&cli->doc, "migrations", NULL, NULL, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (size_t i = 0; i < count; i++) {
        cli_doc_number(&cli->doc, rows[i].version);
        cli_doc_text(&cli->doc, rows[i].name);
        cli_doc_text(&cli->doc, state_word(rows[i].state));
        if (rows[i].applied_at_us == 0) {
            cli_doc_null(&cli->doc);
        } else {
            cli_doc_number(&cli->doc, rows[i].applied_at_us);
        }
    }
}

static size_t count_pending(const struct db_migrate_row *rows, size_t count)
{
    size_t pending = 0;
    for (size_t i = 0; i < count; i++) {
        pending += rows[i].state == DB_MIGRATE_PENDING ? 1 : 0;
    }
    return pending;
}

/* Applies until nothing is left; *ret_count says how many this call applied. */
static bool apply(struct db *db, size_t *ret_count, struct err *err)
{
    *ret_count = 0;
    int version = 0;
    do {
        if (!db_migrate_step(db, &version, err)) {
            return false;
        }
        *ret_count += version != 0 ? 1 : 0;
    } while (version != 0);
    return true;
}

static bool add_list(struct cli *cli, size_t *ret_pending, struct err *err)
{
    struct db_migrate_row *rows = NULL;
    size_t count = 0;
    if (!db_migrate_list(cli->db, &rows, &count, err)) {
        return false;
    }
    add_rows(cli, rows, count);
    *ret_pending = count_pending(rows, count);
    free(rows);
    return true;
}

bool cli_migrate(struct cli *cli, struct err *err)
{
    size_t applied = 0;
    size_t pending = 0;
    if (!cli->settings->dry_run && !apply(cli->db, &applied, err)) {
        return false;
    }
    if (!add_list(cli, &pending, err)) {
        return false;
    }
    if (cli->settings->dry_run) {
        cli_doc_note(&cli->doc, "%zu to apply to %s; nothing was done.", pending, db_where(cli->db));
    } else if (applied == 0) {
        cli_doc_note(&cli->doc, "Nothing to do in %s.", db_where(cli->db));
    } else {
        cli_doc_note(&cli->doc, "%zu applied to %s.", applied, db_where(cli->db));
    }
    return true;
}

static const struct cli_column VERSION_COLUMNS[] = {
    {"program", "onceward", CLI_TEXT, 0},
    {"schema", "schema", CLI_ID, 0},
};

bool cli_version(struct cli *cli, struct err *err)
{
    (void)err;
    cli_doc_single(&cli->doc, "version", NULL, VERSION_COLUMNS, 2);
    cli_doc_text(&cli->doc, ONCEWARD_VERSION);
    cli_doc_number(&cli->doc, db_migrate_version());
    return true;
}

static const struct cli_column HELP_COLUMNS[] = {{"text", "HELP", CLI_TEXT, 0}};

bool cli_help(struct cli *cli, struct err *err)
{
    int word_count = 0;
    const char *const *about = cli->arguments;
    bool is_family = about[0] != NULL && about[1] == NULL && cli_command_is_family(about[0]);
    if (about[0] != NULL && !is_family && cli_command_find(about, &word_count) == NULL) {
        return err_set(err, ERR_PERMANENT, "usage", "no command is called \"%s%s%s\"; see: onceward --help", about[0],
                       about[1] == NULL ? "" : " ", about[1] == NULL ? "" : about[1]);
    }
    if (!cli->settings->json) {
        cli_help_write(cli->out, cli->arguments);
        return true;
    }
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (memory == NULL) {
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the help");
    }
    cli_help_write(memory, cli->arguments);
    bool is_whole = !ferror(memory);
    if (fclose(memory) != 0 || !is_whole) {
        free(text);
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the help");
    }
    cli_doc_single(&cli->doc, "help", NULL, HELP_COLUMNS, 1);
    cli_doc_text(&cli->doc, text);
    free(text);
    return true;
}
