/* Preloaded into redis-server: notes in $FSYNC_NOTES/<file> how much of each append-only file is on disk, lets nothing
 * reach the disk while $FSYNC_NOTES/hold exists, and fails as a broken disk does while $FSYNC_NOTES/fail exists. What a
 * power cut leaves is then what the notes say. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int synced(int fd, const char *name) {
  static __thread int (*real)(int);
  char link[64], path[4096], note[4200];
  struct stat file;
  const char *dir = getenv("FSYNC_NOTES");
  *(void **)&real = dlsym(RTLD_NEXT, name);
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (!dir || length < 0) return real(fd);
  path[length] = 0;
  if (!strstr(path, ".aof")) return real(fd);
  snprintf(note, sizeof note, "%s/hold", dir);
  while (access(note, F_OK) == 0) usleep(2000);
  snprintf(note, sizeof note, "%s/fail", dir);
  if (access(note, F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  /* Bytes written after this call may be on disk or not. */
  if (fstat(fd, &file) != 0) return -1;
  int done = real(fd);
  if (done != 0) return done;
  snprintf(note, sizeof note, "%s/%s", dir, strrchr(path, '/') + 1);
  /* As a whole: the process may be killed in between. */
  char whole[4300];
  snprintf(whole, sizeof whole, "%s.%ld", note, (long)gettid());
  int out = open(whole, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out >= 0) {
    dprintf(out, "%lld", (long long)file.st_size);
    close(out);
    rename(whole, note);
  }
  return done;
}

int fsync(int fd) { return synced(fd, "fsync"); }
int fdatasync(int fd) { return synced(fd, "fdatasync"); }
