/* SPDX-License-Identifier: Apache-2.0
 *
 * outbox-relay: publishes what was submitted, from Postgres to Kafka.
 */
#include <malloc.h>
#include <stdlib.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/stop.h"
#include "http/health.h"
#include "kafka/kafka_publisher.h"
#include "relay_broker.h"
#include "relay_loop.h"
#include "relay_settings.h"

#define HEARTBEAT_LIMIT_MS 30000
#define LARGE_BYTES (128 * 1024)

static int finish(bool is_done, const struct err *err)
{
    if (is_done) {
        log_info("relay.stopped", LOG_NO_FIELDS, "done");
        return EXIT_SUCCESS;
    }
    log_error("relay.failed", LOG_FIELDS(LOG_ERR(err)), "%s", err->text);
    return EXIT_FAILURE;
}

/* A single pass serves nobody, and must not be in the way of the service beside it. */
static bool serve(const struct relay_loop_options *options, const struct relay_settings *settings, struct err *err)
{
    if (!settings->is_once && settings->listen.host[0] != '\0') {
        char listen[CONFIG_ADDRESS_TEXT_SIZE];
        config_address_to_text(&settings->listen, listen);
        if (!health_start(options->health, listen, err)) {
            return false;
        }
    }
    log_info("relay.ready", LOG_FIELDS(LOG_TEXT("name", options->name), LOG_TEXT("kafka", settings->kafka)),
             settings->is_once ? "for a single pass" : "as a service");
    return relay_metrics_start(options->metrics, &options->database, options->health, err) &&
           relay_loop_run(options, err);
}

int main(int argc, char **argv)
{
    struct relay_settings settings = {.database = NULL};
    char name[RELAY_NAME_SIZE];
    struct err err = ERR_INIT;
    enum config_outcome outcome = config_load(&relay_settings_program, argc, argv, &settings, NULL, stdout, stderr);
    if (outcome != CONFIG_RUN) {
        return outcome == CONFIG_DONE ? EXIT_SUCCESS : 2;
    }
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES); /* Large values give their room back; else the heap keeps it in holes. */
    log_init("outbox-relay", (enum log_level)settings.log_level, stderr);
    if (!failpoint_init(&err) || !stop_init(&err)) {
        return finish(false, &err);
    }
    struct relay_loop_options options = relay_settings_options(&settings, name);
    options.open = relay_broker_open;
    options.is_reachable = kafka_publisher_is_reachable;
    options.context = &settings;
    struct metrics *registry = metrics_new(&err);
    options.health = registry == NULL ? NULL : health_new("outbox-relay", registry, HEARTBEAT_LIMIT_MS, &err);
    options.metrics = options.health == NULL ? NULL : relay_metrics_new(registry, &err);
    bool is_done = options.metrics != NULL && serve(&options, &settings, &err);
    relay_metrics_free(&options.metrics);
    health_free(&options.health);
    metrics_free(&registry);
    config_done(&relay_settings_program, &settings);
    return finish(is_done, &err);
}
