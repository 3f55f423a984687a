/* Any bytes as a NIfTI volume and as the mask of itself. The reader takes paths, so the
 * bytes go into a file. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "data/nifti.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool put(const char *path, const uint8_t *data, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && dpf_write_all(fd, data, size);
    if (fd >= 0)
        close(fd);
    return good;
}

static void read_one(const char *path, bool masked)
{
    struct dpf_source *s;
    struct dpf_batch b;
    if (dpf_nifti_open(&path, 1, masked ? &path : NULL, 4, &s, NULL) != DPF_OK)
        return;
    if (dpf_source_next(s, &b, 1, NULL) == DPF_OK)
        dpf_batch_release(&b);
    dpf_source_destroy(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/dpf-fuzz-nifti-%ld", (long)getpid());
    if (put(path, data, size)) {
        read_one(path, false);
        read_one(path, true);
    }
    unlink(path);
    return 0;
}
