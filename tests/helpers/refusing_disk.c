/* Makes reads of some bytes of files fail with EIO, as a disk with bad sectors does.
   REFUSED is a list of NAME:START:END, separated by ';': the end of a path, and a range of positions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int ends_with(const char *path, const char *name, size_t size) {
    size_t whole = strlen(path);
    return whole >= size && memcmp(path + whole - size, name, size) == 0;
}

static int is_refused(int descriptor, off_t start, size_t size) {
    const char *entry = getenv("REFUSED");
    char link[64], path[4096];
    if (entry == NULL || size == 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    while (*entry) {
        const char *colon = strchr(entry, ':');
        char *rest;
        long long low = strtoll(colon + 1, &rest, 10), high = strtoll(rest + 1, &rest, 10);
        if (ends_with(path, entry, colon - entry) && start < high && start + (off_t)size > low)
            return 1;
        entry = *rest == ';' ? rest + 1 : rest;
    }
    return 0;
}

#define READ_AT(name)                                                        \
    ssize_t name(int descriptor, void *data, size_t size, off_t position) {  \
        ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, #name); \
        if (is_refused(descriptor, position, size)) {                        \
            errno = EIO;                                                     \
            return -1;                                                       \
        }                                                                    \
        return real(descriptor, data, size, position);                       \
    }

READ_AT(pread)
READ_AT(pread64)

ssize_t read(int descriptor, void *data, size_t size) {
    ssize_t (*real)(int, void *, size_t) = dlsym(RTLD_NEXT, "read");
    off_t position = lseek(descriptor, 0, SEEK_CUR);
    if (position >= 0 && is_refused(descriptor, position, size)) {
        errno = EIO;
        return -1;
    }
    return real(descriptor, data, size);
}
