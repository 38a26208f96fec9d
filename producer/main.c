/* SPDX-License-Identifier: Apache-2.0
 *
 * onceward-producer: wires settings, log and the service; waits for a stop.
 */
#include <stdint.h>
#include <stdio.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/stop.h"
#include "producer.h"

static bool run(const struct producer_settings *settings, struct err *err)
{
    if (!failpoint_init(err) || !stop_init(err)) {
        return false;
    }
    struct producer *producer = producer_open(settings, err);
    if (producer == NULL) {
        return false;
    }
    log_info("producer.started",
             LOG_FIELDS(LOG_TEXT("host", settings->listen.host), LOG_INT("port", producer_port(producer)),
                        LOG_TEXT("tenant", settings->tenant)),
             "version %s", ONCEWARD_VERSION);
    if (settings->is_development) {
        log_warning("producer.development", LOG_FIELDS(LOG_TEXT("tenant", settings->tenant)),
                    "calls without a token are taken; that is for trying things out");
    }
    while (!stop_wait_ms(INT64_C(3600) * 1000)) {
    }
    log_info("producer.stopping", LOG_NO_FIELDS, "finishing what has begun");
    producer_close(&producer);
    return true;
}

int main(int argc, char **argv)
{
    struct producer_settings settings = {0};
    enum config_outcome outcome = config_load(&producer_settings_program, argc, argv, &settings, NULL, stdout, stderr);
    if (outcome != CONFIG_RUN) {
        return outcome == CONFIG_DONE ? 0 : 2;
    }
    log_init("onceward-producer", (enum log_level)settings.log_level, stderr);
    struct err err = ERR_INIT;
    bool is_good = run(&settings, &err);
    if (is_good) {
        log_info("producer.stopped", LOG_NO_FIELDS, "asked to");
    } else {
        log_error("producer.failed", LOG_FIELDS(LOG_ERR(&err)), "%s", err.text);
    }
    config_done(&producer_settings_program, &settings);
    return is_good ? 0 : 1;
}
