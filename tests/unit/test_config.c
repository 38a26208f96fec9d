/* SPDX-License-Identifier: Apache-2.0 */
#include "base/config.h"

#include <stdlib.h>

#include "cmocka_all.h"

enum flavour { FLAVOUR_PLAIN, FLAVOUR_SALTED };

struct settings {
    char *title;
    int64_t count;
    bool is_loud;
    size_t size;
    enum flavour flavour;
    struct config_address listen;
    char *database;
    char *token;
    struct config_list peers;
    struct config_pairs kafka;
    bool json;
};

static const char *const flavours[] = {"plain", "salted", NULL};

static void check(const void *settings, struct config_report *report)
{
    const struct settings *mine = settings;
    if (mine->is_loud && mine->flavour == FLAVOUR_PLAIN) {
        config_mistake(report, "loud", "only what is salted can be loud");
    }
}

#define AT(member) .offset = offsetof(struct settings, member), .section = "All", .doc = "About " #member "."

static const struct config_setting table[] = {
    {.name = "title", .type = CONFIG_TEXT, AT(title), .preset = "nothing", .min = 1, .max = 20},
    {.name = "count", .type = CONFIG_INT, AT(count), .preset = "3", .min = 1, .max = 10},
    {.name = "loud", .type = CONFIG_BOOL, AT(is_loud), .preset = "off"},
    {.name = "size_max", .type = CONFIG_SIZE, AT(size), .preset = "8MiB", .min = 1024, .max = INT64_C(1) << 30},
    {.name = "flavour", .type = CONFIG_CHOICE, AT(flavour), .preset = "plain", .choices = flavours},
    {.name = "listen", .type = CONFIG_ADDRESS, AT(listen), .preset = "127.0.0.1:8480"},
    {.name = "database", .type = CONFIG_CONNINFO, AT(database)},
    {.name = "api_token", .type = CONFIG_TEXT, AT(token), .is_secret = true},
    {.name = "peers", .type = CONFIG_LIST, AT(peers), .preset = ""},
    {.name = "kafka.", .type = CONFIG_PAIRS, AT(kafka)},
    {.name = "json", .type = CONFIG_BOOL, AT(json), .is_flag_only = true},
};

static const struct config_program program = {
    .name = "onceward-test",
    .summary = "A program of the tests.",
    .settings = table,
    .setting_count = COUNT_OF(table),
    .word_count_max = 2,
    .check = check,
};

/* One run: the program's file and environment are prepared by the test, the texts are what it printed. */
struct run {
    struct settings settings;
    const char *words[3];
    enum config_outcome outcome;
    char *out;
    char *errors;
};

static void run(struct run *run, const char *const *flags)
{
    char *argv[16] = {(char *)"onceward-test"};
    int argc = 1;
    for (; *flags != NULL; flags++) {
        argv[argc++] = (char *)*flags;
    }
    size_t out_size;
    size_t errors_size;
    FILE *out = open_memstream(&run->out, &out_size);
    FILE *errors = open_memstream(&run->errors, &errors_size);
    memset(&run->settings, 0, sizeof run->settings);
    run->outcome = config_load(&program, argc, argv, &run->settings, run->words, out, errors);
    fclose(out);
    fclose(errors);
}

#define RUN(run_value, ...) run(run_value, (const char *const[]){__VA_ARGS__, NULL})

static void run_done(struct run *run)
{
    if (run->outcome == CONFIG_RUN) {
        config_done(&program, &run->settings);
    }
    free(run->out);
    free(run->errors);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
}

#define FILE_PATH "test_config.conf"

static int teardown(void **state)
{
    (void)state;
    static const char *const variables[] = {
        "ONCEWARD_COUNT", "ONCEWARD_KAFKA_SECURITY_PROTOCOL", "ONCEWARD_COUMT", "ONCEWARD_LOG_LEVEL", "ONCEWARD_TEST_X",
        "ONCEWARD_JSON",  "ONCEWARD_KAFKA_SSL_CA_PEM"};
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        unsetenv(variables[i]);
    }
    remove(FILE_PATH);
    return 0;
}

