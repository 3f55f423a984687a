#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/signals.h"
#include "base/text.h"

#include "base/banned.h"

void dpf_raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Open the temporary file and make it ours: a second writer to the same path is refused,
 * what a dead one left is taken over. *fd is -1 on failure. */
static enum dpf_status open_part(const char *part, int *fd, struct dpf_error *e)
{
    struct stat mine, there;
    for (;;) {
        *fd = open(part, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (*fd < 0)
            return dpf_fail_errno(e, "cannot create '%s'", part);
        /* Some file systems of clusters know no locks: they go without. */
        if (flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(*fd);
            *fd = -1;
            return dpf_fail(e, DPF_SYSTEM, "another program is writing '%s'", part);
        }
        /* Renamed or removed between open and lock: another program has it now. */
        if (fstat(*fd, &mine) == 0 && stat(part, &there) == 0 &&
            mine.st_ino == there.st_ino && mine.st_dev == there.st_dev)
            break;
        close(*fd);
    }
    if (S_ISREG(mine.st_mode) && ftruncate(*fd, 0) == 0)
        return DPF_OK;
    close(*fd);
    *fd = -1;
    return dpf_fail(e, DPF_SYSTEM, "cannot write '%s': it is not a regular file", part);
}

/* /dev/stdout and its like name an open descriptor, whatever is behind it: -1 if not. */
static int named_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    int64_t number = -1;
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (int i = 0; i < 2; i++)
        if (dpf_starts_with(path, folders[i]) &&
            !dpf_parse_int(path + strlen(folders[i]), &number))
            return -1;
    return number > INT_MAX ? -1 : (int)number;
}

/* The file behind `path`: through links, also one that points to nothing yet. heap. */
static char *resolve(const char *path)
{
    char target[PATH_MAX];
    char *real = realpath(path, NULL);
    if (real)
        return real;
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return dpf_strdup(path);
    target[n] = '\0';
    const char *base = dpf_path_base(path);
    if (target[0] == '/' || base == path)
        return dpf_strdup(target);
    return dpf_format("%.*s%s", (int)(base - path), path, target);
}

char *dpf_path_folder(const char *path)
{
    const char *base = dpf_path_base(path);
    return base == path ? dpf_strdup(".") : dpf_strndup(path, (size_t)(base - path));
}

bool dpf_same_place(const char *a, const char *b)
{
    const char *const paths[] = {a, b};
    char *real[2] = {NULL, NULL}, *folder[2] = {NULL, NULL};
    struct stat s[2];
    bool found = true;
    for (int i = 0; i < 2; i++) {
        real[i] = resolve(paths[i]);
        folder[i] = real[i] ? dpf_path_folder(real[i]) : NULL;
        found = found && folder[i] && stat(folder[i], &s[i]) == 0;
    }
    bool same = found && s[0].st_dev == s[1].st_dev && s[0].st_ino == s[1].st_ino &&
                strcmp(dpf_path_base(real[0]), dpf_path_base(real[1])) == 0;
    for (int i = 0; i < 2; i++) {
        free(real[i]);
        free(folder[i]);
    }
    return same;
}

/* A pipe, device or descriptor is written as it is. */
static enum dpf_status open_directly(struct dpf_outfile *f, int descriptor,
                                     struct dpf_error *e)
{
    f->fd = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
                            : open(f->path, O_WRONLY | O_CLOEXEC);
    if (f->fd >= 0)
        return DPF_OK;
    enum dpf_status status = dpf_fail_errno(e, "cannot write '%s'", f->path);
    dpf_outfile_abort(f);
    return status;
}

