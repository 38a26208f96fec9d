/* SPDX-License-Identifier: Apache-2.0
 *
 * One value: from text into its place, and what there is to say about its type.
 */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config_private.h"

char *config_copy(const char *text)
{
    char *copy = strdup(text);
    assert(copy != NULL);
    return copy;
}

static bool refuse(struct err *ret_why, const char *format, ...) PRINTF_LIKE(2, 3);

static bool refuse(struct err *ret_why, const char *format, ...)
{
    char text[ERR_TEXT_SIZE];
    va_list args;
    va_start(args, format);
    text_vformat(text, sizeof text, format, args);
    va_end(args);
    return err_set(ret_why, ERR_PERMANENT, "setting_invalid", "%s", text);
}

/* UTF-8 without control characters but those allowed. */
static bool check_plain(const char *text, const char *allowed, struct err *ret_why)
{
    if (!text_is_utf8(text, strlen(text), NULL)) {
        return refuse(ret_why, "not UTF-8");
    }
    for (const char *at = text; *at != '\0'; at++) {
        if (iscntrl((unsigned char)*at) && strchr(allowed, *at) == NULL) {
            return refuse(ret_why, "a control character is in it");
        }
    }
    return true;
}

static bool set_text(const struct config_setting *setting, void *target, const char *text, struct err *ret_why)
{
    if (!check_plain(text, "", ret_why)) {
        return false;
    }
    int64_t size = (int64_t)strlen(text);
    if (setting->max > 0 && (size < setting->min || size > setting->max)) {
        return refuse(ret_why, "%lld bytes, allowed are %lld to %lld", (long long)size, (long long)setting->min,
                      (long long)setting->max);
    }
    char **place = target;
    free(*place);
    *place = config_copy(text);
    return true;
}

static bool set_int(const struct config_setting *setting, void *target, const char *text, struct err *ret_why)
{
    int64_t number;
    if (!text_to_int64(text, &number)) {
        return refuse(ret_why, "not an integer");
    }
    if (number < setting->min || number > setting->max) {
        return refuse(ret_why, "allowed are %lld to %lld", (long long)setting->min, (long long)setting->max);
    }
    *(int64_t *)target = number;
    return true;
}

static bool set_bool(const struct config_setting *setting, void *target, const char *text, struct err *ret_why)
{
    (void)setting;
    static const char *const names[2][3] = {{"off", "false", "no"}, {"on", "true", "yes"}};
    for (size_t i = 0; i < 2 * 3; i++) {
        if (strcmp(text, names[i / 3][i % 3]) == 0) {
            *(bool *)target = i / 3 == 1;
            return true;
        }
    }
    return refuse(ret_why, "neither on nor off");
}

static bool set_size(const struct config_setting *setting, void *target, const char *text, struct err *ret_why)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {{"KiB", INT64_C(1) << 10}, {"MiB", INT64_C(1) << 20}, {"GiB", INT64_C(1) << 30}, {"", 1}};
    char digits[24];
    size_t digit_count = strspn(text, "0123456789");
    int64_t number = -1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const char *unit = text + digit_count + (text[digit_count] == ' ');
        if (strcmp(unit, units[i].name) == 0 && digit_count > 0 && digit_count < sizeof digits - 1) {
            memcpy(digits, text, digit_count);
            digits[digit_count] = '\0';
            if (text_to_int64(digits, &number) && !__builtin_mul_overflow(number, units[i].bytes, &number)) {
                break;
            }
            number = -1;
        }
    }
    if (number < 0) {
        return refuse(ret_why, "not a size (bytes, or a number with KiB, MiB or GiB)");
    }
    if (number < setting->min || number > setting->max) {
        return refuse(ret_why, "%lld bytes, allowed are %lld to %lld", (long long)number, (long long)setting->min,
                      (long long)setting->max);
    }
    *(size_t *)target = (size_t)number;
    return true;
}