static void test_config_takes_presets(void **state)
{
    (void)state;
    struct run mine = {0};
    RUN(&mine, NULL);
    assert_int_equal(mine.outcome, CONFIG_RUN);
    assert_string_equal(mine.settings.title, "nothing");
    assert_int_equal(mine.settings.count, 3);
    assert_int_equal(mine.settings.size, 8 << 20);
    assert_string_equal(mine.settings.listen.host, "127.0.0.1");
    assert_int_equal(mine.settings.listen.port, 8480);
    assert_null(mine.settings.database);
    assert_int_equal(mine.settings.peers.count, 0);
    run_done(&mine);
}

static void test_config_lets_flags_win_over_environment_over_file(void **state)
{
    (void)state;
    write_file(FILE_PATH, "# a comment\n\n title = from file \r\ncount = 4\nflavour = salted\nkafka.acks = all\n"
                          "kafka.sasl.password = from # file\npeers = a:1 , b:2\n");
    setenv("ONCEWARD_COUNT", "5", 1);
    setenv("ONCEWARD_KAFKA_SECURITY_PROTOCOL", "ssl", 1);
    setenv("ONCEWARD_TEST_X", "ignored", 1);
    setenv("ONCEWARD_LOG_LEVEL", "a sister's", 1);
    struct run mine = {0};
    RUN(&mine, "--config", FILE_PATH, "verb", "--size-max=64KiB", "--loud", "--kafka.acks=1", "--json", "--", "--word");
    assert_string_equal(mine.errors, "");
    assert_int_equal(mine.outcome, CONFIG_RUN);
    assert_string_equal(mine.settings.title, "from file");
    assert_int_equal(mine.settings.count, 5);
    assert_int_equal(mine.settings.size, 65536);
    assert_true(mine.settings.is_loud);
    assert_true(mine.settings.json);
    assert_int_equal(mine.settings.flavour, FLAVOUR_SALTED);
    assert_int_equal(mine.settings.peers.count, 2);
    assert_string_equal(mine.settings.peers.items[1], "b:2");
    assert_int_equal(mine.settings.kafka.count, 3);
    assert_string_equal(mine.settings.kafka.items[0].name, "acks");
    assert_string_equal(mine.settings.kafka.items[0].value, "1");
    assert_string_equal(mine.settings.kafka.items[1].value, "from # file");
    assert_string_equal(mine.settings.kafka.items[2].name, "security.protocol");
    assert_string_equal(mine.words[0], "verb");
    assert_string_equal(mine.words[1], "--word");
    assert_null(mine.words[2]);
    run_done(&mine);
}

static void test_config_reports_all_mistakes_at_once(void **state)
{
    (void)state;
    write_file(FILE_PATH, "coumt = 4\nno equals\ncount = 11\ncount = 2\njson = on\napi_token = se\xFF"
                          "cret\n");
    setenv("ONCEWARD_COUMT", "5", 1);
    setenv("ONCEWARD_JSON", "on", 1);
    struct run mine = {0};
    RUN(&mine, "--config=" FILE_PATH, "--size-max=12x", "--flavour=sweet", "--listen", "nowhere", "-x", "a", "b", "c",
        "--title");
    assert_int_equal(mine.outcome, CONFIG_WRONG);
    assert_contains(mine.errors, "onceward-test: 14 mistakes in the settings:\n");
    assert_contains(mine.errors, FILE_PATH ":1: no setting is called \"coumt\"; did you mean \"count\"?");
    assert_contains(mine.errors, FILE_PATH ":2: not of the form key = value");
    assert_contains(mine.errors, FILE_PATH ":3: count \"11\": allowed are 1 to 10");
    assert_contains(mine.errors, FILE_PATH ":4: count is set a second time");
    assert_contains(mine.errors, FILE_PATH ":5: json can only be given as a flag");
    assert_contains(mine.errors, FILE_PATH ":6: api_token: not UTF-8");
    assert_contains(mine.errors, "environment ONCEWARD_COUMT: no setting is called \"coumt\"; did you mean \"count\"?");
    assert_contains(mine.errors, "environment ONCEWARD_JSON: json can only");
    assert_contains(mine.errors, "flag --size-max: size_max \"12x\": not a size");
    assert_contains(mine.errors, "flag --flavour: flavour \"sweet\": not one of plain, salted");
    assert_contains(mine.errors, "flag --listen: listen \"nowhere\": not an address");
    assert_contains(mine.errors, "there is no flag -x");
    assert_contains(mine.errors, "flag --title: needs a value");
    run_done(&mine);
}

