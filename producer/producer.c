/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens and closes the parts in the order in which they lean on each other:
 * the server first hears no more, then what waits is finished.
 */
#include "producer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/text.h"
#include "http/health.h"
#include "http/http_server.h"
#include "http/metrics.h"
#include "producer_auth.h"
#include "producer_routes.h"

#define DRAIN_MS 20000

/* Each connection is a descriptor; the usual soft limit of 1 024 is for programs that use select(). */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool open_server(struct producer *producer, struct err *err)
{
    const struct producer_settings *settings = producer->settings;
    char listen[CONFIG_ADDRESS_TEXT_SIZE];
    config_address_to_text(&settings->listen, listen);
    size_t route_count = 0;
    struct http_options options = {
        .listen = listen,
        .context = producer,
        .wants_body = producer_auth_wants_body,
        .limits = http_limits_default,
        .metrics = producer->metrics,
    };
    const struct http_route *routes = producer_routes(settings, &route_count);
    options.routes = producer_auth_routes(producer->auth, routes, route_count);
    options.route_count = route_count;
    options.limits.connection_count_max = (size_t)settings->connection_count_max;
    options.limits.peer_connection_count_max = (size_t)settings->peer_connection_count_max;
    options.limits.head_size_max = settings->head_bytes_max;
    options.limits.bodies_size_max = settings->bodies_bytes_max;
    producer->server = http_server_open(&options, err);
    return producer->server != NULL;
}

static bool make_url(struct producer *producer, struct err *err)
{
    const struct producer_settings *settings = producer->settings;
    char listen[CONFIG_ADDRESS_TEXT_SIZE];
    config_address_to_text(&settings->listen, listen);
    bool is_whole = settings->public_url != NULL
                        ? text_copy(producer->public_url, sizeof producer->public_url, settings->public_url)
                        : text_format(producer->public_url, sizeof producer->public_url, "http://%s", listen);
    return is_whole || err_set(err, ERR_PERMANENT, "public_url_invalid", "the public URL is too long");
}

static bool open_parts(struct producer *producer, struct err *err)
{
    producer->metrics = metrics_new(err);
    producer->health = producer->metrics == NULL ? NULL : health_new("onceward-producer", producer->metrics, 0, err);
    if (producer->health == NULL) {
        return false;
    }
    producer->hint = producer_hint_new(&producer->settings->relay_hints);
    producer->auth = producer_auth_new(producer->settings, producer->metrics, err);
    if (producer->auth == NULL) {
        return false;
    }
    if (producer->hint == NULL) {
        return err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the producer");
    }
    health_set_unready(producer->health, "database", "not connected yet");
    health_set_unready(producer->health, "partitions", "not looked at yet");
    const struct producer_batch_options batch = {.settings = producer->settings,
                                                 .public_url = producer->public_url,
                                                 .hint = producer->hint,
                                                 .health = producer->health,
                                                 .metrics = producer->metrics};
    const struct producer_reader_options reader = {.settings = producer->settings,
                                                   .public_url = producer->public_url,
                                                   .hint = producer->hint,
                                                   .health = producer->health};
    producer->batch = producer_batch_new(&batch, err);
    producer->reader = producer->batch == NULL ? NULL : producer_reader_new(&reader, err);
    producer->wait = producer->reader == NULL ? NULL
                                              : producer_wait_open(producer->settings, producer->reader,
                                                                   producer->health, producer->metrics, err);
    producer->reaper = producer->wait == NULL
                           ? NULL
                           : producer_reaper_open(producer->settings, producer_batch_flights(producer->batch),
                                                  producer->health, producer->metrics, err);
    return producer->reaper != NULL && open_server(producer, err);
}

struct producer *producer_open(const struct producer_settings *settings, struct err *err)
{
    struct producer *producer = calloc(1, sizeof *producer);
    if (producer == NULL) {
        err_set(err, ERR_TRANSIENT, "out_of_memory", "no memory for the producer");
        return NULL;
    }
    producer->settings = settings;
    raise_file_limit();
    if (!make_url(producer, err) || !open_parts(producer, err)) {
        producer_close(&producer);
    }
    return producer;
}

int producer_port(const struct producer *producer)
{
    return http_server_port(producer->server);
}

void producer_close(struct producer **producerp)
{
    struct producer *producer = *producerp;
    *producerp = NULL;
    if (producer == NULL) {
        return;
    }
    if (producer->wait != NULL) {
        producer_wait_stop(producer->wait);
    }
    if (producer->server != NULL) {
        http_server_stop(producer->server, DRAIN_MS);
    }
    producer_reaper_close(&producer->reaper);
    producer_wait_close(&producer->wait);
    producer_reader_free(&producer->reader);
    producer_batch_free(&producer->batch);
    http_server_free(&producer->server);
    producer_auth_free(&producer->auth);
    producer_hint_free(&producer->hint);
    health_free(&producer->health);
    metrics_free(&producer->metrics);
    free(producer);
}
