/* SPDX-License-Identifier: Apache-2.0
 *
 * Submits a second through HTTP: N clients, each with one connection, POST
 * /submissions one after another. Says rate, median and 99th percentile.
 *
 *   bench_submit PORT [CLIENTS] [SECONDS] [TYPE]
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_COUNT_MAX 200000
#define CLIENT_COUNT_MAX 1024

struct client {
    pthread_t thread;
    int port;
    double until;
    const char *type;
    size_t count;
    size_t failure_count;
    float *samples_ms;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int dial(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

/* Reads one answer; its body ends in a newline, which nothing before it holds. True for 201. */
static int read_answer(int fd)
{
    char text[4096];
    size_t size = 0;
    for (;;) {
        ssize_t got = recv(fd, text + size, sizeof text - 1 - size, 0);
        if (got <= 0) {
            return -1;
        }
        size += (size_t)got;
        text[size] = '\0';
        if (strstr(text, "}\n") != NULL) {
            return strncmp(text, "HTTP/1.1 201", 12) == 0;
        }
    }
}

static void *run(void *context)
{
    struct client *client = context;
    char body[256];
    char text[1024];
    int body_size = snprintf(body, sizeof body,
                             "{\"type\":\"%s\",\"data\":{\"order\":4711,\"customer\":\"somebody\","
                             "\"lines\":[{\"article\":\"a-1\",\"count\":2}]}}",
                             client->type);
    int size = snprintf(text, sizeof text,
                        "POST /submissions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json"
                        "\r\nContent-Length: %d\r\n\r\n%s",
                        body_size, body);
    int fd = dial(client->port);
    while (fd >= 0 && now_s() < client->until && client->count < SAMPLE_COUNT_MAX) {
        double started = now_s();
        int is_good = send(fd, text, (size_t)size, MSG_NOSIGNAL) == size ? read_answer(fd) : -1;
        if (is_good < 0) {
            break;
        }
        client->failure_count += is_good == 0;
        client->samples_ms[client->count++] = (float)((now_s() - started) * 1000);
    }
    close(fd);
    return NULL;
}

static int compare(const void *left, const void *right)
{
    float a = *(const float *)left;
    float b = *(const float *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_submit PORT [CLIENTS] [SECONDS] [TYPE]\n");
        return 2;
    }
    size_t client_count = argc > 2 ? (size_t)atol(argv[2]) : 64;
    double seconds = argc > 3 ? atof(argv[3]) : 10;
    client_count = client_count > CLIENT_COUNT_MAX ? CLIENT_COUNT_MAX : client_count;
    struct client *clients = calloc(client_count, sizeof *clients);
    double started = now_s();
    for (size_t i = 0; i < client_count; i++) {
        clients[i] = (struct client){
            .port = atoi(argv[1]), .until = started + seconds, .type = argc > 4 ? argv[4] : "example.submitted"};
        clients[i].samples_ms = malloc(SAMPLE_COUNT_MAX * sizeof(float));
        pthread_create(&clients[i].thread, NULL, run, &clients[i]);
    }
    size_t count = 0;
    size_t failure_count = 0;
    for (size_t i = 0; i < client_count; i++) {
        pthread_join(clients[i].thread, NULL);
        count += clients[i].count;
        failure_count += clients[i].failure_count;
    }
    double elapsed = now_s() - started;
    float *all = malloc((count + 1) * sizeof *all);
    size_t used = 0;
    for (size_t i = 0; i < client_count; i++) {
        memcpy(all + used, clients[i].samples_ms, clients[i].count * sizeof *all);
        used += clients[i].count;
    }
    qsort(all, used, sizeof *all, compare);
    if (used > 0) {
        printf("%zu clients, %.1f s: %zu submits, %.0f/s, p50 %.2f ms, p99 %.2f ms, %zu not 201\n", client_count,
               elapsed, count, (double)count / elapsed, (double)all[used / 2], (double)all[used * 99 / 100],
               failure_count);
    }
    return used > 0 && failure_count == 0 ? 0 : 1;
}