/* A file that must be refused as a whole, with the line of the mistake. */
struct file_case {
    const char *name;
    const char *bytes;
    size_t size;
    const char *mistake;
};

#define FILE_CASE(name, bytes, mistake)                                                                                \
    {                                                                                                                  \
        name, bytes, sizeof(bytes) - 1, FILE_PATH mistake                                                              \
    }

static const struct file_case file_cases[] = {
    FILE_CASE("NUL in a value", "count = 4\ntitle = good\0bad\n", ":2: a control character (0x00) at byte 13"),
    FILE_CASE("NUL in a name", "co\0unt = 4\n", ":1: a control character (0x00) at byte 3"),
    FILE_CASE("NUL behind a line's end", "count = 4\n\0title = x\n", ":2: a control character (0x00) at byte 1"),
    FILE_CASE("NUL in a comment", "# a\0\ncount = 4\n", ":1: a control character (0x00) at byte 4"),
    FILE_CASE("a carriage return that hides a setting", "# a\rcount = 4\n", ":1: a control character (0x0d) at byte 4"),
    FILE_CASE("an escape sequence in a property", "kafka.acks = \033[2J\n",
              ":1: a control character (0x1b) at byte 14"),
    FILE_CASE("DEL in a list", "peers = a,b\177\n", ":1: a control character (0x7f) at byte 12"),
    FILE_CASE("a property's name with a blank", "kafka.a b = c\n", ":1: kafka.a b: a property's name has only"),
    FILE_CASE("a property twice", "kafka.acks = all\nkafka.acks = 1\n", ":2: kafka.acks: is set a second time"),
    FILE_CASE("a property that is no UTF-8", "kafka.acks = \xFF\n", ":1: kafka.acks: not UTF-8"),
    FILE_CASE("a list that is no UTF-8", "peers = a, \xFF\n", ":1: peers \"a, \xFF\": not UTF-8"),
    FILE_CASE("an open quotation mark", "title = \"a\n", ":1: title: the closing quotation mark is missing"),
    FILE_CASE("a text behind the quotation", "title = \"a\" b\n", ":1: title: something follows the closing"),
    FILE_CASE("an unknown escape", "title = \"a\\x41\"\n", ":1: title: after a backslash only"),
    FILE_CASE("a quoted line break in a text", "title = \"a\\nb\"\n",
              ":1: title \"a?b\": a control character is in it"),
};

static void test_file(void **state)
{
    const struct file_case *mine = *state;
    write_bytes(FILE_PATH, mine->bytes, mine->size);
    struct run found = {0};
    RUN(&found, "--config", FILE_PATH);
    assert_int_equal(found.outcome, CONFIG_WRONG);
    assert_contains(found.errors, "onceward-test: 1 mistake in the settings:\n");
    assert_contains(found.errors, mine->mistake);
    run_done(&found);
    remove(FILE_PATH);
}

/* A name, an equals sign and value_size letters; then a second line that a cut first line would have made a setting. */
static void write_long_line(const char *name, size_t value_size, const char *tail)
{
    FILE *file = fopen(FILE_PATH, "w");
    assert_non_null(file);
    fprintf(file, "%s=", name);
    for (size_t i = 0; i < value_size; i++) {
        fputc('a', file);
    }
    fprintf(file, "%s\ncount = 11\n", tail);
    fclose(file);
}

static void test_config_refuses_a_line_that_is_too_long_as_one(void **state)
{
    (void)state;
    write_long_line("kafka.a", 65535 - strlen("kafka.a="), "count = 7");
    struct run mine = {0};
    RUN(&mine, "--config", FILE_PATH);
    assert_int_equal(mine.outcome, CONFIG_WRONG);
    assert_contains(mine.errors, ": 2 mistakes in the settings:\n");
    assert_contains(mine.errors, FILE_PATH ":1: longer than 65535 bytes");
    assert_contains(mine.errors, FILE_PATH ":2: count \"11\": allowed are 1 to 10");
    run_done(&mine);
    write_long_line("kafka.a", 65535 - strlen("kafka.a="), "");
    RUN(&mine, "--config", FILE_PATH, "--check");
    assert_contains(mine.errors, ": 1 mistake in the settings:\n");
    run_done(&mine);
}

