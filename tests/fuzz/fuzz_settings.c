/* SPDX-License-Identifier: Apache-2.0
 *
 * A settings file, read by each of the four programs. What was accepted holds
 * no control character and keeps its bounds; what --print-config writes of it is
 * accepted too, and means the same. What was refused is said in whole lines.
 *
 * Input: the first byte chooses the program, the rest is the file.
 */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "base/text.h"
#include "cli.h"
#include "consumer_settings.h"
#include "fuzz_kit.h"
#include "producer_settings.h"
#include "relay_settings.h"

#define PATH_SIZE 40

union settings {
    struct producer_settings producer;
    struct relay_settings relay;
    struct consumer_settings consumer;
    struct cli_settings cli;
};

/* A file without a place. */
static int make_file(const void *bytes, size_t size, char ret_path[PATH_SIZE])
{
    int fd = memfd_create("settings", MFD_CLOEXEC);
    bool is_written = fd >= 0 && write(fd, bytes, size) == (ssize_t)size;
    assert(is_written);
    text_format(ret_path, PATH_SIZE, "/proc/self/fd/%d", fd);
    return fd;
}

static enum config_outcome load(const struct config_program *program, const char *path, const char *flag,
                                union settings *settings, char **ret_out, char **ret_errors)
{
    char *argv[] = {(char *)program->name, "--config", (char *)path, (char *)flag};
    const char *words[8];
    size_t out_size;
    size_t errors_size;
    FILE *out = open_memstream(ret_out, &out_size);
    FILE *errors = open_memstream(ret_errors, &errors_size);
    assert(out != NULL && errors != NULL && program->word_count_max < sizeof words / sizeof words[0]);
    memset(settings, 0, sizeof *settings);
    enum config_outcome outcome = config_load(program, flag == NULL ? 3 : 4, argv, settings, words, out, errors);
    fclose(out);
    fclose(errors);
    return outcome;
}

static void check_pairs(const struct config_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        assert(pairs->items[i].name[0] != '\0' && fuzz_is_plain(pairs->items[i].name));
        assert(text_is_utf8(pairs->items[i].value, strlen(pairs->items[i].value), NULL));
        for (const char *at = pairs->items[i].value; *at != '\0'; at++) {
            assert(!iscntrl((unsigned char)*at) || *at == '\n' || *at == '\r' || *at == '\t');
        }
    }
}

static void check_list(const struct config_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        assert(list->items[i][0] != '\0' && fuzz_is_plain(list->items[i]));
    }
}

static void check_address(const struct config_address *address)
{
    char text[CONFIG_ADDRESS_TEXT_SIZE];
    struct config_address again;
    if (address->host[0] != '\0') {
        config_address_to_text(address, text);
        bool is_address = config_address_from_text(text, &again);
        assert(is_address && strcmp(again.host, address->host) == 0 && again.port == address->port);
        assert(fuzz_is_plain(text));
    }
}

static void check_value(const struct config_setting *setting, const void *target)
{
    const char *text = NULL;
    switch (setting->type) {
    case CONFIG_TEXT:
    case CONFIG_CONNINFO:
        text = *(const char *const *)target;
        assert(text == NULL || fuzz_is_plain(text));
        assert(text == NULL || setting->max == 0 || (int64_t)strlen(text) <= setting->max);
        break;
    case CONFIG_INT:
        assert(*(const int64_t *)target >= setting->min && *(const int64_t *)target <= setting->max);
        break;
    case CONFIG_SIZE: assert((int64_t) * (const size_t *)target <= setting->max); break;
    case CONFIG_PAIRS: check_pairs(target); break;
    case CONFIG_LIST: check_list(target); break;
    case CONFIG_ADDRESS: check_address(target); break;
    case CONFIG_BOOL:
    case CONFIG_CHOICE: break;
    }
}

/* One heading, then as many lines as it says, with nothing in them that a terminal would obey. */
static void check_mistakes(const char *errors)
{
    size_t count = 0;
    const char *colon = strstr(errors, ": ");
    assert(colon != NULL);
    size_t announced = strtoul(colon + 2, NULL, 10);
    for (const char *at = errors; *at != '\0'; at++) {
        count += *at == '\n';
        assert(*at == '\n' || !iscntrl((unsigned char)*at));
    }
    assert(announced > 0 && count == announced + 1);
}

/* The lines that are neither comments nor masked. */
static void keep_settings(char *text)
{
    char *to = text;
    for (const char *line = text; *line != '\0';) {
        size_t size = strcspn(line, "\n") + 1;
        if (*line != '#' && memmem(line, size, "***", 3) == NULL) {
            memmove(to, line, size);
            to += size;
        }
        line += size;
    }
    *to = '\0';
}

static void check_read_back(const struct config_program *program, char *printed)
{
    union settings settings;
    char path[PATH_SIZE];
    char *again;
    char *errors;
    int fd = make_file(printed, strlen(printed), path);
    enum config_outcome outcome = load(program, path, "--print-config", &settings, &again, &errors);
    assert(outcome == CONFIG_DONE && errors[0] == '\0');
    keep_settings(printed);
    keep_settings(again);
    assert(strcmp(printed, again) == 0);
    free(again);
    free(errors);
    close(fd);
}

static void run(const struct config_program *program, const struct fuzz_input *input)
{
    union settings settings;
    char path[PATH_SIZE];
    char *out;
    char *errors;
    int fd = make_file(input->at, (size_t)(input->end - input->at), path);
    enum config_outcome outcome = load(program, path, NULL, &settings, &out, &errors);
    if (outcome == CONFIG_WRONG) {
        check_mistakes(errors);
    } else {
        assert(outcome == CONFIG_RUN && out[0] == '\0' && errors[0] == '\0');
        for (size_t i = 0; i < program->setting_count; i++) {
            check_value(&program->settings[i], (const char *)&settings + program->settings[i].offset);
        }
        config_done(program, &settings);
        free(out);
        free(errors);
        outcome = load(program, path, "--print-config", &settings, &out, &errors);
        assert(outcome == CONFIG_DONE);
        check_read_back(program, out);
    }
    free(out);
    free(errors);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct config_program *const programs[] = {&producer_settings_program, &relay_settings_program,
                                                            &consumer_settings_program, &cli_program};
    struct fuzz_input input = fuzz_input_of(data, size);
    (void)clearenv();
    if (size > 0) {
        input.at++;
        run(programs[data[0] % 4], &input);
    }
    return 0;
}
