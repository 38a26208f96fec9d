/* SPDX-License-Identifier: Apache-2.0
 *
 * Databases for tests. Two test programs may ask at the same moment, so the template is
 * made under an advisory lock, under another name, and renamed when it is whole: a
 * program that dies midway leaves nothing that looks finished.
 */
#include "postgres_fixture.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#define NAME_SIZE 64
#define CONNINFO_SIZE 1024
#define MIGRATION_COUNT_MAX 1000

/* Any constant will do: it only has to be the same in all test programs. */
#define TEMPLATE_LOCK "7306375881"

struct postgres_fixture {
    char name[NAME_SIZE];
    char conninfo[CONNINFO_SIZE];
    char conninfo_as[CONNINFO_SIZE];
    PGconn *server;   /* To the database that the environment names. */
    PGconn *database; /* To our own; opened when it is first asked something. */
};

struct migrations {
    struct dirent **entries;
    int count;
    uint64_t checksum;
};

static void print_failure(const char *what, const char *why)
{
    fprintf(stderr, "postgres_fixture: %s: %s\n", what, why);
}

/* Formats, and ends the process if the text does not fit. */
static void format(char *text, size_t size, const char *pattern, ...) __attribute__((format(printf, 3, 4)));
static void format(char *text, size_t size, const char *pattern, ...)
{
    va_list args;
    va_start(args, pattern);
    int length = vsnprintf(text, size, pattern, args);
    va_end(args);
    if (length < 0 || (size_t)length >= size) {
        print_failure("a text is too long", text);
        abort();
    }
}

static bool run(PGconn *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY) {
        print_failure(sql, PQerrorMessage(connection));
        return false;
    }
    return true;
}

static void ignore_notice(void *context, const char *message)
{
    (void)context;
    (void)message;
}

/* The conninfo with some of its values replaced. Values may hold anything, so they are quoted. */
static bool conninfo_with(const char *conninfo, const char *database, const char *role, char *ret_text, size_t size)
{
    char *why = NULL;
    PQconninfoOption *options = PQconninfoParse(conninfo, &why);
    if (options == NULL) {
        print_failure("the conninfo cannot be read", why != NULL ? why : "out of memory");
        PQfreemem(why);
        return false;
    }
    FILE *stream = fmemopen(ret_text, size, "w");
    assert(stream != NULL);
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++) {
        const char *value = option->val;
        if (strcmp(option->keyword, "dbname") == 0) {
            value = database;
        } else if (strcmp(option->keyword, "user") == 0 && role != NULL) {
            value = role;
        }
        if (value == NULL) {
            continue;
        }
        fprintf(stream, "%s='", option->keyword);
        for (const char *c = value; *c != '\0'; c++) {
            fprintf(stream, "%s%c", *c == '\'' || *c == '\\' ? "\\" : "", *c);
        }
        fputs("' ", stream);
    }
    bool fits = fclose(stream) == 0 && strlen(ret_text) + 1 < size;
    PQconninfoFree(options);
    if (!fits) {
        print_failure("the conninfo is too long", conninfo);
    }
    return fits;
}

static PGconn *connect_to(const char *conninfo)
{
    PGconn *connection = PQconnectdb(conninfo);
    if (PQstatus(connection) != CONNECTION_OK) {
        print_failure(conninfo, PQerrorMessage(connection));
        PQfinish(connection);
        return NULL;
    }
    PQsetNoticeProcessor(connection, ignore_notice, NULL);
    return connection;
}

/* The live tests say what they ran against, once per program. */
static void print_version(PGconn *connection)
{
    static bool was_printed;
    if (was_printed) {
        return;
    }
    was_printed = true;
    PGresult *result = PQexec(connection, "SELECT system_identifier FROM pg_control_system()");
    printf("postgres: version %s, system identifier %s\n", PQparameterStatus(connection, "server_version"),
           PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "unknown");
    fflush(stdout);
    PQclear(result);
}

static PGconn *connect_to_server(void)
{
    const char *conninfo = getenv("ONCEWARD_TEST_DATABASE");
    if (conninfo == NULL || conninfo[0] == '\0') {
        print_failure("ONCEWARD_TEST_DATABASE is not set", "this test needs a Postgres server; tests/run starts one, "
                                                           "docs/local-services.md says how to do it by hand");
        return NULL;
    }
    PGconn *connection = connect_to(conninfo);
    if (connection != NULL) {
        print_version(connection);
    }
    return connection;
}

static char *read_file(const char *path, size_t *ret_size)
{
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        print_failure(path, "cannot be opened");
        return NULL;
    }
    char *text = NULL;
    size_t size = 0;
    FILE *copy = open_memstream(&text, &size);
    assert(copy != NULL);
    char block[4096];
    for (size_t count; (count = fread(block, 1, sizeof block, stream)) > 0;) {
        fwrite(block, 1, count, copy);
    }
    fclose(stream);
    fclose(copy);
    *ret_size = size;
    return text;
}

