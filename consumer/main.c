/* SPDX-License-Identifier: Apache-2.0
 *
 * onceward-consumer: wires settings, log, health and the consumer's loop.
 */
#include <stdio.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/stop.h"
#include "consumer.h"
#include "consumer_settings.h"
#include "http/health.h"
#include "http/metrics.h"

#define HEARTBEAT_LIMIT_MS 60000

static bool run(const struct consumer_settings *settings, struct health *health, struct metrics *metrics,
                struct err *err)
{
    char listen[CONFIG_ADDRESS_TEXT_SIZE];
    config_address_to_text(&settings->listen, listen);
    if (!failpoint_init(err) || !stop_init(err) || !health_start(health, listen, err)) {
        return false;
    }
    struct consumer *consumer = consumer_new(settings, health, metrics, err);
    bool is_good = consumer != NULL && consumer_run(consumer, err);
    consumer_free(&consumer);
    return is_good;
}

int main(int argc, char **argv)
{
    struct consumer_settings settings = {.database = NULL};
    enum config_outcome outcome = config_load(&consumer_settings_program, argc, argv, &settings, NULL, stdout, stderr);
    if (outcome != CONFIG_RUN) {
        return outcome == CONFIG_DONE ? 0 : 2;
    }
    log_init("onceward-consumer", (enum log_level)settings.log_level, stderr);
    struct err err = ERR_INIT;
    struct metrics *metrics = metrics_new(&err);
    struct health *health = metrics == NULL ? NULL : health_new("onceward-consumer", metrics, HEARTBEAT_LIMIT_MS, &err);
    bool is_good = health != NULL && run(&settings, health, metrics, &err);
    if (is_good) {
        log_info("consumer.stopped", LOG_NO_FIELDS, "asked to");
    } else {
        log_error("consumer.failed", LOG_FIELDS(LOG_ERR(&err)), "%s", err.text);
    }
    health_free(&health);
    metrics_free(&metrics);
    config_done(&consumer_settings_program, &settings);
    return is_good ? 0 : 1;
}