static bool set_choice(const struct config_setting *setting, void *target, const char *text, struct err *ret_why)
{
    for (int i = 0; setting->choices[i] != NULL; i++) {
        if (strcmp(text, setting->choices[i]) == 0) {
            *(int *)target = i;
            return true;
        }
    }
    struct buf allowed;
    buf_init(&allowed, ERR_TEXT_SIZE);
    config_value_describe(setting, &allowed);
    refuse(ret_why, "not %s", allowed.data);
    buf_done(&allowed);
    return false;
}

static bool set_address(const struct config_setting *setting, void *target, const char *text, struct err *ret_why)
{
    (void)setting;
    return config_address_from_text(text, target) || refuse(ret_why, "not an address (host:port)");
}

static void list_done(struct config_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct config_list){0};
}

/* The item without the blanks around it. Cuts text. */
static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t size = strlen(text);
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t')) {
        text[--size] = '\0';
    }
    return text;
}

static bool set_list(const struct config_setting *setting, void *target, const char *text, struct err *ret_why)
{
    (void)setting;
    if (!check_plain(text, "", ret_why)) {
        return false;
    }
    struct config_list list = {.items = calloc(strlen(text) + 1, sizeof(char *))};
    char *copy = config_copy(text);
    assert(list.items != NULL);
    bool ok = true;
    char *rest = trim(copy)[0] == '\0' ? NULL : copy;
    for (char *item = strsep(&rest, ","); item != NULL && ok; item = strsep(&rest, ",")) {
        item = trim(item);
        ok = item[0] != '\0' || refuse(ret_why, "an item of the list is empty");
        list.items[list.count++] = config_copy(item);
    }
    free(copy);
    if (!ok) {
        list_done(&list);
        return false;
    }
    list_done(target);
    *(struct config_list *)target = list;
    return true;
}

static const struct {
    const char *name;
    bool (*set)(const struct config_setting *setting, void *target, const char *text, struct err *ret_why);
} types[] = {
    [CONFIG_TEXT] = {"text", set_text},
    [CONFIG_INT] = {"integer", set_int},
    [CONFIG_BOOL] = {"on or off", set_bool},
    [CONFIG_SIZE] = {"size", set_size},
    [CONFIG_CHOICE] = {"one of", set_choice},
    [CONFIG_ADDRESS] = {"host:port", set_address},
    [CONFIG_CONNINFO] = {"libpq connection string", set_text},
    [CONFIG_LIST] = {"list, separated by commas", set_list},
    [CONFIG_PAIRS] = {"any property", NULL},
};

static void *target_of(const struct config_setting *setting, void *settings)
{
    return (char *)settings + setting->offset;
}

bool config_value_set(const struct config_setting *setting, void *settings, const char *text, struct err *ret_why)
{
    assert(setting->type != CONFIG_PAIRS && text != NULL);
    return types[setting->type].set(setting, target_of(setting, settings), text, ret_why);
}

/* Both from flags, both from the environment, or both from the file. */
static bool is_same_source(const char *origin, const char *other)
{
    bool is_flag = text_has_prefix(origin, "flag ");
    bool is_environment = text_has_prefix(origin, "environment ");
    return is_flag == text_has_prefix(other, "flag ") && is_environment == text_has_prefix(other, "environment ");
}

bool config_value_set_pair(const struct config_setting *setting, void *settings, const char *name, const char *value,
                           const char *origin, struct err *ret_why)
{
    assert(setting->type == CONFIG_PAIRS);
    static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (name[strspn(name, name_bytes)] != '\0') {
        return refuse(ret_why, "a property's name has only letters, digits and . _ -");
    }
    if (!check_plain(value, "\n\r\t", ret_why)) {
        return false;
    }
    struct config_pairs *pairs = target_of(setting, settings);
    struct config_pair *pair = NULL;
    for (size_t i = 0; i < pairs->count && pair == NULL; i++) {
        pair = strcmp(pairs->items[i].name, name) == 0 ? &pairs->items[i] : NULL;
    }
    if (pair != NULL && is_same_source(pair->origin, origin)) {
        return refuse(ret_why, "is set a second time (first: %s)", pair->origin);
    }
    if (pair == NULL) {
        pairs->items = realloc(pairs->items, (pairs->count + 1) * sizeof *pairs->items);
        assert(pairs->items != NULL);
        pair = &pairs->items[pairs->count++];
        *pair = (struct config_pair){.name = config_copy(name)};
    }
    free(pair->value);
    free(pair->origin);
    pair->value = config_copy(value);
    pair->origin = config_copy(origin);
    return true;
}