static int is_migration(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && strcmp(entry->d_name + length - 4, ".sql") == 0;
}

static char *read_migration(const struct migrations *migrations, int index, size_t *ret_size)
{
    char path[1024];
    format(path, sizeof path, "%s/schema/migrations/%s", ONCEWARD_SOURCE_DIR, migrations->entries[index]->d_name);
    return read_file(path, ret_size);
}

static void migrations_done(struct migrations *migrations)
{
    for (int i = 0; i < migrations->count; i++) {
        free(migrations->entries[i]);
    }
    free(migrations->entries);
    *migrations = (struct migrations){0};
}

static uint64_t checksum_add(uint64_t checksum, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) { /* FNV-1a: it tells states apart, nothing more. */
        checksum = (checksum ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    }
    return checksum;
}

static bool migrations_init(struct migrations *ret_migrations)
{
    struct migrations migrations = {.checksum = UINT64_C(14695981039346656037)};
    migrations.count = scandir(ONCEWARD_SOURCE_DIR "/schema/migrations", &migrations.entries, is_migration, alphasort);
    if (migrations.count <= 0) {
        print_failure(ONCEWARD_SOURCE_DIR "/schema/migrations", "holds no migration");
        return false;
    }
    assert(migrations.count <= MIGRATION_COUNT_MAX);
    for (int i = 0; i < migrations.count; i++) {
        const char *name = migrations.entries[i]->d_name;
        size_t size = 0;
        char *text = read_migration(&migrations, i, &size);
        if (text == NULL) {
            migrations_done(&migrations);
            return false;
        }
        migrations.checksum = checksum_add(migrations.checksum, name, strlen(name) + 1);
        migrations.checksum = checksum_add(migrations.checksum, text, size);
        free(text);
    }
    *ret_migrations = migrations;
    return true;
}

/* The row that `onceward migrate` would have left. name is NNNN_name.sql. */
static bool remember(PGconn *connection, const char *name, const char *sql, size_t size)
{
    char version[8];
    char title[256];
    format(version, sizeof version, "%d", atoi(name));
    format(title, sizeof title, "%.*s", (int)(strlen(name) - strlen("0000_.sql")), name + strlen("0000_"));
    const char *values[] = {version, title, sql};
    const int lengths[] = {0, 0, (int)size};
    const int formats[] = {0, 0, 1};
    PGresult *result = PQexecParams(connection,
                                    "INSERT INTO onceward.schema_migrations (version, name, checksum)"
                                    " VALUES ($1::int4, $2, sha256($3::bytea))",
                                    3, NULL, values, lengths, formats, 0);
    bool is_done = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!is_done) {
        print_failure(name, PQresultErrorMessage(result));
    }
    PQclear(result);
    return is_done;
}

/* Each file is one message, so the server runs it as one transaction. */
static bool migrate(PGconn *connection, const struct migrations *migrations)
{
    for (int i = 0; i < migrations->count; i++) {
        size_t size = 0;
        char *sql = read_migration(migrations, i, &size);
        PGresult *result = sql != NULL ? PQexec(connection, sql) : NULL;
        ExecStatusType status = PQresultStatus(result);
        bool is_done = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
        if (sql != NULL && !is_done) {
            print_failure(migrations->entries[i]->d_name, PQresultErrorMessage(result));
        }
        PQclear(result);
        is_done = is_done && remember(connection, migrations->entries[i]->d_name, sql, size);
        free(sql);
        if (!is_done) {
            return false;
        }
    }
    return true;
}

static bool database_exists(PGconn *server, const char *name)
{
    const char *values[] = {name};
    PGresult *result =
        PQexecParams(server, "SELECT 1 FROM pg_database WHERE datname = $1", 1, NULL, values, NULL, NULL, 0);
    bool exists = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
    PQclear(result);
    return exists;
}

/* Under the lock: makes the template if nobody has made it yet. */
static bool make_template(PGconn *server, const struct migrations *migrations, const char *template_name)
{
    if (database_exists(server, template_name)) {
        return true;
    }
    char sql[256];
    char conninfo[CONNINFO_SIZE];
    if (!run(server, "DROP DATABASE IF EXISTS onceward_template_unfinished WITH (FORCE)") ||
        !run(server, "CREATE DATABASE onceward_template_unfinished") ||
        !conninfo_with(getenv("ONCEWARD_TEST_DATABASE"), "onceward_template_unfinished", NULL, conninfo,
                       sizeof conninfo)) {
        return false;
    }
    PGconn *database = connect_to(conninfo);
    bool is_migrated = database != NULL && migrate(database, migrations);
    PQfinish(database);
    format(sql, sizeof sql, "ALTER DATABASE onceward_template_unfinished RENAME TO %s", template_name);
    return is_migrated && run(server, sql);
}

