/* SPDX-License-Identifier: Apache-2.0
 *
 * The producer as a whole: its server, its batchers and its readers.
 */
#ifndef PRODUCER_H
#define PRODUCER_H

#include "base/err.h"
#include "producer_batch.h"
#include "producer_hint.h"
#include "producer_reader.h"
#include "producer_reaper.h"
#include "producer_settings.h"
#include "producer_wait.h"

struct health;
struct http_server;
struct producer_auth;
struct metrics;

struct producer {
    const struct producer_settings *settings;
    char public_url[512];
    struct metrics *metrics;
    struct health *health;
    struct producer_hint *hint;
    struct producer_batch *batch;
    struct producer_reader *reader;
    struct producer_wait *wait;
    struct producer_auth *auth;
    struct producer_reaper *reaper;
    struct http_server *server;
};

/* Starts everything; with the database away too. Permanent error when the address is taken. */
struct producer *producer_open(const struct producer_settings *settings, struct err *err) MUST_CHECK;

/* The port that was bound. */
int producer_port(const struct producer *producer);

/* Stops accepting, lets what has begun finish, closes. */
void producer_close(struct producer **producerp);

#endif
