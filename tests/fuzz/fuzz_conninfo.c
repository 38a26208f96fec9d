/* SPDX-License-Identifier: Apache-2.0
 *
 * The masking of connection strings, against libpq's own reading of them: no
 * password that libpq would use can be read out of the masked text.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "base/config.h"
#include "fuzz_kit.h"

#define COMMON_SIZE 3 /* Of ever so many texts a letter or two is a part, the mask's own as well. */

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (; options != NULL && options->keyword != NULL; options++) {
        if (strcmp(options->keyword, keyword) == 0) {
            return options->val;
        }
    }
    return NULL;
}

static PQconninfoOption *parse(const char *text)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(text, &message);
    PQfreemem(message);
    return options;
}

/* In the masked text the password begins with the mask, and where it stood once and is no common text, it is gone. */
static void check_password(const char *text, const char *masked, const char *keyword)
{
    PQconninfoOption *before = parse(text);
    PQconninfoOption *after = parse(masked);
    const char *password = value_of(before, keyword);
    const char *left = value_of(after, keyword);
    if (password != NULL && password[0] != '\0') {
        assert(left == NULL || strncmp(left, "***", 3) == 0);
        const char *place = strlen(password) < COMMON_SIZE ? NULL : strstr(text, password);
        bool is_once = place != NULL && strstr(place + 1, password) == NULL;
        assert(!is_once || strstr(masked, password) == NULL);
    }
    PQconninfoFree(before);
    PQconninfoFree(after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = fuzz_input_of(data, size);
    size_t text_size;
    char *text = fuzz_rest(&input, &text_size);
    if (strlen(text) == text_size) {
        char *masked = config_mask_conninfo(text);
        check_password(text, masked, "password");
        check_password(text, masked, "sslpassword");
        free(masked);
    }
    free(text);
    return 0;
}