static void test_config_refuses_a_file_without_end(void **state)
{
    (void)state;
    struct run mine = {0};
    RUN(&mine, "--config", "/dev/zero");
    assert_int_equal(mine.outcome, CONFIG_WRONG);
    assert_contains(mine.errors, "/dev/zero: larger than 1048576 bytes");
    run_done(&mine);
}

static void test_config_refuses_control_characters_from_everywhere(void **state)
{
    (void)state;
    setenv("ONCEWARD_KAFKA_SSL_CA_PEM", "a\033b", 1);
    struct run mine = {0};
    RUN(&mine, "--peers=a,b\nc", "--listen=a\nb:80", "--title=a\tb", "--api-token=a\nb", "--kafka.a\nb=c",
        "--kafka.c=1", "--kafka.c=2");
    assert_contains(mine.errors, "kafka.c: is set a second time (first: flag --kafka.c)");
    assert_int_equal(mine.outcome, CONFIG_WRONG);
    assert_contains(mine.errors, "onceward-test: 7 mistakes in the settings:\n");
    assert_contains(mine.errors, "flag --peers: peers \"a,b?c\": a control character is in it\n");
    assert_contains(mine.errors, "flag --listen: listen \"a?b:80\": not an address (host:port)\n");
    assert_contains(mine.errors, "flag --title: title \"a?b\": a control character is in it\n");
    assert_contains(mine.errors, "flag --api-token: api_token: a control character is in it\n");
    assert_contains(mine.errors, "flag --kafka.a?b: kafka.a?b: a property's name has only");
    assert_contains(mine.errors, "ONCEWARD_KAFKA_SSL_CA_PEM: kafka.ssl.ca.pem: a control character is in it\n");
    run_done(&mine);
}

static void test_config_reads_back_what_it_prints(void **state)
{
    (void)state;
    static const char pem[] = "-----BEGIN CERTIFICATE-----\nMIIB\\\"=\r\n-----END CERTIFICATE-----\n";
    setenv("ONCEWARD_KAFKA_SSL_CA_PEM", pem, 1);
    struct run first = {0};
    struct run second = {0};
    RUN(&first, "--print-config", "--title=\"quoted\" ", "--peers=a, b ", "--kafka.a= b", "--kafka.b=\tc",
        "--kafka.c=", "--kafka.d=d\\n", "--database=host=db dbname=d ");
    assert_int_equal(first.outcome, CONFIG_DONE);
    assert_contains(first.out, "kafka.ssl.ca.pem = \"-----BEGIN CERTIFICATE-----\\nMIIB\\\\\\\"=\\r\\n-----END");
    assert_contains(first.out, "kafka.d = d\\n\n");
    assert_contains(first.out, "title = \"\\\"quoted\\\" \"\n");
    unsetenv("ONCEWARD_KAFKA_SSL_CA_PEM");
    write_file(FILE_PATH, first.out);
    RUN(&second, "--config", FILE_PATH);
    assert_string_equal(second.errors, "");
    assert_int_equal(second.outcome, CONFIG_RUN);
    assert_string_equal(second.settings.title, "\"quoted\" ");
    assert_string_equal(second.settings.database, "host=db dbname=d ");
    assert_int_equal(second.settings.peers.count, 2);
    static const char *const values[] = {pem, " b", "\tc", "", "d\\n"};
    assert_int_equal(second.settings.kafka.count, COUNT_OF(values));
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        bool is_found = false;
        for (size_t k = 0; k < COUNT_OF(values); k++) {
            is_found = is_found || strcmp(second.settings.kafka.items[k].value, values[i]) == 0;
        }
        assert_true(is_found);
    }
    run_done(&first);
    run_done(&second);
}

static void test_config_checks_what_lies_between_settings(void **state)
{
    (void)state;
    struct run mine = {0};
    RUN(&mine, "--loud");
    assert_int_equal(mine.outcome, CONFIG_WRONG);
    assert_contains(mine.errors, "loud (flag --loud): only what is salted can be loud");
    run_done(&mine);
}

