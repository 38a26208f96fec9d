/* SPDX-License-Identifier: Apache-2.0
 *
 * Submits through HTTP: N clients, each with one connection, POST /submissions
 * one after another, as fast as the answers come or at a rate. At a rate a
 * duration begins when the call was due, so that a stall is not left out.
 * With --out each accepted event is written with the moment that it was due:
 * "EVENT_ID MICROSECONDS" by the day's clock. With --keys each call has a new
 * Idempotency-Key.
 *
 *   bench_submit --port PORT [--clients N] [--seconds S] [--rate PER_SECOND] [--bytes N] [--type TYPE] [--out FILE]
 *                [--keys]
 */
#include <arpa/inet.h>
#include <assert.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench_samples.h"

#define SAMPLE_COUNT_MAX 200000
#define CLIENT_COUNT_MAX 1024
#define ANSWER_SIZE 4096
#define ID_SIZE 37
#define KEY_SIZE 48

struct plan {
    int port;
    size_t client_count;
    double seconds;
    double rate; /* 0: as fast as it goes. */
    size_t data_bytes;
    const char *type;
    FILE *out;
    int has_keys;
    char *request;
    size_t request_size;
    size_t key_offset; /* Of KEY_SIZE blanks, where a key goes. */
    int64_t begun_us;
    int64_t until_us;
    int64_t wall_offset_us; /* The day's clock minus the monotonic one. */
};

struct client {
    pthread_t thread;
    const struct plan *plan;
    size_t index;
    size_t failure_count;
    struct bench_samples samples;
};

static pthread_mutex_t out_mutex = PTHREAD_MUTEX_INITIALIZER;

static int dial(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connect(fd, (struct sockaddr *)&address, sizeof address) == 0 ? fd : -1;
}

static int send_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            return 0;
        }
        text += sent;
        size -= (size_t)sent;
    }
    return 1;
}