void config_value_done(const struct config_setting *setting, void *settings)
{
    void *target = target_of(setting, settings);
    if (setting->type == CONFIG_TEXT || setting->type == CONFIG_CONNINFO) {
        free(*(char **)target);
        *(char **)target = NULL;
    } else if (setting->type == CONFIG_LIST) {
        list_done(target);
    } else if (setting->type == CONFIG_PAIRS) {
        struct config_pairs *pairs = target;
        for (size_t i = 0; i < pairs->count; i++) {
            free(pairs->items[i].name);
            free(pairs->items[i].value);
            free(pairs->items[i].origin);
        }
        free(pairs->items);
        *pairs = (struct config_pairs){0};
    }
}

static void describe_size(int64_t bytes, struct buf *out)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    while (unit < 3 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    buf_format(out, "%lld %s", (long long)bytes, units[unit]);
}

void config_value_describe(const struct config_setting *setting, struct buf *out)
{
    buf_text(out, types[setting->type].name);
    if (setting->type == CONFIG_INT) {
        buf_format(out, " from %lld to %lld", (long long)setting->min, (long long)setting->max);
    } else if (setting->type == CONFIG_SIZE) {
        buf_text(out, " from ");
        describe_size(setting->min, out);
        buf_text(out, " to ");
        describe_size(setting->max, out);
    } else if (setting->type == CONFIG_CHOICE) {
        for (size_t i = 0; setting->choices[i] != NULL; i++) {
            buf_format(out, "%s%s", i == 0 ? " " : ", ", setting->choices[i]);
        }
    }
}

void config_value_flag(const char *name, struct buf *out)
{
    buf_text(out, "--");
    for (; *name != '\0'; name++) {
        buf_char(out, *name == '_' ? '-' : *name);
    }
}

bool config_address_from_text(const char *text, struct config_address *ret_address)
{
    struct config_address address = {.port = 0};
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (colon == NULL || !text_to_int64(colon + 1, &port) || port < 0 || port > UINT16_MAX) {
        return false;
    }
    const char *host = text;
    size_t host_size = (size_t)(colon - text);
    bool is_bracketed = host_size >= 2 && host[0] == '[' && host[host_size - 1] == ']';
    if (is_bracketed) {
        host++;
        host_size -= 2;
        if (memchr(host, ':', host_size) == NULL) {
            return false;
        }
    } else if (host_size == 0 || (host_size == 1 && host[0] == '*')) {
        host = "0.0.0.0";
        host_size = strlen(host);
    } else if (memchr(host, ':', host_size) != NULL) {
        return false;
    }
    if (host_size >= sizeof address.host) {
        return false;
    }
    for (size_t i = 0; i < host_size; i++) {
        if (!isgraph((unsigned char)host[i]) || strchr("/[]", host[i]) != NULL) {
            return false;
        }
    }
    memcpy(address.host, host, host_size);
    address.port = (uint16_t)port;
    *ret_address = address;
    return true;
}

void config_address_to_text(const struct config_address *address, char ret_text[CONFIG_ADDRESS_TEXT_SIZE])
{
    bool is_v6 = strchr(address->host, ':') != NULL;
    bool has_fitted = text_format(ret_text, CONFIG_ADDRESS_TEXT_SIZE, "%s%s%s:%u", is_v6 ? "[" : "", address->host,
                                  is_v6 ? "]" : "", (unsigned)address->port);
    assert(has_fitted);
}
