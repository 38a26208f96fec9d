/* SPDX-License-Identifier: Apache-2.0
 *
 * The small readers of texts: whatever one accepts, writing and reading it again
 * gives the same.
 *
 * Input: the first byte chooses the reader, the rest is the text.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/text.h"
#include "base/uuid.h"
#include "fuzz_kit.h"
#include "producer_cursor.h"
#include "relay_snapshot.h"
#include "sinks/sink_mapping.h"
#include "wire/wire_base64.h"

#define SIZE_MAX_OF_ALL (1 << 20)

static void check_uuid(const char *text, size_t size)
{
    struct uuid uuid;
    char again[UUID_TEXT_SIZE];
    if (uuid_from_text(text, size, &uuid)) {
        uuid_to_text(&uuid, again);
        assert(size == strlen(again) && memcmp(again, text, size) == 0);
        assert(uuid_v7_ms(&uuid) >= -1);
    }
}

/* What lies beyond the years of four digits cannot be written, so it must not be read. */
static void check_time(const char *text, size_t size)
{
    int64_t first;
    int64_t second;
    char again[CLOCK_TEXT_SIZE];
    (void)size;
    if (clock_from_text(text, &first)) {
        clock_to_text(first, again);
        bool is_time = clock_from_text(again, &second);
        assert(is_time && first == second);
    }
}

static void check_base64(const char *text, size_t size)
{
    struct buf bytes;
    struct buf again;
    struct err err = ERR_INIT;
    buf_init(&bytes, SIZE_MAX_OF_ALL);
    buf_init(&again, SIZE_MAX_OF_ALL);
    if (wire_base64_decode(text, size, &bytes, &err)) {
        wire_base64_encode(bytes.data, bytes.size, &again);
        assert(again.size == size && memcmp(again.data, text, size) == 0);
    } else {
        fuzz_check_refusal(&err);
        assert(bytes.size == 0);
    }
    buf_done(&bytes);
    buf_done(&again);
}

static void check_cursor(const char *text, size_t size)
{
    char inner[256];
    struct buf again;
    struct err err = ERR_INIT;
    (void)size;
    buf_init(&again, SIZE_MAX_OF_ALL);
    if (producer_cursor_read(text, "events", inner, sizeof inner, &err)) {
        assert(text_is_utf8(inner, strlen(inner), NULL));
        producer_cursor_write(&again, "events", inner);
        assert(strcmp(again.data, text) == 0);
    } else {
        fuzz_check_refusal(&err);
    }
    buf_done(&again);
}

static void check_snapshot(const char *text, size_t size)
{
    struct err err = ERR_INIT;
    (void)size;
    struct relay_snapshot *snapshot = relay_snapshot_new(text, 0, 0, &err);
    if (snapshot == NULL) {
        assert(err.kind == ERR_FATAL);
        return;
    }
    assert(relay_snapshot_is_visible(snapshot, snapshot->xmin - 1));
    assert(!relay_snapshot_is_visible(snapshot, snapshot->xmax));
    for (size_t i = 0; i < snapshot->xid_count; i++) {
        assert(!relay_snapshot_is_visible(snapshot, snapshot->xids[i]));
    }
    assert(!relay_snapshot_has_late(snapshot, snapshot));
    relay_snapshot_unref(&snapshot);
}

static void check_number(const char *text, size_t size)
{
    int64_t number;
    char again[24];
    (void)size;
    if (text_to_int64(text, &number)) {
        const char *digits = text + (text[0] == '-');
        digits += strspn(digits, "0");
        text_format(again, sizeof again, "%lld", (long long)number);
        assert(number == 0 ? digits[0] == '\0' : strcmp(again + (number < 0), digits) == 0);
    }
}

static void check_address(const char *text, size_t size)
{
    struct config_address address;
    struct config_address second;
    char again[CONFIG_ADDRESS_TEXT_SIZE];
    (void)size;
    if (config_address_from_text(text, &address)) {
        config_address_to_text(&address, again);
        bool is_address = config_address_from_text(again, &second);
        assert(is_address && strcmp(address.host, second.host) == 0 && address.port == second.port);
    }
}

/* Outside its quotes the statement has nothing of the mapping. */
static void check_quotes(const char *sql)
{
    char quote = '\0';
    for (; *sql != '\0'; sql++) {
        if (quote == '\0' && (*sql == '\'' || *sql == '"')) {
            quote = *sql;
        } else if (*sql == quote) {
            quote = '\0';
        } else if (quote == '\0') {
            assert(strchr(";\\$", *sql) == NULL);
        }
    }
    assert(quote == '\0');
}

/* Pairs of column and path, separated by commas; the first column is the key. */
static void check_mapping(const char *text, size_t size)
{
    enum { PAIR_COUNT_MAX = 70 };
    const char *pairs[PAIR_COUNT_MAX];
    static struct db_sink_column columns[PAIR_COUNT_MAX];
    struct sink_mapping mapping = {.table = "table", .pairs = pairs};
    struct buf sql;
    struct err err = ERR_INIT;
    char *copy = strdup(text);
    assert(copy != NULL);
    char *rest = copy;
    (void)size;
    for (char *pair = strsep(&rest, ","); pair != NULL && mapping.pair_count < PAIR_COUNT_MAX;
         pair = strsep(&rest, ",")) {
        struct db_sink_column *column = &columns[mapping.pair_count];
        size_t name_size = strcspn(pair, "=");
        text_format(column->name, sizeof column->name, "%.*s", (int)name_size, pair);
        text_copy(column->type, sizeof column->type, mapping.pair_count % 2 == 0 ? "text" : "bytea");
        pairs[mapping.pair_count++] = pair;
    }
    const char *key = columns[0].name;
    mapping.keys = &key;
    mapping.key_count = 1;
    buf_init(&sql, SIZE_MAX_OF_ALL);
    if (sink_mapping_check(&mapping, &err)) {
        bool is_good = sink_mapping_sql(&mapping, "\"table\"", columns, mapping.pair_count, &sql, &err);
        assert(is_good);
        check_quotes(sql.data);
    } else {
        fuzz_check_refusal(&err);
    }
    buf_done(&sql);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        char letter;
        void (*check)(const char *text, size_t size);
    } readers[] = {
        {'u', check_uuid},     {'t', check_time},   {'b', check_base64},  {'c', check_cursor},
        {'s', check_snapshot}, {'n', check_number}, {'a', check_address}, {'m', check_mapping},
    };
    struct fuzz_input input = fuzz_input_of(data, size);
    if (size == 0) {
        return 0;
    }
    input.at++;
    size_t text_size;
    char *text = fuzz_rest(&input, &text_size);
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (readers[i].letter == (char)data[0]) {
            readers[i].check(text, text_size);
        }
    }
    free(text);
    return 0;
}
