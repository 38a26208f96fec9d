/* SPDX-License-Identifier: Apache-2.0
 *
 * Child processes of tests. Each dies with its test.
 */
#include "program.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENT_COUNT_MAX 64
#define LOG_SIZE_MAX (4 * 1024 * 1024)
#define TURN_MS 20

struct program {
    pid_t pid;
    int status;
    bool has_ended;
    char log_path[64];
};

static void sleep_ms(int ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

static void become(const char *name, const char *const *arguments, const char *failpoints, const char *log_path)
{
    char path[512];
    const char *vector[ARGUMENT_COUNT_MAX + 2] = {path};
    int written = snprintf(path, sizeof path, "%s/%s", ONCEWARD_BIN_DIR, name);
    int log_fd = open(log_path, O_WRONLY | O_APPEND);
    if (written < 0 || log_fd < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        _exit(126);
    }
    for (size_t i = 0; arguments[i] != NULL && i < ARGUMENT_COUNT_MAX; i++) {
        vector[i + 1] = arguments[i];
    }
    dup2(log_fd, STDOUT_FILENO);
    dup2(log_fd, STDERR_FILENO);
    unsetenv("ONCEWARD_TEST_DATABASE");
    unsetenv("ONCEWARD_TEST_KAFKA");
    if (failpoints != NULL) {
        setenv("ONCEWARD_FAILPOINTS", failpoints, 1);
    }
    execv(path, (char *const *)vector);
    _exit(127);
}

struct program *program_start(const char *name, const char *const *arguments, const char *failpoints)
{
    struct program *program = calloc(1, sizeof *program);
    assert(program != NULL);
    strcpy(program->log_path, "/tmp/onceward-test-XXXXXX");
    int log_fd = mkstemp(program->log_path);
    assert(log_fd >= 0);
    close(log_fd);
    program->pid = fork();
    assert(program->pid >= 0);
    if (program->pid == 0) {
        become(name, arguments, failpoints, program->log_path);
    }
    return program;
}

void program_signal(struct program *program, int signal_number)
{
    if (!program->has_ended) {
        kill(program->pid, signal_number);
    }
}

int program_wait(struct program *program, int timeout_ms)
{
    for (int waited_ms = 0; !program->has_ended; waited_ms += TURN_MS) {
        program->has_ended = waitpid(program->pid, &program->status, WNOHANG) == program->pid;
        if (!program->has_ended && waited_ms >= timeout_ms) {
            return PROGRAM_RUNS;
        }
        if (!program->has_ended) {
            sleep_ms(TURN_MS);
        }
    }
    return WIFEXITED(program->status) ? WEXITSTATUS(program->status) : -WTERMSIG(program->status);
}

static char *read_log(const struct program *program)
{
    FILE *file = fopen(program->log_path, "r");
    char *text = malloc(LOG_SIZE_MAX);
    assert(file != NULL && text != NULL);
    size_t size = fread(text, 1, LOG_SIZE_MAX - 1, file);
    text[size] = '\0';
    fclose(file);
    return text;
}

int program_log_count(const struct program *program, const char *text)
{
    char *log = read_log(program);
    int count = 0;
    for (const char *at = strstr(log, text); at != NULL; at = strstr(at + 1, text)) {
        count++;
    }
    free(log);
    return count;
}

bool program_logs(struct program *program, const char *text, int timeout_ms)
{
    for (int waited_ms = 0;; waited_ms += TURN_MS) {
        char *log = read_log(program);
        bool is_found = strstr(log, text) != NULL;
        free(log);
        if (is_found || waited_ms >= timeout_ms) {
            return is_found;
        }
        sleep_ms(TURN_MS);
    }
}

int program_port(struct program *program)
{
    bool is_told = program_logs(program, " port=", 10000);
    assert(is_told);
    char *log = read_log(program);
    long port = strtol(strstr(log, " port=") + strlen(" port="), NULL, 10);
    free(log);
    return (int)port;
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int program_get(int port, const char *path, char *ret_answer, size_t size)
{
    ret_answer[0] = '\0';
    int fd = connect_to(port);
    if (fd < 0) {
        return 0;
    }
    dprintf(fd, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    size_t used = 0;
    ssize_t got = 1;
    while (got > 0 && used + 1 < size) {
        got = read(fd, ret_answer + used, size - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    ret_answer[used] = '\0';
    close(fd);
    return used > 12 ? (int)strtol(ret_answer + strlen("HTTP/1.1 "), NULL, 10) : 0;
}

void program_show_log(struct program *program)
{
    char *log = read_log(program);
    fputs(log, stderr);
    free(log);
}

void program_free(struct program **programp)
{
    struct program *program = *programp;
    *programp = NULL;
    if (program == NULL) {
        return;
    }
    program_signal(program, SIGKILL);
    program_wait(program, 10000);
    unlink(program->log_path);
    free(program);
}
