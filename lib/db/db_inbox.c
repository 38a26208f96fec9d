/* SPDX-License-Identifier: Apache-2.0
 *
 * The inbox's statements. The invariant: an id is claimed by the primary key,
 * never by a read and then a write.
 */
#include "db/db_inbox.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "db_inbox_private.h"

static const char *const status_names[] = {[DB_INBOX_COMPLETED] = "completed", [DB_INBOX_FAILED] = "failed"};

static const struct db_statement SCOPE_INSERT = {
    .sql = "INSERT INTO onceward.inbox_scopes (consumer, scope) SELECT $1, $2 WHERE NOT EXISTS (SELECT FROM "
           "onceward.inbox_scopes WHERE consumer = $1 AND scope = $2) ON CONFLICT DO NOTHING",
};

static const struct db_statement SCOPE_SELECT = {
    .sql = "SELECT scope_id FROM onceward.inbox_scopes WHERE consumer = $1 AND scope = $2",
    .columns = {DB_INT4},
};

bool db_inbox_scope(struct db *db, const char *consumer, const char *scope, int32_t *ret_scope_id, struct err *err)
{
    DB_PARAMS(params);
    db_params_text(&params, consumer);
    db_params_text(&params, scope);
    DB_RESULT(result);
    if (!db_exec(db, &SCOPE_INSERT, &params, NULL, err) || !db_exec_row(db, &SCOPE_SELECT, &params, &result, err)) {
        return false;
    }
    *ret_scope_id = db_get_int4(result, 0, 0);
    return true;
}

static const struct db_statement OWN_SOURCE = {
    .sql = "SELECT source FROM onceward.deployment",
    .columns = {DB_TEXT},
};

bool db_inbox_own_source(struct db *db, char ret_source[DB_INBOX_SOURCE_SIZE], struct err *err)
{
    DB_RESULT(result);
    if (!db_exec_row(db, &OWN_SOURCE, NULL, &result, err)) {
        return false;
    }
    const char *source = db_get_text(result, 0, 0);
    assert(strlen(source) < DB_INBOX_SOURCE_SIZE); /* A check of the table. */
    memcpy(ret_source, source, strlen(source) + 1);
    return true;
}

static const struct db_statement PIN_INSERT = {
    .sql = "INSERT INTO onceward.sources (consumer, source, kind) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
};

static const struct db_statement PIN_SELECT = {
    .sql = "SELECT kind FROM onceward.sources WHERE consumer = $1 AND source = $2",
    .columns = {DB_TEXT},
};

bool db_inbox_pin_source(struct db *db, const char *consumer, const char *source, enum db_inbox_source wanted,
                         enum db_inbox_source *ret_kind, struct err *err)
{
    DB_PARAMS(key);
    db_params_text(&key, consumer);
    db_params_text(&key, source);
    DB_PARAMS(row);
    db_params_text(&row, consumer);
    db_params_text(&row, source);
    db_params_text(&row, wanted == DB_INBOX_OWN ? "own" : "foreign");
    DB_RESULT(result);
    if (!db_exec(db, &PIN_INSERT, &row, NULL, err) || !db_exec_row(db, &PIN_SELECT, &key, &result, err)) {
        return false;
    }
    *ret_kind = strcmp(db_get_text(result, 0, 0), "own") == 0 ? DB_INBOX_OWN : DB_INBOX_FOREIGN;
    return true;
}

static void add_ids(struct db_params *params, enum db_inbox_source kind, const struct db_inbox_item *items,
                    size_t count)
{
    if (kind == DB_INBOX_OWN) {
        db_params_array_open(params, DB_UUID);
        for (size_t i = 0; i < count; i++) {
            db_params_uuid(params, items[i].event_id.bytes);
        }
        db_params_array_close(params);
        return;
    }
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_params_text(params, items[i].source);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_params_text(params, items[i].id);
    }
    db_params_array_close(params);
}

static void add_hashes_and_statuses(struct db_params *params, const struct db_inbox_item *items, size_t count)
{
    db_params_array_open(params, DB_INT8);
    for (size_t i = 0; i < count; i++) {
        db_params_int8(params, items[i].payload_hash);
    }
    db_params_array_close(params);
    db_params_array_open(params, DB_TEXT);
    for (size_t i = 0; i < count; i++) {
        db_params_text(params, status_names[items[i].status]);
    }
    db_params_array_close(params);
}

static int compare(enum db_inbox_source kind, const struct db_inbox_item *left, const struct db_inbox_item *right)
{
    if (kind == DB_INBOX_OWN) {
        return uuid_compare(&left->event_id, &right->event_id);
    }
    int order = strcmp(left->source, right->source);
    return order != 0 ? order : strcmp(left->id, right->id);
}

/* Index of the item that a row with the id at this column is about. Items are sorted. */
static size_t find_item(enum db_inbox_source kind, const struct db_inbox_item *items, size_t count,
                        const PGresult *result, int row)
{
    struct db_inbox_item wanted = {.source = NULL};
    if (kind == DB_INBOX_OWN) {
        memcpy(wanted.event_id.bytes, db_get_uuid(result, row, 0), UUID_SIZE);
    } else {
        wanted.source = db_get_text(result, row, 0);
        wanted.id = db_get_text(result, row, 1);
    }
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(kind, &items[middle], &wanted) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    assert(low < count && compare(kind, &items[low], &wanted) == 0);
    return low;
}

static bool are_sorted(enum db_inbox_source kind, const struct db_inbox_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (compare(kind, &items[i - 1], &items[i]) >= 0) {
            return false;
        }
    }
    return true;
}

