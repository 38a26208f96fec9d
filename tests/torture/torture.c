/* SPDX-License-Identifier: Apache-2.0
 *
 * A library for LD_PRELOAD that lets the N-th call of a kind fail and counts the calls of every kind.
 *
 *   TORTURE_STATE  a file of at least sizeof(struct state) bytes: the counts stand in it, however the process ends
 *   TORTURE_KIND   alloc, library, read, write, fsync, send or receive; without it nothing fails
 *   TORTURE_AT     which call of the kind fails, from 1
 *   TORTURE_HOW    a name of the table below
 *
 * Whose calls count. "alloc": those made by the program's own code, told by the return address, or by libc for it, as
 * for a stream into memory; "library": those made by libpq and jansson, whose answers to it our code has to bear.
 * librdkafka, libuv and libcrypto end the process when they find no memory; there is nothing to test. All the other
 * kinds count every call of the process. A socket's read and write are receive and send. What a kernel never refuses
 * (eventfds and pipes, by which threads wake each other) is left alone.
 */
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define FRAME_COUNT_MAX 24

enum kind { ALLOC, LIBRARY, READ, WRITE, FSYNC, SEND, RECEIVE, KIND_COUNT, NO_KIND = KIND_COUNT };

static const char *const kind_names[KIND_COUNT] = {"alloc", "library", "read", "write", "fsync", "send", "receive"};

/* A whole number of pages is not needed; the driver reads it with struct.unpack, so the layout is fixed. */
struct state {
    _Atomic uint64_t counts[KIND_COUNT];
    _Atomic uint64_t failed_count;
    uint64_t is_loaded;
    char function[32];
    uint64_t caller; /* Relative to its object's begin, for addr2line. */
    char object[128];
};

enum effect { FAIL, SHORT, END }; /* Nothing is done; less than asked for is done; the stream ends here. */

/* How a call fails. A connection that is reset stays so: it is shut down, too. */
static const struct how {
    const char *name;
    enum effect effect;
    int number;
    bool cuts;
} hows[] = {
    {"nomem", FAIL, ENOMEM, false}, {"io", FAIL, EIO, false},          {"nospace", FAIL, ENOSPC, false},
    {"intr", FAIL, EINTR, false},   {"again", FAIL, EAGAIN, false},    {"short", SHORT, EINTR, false},
    {"end", END, 0, true},          {"reset", FAIL, ECONNRESET, true}, {"pipe", FAIL, EPIPE, true},
};

struct range {
    uintptr_t begin;
    uintptr_t end;
};

static struct {
    struct state *state;
    enum kind kind;
    uint64_t at;
    const struct how *how;
    struct range own;
    struct range libc;
    struct range libraries[2];
    FILE *files[8];
    int fds[8];
} torture = {.kind = NO_KIND};

/* The functions behind ours: those of libc, or of a sanitizer. */
#define REAL(function)                                                                                                 \
    static __typeof__(&function) real_##function;                                                                      \
    if (real_##function == NULL) {                                                                                     \
        real_##function = (__typeof__(&function))dlsym(RTLD_NEXT, #function);                                          \
    }
#define CALLER ((uintptr_t)__builtin_return_address(0))

static bool is_in(struct range range, uintptr_t address)
{
    return address >= range.begin && address < range.end;
}

/* The executable part of an object, if it is one whose calls are told apart. */
static int note_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    bool *has_own = context;
    struct range range = {0};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0) {
            range.begin = info->dlpi_addr + part->p_vaddr;
            range.end = range.begin + part->p_memsz;
        }
    }
    if (!*has_own) { /* The program comes first. */
        torture.own = range;
        *has_own = true;
    } else if (strstr(info->dlpi_name, "/libc.so") != NULL) {
        torture.libc = range;
    } else if (strstr(info->dlpi_name, "/libpq.so") != NULL) {
        torture.libraries[0] = range;
    } else if (strstr(info->dlpi_name, "/libjansson.so") != NULL) {
        torture.libraries[1] = range;
    }
    return 0;
}

static enum kind find_kind(const char *name)
{
    for (int i = 0; name != NULL && i < KIND_COUNT; i++) {
        if (strcmp(name, kind_names[i]) == 0) {
            return (enum kind)i;
        }
    }
    return NO_KIND;
}

