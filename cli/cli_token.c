/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens of callers. A token is shown once, when it is made; the database and
 * everything after that know its hash.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "base/text.h"
#include "cli.h"
#include "db/db_token.h"
#include "digest/sha256.h"
#include "domain/identity.h"
#include "domain/scope.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TENANT_DEFAULT "default"
#define TOKEN_PREFIX "owt_" /* So that people and scanners know one when they see it. */
#define TOKEN_SIZE (sizeof TOKEN_PREFIX + SHA256_TEXT_SIZE)

/* ---- token create ------------------------------------------------------------------------------------------- */

static const struct cli_column CREATED_COLUMNS[] = {
    {"token", "token", CLI_TEXT, 0}, {"token_id", "id", CLI_TEXT, 0},    {"tenant", "tenant", CLI_TEXT, 0},
    {"name", "name", CLI_TEXT, 0},   {"scopes", "scopes", CLI_WORDS, 0}, {"expires_at", "expires", CLI_TIME, 0},
};

static bool read_scopes(const struct config_list *given, unsigned *ret_scopes, struct err *err)
{
    *ret_scopes = given->count == 0 ? SCOPE_SUBMIT | SCOPE_READ : 0;
    for (size_t i = 0; i < given->count; i++) {
        unsigned scope = scope_from_text(given->items[i], strlen(given->items[i]));
        if (scope == 0) {
            return err_set(err, ERR_PERMANENT, "usage", "\"%s\" is no scope; there are submit, read, operate and admin",
                           given->items[i]);
        }
        *ret_scopes |= scope;
    }
    return true;
}

static bool read_name(const char *what, const char *text, char ret_text[DB_TOKEN_TEXT_SIZE], struct err *err)
{
    return (identity_tenant_is_valid(text, strlen(text)) && text_copy(ret_text, DB_TOKEN_TEXT_SIZE, text)) ||
           err_set(err, ERR_PERMANENT, "usage", "a %s has 1 to %d letters, digits and . _ ~ -", what,
                   IDENTITY_TENANT_SIZE_MAX);
}

static void make_token(char ret_token[TOKEN_SIZE])
{
    unsigned char secret[SHA256_SIZE];
    char text[SHA256_TEXT_SIZE];
    rand_bytes(secret, sizeof secret);
    sha256_to_text(secret, text); /* As hexadecimal; it is no hash of anything. */
    bool is_whole = text_format(ret_token, TOKEN_SIZE, "%s%s", TOKEN_PREFIX, text);
    assert(is_whole);
}

static void add_scopes(struct cli *cli, unsigned scopes)
{
    char text[SCOPE_TEXT_SIZE];
    scope_to_text(scopes, ",", text);
    cli_doc_text(&cli->doc, text);
}

bool cli_token_create(struct cli *cli, struct err *err)
{
    const char *tenant = cli->settings->tenant == NULL ? TENANT_DEFAULT : cli->settings->tenant;
    struct db_token wanted = {.scopes = 0};
    struct db_token created;
    enum db_token_outcome outcome;
    char token[TOKEN_SIZE];
    unsigned char hash[SHA256_SIZE];
    if (!read_name("tenant", tenant, wanted.tenant, err) || !read_name("name", cli->arguments[0], wanted.name, err) ||
        !read_scopes(&cli->settings->scopes, &wanted.scopes, err)) {
        return false;
    }
    make_token(token);
    sha256(token, strlen(token), hash);
    if (!db_token_create(cli->db, &wanted, hash, (int32_t)cli->settings->expires_days, &created, &outcome, err)) {
        return false;
    }
    if (outcome == DB_TOKEN_TWO_LIVE) {
        return err_set(err, ERR_PERMANENT, "tokens_two_live",
                       "two tokens of %s/%s live already; revoke the old one first: onceward token list", wanted.tenant,
                       wanted.name);
    }
    cli_doc_single(&cli->doc, "token", NULL, CREATED_COLUMNS, COUNT(CREATED_COLUMNS));
    cli_doc_text(&cli->doc, token);
    cli_doc_text(&cli->doc, created.token_id);
    cli_doc_text(&cli->doc, created.tenant);
    cli_doc_text(&cli->doc, created.name);
    add_scopes(cli, created.scopes);
    cli_doc_number_if(&cli->doc, created.expires_us != 0, created.expires_us);
    cli_doc_note(&cli->doc, "The token is shown this once; only its hash is kept.");
    return true;
}

