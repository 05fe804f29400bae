// Calls of the C library that fail when a test says so: built as a shared object, loaded by LD_PRELOAD.
// `faults_arm(kind, nth, error)` has the nth call of a kind from then on fail with that errno, or, if it is negative, come after that
// signal; `faults_count(kind)` is how many there were until `faults_hold()`.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ALLOCATE, OPEN, READ, WRITE, FSYNC, RENAME, MAP, MEMORY_FILE, DLOPEN, FORK, MAKE_FOLDER, PIPE, UNLINK, THREAD, KINDS };

static atomic_int counts[KINDS];
static atomic_int armed = -1, nth, error;

void faults_arm(int kind, int number, int value) {
  for (int k = 0; k < KINDS; k++) counts[k] = 0;
  nth = number, error = value, armed = kind;
}

void faults_hold(void) { armed = -2; }

int faults_count(int kind) { return counts[kind]; }

static int fails(int kind) {
  if (armed == -2) return 0;
  int number = ++counts[kind];
  if (kind != armed || number != nth) return 0;
  if (error < 0) kill(getpid(), -error);
  else errno = error;
  return error > 0;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

// Small blocks are Python's own; LLVM ends the process where it gets none.
enum { LARGE = 1 << 16 };
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *malloc(size_t size) { return size >= LARGE && fails(ALLOCATE) ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) {
  return count * size >= LARGE && fails(ALLOCATE) ? NULL : __libc_calloc(count, size);
}
void *realloc(void *old, size_t size) { return size >= LARGE && fails(ALLOCATE) ? NULL : __libc_realloc(old, size); }

#define OPENS(name, parameters, ...)                     \
  int name parameters {                                  \
    va_list rest;                                        \
    va_start(rest, flags);                               \
    mode_t mode = flags & O_CREAT ? va_arg(rest, int) : 0; \
    va_end(rest);                                        \
    return fails(OPEN) ? -1 : NEXT(name)(__VA_ARGS__, mode); \
  }
OPENS(open, (const char *path, int flags, ...), path, flags)
OPENS(open64, (const char *path, int flags, ...), path, flags)
OPENS(openat, (int folder, const char *path, int flags, ...), folder, path, flags)
OPENS(openat64, (int folder, const char *path, int flags, ...), folder, path, flags)

#define CALL(kind, failure, type, name, parameters, ...) \
  type name parameters { return fails(kind) ? (type)failure : NEXT(name)(__VA_ARGS__); }
CALL(READ, -1, ssize_t, read, (int file, void *data, size_t size), file, data, size)
CALL(WRITE, -1, ssize_t, write, (int file, const void *data, size_t size), file, data, size)
CALL(FSYNC, -1, int, fsync, (int file), file)
CALL(RENAME, -1, int, rename, (const char *from, const char *to), from, to)
CALL(RENAME, -1, int, renameat, (int a, const char *from, int b, const char *to), a, from, b, to)
CALL(MAP, -1, void *, mmap, (void *at, size_t size, int access, int flags, int file, off_t offset), at, size, access, flags, file, offset)
CALL(MAP, -1, void *, mmap64, (void *at, size_t size, int access, int flags, int file, off64_t offset), at, size, access, flags, file, offset)
CALL(MEMORY_FILE, -1, int, memfd_create, (const char *name, unsigned flags), name, flags)
CALL(DLOPEN, 0, void *, dlopen, (const char *path, int flags), path, flags)
CALL(FORK, -1, pid_t, fork, (void))
CALL(MAKE_FOLDER, -1, int, mkdir, (const char *path, mode_t mode), path, mode)
CALL(PIPE, -1, int, pipe2, (int ends[2], int flags), ends, flags)
CALL(UNLINK, -1, int, unlink, (const char *path), path)
CALL(THREAD, EAGAIN, int, pthread_create, (pthread_t *thread, const pthread_attr_t *how, void *(*work)(void *), void *of), thread, how, work, of)
// A child of vfork runs in its parent's frame, which a function around vfork must not leave: fork does the same.
pid_t vfork(void) { return fork(); }