/* Reads one answer; its body ends in a newline, which nothing before it holds. 1 for 201, 0 for others, -1: cut. */
static int read_answer(int fd, char text[ANSWER_SIZE])
{
    size_t size = 0;
    for (;;) {
        ssize_t got = recv(fd, text + size, ANSWER_SIZE - 1 - size, 0);
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

static void write_event(const struct plan *plan, const char *answer, int64_t due_us)
{
    static const char name[] = "\"event_id\":\"";
    const char *id = strstr(answer, name);
    assert(id != NULL);
    pthread_mutex_lock(&out_mutex);
    fprintf(plan->out, "%.*s %lld\n", ID_SIZE - 1, id + sizeof name - 1, (long long)(due_us + plan->wall_offset_us));
    pthread_mutex_unlock(&out_mutex);
}

/* When this client's call number n is due: the clients take turns. */
static int64_t due_us(const struct client *client, size_t n)
{
    const struct plan *plan = client->plan;
    double turn = (double)(n * plan->client_count + client->index);
    return plan->begun_us + (int64_t)(turn * 1e6 / plan->rate);
}

static void sleep_until(int64_t moment_us)
{
    struct timespec moment = {.tv_sec = moment_us / 1000000, .tv_nsec = moment_us % 1000000 * 1000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL);
}

/* The blanks behind a key are the header's, not the key's. */
static void write_key(const struct client *client, char *request, size_t n)
{
    const struct plan *plan = client->plan;
    char key[KEY_SIZE + 1];
    int size = snprintf(key, sizeof key, "%016llx-%zu-%zu", (unsigned long long)(plan->begun_us + plan->wall_offset_us),
                        client->index, n);
    assert(size > 0 && size <= KEY_SIZE);
    memset(request + plan->key_offset, ' ', KEY_SIZE);
    memcpy(request + plan->key_offset, key, (size_t)size);
}

static void *run(void *context)
{
    struct client *client = context;
    const struct plan *plan = client->plan;
    char answer[ANSWER_SIZE];
    char *request = malloc(plan->request_size);
    assert(request != NULL);
    memcpy(request, plan->request, plan->request_size);
    int fd = dial(plan->port);
    for (size_t n = 0; fd >= 0; n++) {
        int64_t started_us = plan->rate > 0 ? due_us(client, n) : bench_monotonic_us();
        if (started_us >= plan->until_us) {
            break;
        }
        if (plan->rate > 0) {
            sleep_until(started_us);
        }
        if (plan->has_keys) {
            write_key(client, request, n);
        }
        int is_good = send_all(fd, request, plan->request_size) ? read_answer(fd, answer) : -1;
        if (is_good != 1) {
            client->failure_count++;
        }
        if (is_good < 0) {
            break;
        }
        bench_samples_add(&client->samples, bench_monotonic_us() - started_us);
        if (is_good == 1 && plan->out != NULL) {
            write_event(plan, answer, started_us);
        }
    }
    client->failure_count += fd < 0;
    free(request);
    close(fd);
    return NULL;
}

/* The data of an order, made longer by its note. */
static void make_request(struct plan *plan)
{
    size_t size_max = plan->data_bytes + 1024;
    char *body = malloc(size_max);
    plan->request = malloc(size_max + 1024);
    char *note = malloc(plan->data_bytes + 1);
    assert(body != NULL && plan->request != NULL && note != NULL);
    memset(note, 'n', plan->data_bytes);
    note[plan->data_bytes] = '\0';
    int body_size = snprintf(body, size_max,
                             "{\"type\":\"%s\",\"data\":{\"order\":4711,\"customer\":\"somebody\",\"note\":\"%s\","
                             "\"lines\":[{\"article\":\"a-1\",\"count\":2}]}}",
                             plan->type, note);
    int size = snprintf(plan->request, size_max + 1024, "POST /submissions HTTP/1.1\r\nHost: bench\r\n%s",
                        plan->has_keys ? "Idempotency-Key: " : "");
    plan->key_offset = (size_t)size;
    size += snprintf(plan->request + size, size_max + 1024 - (size_t)size,
                     "%*sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                     plan->has_keys ? KEY_SIZE + 2 : 0, plan->has_keys ? "\r\n" : "", body_size, body);
    plan->request_size = (size_t)size;
    free(note);
    free(body);
}

static int read_options(int argc, char **argv, struct plan *plan)
{
    static const struct option names[] = {{"port", 1, NULL, 'p'}, {"clients", 1, NULL, 'c'}, {"seconds", 1, NULL, 's'},
                                          {"rate", 1, NULL, 'r'}, {"bytes", 1, NULL, 'b'},   {"type", 1, NULL, 't'},
                                          {"out", 1, NULL, 'o'},  {"keys", 0, NULL, 'k'},    {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 'p': plan->port = (int)strtol(optarg, NULL, 10); break;
        case 'c': plan->client_count = strtoul(optarg, NULL, 10); break;
        case 's': plan->seconds = strtod(optarg, NULL); break;
        case 'r': plan->rate = strtod(optarg, NULL); break;
        case 'b': plan->data_bytes = strtoul(optarg, NULL, 10); break;
        case 't': plan->type = optarg; break;
        case 'o': plan->out = fopen(optarg, "we"); break;
        case 'k': plan->has_keys = 1; break;
        default: return 0;
        }
    }
    return plan->port > 0 && plan->client_count > 0 && plan->client_count <= CLIENT_COUNT_MAX;
}

int main(int argc, char **argv)
{
    struct plan plan = {.client_count = 64, .seconds = 10, .type = "example.submitted"};
    if (!read_options(argc, argv, &plan)) {
        fprintf(stderr, "usage: bench_submit --port PORT [--clients N] [--seconds S] [--rate PER_SECOND] [--bytes N] "
                        "[--type TYPE] [--out FILE] [--keys]\n");
        return 2;
    }
    struct client *clients = calloc(plan.client_count, sizeof *clients);
    assert(clients != NULL);
    make_request(&plan);
    plan.begun_us = bench_monotonic_us();
    plan.wall_offset_us = bench_wall_us() - plan.begun_us;
    plan.until_us = plan.begun_us + (int64_t)(plan.seconds * 1e6);
    for (size_t i = 0; i < plan.client_count; i++) {
        clients[i].plan = &plan;
        clients[i].index = i;
        bench_samples_init(&clients[i].samples, SAMPLE_COUNT_MAX);
        pthread_create(&clients[i].thread, NULL, run, &clients[i]);
    }
    struct bench_samples all;
    bench_samples_init(&all, 0);
    size_t failure_count = 0;
    for (size_t i = 0; i < plan.client_count; i++) {
        pthread_join(clients[i].thread, NULL);
        bench_samples_merge(&all, &clients[i].samples);
        failure_count += clients[i].failure_count;
        bench_samples_done(&clients[i].samples);
    }
    bench_print(all.count, (double)(bench_monotonic_us() - plan.begun_us) / 1e6, &all, failure_count);
    int code = all.count > 0 && failure_count == 0 && (plan.out == NULL || fclose(plan.out) == 0) ? 0 : 1;
    bench_samples_done(&all);
    free(plan.request);
    free(clients);
    return code;
}