static void test_config_prints_values_with_origin_and_without_secrets(void **state)
{
    (void)state;
    setenv("ONCEWARD_COUNT", "5", 1);
    struct run mine = {0};
    RUN(&mine, "--print-config", "--api-token=hidden", "--database", "host=db password='hid\\'den' user=me",
        "--kafka.ssl.key.password=hidden", "--kafka.sasl.password=hidden", "--kafka.ssl.key.pem=hidden",
        "--kafka.sasl.oauthbearer.client.secret=hidden", "--kafka.sasl.oauthbearer.assertion.private.passphrase=hidden",
        "--kafka.ssl.certificate.pem=-----BEGIN PRIVATE KEY-----\nhidden", "--kafka.acks", "all");
    assert_int_equal(mine.outcome, CONFIG_DONE);
    assert_null(strstr(mine.out, "hid"));
    assert_contains(mine.out, "# environment ONCEWARD_COUNT\ncount = 5\n");
    assert_contains(mine.out, "# default\ntitle = nothing\n");
    assert_contains(mine.out, "# flag --api-token\napi_token = ***\n");
    assert_contains(mine.out, "database = host=db password=*** user=me\n");
    assert_contains(mine.out, "kafka.ssl.key.password = ***\n");
    assert_contains(mine.out, "kafka.acks = all\n");
    run_done(&mine);
}

static void test_config_answers_help_version_check_and_docs(void **state)
{
    (void)state;
    struct run mine = {0};
    RUN(&mine, "--help", "--nonsense");
    assert_int_equal(mine.outcome, CONFIG_DONE);
    assert_contains(mine.out, "--size-max VALUE");
    assert_contains(mine.out, "(size from 1 KiB to 1 GiB; default 8MiB)");
    run_done(&mine);
    RUN(&mine, "--version");
    assert_string_equal(mine.out, "onceward-test " ONCEWARD_VERSION "\n");
    run_done(&mine);
    RUN(&mine, "--check");
    assert_int_equal(mine.outcome, CONFIG_DONE);
    run_done(&mine);
    RUN(&mine, "--check", "--count=x");
    assert_int_equal(mine.outcome, CONFIG_WRONG);
    run_done(&mine);
    RUN(&mine, "--print-config-docs");
    assert_contains(mine.out, "| `count` | integer from 1 to 10 | `3` | About count. |");
    run_done(&mine);
}

struct mask_case {
    const char *name;
    const char *input;
    const char *expected;
};

static const struct mask_case mask_cases[] = {
    {"keyword", "host=a password=b user=c", "host=a password=*** user=c"},
    {"keyword with blanks round the equals sign", "password = b user=c", "password = *** user=c"},
    {"quoted keyword with an escape", "password='b \\' c' user=c", "password=*** user=c"},
    {"keyword that ends in password", "sslpassword=b", "sslpassword=***"},
    {"nothing to hide", "host=/run dbname=x", "host=/run dbname=x"},
    {"URI", "postgresql://u:b@h/d", "postgresql://u:***@h/d"},
    {"URI without a password", "postgres://u@h/d", "postgres://u@h/d"},
    {"URI with a slash in its password", "postgres://u:b/c@h/d", "postgres://u:***@h/d"},
    {"URI with a parameter", "postgres:///d?password=b&user=u", "postgres:///d?password=***&user=u"},
    {"empty", "", ""},
    {"URI with an escaped parameter name", "postgresql://u@h/db?passwor%64=secret",
     "postgresql://u@h/db?passwor%64=***"},
    {"URI with more escapes", "postgresql:///?%73sl%50ass%77ord=b&user=u",
     "postgresql:///?%73sl%50ass%77ord=***&user=u"},
    {"URI with a broken escape in a name", "postgresql:///?pass%zz=b&user=u", "postgresql:///?pass%zz=***&user=u"},
    {"URI with a question mark in its password", "postgresql://u:b?c@h/d", "postgresql://u:***@h/d"},
    {"URI with everything in its password", "postgresql://u:b/c?d@h/d", "postgresql://u:***@h/d"},
    {"URI with an at sign in its password", "postgresql://u:b@c@h/d", "postgresql://u:***@h/d"},
    {"URI with an ampersand in a password", "postgresql:///?password=b&c&user=u",
     "postgresql:///?password=***&***&user=u"},
    {"URI with an equals sign in a password", "postgresql:///?user=u&password=b=c",
     "postgresql:///?user=u&password=***"},
    {"URI with a password before the at sign", "postgresql://h?password=b@h", "postgresql://h?password=***"},
    {"URI with a secret of later versions", "postgresql:///?oauth_client_secret=b&scram_client_key=c",
     "postgresql:///?oauth_client_secret=***&scram_client_key=***"},
    {"URI with an at sign in a parameter", "postgresql://h:1/d?user=a@b", "postgresql://h:1/d?user=a@b"},
    {"URI with an address of IPv6", "postgresql://[::1]:80/d?user=a@b", "postgresql://[::1]:80/d?user=a@b"},
    {"URI of another scheme", "jdbc:postgresql://u:b@h/d", "jdbc:postgresql://u:***@h/d"},
    {"what is nearly a URI", "postgresql:u:b@h/d", "***"},
    {"what is nearly a URI with a parameter", "postgresql:u:b@h/d?user=c", "***"},
    {"URI as a value", "dbname=postgresql://u:b@h/d user=c", "dbname=*** user=c"},
    {"a password with a blank", "password=my secret user=c", "password=*** *** user=c"},
    {"a password with an escaped blank", "password=my\\ secret user=c", "password=*** user=c"},
    {"a text behind a quoted password", "password='my'secret user=c", "password=****** user=c"},
    {"an open quotation", "user=c password='my secret", "user=c password=***"},
    {"capitals", "PassWord=b user=c", "PassWord=*** user=c"},
};

