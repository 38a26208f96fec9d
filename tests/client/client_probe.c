/* SPDX-License-Identifier: Apache-2.0
 *
 * Submits once by the C client and prints what came of it as one JSON object.
 * Usage: client_probe URL KEY TYPE DATA DEADLINE_MS [TOKEN]   ("-": no key, no data)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

static const char *given(const char *text)
{
    return strcmp(text, "-") == 0 ? NULL : text;
}

int main(int argc, char **argv)
{
    struct onceward_receipt receipt;
    struct onceward_answer answer;
    if (argc < 6) {
        return 2;
    }
    struct onceward_client *client = onceward_client_new(argv[1], argc > 6 ? argv[6] : NULL);
    if (client == NULL) {
        puts("{\"code\": \"no_client\"}");
        return 1;
    }
    onceward_client_set_patience(client, strtol(argv[5], NULL, 10), 2000);
    bool is_good = onceward_client_submit(client, given(argv[2]), argv[3], given(argv[4]), &receipt, &answer);
    printf("{\"good\": %s, \"status\": %d, \"code\": \"%s\", \"tries\": %d, \"replayed\": %s, \"id\": \"%s\", "
           "\"event_id\": "
           "\"%s\", \"queued\": %s}\n",
           is_good ? "true" : "false", answer.status, answer.code, answer.try_count,
           answer.is_replayed ? "true" : "false", receipt.id, receipt.event_id, receipt.is_queued ? "true" : "false");
    onceward_answer_done(&answer);
    onceward_client_free(&client);
    return is_good ? 0 : 1;
}
