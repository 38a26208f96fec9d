/* SPDX-License-Identifier: Apache-2.0
 *
 * The system's clocks and the one text form of a time.
 */
#include "base/clock.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

static int64_t read_us(clockid_t id)
{
    struct timespec now;
    int result = clock_gettime(id, &now);
    assert(result == 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_monotonic_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_realtime_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_realtime_us(void)
{
    return read_us(CLOCK_REALTIME);
}

void clock_to_text(int64_t unix_us, char ret_text[CLOCK_TEXT_SIZE])
{
    int64_t seconds = unix_us / 1000000;
    int64_t microseconds = unix_us % 1000000;
    if (microseconds < 0) {
        microseconds += 1000000;
        seconds--;
    }
    time_t when = (time_t)seconds;
    struct tm parts;
    bool is_known = gmtime_r(&when, &parts) != NULL;
    assert(is_known && parts.tm_year + 1900 >= 0 && parts.tm_year + 1900 <= 9999);
    bool fits =
        text_format(ret_text, CLOCK_TEXT_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", parts.tm_year + 1900,
                    parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, (int)microseconds);
    assert(fits);
}

/* Reads exactly count digits and the separator behind them ('\0': none is asked for). */
static bool read_part(const char **text, int count, char separator, int *ret_value)
{
    int value = 0;
    for (int i = 0; i < count; i++) {
        if (!isdigit((unsigned char)(*text)[i])) {
            return false;
        }
        value = value * 10 + ((*text)[i] - '0');
    }
    *text += count;
    if (separator != '\0') {
        if (**text != separator) {
            return false;
        }
        (*text)++;
    }
    *ret_value = value;
    return true;
}

static bool read_fraction_us(const char **text, int64_t *ret_us)
{
    *ret_us = 0;
    if (**text != '.') {
        return true;
    }
    (*text)++;
    int digits = 0;
    int64_t unit = 100000;
    for (; isdigit((unsigned char)**text); (*text)++, digits++, unit /= 10) {
        *ret_us += (**text - '0') * unit;
    }
    return digits >= 1 && digits <= 9;
}

static bool read_offset_seconds(const char **text, int *ret_seconds)
{
    *ret_seconds = 0;
    if (**text == 'Z') {
        (*text)++;
        return true;
    }
    if (**text != '+' && **text != '-') {
        return false;
    }
    int sign = **text == '-' ? -1 : 1;
    (*text)++;
    int hours;
    int minutes;
    if (!read_part(text, 2, ':', &hours) || !read_part(text, 2, '\0', &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *ret_seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

bool clock_from_text(const char *text, int64_t *ret_unix_us)
{
    assert(text != NULL && ret_unix_us != NULL);
    struct tm parts = {0};
    int64_t fraction_us;
    int offset_seconds;
    if (!read_part(&text, 4, '-', &parts.tm_year) || !read_part(&text, 2, '-', &parts.tm_mon) ||
        !read_part(&text, 2, 'T', &parts.tm_mday) || !read_part(&text, 2, ':', &parts.tm_hour) ||
        !read_part(&text, 2, ':', &parts.tm_min) || !read_part(&text, 2, '\0', &parts.tm_sec) ||
        !read_fraction_us(&text, &fraction_us) || !read_offset_seconds(&text, &offset_seconds) || *text != '\0') {
        return false;
    }
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    if (parts.tm_hour > 23 || parts.tm_min > 59 || parts.tm_sec > 59) {
        return false;
    }
    /* timegm carries the thirtieth of February into March; a part that changed was out of range. */
    struct tm normal = parts;
    int64_t seconds = (int64_t)timegm(&normal);
    if (normal.tm_mday != parts.tm_mday || normal.tm_mon != parts.tm_mon) {
        return false;
    }
    *ret_unix_us = (seconds - offset_seconds) * 1000000 + fraction_us;
    return true;
}
