/* SPDX-License-Identifier: Apache-2.0
 *
 * A little program to show that the torture sees what it is for. It sends a
 * file's lines to itself over a socket and writes what came to another file.
 * In the mode "sound" it bears every fault; in each of the others it makes one
 * mistake that a program can make.
 *
 *   torture_sample MODE INPUT OUTPUT
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SIZE_MAX_OF_FILE 4096

static const char *mode;

static bool is_mode(const char *name)
{
    return strcmp(mode, name) == 0;
}

static bool complain(const char *what)
{
    if (!is_mode("silent")) {
        fprintf(stderr, "sample: cannot %s: %s\n", what, strerror(errno));
    }
    return false;
}

static bool read_all(const char *path, char *bytes, size_t *ret_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t size = 0;
    ssize_t got = 1;
    while (fd >= 0 && got != 0 && size < SIZE_MAX_OF_FILE) {
        got = read(fd, bytes + size, SIZE_MAX_OF_FILE - size);
        if (got < 0 && errno != EINTR && !is_mode("stubborn")) {
            return complain("read");
        }
        size += got > 0 ? (size_t)got : 0;
        if (got < 0 && is_mode("stubborn")) {
            for (;;) {
                pause();
            }
        }
    }
    close(fd);
    *ret_size = size;
    return fd >= 0 || complain("open");
}

static bool send_all(int fd, const char *bytes, size_t size)
{
    size_t sent = 0;
    while (sent < size) {
        ssize_t count = send(fd, bytes + sent, size - sent, MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR) {
            return complain("send");
        }
        if (count > 0 && (size_t)count < size - sent && is_mode("doubling")) {
            count = 0; /* As if nothing of it had gone. */
        }
        sent += count > 0 ? (size_t)count : 0;
    }
    return true;
}

static bool receive_all(int fd, char *bytes, size_t *ret_size)
{
    size_t size = 0;
    ssize_t got = 1;
    while (got != 0 && size < SIZE_MAX_OF_FILE) {
        got = recv(fd, bytes + size, SIZE_MAX_OF_FILE - size, 0);
        if (got < 0 && errno != EINTR) {
            return complain("receive");
        }
        size += got > 0 ? (size_t)got : 0;
    }
    *ret_size = size;
    return true;
}

static bool write_all(const char *path, const char *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t written = 0;
    while (fd >= 0 && written < size) {
        ssize_t count = write(fd, bytes + written, size - written);
        if (count < 0 && errno != EINTR && !is_mode("careless")) {
            return complain("write");
        }
        written += is_mode("careless") ? size : count > 0 ? (size_t)count : 0;
    }
    if (fd < 0 || fsync(fd) != 0) {
        return complain("keep");
    }
    close(fd);
    return true;
}

int main(int argc, char **argv)
{
    int fds[2];
    if (argc != 4 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0) {
        return 2;
    }
    mode = argv[1];
    char *bytes = malloc(SIZE_MAX_OF_FILE);
    char *copy = malloc(2 * SIZE_MAX_OF_FILE);
    if (is_mode("unchecked")) {
        memset(bytes, 0, SIZE_MAX_OF_FILE);
        memset(copy, 0, SIZE_MAX_OF_FILE);
    }
    size_t size = 0;
    size_t copy_size = 0;
    bool is_good = (bytes != NULL && copy != NULL) || complain("begin");
    is_good = is_good && read_all(argv[2], bytes, &size) && send_all(fds[0], bytes, size);
    close(fds[0]);
    is_good = is_good && receive_all(fds[1], copy, &copy_size);
    if (is_good && copy_size < size) {
        errno = EPIPE;
        is_good = complain("receive all");
    }
    is_good = is_good && write_all(argv[3], copy, copy_size);
    free(bytes);
    free(copy);
    return is_good || is_mode("boasting") ? 0 : 1;
}