static bool require_template(PGconn *server, char *ret_name, size_t size)
{
    struct migrations migrations;
    if (!migrations_init(&migrations)) {
        return false;
    }
    format(ret_name, size, "onceward_template_%016" PRIx64, migrations.checksum);
    bool is_made = run(server, "SELECT pg_advisory_lock(" TEMPLATE_LOCK ")") &&
                   make_template(server, &migrations, ret_name) &&
                   run(server, "SELECT pg_advisory_unlock(" TEMPLATE_LOCK ")");
    migrations_done(&migrations);
    return is_made;
}

static void name_database(char *ret_name)
{
    static unsigned count;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    format(ret_name, NAME_SIZE, "onceward_test_%ld_%lld_%u", (long)getpid(),
           (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000, count++);
}

static struct postgres_fixture *fixture_from(const char *template_name, PGconn *server)
{
    struct postgres_fixture *fixture = calloc(1, sizeof *fixture);
    assert(fixture != NULL);
    fixture->server = server;
    name_database(fixture->name);
    char sql[256];
    format(sql, sizeof sql, "CREATE DATABASE %s TEMPLATE %s", fixture->name, template_name);
    if (!conninfo_with(getenv("ONCEWARD_TEST_DATABASE"), fixture->name, NULL, fixture->conninfo,
                       sizeof fixture->conninfo) ||
        !run(server, sql)) {
        PQfinish(server);
        free(fixture);
        return NULL;
    }
    return fixture;
}

struct postgres_fixture *postgres_fixture_new_empty(void)
{
    PGconn *server = connect_to_server();
    return server != NULL ? fixture_from("template0", server) : NULL;
}

struct postgres_fixture *postgres_fixture_new(void)
{
    char template_name[NAME_SIZE];
    PGconn *server = connect_to_server();
    if (server == NULL) {
        return NULL;
    }
    if (!require_template(server, template_name, sizeof template_name)) {
        PQfinish(server); /* Frees the advisory lock, if it is held. */
        return NULL;
    }
    return fixture_from(template_name, server);
}

void postgres_fixture_free(struct postgres_fixture **fixturep)
{
    struct postgres_fixture *fixture = *fixturep;
    if (fixture == NULL) {
        return;
    }
    PQfinish(fixture->database);
    char sql[256];
    format(sql, sizeof sql, "DROP DATABASE IF EXISTS %s WITH (FORCE)", fixture->name);
    /* The test may have restarted the server, which the connection finds out only by failing. */
    PQclear(PQexec(fixture->server, ""));
    if (PQstatus(fixture->server) != CONNECTION_OK) {
        PQreset(fixture->server);
    }
    if (!run(fixture->server, sql)) {
        fprintf(stderr, "postgres_fixture: database %s is left behind\n", fixture->name);
    }
    PQfinish(fixture->server);
    free(fixture);
    *fixturep = NULL;
}

const char *postgres_fixture_conninfo(const struct postgres_fixture *fixture)
{
    return fixture->conninfo;
}

const char *postgres_fixture_conninfo_as(struct postgres_fixture *fixture, const char *role)
{
    bool is_made =
        conninfo_with(fixture->conninfo, fixture->name, role, fixture->conninfo_as, sizeof fixture->conninfo_as);
    assert(is_made);
    (void)is_made;
    return fixture->conninfo_as;
}

const char *postgres_fixture_name(const struct postgres_fixture *fixture)
{
    return fixture->name;
}

static PGresult *ask(struct postgres_fixture *fixture, const char *sql)
{
    if (fixture->database != NULL && PQstatus(fixture->database) != CONNECTION_OK) {
        PQreset(fixture->database);
    }
    if (fixture->database == NULL) {
        fixture->database = connect_to(fixture->conninfo);
    }
    PGresult *result = fixture->database != NULL ? PQexec(fixture->database, sql) : NULL;
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        print_failure(sql, result != NULL ? PQresultErrorMessage(result) : "no connection");
        abort();
    }
    return result;
}

void postgres_fixture_exec(struct postgres_fixture *fixture, const char *sql)
{
    PQclear(ask(fixture, sql));
}

const char *postgres_fixture_text(struct postgres_fixture *fixture, const char *sql, char *value, size_t size)
{
    PGresult *result = ask(fixture, sql);
    assert(size > 0);
    value[0] = '\0';
    if (PQntuples(result) > 0) {
        strncat(value, PQgetvalue(result, 0, 0), size - 1);
    }
    PQclear(result);
    return value;
}

long long postgres_fixture_number(struct postgres_fixture *fixture, const char *sql)
{
    char text[64];
    return strtoll(postgres_fixture_text(fixture, sql, text, sizeof text), NULL, 10);
}
