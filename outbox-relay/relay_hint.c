/* SPDX-License-Identifier: Apache-2.0
 *
 * The socket for hints. Nothing is read out of a datagram, so nobody can ask
 * for more than a look at the outbox.
 */
#include "relay_hint.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"

#define TAKE_COUNT_MAX 1000

bool relay_hint_open(const struct config_address *address, int *ret_fd, struct err *err)
{
    *ret_fd = -1;
    if (address->host[0] == '\0') {
        return true;
    }
    char port[8];
    (void)text_format(port, sizeof port, "%u", (unsigned)address->port);
    struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int result = getaddrinfo(address->host, port, &wanted, &found);
    if (result != 0) {
        return err_set(err, ERR_PERMANENT, "address_invalid", "hint_listen %s: %s", address->host,
                       gai_strerror(result));
    }
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool is_bound = fd >= 0 && bind(fd, found->ai_addr, found->ai_addrlen) == 0;
    int cause = errno;
    freeaddrinfo(found);
    if (!is_bound) {
        if (fd >= 0) {
            close(fd);
        }
        return err_set(err, ERR_PERMANENT, "address_taken", "hint_listen %s:%s: %s", address->host, port,
                       strerror(cause));
    }
    *ret_fd = fd;
    return true;
}

bool relay_hint_take(int fd)
{
    char byte;
    int count = 0;
    while (fd >= 0 && count < TAKE_COUNT_MAX && recv(fd, &byte, sizeof byte, 0) >= 0) {
        count++;
    }
    return count > 0;
}

void relay_hint_close(int *fdp)
{
    if (*fdp >= 0) {
        close(*fdp);
        *fdp = -1;
    }
}
