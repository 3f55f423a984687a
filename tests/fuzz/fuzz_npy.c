/* Any bytes as a .npy or .npz file. Members of an archive are read from a real file, so
 * the bytes go into one. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "data/npy.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BATCHES = 64 };

static bool put(const char *path, const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && dpf_write_all(fd, data, size);
    if (fd >= 0)
        close(fd);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct dpf_source *s;
    struct dpf_batch b;
    uint64_t got = 1;
    snprintf(path, sizeof path, "/dev/shm/dpf-fuzz-npy-%ld", (long)getpid());
    if (put(path, data, size) && dpf_npy_open(path, 10, &s, NULL) == DPF_OK) {
        uint64_t rows = dpf_batch_rows(&s->header);
        for (int i = 0; i < MAX_BATCHES && got; i++) {
            if (dpf_source_next(s, &b, rows, NULL) != DPF_OK)
                break;
            got = b.rows;
            dpf_batch_release(&b);
        }
        dpf_source_destroy(&s);
    }
    unlink(path);
    return 0;
}