/* ---- token revoke ------------------------------------------------------------------------------------------- */

static const struct cli_column REVOKED_COLUMNS[] = {
    {"token_id", "id", CLI_TEXT, 0},
    {"tenant", "tenant", CLI_TEXT, 0},
    {"name", "name", CLI_TEXT, 0},
    {"revoked_at", "revoked", CLI_TIME, 0},
};

bool cli_token_revoke(struct cli *cli, struct err *err)
{
    struct uuid id;
    struct db_token token;
    enum db_token_revocation outcome;
    const char *text = cli->arguments[0];
    if (!uuid_from_text(text, strlen(text), &id)) {
        return err_set(err, ERR_PERMANENT, "usage", "a token's id is a UUID in lower case; see: onceward token list");
    }
    if (!db_token_revoke(cli->db, &id, &token, &outcome, err)) {
        return false;
    }
    if (outcome == DB_TOKEN_UNKNOWN) {
        return err_set(err, ERR_PERMANENT, "token_unknown", "no token has the id %s", text);
    }
    cli_doc_single(&cli->doc, "token", NULL, REVOKED_COLUMNS, COUNT(REVOKED_COLUMNS));
    cli_doc_text(&cli->doc, token.token_id);
    cli_doc_text(&cli->doc, token.tenant);
    cli_doc_text(&cli->doc, token.name);
    cli_doc_number(&cli->doc, token.revoked_us);
    if (outcome == DB_TOKEN_WAS_REVOKED) {
        cli_doc_note(&cli->doc, "It was revoked before.");
    }
    return true;
}

/* ---- token list --------------------------------------------------------------------------------------------- */

static const struct cli_column LIST_COLUMNS[] = {
    {"token_id", "ID", CLI_TEXT, 0},        {"tenant", "TENANT", CLI_TEXT, 0}, {"name", "NAME", CLI_TEXT, 0},
    {"scopes", "SCOPES", CLI_WORDS, 0},     {"state", "STATE", CLI_TEXT, 0},   {"created_at", "CREATED", CLI_TIME, 0},
    {"expires_at", "EXPIRES", CLI_TIME, 0}, {"revoked_at", NULL, CLI_TIME, 0},
};

bool cli_token_list(struct cli *cli, struct err *err)
{
    struct db_token *tokens = NULL;
    size_t count = 0;
    if (!db_token_list(cli->db, cli->settings->tenant, &tokens, &count, err)) {
        return false;
    }
    cli_doc_section(&cli->doc, "tokens", NULL, "No token yet. Make one with: onceward token create NAME", LIST_COLUMNS,
                    COUNT(LIST_COLUMNS));
    for (size_t i = 0; i < count; i++) {
        cli_doc_text(&cli->doc, tokens[i].token_id);
        cli_doc_text(&cli->doc, tokens[i].tenant);
        cli_doc_text(&cli->doc, tokens[i].name);
        add_scopes(cli, tokens[i].scopes);
        cli_doc_text(&cli->doc, tokens[i].is_live ? "live" : tokens[i].revoked_us != 0 ? "revoked" : "expired");
        cli_doc_number(&cli->doc, tokens[i].created_us);
        cli_doc_number_if(&cli->doc, tokens[i].expires_us != 0, tokens[i].expires_us);
        cli_doc_number_if(&cli->doc, tokens[i].revoked_us != 0, tokens[i].revoked_us);
    }
    free(tokens);
    return true;
}