static const struct how *find_how(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof hows / sizeof hows[0]; i++) {
        if (strcmp(name, hows[i].name) == 0) {
            return &hows[i];
        }
    }
    return NULL;
}

static void note_caller(const char *function, uintptr_t caller)
{
    Dl_info info;
    snprintf(torture.state->function, sizeof torture.state->function, "%s", function);
    if (dladdr((void *)caller, &info) != 0 && info.dli_fname != NULL) {
        snprintf(torture.state->object, sizeof torture.state->object, "%s", info.dli_fname);
        torture.state->caller = caller - (uintptr_t)info.dli_fbase;
    }
}

/* Counts a call. True when it is the one that is to fail. */
static bool fails(enum kind kind, const char *function, uintptr_t caller)
{
    if (kind == NO_KIND || torture.state == NULL) {
        return false;
    }
    uint64_t number = atomic_fetch_add(&torture.state->counts[kind], 1) + 1;
    if (kind != torture.kind || number != torture.at) {
        return false;
    }
    int saved = errno;
    note_caller(function, caller);
    errno = saved;
    atomic_fetch_add(&torture.state->failed_count, 1);
    return true;
}

/* Whether libc asks for memory because our own code called it. What has a wrapper here was counted there. */
static bool is_for_own(uintptr_t caller)
{
    static const char *const counted[] = {"strdup",    "__strdup",     "strndup",
                                          "__strndup", "reallocarray", "open_memstream"};
    static _Thread_local bool is_looking;
    void *frames[FRAME_COUNT_MAX];
    Dl_info info = {0};
    if (is_looking || torture.state == NULL) {
        return false;
    }
    is_looking = true;
    int count = backtrace(frames, FRAME_COUNT_MAX);
    bool has_name = dladdr((void *)caller, &info) != 0 && info.dli_sname != NULL;
    is_looking = false;
    for (size_t i = 0; has_name && i < sizeof counted / sizeof counted[0]; i++) {
        if (strcmp(info.dli_sname, counted[i]) == 0) {
            return false;
        }
    }
    int i = 0;
    while (i < count && (uintptr_t)frames[i] != caller) {
        i++;
    }
    while (i < count && is_in(torture.libc, (uintptr_t)frames[i])) {
        i++;
    }
    return i < count && is_in(torture.own, (uintptr_t)frames[i]);
}

static enum kind memory_kind(uintptr_t caller)
{
    if (is_in(torture.own, caller) || (is_in(torture.libc, caller) && is_for_own(caller))) {
        return ALLOC;
    }
    return is_in(torture.libraries[0], caller) || is_in(torture.libraries[1], caller) ? LIBRARY : NO_KIND;
}

/* == Memory == */

