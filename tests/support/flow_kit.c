/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports, HTTP by hand, and waiting for what will come.
 */
#include "flow_kit.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int flow_kit_free_port(int type)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, type, 0);
    assert(fd >= 0);
    int bound = bind(fd, (struct sockaddr *)&address, size);
    assert(bound == 0 && getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    close(fd);
    return ntohs(address.sin_port);
}

int flow_kit_dial(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

void flow_kit_hint(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ssize_t sent = sendto(fd, "1", 1, 0, (struct sockaddr *)&address, sizeof address);
    assert(sent == 1);
    close(fd);
}

static void http_get(int port, const char *path, char *answer, size_t size)
{
    answer[0] = '\0';
    int fd = flow_kit_dial(port);
    if (fd < 0) {
        return;
    }
    char request[128];
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", path);
    ssize_t sent = write(fd, request, (size_t)length);
    assert(sent == length);
    size_t used = 0;
    ssize_t got;
    while (used + 1 < size && (got = read(fd, answer + used, size - 1 - used)) > 0) {
        used += (size_t)got;
    }
    answer[used] = '\0';
    close(fd);
}

bool flow_kit_waits_for_answer(int port, const char *path, const char *text)
{
    char answer[65536];
    for (int64_t until_ms = now_ms() + FLOW_KIT_WAIT_MS; now_ms() < until_ms; usleep(20000)) {
        http_get(port, path, answer, sizeof answer);
        if (strstr(answer, text) != NULL) {
            return true;
        }
    }
    fprintf(stderr, "no \"%s\" in %s: %s\n", text, path, answer);
    return false;
}

bool flow_kit_waits_for_number(struct postgres_fixture *postgres, const char *sql, long long wanted)
{
    long long number = -1;
    for (int64_t until_ms = now_ms() + FLOW_KIT_WAIT_MS; now_ms() < until_ms; usleep(20000)) {
        number = postgres_fixture_number(postgres, sql);
        if (number == wanted) {
            return true;
        }
    }
    fprintf(stderr, "%s: %lld, not %lld\n", sql, number, wanted);
    return false;
}

struct program *flow_kit_start_relay(const char *database, const char *kafka, const char *name, int port,
                                     const char *failpoints)
{
    char listen[32];
    char hint[32];
    snprintf(listen, sizeof listen, "127.0.0.1:%d", port);
    snprintf(hint, sizeof hint, "127.0.0.1:%d", flow_kit_free_port(SOCK_DGRAM));
    const char *const arguments[] = {"--database", database, "--kafka",       kafka, "--name", name,
                                     "--listen",   listen,   "--hint-listen", hint,  NULL};
    return program_start("outbox-relay", arguments, failpoints);
}
