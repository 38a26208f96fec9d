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
    static const char *const variables[] = {"ONCEWARD_COUNT",  "ONCEWARD_KAFKA_SECURITY_PROTOCOL",
                                            "ONCEWARD_COUMT",  "ONCEWARD_LOG_LEVEL",
                                            "ONCEWARD_TEST_X", "ONCEWARD_JSON"};
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
    write_file(FILE_PATH, "coumt = 4\nno equals\ncount = 11\ncount = 2\njson = on\napi_token = se\001cret\n");
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
    assert_contains(mine.errors, FILE_PATH ":6: api_token: a control character is in it");
    assert_contains(mine.errors, "environment ONCEWARD_COUMT: no setting is called \"coumt\"; did you mean \"count\"?");
    assert_contains(mine.errors, "environment ONCEWARD_JSON: json can only");
    assert_contains(mine.errors, "flag --size-max: size_max \"12x\": not a size");
    assert_contains(mine.errors, "flag --flavour: flavour \"sweet\": not one of plain, salted");
    assert_contains(mine.errors, "flag --listen: listen \"nowhere\": not an address");
    assert_contains(mine.errors, "there is no flag -x");
    assert_contains(mine.errors, "flag --title: needs a value");
    run_done(&mine);
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
        "--kafka.ssl.key.password=hidden", "--kafka.acks", "all");
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
        cmocka_unit_test_teardown(test_config_checks_what_lies_between_settings, teardown),
        cmocka_unit_test_teardown(test_config_prints_values_with_origin_and_without_secrets, teardown),
        cmocka_unit_test_teardown(test_config_answers_help_version_check_and_docs, teardown),
        cmocka_unit_test(test_config_names_are_sorted_and_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) + RUN_CASES("mask", test_mask, mask_cases) +
           RUN_CASES("address", test_address, address_cases);
}
