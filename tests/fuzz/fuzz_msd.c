/* Any bytes as the dataset.json of a decathlon task, beside a volume and a mask that are
 * good; what stands behind a 0 byte is the volume instead. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "data/formats.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const struct dpf_format dpf_format_msd;

static bool put(const char *where, const char *name, const void *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", where, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && dpf_write_all(fd, data, size);
    if (fd >= 0)
        close(fd);
    return good;
}

/* A volume of 2x2x2 bytes. */
static size_t make_volume(unsigned char *to)
{
    static const int16_t dim[] = {3, 2, 2, 2, 1, 1, 1, 1}, type[] = {2, 8};
    static const float box[] = {1, 1, 1, 1, 1, 1, 1, 1}, rest[] = {352, 1, 0};
    static const int32_t header = 348;
    memset(to, 0, 360);
    memcpy(to, &header, sizeof header);
    memcpy(to + 40, dim, sizeof dim);
    memcpy(to + 70, type, sizeof type);
    memcpy(to + 76, box, sizeof box);
    memcpy(to + 108, rest, sizeof rest);
    memcpy(to + 344, "n+1", 4);
    memcpy(to + 352, "\0\1\0\1\0\1\1\0", 8);
    return 360;
}

static void read_all(const char *name)
{
    struct dpf_source *s;
    const struct dpf_load_request q = {
        .names = &name, .name_count = 1, .size = {3, 2, 1}};
    if (dpf_format_msd.open(&q, &s, NULL) != DPF_OK)
        return;
    for (;;) {
        struct dpf_batch b;
        if (dpf_source_next(s, &b, 2, NULL) != DPF_OK)
            break;
        bool end = b.rows == 0;
        dpf_batch_release(&b);
        if (end)
            break;
    }
    dpf_source_destroy(&s);
}

static char folder[64];

static void clean(void)
{
    dpf_remove_tree(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char good[360];
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t text = end ? (size_t)(end - data) : size;
    if (!*folder) {
        snprintf(folder, sizeof folder, "/dev/shm/dpf-fuzz-msd-%ld", (long)getpid());
        mkdir(folder, 0700);
        atexit(clean);
    }
    size_t bytes = make_volume(good);
    if (put(folder, "dataset.json", data, text) && put(folder, "m.nii", good, bytes) &&
        put(folder, "x.nii", end ? end + 1 : good, end ? size - text - 1 : bytes))
        read_all(folder);
    return 0;
}