static void test_mask(void **state)
{
    const struct mask_case *mine = *state;
    char *masked = config_mask_conninfo(mine->input);
    assert_string_equal(masked, mine->expected);
    free(masked);
}

struct address_case {
    const char *name;
    const char *host; /* NULL: refused. */
    int port;
};

static const struct address_case address_cases[] = {
    {"127.0.0.1:80", "127.0.0.1", 80},
    {"[::1]:80", "::1", 80},
    {"*:1", "0.0.0.0", 1},
    {":1", "0.0.0.0", 1},
    {"host.example:65535", "host.example", 65535},
    {"host", NULL, 0},
    {"host:", NULL, 0},
    {"host:65536", NULL, 0},
    {"::1:80", NULL, 0},
    {"a b:80", NULL, 0},
    {"[]:80", NULL, 0},
    {"host:-1", NULL, 0},
    {"ho\nst:80", NULL, 0},
    {"h\177:80", NULL, 0},
    {"h\xFF:80", NULL, 0},
    {"[*]:80", NULL, 0},
    {"[host]:80", NULL, 0},
};

static void test_address(void **state)
{
    const struct address_case *mine = *state;
    struct config_address address;
    assert_int_equal(config_address_from_text(mine->name, &address), mine->host != NULL);
    if (mine->host != NULL) {
        assert_string_equal(address.host, mine->host);
        assert_int_equal(address.port, mine->port);
    }
}

static void test_config_names_are_sorted_and_once(void **state)
{
    (void)state;
    const char *const *names = config_names();
    for (size_t i = 1; names[i] != NULL; i++) {
        assert_true(strcmp(names[i - 1], names[i]) < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_config_takes_presets, teardown),
        cmocka_unit_test_teardown(test_config_lets_flags_win_over_environment_over_file, teardown),
        cmocka_unit_test_teardown(test_config_reports_all_mistakes_at_once, teardown),
        cmocka_unit_test_teardown(test_config_refuses_a_line_that_is_too_long_as_one, teardown),
        cmocka_unit_test_teardown(test_config_refuses_a_file_without_end, teardown),
        cmocka_unit_test_teardown(test_config_refuses_control_characters_from_everywhere, teardown),
        cmocka_unit_test_teardown(test_config_reads_back_what_it_prints, teardown),
        cmocka_unit_test_teardown(test_config_checks_what_lies_between_settings, teardown),
        cmocka_unit_test_teardown(test_config_prints_values_with_origin_and_without_secrets, teardown),
        cmocka_unit_test_teardown(test_config_answers_help_version_check_and_docs, teardown),
        cmocka_unit_test(test_config_names_are_sorted_and_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("mask", test_mask, mask_cases) +
           RUN_CASES("address", test_address, address_cases) + RUN_CASES("file", test_file, file_cases);
}