#define MEMORY_CALL(function, result, ...)                                                                             \
    REAL(function)                                                                                                     \
    if (fails(memory_kind(CALLER), #function, CALLER)) {                                                               \
        errno = ENOMEM;                                                                                                \
        return result;                                                                                                 \
    }                                                                                                                  \
    return real_##function(__VA_ARGS__)

void *malloc(size_t size)
{
    MEMORY_CALL(malloc, NULL, size);
}

void *calloc(size_t count, size_t size)
{
    MEMORY_CALL(calloc, NULL, count, size);
}

void *realloc(void *old, size_t size)
{
    MEMORY_CALL(realloc, NULL, old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
    MEMORY_CALL(reallocarray, NULL, old, count, size);
}

int posix_memalign(void **place, size_t alignment, size_t size)
{
    MEMORY_CALL(posix_memalign, ENOMEM, place, alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    MEMORY_CALL(aligned_alloc, NULL, alignment, size);
}

char *strdup(const char *text)
{
    MEMORY_CALL(strdup, NULL, text);
}

char *strndup(const char *text, size_t size)
{
    MEMORY_CALL(strndup, NULL, text, size);
}

int vasprintf(char **place, const char *format, va_list args)
{
    MEMORY_CALL(vasprintf, -1, place, format, args);
}

/* What a compiler with _FORTIFY_SOURCE makes of it. */
int __vasprintf_chk(char **place, int flag, const char *format, va_list args);

int __vasprintf_chk(char **place, int flag, const char *format, va_list args)
{
    MEMORY_CALL(__vasprintf_chk, -1, place, flag, format, args);
}

FILE *open_memstream(char **place, size_t *size)
{
    MEMORY_CALL(open_memstream, NULL, place, size);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
    MEMORY_CALL(pthread_create, EAGAIN, thread, attributes, run, context);
}

/* == Descriptors == */

static bool is_socket(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode);
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

static enum kind descriptor_kind(int fd, enum kind on_file, enum kind on_socket)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return NO_KIND;
    }
    if (S_ISSOCK(status.st_mode)) {
        return on_socket;
    }
    bool is_pipe = S_ISFIFO(status.st_mode) && fd > STDERR_FILENO;
    bool is_anonymous = (status.st_mode & S_IFMT) == 0; /* eventfd, epoll and their like. */
    return is_pipe || is_anonymous ? NO_KIND : on_file;
}

/* What the chosen call gives. Where it is to do a part of its work only, that is the part's size, else 0 or less. */
static ssize_t answer(int fd, size_t size)
{
    const struct how *how = torture.how;
    if (how->effect == SHORT && size > 1 && !(is_socket(fd) && !is_stream(fd))) {
        return (ssize_t)(size / 2 > 64 ? 64 : size / 2);
    }
    if (how->number == EAGAIN && (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0) {
        errno = EINTR;
        return -1;
    }
    if (how->cuts && is_socket(fd)) {
        shutdown(fd, SHUT_RDWR);
    }
    errno = how->number;
    return how->effect == END ? 0 : -1;
}

#define IO_CALL(kind, fd, size, function, shorter, ...)                                                                \
    REAL(function)                                                                                                     \
    if (fails((kind), #function, CALLER)) {                                                                            \
        ssize_t part = answer((fd), (size));                                                                           \
        if (part <= 0) {                                                                                               \
            return (__typeof__(real_##function(__VA_ARGS__)))part;                                                     \
        }                                                                                                              \
        shorter;                                                                                                       \
    }                                                                                                                  \
    return real_##function(__VA_ARGS__)

ssize_t read(int fd, void *bytes, size_t size)
{
    IO_CALL(descriptor_kind(fd, READ, RECEIVE), fd, size, read, size = (size_t)part, fd, bytes, size);
}

ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room);

ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room)
{
    IO_CALL(descriptor_kind(fd, READ, RECEIVE), fd, size, __read_chk, size = (size_t)part, fd, bytes, size, room);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    IO_CALL(descriptor_kind(fd, WRITE, SEND), fd, size, write, size = (size_t)part, fd, bytes, size);
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    IO_CALL(SEND, fd, size, send, size = (size_t)part, fd, bytes, size, flags);
}

ssize_t sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *address,
               socklen_t address_size)
{
    IO_CALL(SEND, fd, size, sendto, size = (size_t)part, fd, bytes, size, flags, address, address_size);
}

ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    IO_CALL(RECEIVE, fd, size, recv, size = (size_t)part, fd, bytes, size, flags);
}

ssize_t __recv_chk(int fd, void *bytes, size_t size, size_t room, int flags);

ssize_t __recv_chk(int fd, void *bytes, size_t size, size_t room, int flags)
{
    IO_CALL(RECEIVE, fd, size, __recv_chk, size = (size_t)part, fd, bytes, size, room, flags);
}

ssize_t recvfrom(int fd, void *bytes, size_t size, int flags, struct sockaddr *address, socklen_t *address_size)
{
    IO_CALL(RECEIVE, fd, size, recvfrom, size = (size_t)part, fd, bytes, size, flags, address, address_size);
}

int fsync(int fd)
{
    IO_CALL(FSYNC, fd, 0, fsync, (void)0, fd);
}

int fdatasync(int fd)
{
    IO_CALL(FSYNC, fd, 0, fdatasync, (void)0, fd);
}

/* Of several pieces a short call moves a part of the first. */
static size_t first_size(const struct iovec *pieces, size_t count)
{
    return count == 0 ? 0 : pieces[0].iov_len;
}

#define PIECES_CALL(kind, fd, pieces, count, function, ...)                                                            \
    struct iovec piece = {0};                                                                                          \
    IO_CALL((kind), (fd), first_size((pieces), (size_t)(count)), function,                                             \
            (piece = (struct iovec){(pieces)[0].iov_base, (size_t)part}, (pieces) = &piece, (count) = 1), __VA_ARGS__)

ssize_t readv(int fd, const struct iovec *pieces, int count)
{
    PIECES_CALL(descriptor_kind(fd, READ, RECEIVE), fd, pieces, count, readv, fd, pieces, count);
}

ssize_t writev(int fd, const struct iovec *pieces, int count)
{
    PIECES_CALL(descriptor_kind(fd, WRITE, SEND), fd, pieces, count, writev, fd, pieces, count);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct msghdr copy = *message;
    PIECES_CALL(SEND, fd, copy.msg_iov, copy.msg_iovlen, sendmsg, fd, &copy, flags);
}

/* The caller reads what the kernel wrote into its header, so that is given back. */
ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    struct iovec *pieces = message->msg_iov;
    size_t count = message->msg_iovlen;
    struct iovec piece = {0};
    REAL(recvmsg)
    if (fails(RECEIVE, "recvmsg", CALLER)) {
        ssize_t part = answer(fd, first_size(pieces, count));
        if (part <= 0) {
            return part;
        }
        piece = (struct iovec){pieces[0].iov_base, (size_t)part};
        message->msg_iov = &piece;
        message->msg_iovlen = 1;
    }
    ssize_t got = real_recvmsg(fd, message, flags);
    message->msg_iov = pieces;
    message->msg_iovlen = count;
    return got;
}

