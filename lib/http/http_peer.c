/* SPDX-License-Identifier: Apache-2.0
 *
 * How many connections each peer has. A peer stands in the tree as long as it
 * has one, so the tree is never larger than the connections are many.
 */
#include "http_private.h"

#include <assert.h>
#include <netinet/in.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    return memcmp(&((const struct http_peer *)left)->address, &((const struct http_peer *)right)->address,
                  sizeof(struct http_peer_address));
}

static struct http_peer_address address_of(const struct sockaddr *address)
{
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct http_peer_address peer = {.bytes = {0}};
    if (address->sa_family == AF_INET) {
        struct sockaddr_in four;
        memcpy(&four, address, sizeof four);
        memcpy(peer.bytes, mapped, sizeof mapped);
        memcpy(peer.bytes + sizeof mapped, &four.sin_addr, sizeof four.sin_addr);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 six;
        memcpy(&six, address, sizeof six);
        bool is_mapped = memcmp(&six.sin6_addr, mapped, sizeof mapped) == 0;
        memcpy(peer.bytes, &six.sin6_addr, is_mapped ? sizeof peer.bytes : sizeof peer.bytes / 2);
    }
    return peer;
}

struct http_peer *http_peer_join(void **peers, const uv_tcp_t *tcp)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    int size = sizeof address;
    struct http_peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL || uv_tcp_getpeername(tcp, (struct sockaddr *)&address, &size) != 0) {
        free(peer);
        return NULL;
    }
    peer->address = address_of((const struct sockaddr *)&address);
    struct http_peer **place = tsearch(peer, peers, compare);
    if (place == NULL) {
        free(peer);
        return NULL;
    }
    if (*place != peer) {
        free(peer);
    }
    (*place)->conn_count++;
    return *place;
}

void http_peer_leave(void **peers, struct http_peer *peer)
{
    if (peer == NULL) {
        return;
    }
    assert(peer->conn_count > 0);
    if (--peer->conn_count == 0) {
        (void)tdelete(peer, peers, compare);
        free(peer);
    }
}