static const struct db_statement CLAIM_OWN = {
    .sql = "INSERT INTO onceward.inbox (scope_id, event_id, payload_hash, status) "
           "SELECT $1, i.event_id, i.payload_hash, i.status::onceward.delivery_status "
           "FROM unnest($2::uuid[], $3::int8[], $4::text[]) AS i (event_id, payload_hash, status) "
           "ON CONFLICT DO NOTHING RETURNING event_id",
    .columns = {DB_UUID},
};

static const struct db_statement CLAIM_FOREIGN = {
    .sql = "INSERT INTO onceward.inbox_foreign (scope_id, source, id, payload_hash, status) "
           "SELECT $1, i.source, i.id, i.payload_hash, i.status::onceward.delivery_status "
           "FROM unnest($2::text[], $3::text[], $4::int8[], $5::text[]) AS i (source, id, payload_hash, status) "
           "ON CONFLICT DO NOTHING RETURNING source, id",
    .columns = {DB_TEXT, DB_TEXT},
};

struct db_call db_inbox_claim_call(const struct db_inbox_claim *claim, struct db_params *params)
{
    assert(claim->count > 0 && are_sorted(claim->kind, claim->items, claim->count));
    db_params_int4(params, claim->scope_id);
    add_ids(params, claim->kind, claim->items, claim->count);
    add_hashes_and_statuses(params, claim->items, claim->count);
    return (struct db_call){.statement = claim->kind == DB_INBOX_OWN ? &CLAIM_OWN : &CLAIM_FOREIGN, .params = params};
}

void db_inbox_claim_read(const struct db_inbox_claim *claim, const PGresult *result)
{
    memset(claim->ret_is_fresh, 0, claim->count * sizeof *claim->ret_is_fresh);
    for (int row = 0; row < db_result_rows(result); row++) {
        claim->ret_is_fresh[find_item(claim->kind, claim->items, claim->count, result, row)] = true;
    }
}

bool db_inbox_claim(struct db_tx *tx, int32_t scope_id, enum db_inbox_source kind, const struct db_inbox_item *items,
                    size_t count, bool *ret_is_fresh, struct err *err)
{
    const struct db_inbox_claim claim = {scope_id, kind, items, count, ret_is_fresh};
    DB_PARAMS(params);
    struct db_call call = db_inbox_claim_call(&claim, &params);
    if (!db_exec_all(db_tx_db(tx), &call, 1, err)) {
        return false;
    }
    db_inbox_claim_read(&claim, call.result);
    db_calls_clear(&call, 1);
    return true;
}

static const struct db_statement KNOWN_OWN = {
    .sql = "SELECT event_id, payload_hash FROM onceward.inbox WHERE scope_id = $1 AND event_id = ANY ($2::uuid[])",
    .columns = {DB_UUID, DB_INT8},
};

static const struct db_statement KNOWN_FOREIGN = {
    .sql = "SELECT f.source, f.id, f.payload_hash FROM unnest($2::text[], $3::text[]) AS i (source, id) "
           "JOIN onceward.inbox_foreign f ON f.scope_id = $1 AND f.source = i.source AND f.id = i.id",
    .columns = {DB_TEXT, DB_TEXT, DB_INT8},
};

bool db_inbox_known(struct db_tx *tx, int32_t scope_id, enum db_inbox_source kind, const struct db_inbox_item *items,
                    size_t count, struct db_inbox_answer *ret_answers, struct err *err)
{
    assert(count > 0 && are_sorted(kind, items, count));
    DB_PARAMS(params);
    db_params_int4(&params, scope_id);
    add_ids(&params, kind, items, count);
    DB_RESULT(result);
    if (!db_exec(db_tx_db(tx), kind == DB_INBOX_OWN ? &KNOWN_OWN : &KNOWN_FOREIGN, &params, &result, err)) {
        return false;
    }
    memset(ret_answers, 0, count * sizeof *ret_answers);
    for (int row = 0; row < db_result_rows(result); row++) {
        size_t index = find_item(kind, items, count, result, row);
        ret_answers[index].is_known = true;
        ret_answers[index].payload_hash = db_get_int8(result, row, kind == DB_INBOX_OWN ? 1 : 2);
    }
    return true;
}

static const struct db_statement MAKE_PARTITIONS = {
    .sql = "SELECT onceward.inbox_make_partitions()",
    .columns = {DB_INT4},
};

static const struct db_statement RANGE = {
    .sql = "SELECT (SELECT first_id FROM onceward.inbox_partitions ORDER BY first_id LIMIT 1), "
           "(SELECT end_id FROM onceward.inbox_partitions ORDER BY end_id DESC LIMIT 1)",
    .columns = {DB_UUID, DB_UUID},
};

bool db_inbox_range(struct db *db, struct db_inbox_range *ret_range, struct err *err)
{
    DB_RESULT(made);
    DB_RESULT(result);
    if (!db_exec_row(db, &MAKE_PARTITIONS, NULL, &made, err) || !db_exec_row(db, &RANGE, NULL, &result, err)) {
        return false;
    }
    *ret_range = (struct db_inbox_range){.has_room = !db_is_null(result, 0, 0)};
    if (ret_range->has_room) {
        memcpy(ret_range->first.bytes, db_get_uuid(result, 0, 0), UUID_SIZE);
        memcpy(ret_range->end.bytes, db_get_uuid(result, 0, 1), UUID_SIZE);
    }
    return true;
}