/* == Streams ==
 * libc's own streams read and write by calls that nobody can stand between, so the program's files are given streams
 * that come back here. */

static ssize_t stream_read(void *cookie, char *bytes, size_t size)
{
    return read((int)(intptr_t)cookie, bytes, size);
}

static ssize_t stream_write(void *cookie, const char *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) { /* As libc goes on after a part. */
        ssize_t count = write((int)(intptr_t)cookie, bytes + done, size - done);
        if (count < 0) {
            return 0; /* fopencookie's sign of an error. */
        }
        done += (size_t)count;
    }
    return (ssize_t)size;
}

static int stream_seek(void *cookie, off64_t *place, int whence)
{
    off_t at = lseek((int)(intptr_t)cookie, *place, whence);
    *place = at;
    return at < 0 ? -1 : 0;
}

static int stream_close(void *cookie)
{
    return close((int)(intptr_t)cookie);
}

static FILE *stream_open(int fd, const char *mode)
{
    const cookie_io_functions_t functions = {stream_read, stream_write, stream_seek, stream_close};
    FILE *file = fopencookie((void *)(intptr_t)fd, mode, functions);
    for (size_t i = 0; file != NULL && i < sizeof torture.files / sizeof torture.files[0]; i++) {
        if (torture.files[i] == NULL) {
            torture.files[i] = file;
            torture.fds[i] = fd;
            break;
        }
    }
    return file;
}

int fileno(FILE *file)
{
    REAL(fileno)
    for (size_t i = 0; i < sizeof torture.files / sizeof torture.files[0]; i++) {
        if (file != NULL && torture.files[i] == file) {
            return torture.fds[i];
        }
    }
    return real_fileno(file);
}

FILE *fopen(const char *path, const char *mode)
{
    REAL(fopen)
    if (torture.state == NULL || !is_in(torture.own, CALLER) || mode[0] != 'r' || strchr(mode, '+') != NULL) {
        return real_fopen(path, mode);
    }
    if (fails(ALLOC, "fopen", CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? NULL : stream_open(fd, "r");
}

/* == Start == */

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("TORTURE_STATE");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    void *shared = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared == MAP_FAILED) {
        abort();
    }
    void *frames[1];
    backtrace(frames, 1); /* Its first call loads what it needs. */
    bool has_own = false;
    dl_iterate_phdr(note_object, &has_own);
    torture.kind = find_kind(getenv("TORTURE_KIND"));
    torture.how = find_how(getenv("TORTURE_HOW"));
    const char *at = getenv("TORTURE_AT");
    torture.at = at == NULL ? 0 : strtoull(at, NULL, 10);
    if (getenv("TORTURE_KIND") != NULL && (torture.kind == NO_KIND || torture.how == NULL || torture.at == 0)) {
        abort();
    }
    stdout = stream_open(STDOUT_FILENO, "w");
    stderr = stream_open(STDERR_FILENO, "w");
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
    torture.state = shared;
    torture.state->is_loaded = 1;
}