enum dpf_status dpf_outfile_open(struct dpf_outfile *f, const char *path,
                                 struct dpf_error *e)
{
    struct stat s;
    int descriptor = named_descriptor(path);
    bool exists = stat(path, &s) == 0;
    bool direct = descriptor >= 0 || (exists && !S_ISREG(s.st_mode));
    *f = (struct dpf_outfile){.fd = -1};
    f->path = direct ? dpf_strdup(path) : resolve(path);
    if (!f->path)
        return dpf_fail_memory(e);
    if (direct && descriptor < 0 && S_ISDIR(s.st_mode)) {
        dpf_outfile_abort(f);
        return dpf_fail(e, DPF_SYSTEM, "cannot write '%s': it is a folder", path);
    }
    if (direct)
        return open_directly(f, descriptor, e);
    if (exists && access(f->path, W_OK) != 0) { /* a rename would not ask */
        enum dpf_status status = dpf_fail_errno(e, "cannot write '%s'", path);
        dpf_outfile_abort(f);
        return status;
    }
    char *part = dpf_format("%s" DPF_PART_SUFFIX, f->path);
    enum dpf_status status = part ? open_part(part, &f->fd, e) : dpf_fail_memory(e);
    if (status != DPF_OK) {
        free(part); /* not ours to remove */
        dpf_outfile_abort(f);
        return status;
    }
    if (exists) /* the new file has the permissions of the old one */
        (void)!fchmod(f->fd, s.st_mode & 0777);
    f->part = part;
    dpf_cleanup_register(f->part);
    return DPF_OK;
}

enum dpf_status dpf_outfile_commit(struct dpf_outfile *f, struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    /* A device or pipe cannot be synced; a full disk may only show here. */
    if (fsync(f->fd) != 0 && errno != EINVAL && errno != EROFS)
        status = dpf_fail_errno(e, "cannot write '%s'", f->path);
    /* Renamed while the lock is held, so that no second writer can come in between. */
    if (status == DPF_OK && f->part && rename(f->part, f->path) != 0)
        status = dpf_fail_errno(e, "cannot rename '%s' to '%s'", f->part, f->path);
    if (status == DPF_OK && f->part) {
        dpf_cleanup_forget(f->part);
        free(f->part);
        f->part = NULL;
    }
    if (close(f->fd) != 0 && status == DPF_OK)
        status = dpf_fail_errno(e, "cannot write '%s'", f->path);
    f->fd = -1;
    dpf_outfile_abort(f);
    return status;
}

void dpf_outfile_abort(struct dpf_outfile *f)
{
    if (f->part) {
        unlink(f->part);
        dpf_cleanup_forget(f->part);
    }
    if (f->path && f->fd >= 0) /* a zeroed one holds nothing, least of all descriptor 0 */
        close(f->fd);
    free(f->part);
    free(f->path);
    *f = (struct dpf_outfile){.fd = -1};
}

enum dpf_status dpf_write_file(const char *path, const void *data, size_t size,
                               struct dpf_error *e)
{
    struct dpf_outfile f;
    enum dpf_status status = dpf_outfile_open(&f, path, e);
    if (status != DPF_OK)
        return status;
    if (!dpf_write_all(f.fd, data, size)) {
        status = dpf_fail_errno(e, "cannot write '%s'", path);
        dpf_outfile_abort(&f);
        return status;
    }
    return dpf_outfile_commit(&f, e);
}

enum dpf_status dpf_read_file(const char *path, size_t limit, char **take_data,
                              size_t *size, struct dpf_error *e)
{
    struct dpf_buffer b = {0};
    enum dpf_status status = DPF_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dpf_fail_errno(e, "cannot read '%s'", path);
    for (;;) {
        unsigned char *to = dpf_buffer_reserve(&b, 1 << 16);
        if (!to) {
            status = dpf_fail_memory(e);
            break;
        }
        long long n = dpf_read_full(fd, to, 1 << 16);
        if (n < 0) {
            status = dpf_fail_errno(e, "cannot read '%s'", path);
            break;
        }
        b.size += (size_t)n;
        if (b.size > limit) {
            status =
                dpf_fail(e, DPF_BAD_STREAM, "'%s' is larger than %zu bytes", path, limit);
            break;
        }
        if (n < 1 << 16)
            break;
    }
    close(fd);
    if (status == DPF_OK) {
        dpf_buffer_append(&b, "", 1);
        if (!dpf_buffer_ok(&b))
            status = dpf_fail_memory(e);
    }
    if (status != DPF_OK) {
        dpf_buffer_release(&b);
        return status;
    }
    *take_data = (char *)b.data;
    if (size)
        *size = b.size - 1;
    return DPF_OK;
}

