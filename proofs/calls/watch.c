/* Writes down each call that changes the file system or sends to a socket, for where strace is not allowed.
 *
 * LD_PRELOAD this. WATCH_LOG names the file to append to: a line for each call that worked, when it has returned:
 * what, path, other path or bytes, separated by tabs. A sync has a line when it begins, too: it covers what was
 * written before that. Paths of descriptors are those that /proc tells.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int log_descriptor = -1;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("WATCH_LOG");
    if (path) log_descriptor = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void tell(const char *what, const char *path, const char *rest) {
    char line[3 * PATH_MAX];
    int saved = errno;
    int size = snprintf(line, sizeof line, "%s\t%s\t%s\n", what, path, rest);
    if (log_descriptor >= 0 && size > 0 && size < (int)sizeof line) syscall(SYS_write, log_descriptor, line, size);
    errno = saved;
}

static void path_of(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
}

static void absolute(int directory, const char *name, char *path) {
    char above[PATH_MAX] = "";
    if (name[0] == '/') { snprintf(path, PATH_MAX, "%s", name); return; }
    if (directory == AT_FDCWD) { if (!getcwd(above, sizeof above)) above[0] = 0; } else path_of(directory, above);
    if (strlen(above) + strlen(name) + 2 > PATH_MAX) { path[0] = 0; return; }
    strcpy(path, above); strcat(path, "/"); strcat(path, name);
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static void tell_descriptor(const char *what, int descriptor, const void *data, size_t size) {
    char path[PATH_MAX], rest[256] = "";
    path_of(descriptor, path);
    size_t count = 0;
    for (; data && count < size && count < sizeof rest - 1; count++) {
        char each = ((const char *)data)[count];
        if (each < ' ' || each > '~') break;
        rest[count] = each;
    }
    rest[count] = 0;
    tell(what, path, rest);
}

static void tell_name(const char *what, int directory, const char *name, int other, const char *target) {
    char path[PATH_MAX], rest[PATH_MAX] = "";
    absolute(directory, name, path);
    if (target) absolute(other, target, rest);
    tell(what, path, rest);
}

static void tell_open(int directory, const char *name, int flags) {
    char path[PATH_MAX];
    absolute(directory, name, path);
    if (flags & O_CREAT) tell("create", path, flags & O_TRUNC ? "empties" : "");
    else if (flags & O_TRUNC) tell("truncate", path, "");
}

#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { \
    va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }

#define OPEN(name) int name(const char *path, int flags, ...) { \
    MODE; REAL(name); int done = real(path, flags, mode); \
    if (done >= 0) tell_open(AT_FDCWD, path, flags); \
    return done; }
#define OPENAT(name) int name(int directory, const char *path, int flags, ...) { \
    MODE; REAL(name); int done = real(directory, path, flags, mode); \
    if (done >= 0) tell_open(directory, path, flags); \
    return done; }
OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64)

ssize_t write(int descriptor, const void *data, size_t size) {
    REAL(write); ssize_t done = real(descriptor, data, size);
    if (done >= 0) tell_descriptor("write", descriptor, data, size);
    return done;
}
#define PWRITE(name, offset) ssize_t name(int descriptor, const void *data, size_t size, offset position) { \
    REAL(name); ssize_t done = real(descriptor, data, size, position); \
    if (done >= 0) tell_descriptor("write", descriptor, NULL, 0); \
    return done; }
PWRITE(pwrite, off_t) PWRITE(pwrite64, off64_t)
ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    REAL(writev); ssize_t done = real(descriptor, parts, count);
    if (done >= 0) tell_descriptor("write", descriptor, NULL, 0);
    return done;
}
#define TRUNCATE(name, offset) int name(int descriptor, offset size) { \
    REAL(name); int done = real(descriptor, size); \
    if (!done) tell_descriptor("truncate", descriptor, NULL, 0); \
    return done; }
TRUNCATE(ftruncate, off_t) TRUNCATE(ftruncate64, off64_t)
#define MAP(name, offset) void *name(void *at, size_t size, int access, int flags, int descriptor, offset position) { \
    REAL(name); void *done = real(at, size, access, flags, descriptor, position); \
    if (done != MAP_FAILED && descriptor >= 0 && (flags & MAP_SHARED) && (access & PROT_WRITE)) \
        tell_descriptor("write", descriptor, NULL, 0); \
    return done; }
MAP(mmap, off_t) MAP(mmap64, off64_t)

#define SYNC(name) int name(int descriptor) { \
    REAL(name); tell_descriptor("sync begins", descriptor, NULL, 0); \
    int done = real(descriptor); \
    if (!done) tell_descriptor("sync", descriptor, NULL, 0); \
    return done; }
SYNC(fsync) SYNC(fdatasync)

int rename(const char *path, const char *target) {
    REAL(rename); int done = real(path, target);
    if (!done) tell_name("rename", AT_FDCWD, path, AT_FDCWD, target);
    return done;
}
int renameat(int from, const char *path, int to, const char *target) {
    REAL(renameat); int done = real(from, path, to, target);
    if (!done) tell_name("rename", from, path, to, target);
    return done;
}
int renameat2(int from, const char *path, int to, const char *target, unsigned flags) {
    REAL(renameat2); int done = real(from, path, to, target, flags);
    if (!done) tell_name("rename", from, path, to, target);
    return done;
}
int link(const char *path, const char *target) {
    REAL(link); int done = real(path, target);
    if (!done) tell_name("link", AT_FDCWD, path, AT_FDCWD, target);
    return done;
}
int linkat(int from, const char *path, int to, const char *target, int flags) {
    REAL(linkat); int done = real(from, path, to, target, flags);
    if (!done) tell_name("link", from, path, to, target);
    return done;
}
int unlink(const char *path) {
    REAL(unlink); int done = real(path);
    if (!done) tell_name("remove", AT_FDCWD, path, 0, NULL);
    return done;
}
int unlinkat(int directory, const char *path, int flags) {
    REAL(unlinkat); int done = real(directory, path, flags);
    if (!done) tell_name("remove", directory, path, 0, NULL);
    return done;
}
int rmdir(const char *path) {
    REAL(rmdir); int done = real(path);
    if (!done) tell_name("remove", AT_FDCWD, path, 0, NULL);
    return done;
}
int mkdir(const char *path, mode_t mode) {
    REAL(mkdir); int done = real(path, mode);
    if (!done) tell_name("make directory", AT_FDCWD, path, 0, NULL);
    return done;
}
int mkdirat(int directory, const char *path, mode_t mode) {
    REAL(mkdirat); int done = real(directory, path, mode);
    if (!done) tell_name("make directory", directory, path, 0, NULL);
    return done;
}

ssize_t send(int descriptor, const void *data, size_t size, int flags) {
    REAL(send); tell("send", "", ""); return real(descriptor, data, size, flags);
}
ssize_t sendto(int d, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    REAL(sendto); tell("send", "", ""); return real(d, data, size, flags, to, length);
}
ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
    REAL(sendmsg); tell("send", "", ""); return real(descriptor, message, flags);
}
