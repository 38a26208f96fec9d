/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints over UDP. What a datagram says does not matter, only that it comes.
 */
#include "producer_hint.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"

struct target {
    int fd;
    struct sockaddr_storage address;
    socklen_t address_size;
};

struct producer_hint {
    size_t count;
    struct target targets[];
};

static bool resolve(const char *text, struct target *ret_target)
{
    struct config_address address;
    char port[8];
    if (!config_address_from_text(text, &address) || !text_format(port, sizeof port, "%d", address.port)) {
        return false;
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(address.host, port, &hints, &found) != 0) {
        return false;
    }
    ret_target->fd = socket(found->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    memcpy(&ret_target->address, found->ai_addr, found->ai_addrlen);
    ret_target->address_size = found->ai_addrlen;
    freeaddrinfo(found);
    return ret_target->fd >= 0;
}

struct producer_hint *producer_hint_new(const struct config_list *addresses)
{
    struct producer_hint *hint = calloc(1, sizeof *hint + addresses->count * sizeof *hint->targets);
    if (hint == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < addresses->count; i++) {
        if (resolve(addresses->items[i], &hint->targets[hint->count])) {
            hint->count++;
        } else {
            log_warning("producer.hint_unresolved", LOG_FIELDS(LOG_TEXT("address", addresses->items[i])),
                        "this relay gets no hints and finds events by itself");
        }
    }
    return hint;
}

void producer_hint_free(struct producer_hint **hintp)
{
    struct producer_hint *hint = *hintp;
    *hintp = NULL;
    if (hint != NULL) {
        for (size_t i = 0; i < hint->count; i++) {
            close(hint->targets[i].fd);
        }
        free(hint);
    }
}

void producer_hint_send(struct producer_hint *hint)
{
    for (size_t i = 0; i < hint->count; i++) {
        const struct target *target = &hint->targets[i];
        ssize_t sent = sendto(target->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&target->address,
                              target->address_size);
        (void)sent; /* Nobody there, a full buffer: the relay finds out by itself. */
    }
}
