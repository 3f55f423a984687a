#include "wire/channel.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

void dpf_channel_destroy(struct dpf_channel **c)
{
    if (!*c)
        return;
    (*c)->ops->destroy(*c);
    *c = NULL;
}

void dpf_frame_release(struct dpf_frame *frame)
{
    if (frame->release)
        frame->release(frame);
    *frame = (struct dpf_frame){0};
}

enum dpf_status dpf_preamble_parse(const unsigned char preamble[DPF_PREAMBLE_BYTES],
                                   size_t *size, struct dpf_error *e)
{
    static const unsigned char key[] = {0xa5, 'b', 'y', 't', 'e', 's', 0xcf};
    if ((preamble[0] & 0xf0) != 0x80 || memcmp(preamble + 1, key, sizeof key) != 0)
        return dpf_fail(e, DPF_BAD_STREAM, "this is not a dpflow stream");
    uint64_t declared = 0;
    for (int i = 8; i < DPF_PREAMBLE_BYTES; i++)
        declared = declared << 8 | preamble[i];
    if (declared < DPF_PREAMBLE_BYTES || declared > DPF_MAX_FRAME_BYTES)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "a frame declares an impossible size of %llu bytes",
                        (unsigned long long)declared);
    *size = (size_t)declared;
    return DPF_OK;
}

bool dpf_frame_is_trailer(const unsigned char *data, size_t size)
{
    static const unsigned char mark[] = {0xa4, 't', 'y', 'p', 'e', 0xa7, 't',
                                         'r',  'a', 'i', 'l', 'e', 'r'};
    return size >= DPF_PREAMBLE_BYTES + sizeof mark &&
           memcmp(data + DPF_PREAMBLE_BYTES, mark, sizeof mark) == 0;
}