bool dpf_write_all(int fd, const void *data, size_t size)
{
    struct iovec part = {.iov_base = (void *)data, .iov_len = size};
    return dpf_writev_all(fd, &part, 1);
}

bool dpf_writev_all(int fd, struct iovec *parts, int count)
{
    while (count > 0) {
        if (parts->iov_len == 0) {
            parts++;
            count--;
            continue;
        }
        ssize_t n = writev(fd, parts, count < IOV_MAX ? count : IOV_MAX);
        if (n < 0) {
            if (errno == EINTR && !dpf_stop_requested())
                continue;
            return false;
        }
        size_t left = (size_t)n;
        while (count > 0 && left >= parts->iov_len) {
            left -= parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + left;
            parts->iov_len -= left;
        }
    }
    return true;
}

long long dpf_read_full(int fd, void *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = read(fd, (char *)data + done, size - done);
        if (n < 0) {
            if (errno == EINTR && !dpf_stop_requested())
                continue;
            return -1;
        }
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (long long)done;
}

enum dpf_status dpf_make_dirs(const char *path, struct dpf_error *e)
{
    if (!*path)
        return dpf_fail(e, DPF_USAGE, "a folder's name is empty");
    char *copy = dpf_strdup(path);
    if (!copy)
        return dpf_fail_memory(e);
    enum dpf_status status = DPF_OK;
    for (char *p = copy + 1; status == DPF_OK; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char kept = *p;
        *p = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            status = dpf_fail_errno(e, "cannot create folder '%s'", copy);
        *p = kept;
        if (kept == '\0')
            break;
    }
    if (status == DPF_OK && !dpf_is_dir(path))
        status = dpf_fail(e, DPF_SYSTEM, "'%s' is not a folder", path);
    free(copy);
    return status;
}

static int remove_entry(const char *path, const struct stat *s, int flag, struct FTW *w)
{
    (void)s;
    (void)flag;
    (void)w;
    remove(path);
    return 0;
}

void dpf_remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool dpf_is_file(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

bool dpf_is_dir(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

char *dpf_path_join(const char *dir, const char *name)
{
    return dpf_format("%s%s%s", dir, dpf_ends_with(dir, "/") ? "" : "/", name);
}

const char *dpf_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *dpf_program_dir(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return NULL;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return dpf_strdup(path);
}

void dpf_names_free(char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    size_t i = strlen(*x), k = strlen(*y);
    return i != k ? (i > k) - (i < k) : strcmp(*x, *y); /* 9 before 10 */
}

enum dpf_status dpf_list_folder(const char *folder, const char *suffix, char ***names,
                                size_t *count, struct dpf_error *e)
{
    DIR *dir = opendir(folder);
    size_t capacity = 0, ending = strlen(suffix);
    enum dpf_status status = DPF_OK;
    *names = NULL;
    *count = 0;
    if (!dir)
        return dpf_fail_errno(e, "cannot read '%s'", folder);
    for (struct dirent *one; status == DPF_OK && (one = readdir(dir));) {
        size_t size = strlen(one->d_name);
        if (size <= ending || one->d_name[0] == '.' ||
            strcmp(one->d_name + size - ending, suffix) != 0)
            continue;
        if (!dpf_grow(names, &capacity, *count + 1, sizeof **names) ||
            !((*names)[*count] = dpf_path_join(folder, one->d_name)))
            status = dpf_fail_memory(e);
        else
            ++*count;
    }
    closedir(dir);
    if (*count)
        qsort(*names, *count, sizeof **names, by_name);
    return status;
}

int dpf_open_unnamed(const char *purpose)
{
    const char *dir = getenv("TMPDIR");
    char *path = dpf_format("%s/%s-XXXXXX", dir && *dir ? dir : "/tmp", purpose);
    int fd = path ? mkostemp(path, O_CLOEXEC) : -1;
    if (fd >= 0)
        unlink(path);
    free(path);
    return fd;
}
