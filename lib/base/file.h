/* Files that are whole or absent: output goes to a temporary neighbour, is synced and
 * renamed. A reader never finds half a file under its final name. */
#ifndef DPF_BASE_FILE_H
#define DPF_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "base/status.h"

/* The suffix of a file that is being written; readers that follow a growing stream look
 * for it (lib/transport). */
#define DPF_PART_SUFFIX ".part"

struct dpf_outfile {
    int fd;
    char *path;
    char *part; /* NULL for a pipe or device, which is written as it is */
};

enum dpf_status dpf_outfile_open(struct dpf_outfile *f, const char *path,
                                 struct dpf_error *e);
/* fsync, close, rename. On failure the temporary file is gone. */
enum dpf_status dpf_outfile_commit(struct dpf_outfile *f, struct dpf_error *e);
/* Close and remove the temporary file. Safe after commit and on a zeroed struct. */
void dpf_outfile_abort(struct dpf_outfile *f);

/* The whole of `data` to `path`, atomically. */
enum dpf_status dpf_write_file(const char *path, const void *data, size_t size,
                               struct dpf_error *e);
/* A whole small file, NUL-terminated for convenience; at most `limit` bytes.
 * *take_data is the caller's to free. */
enum dpf_status dpf_read_file(const char *path, size_t limit, char **take_data,
                              size_t *size, struct dpf_error *e);

/* write(2)/writev(2) until everything is out, through EINTR. False with errno set. */
bool dpf_write_all(int fd, const void *data, size_t size);
bool dpf_writev_all(int fd, struct iovec *parts, int count);
/* read(2) until `size` bytes or end of file; the number read, or -1 with errno set.
 * An interrupting signal that asks the program to stop ends it with EINTR. */
long long dpf_read_full(int fd, void *data, size_t size);

/* As many open files as the system allows this process. */
void dpf_raise_descriptor_limit(void);

/* A file without a name in $TMPDIR, gone when it is closed; -1 with errno set. `purpose`
 * is its name for a moment. */
int dpf_open_unnamed(const char *purpose);

/* The folder of a path, with its last slash; "." for none. heap. */
char *dpf_path_folder(const char *path);
/* Whether two outputs would be one file, through links; nothing need be there yet. */
bool dpf_same_place(const char *a, const char *b);
/* mkdir -p. */
enum dpf_status dpf_make_dirs(const char *path, struct dpf_error *e);
/* rm -r, for folders that the program made itself. Errors are ignored. */
void dpf_remove_tree(const char *path);
/* The files of a folder whose names end like this, with the folder, in the order of their
 * names (9 before 10). Free with dpf_names_free(), also after a failure. */
enum dpf_status dpf_list_folder(const char *folder, const char *suffix, char ***names,
                                size_t *count, struct dpf_error *e);
void dpf_names_free(char **names, size_t count);
bool dpf_is_file(const char *path);
bool dpf_is_dir(const char *path);
/* "dir/name", heap. */
char *dpf_path_join(const char *dir, const char *name);
/* The part after the last '/'. Points into `path`. */
const char *dpf_path_base(const char *path);
/* The folder of the running executable, heap; NULL on failure. */
char *dpf_program_dir(void);

#endif
