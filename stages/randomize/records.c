/* One record becomes a message, and its label what was wished for it. */
#include <string.h>

#include "randomize.h"

#include "base/banned.h"

static const char *row_of(const struct dpf_tensor *t, uint64_t row)
{
    return (const char *)t->data + row * dpf_tensor_row_bytes(t);
}

static uint64_t get_class(const struct dpf_tensor *t, uint64_t row)
{
    return (uint64_t)dpf_tensor_get(t, row); /* the reader checked its range */
}

static void take_label(struct dpf_randomize *j, const struct dpf_tensor *y, uint64_t row,
                       struct dpf_tensor *to)
{
    switch (j->labels) {
    case DPF_LABELS_CLEAR:
        memcpy((char *)to->data + row * dpf_tensor_row_bytes(y), row_of(y, row),
               dpf_tensor_row_bytes(y));
        break;
    case DPF_LABELS_RESPONSE:
        dpf_tensor_put_class(
            to, row,
            dpf_response_draw(&j->label_response, &j->random, get_class(y, row)));
        break;
    case DPF_LABELS_JOINT: /* the message has it */
    case DPF_LABELS_DROP:
    case DPF_LABELS_NONE:
        break;
    }
}

void dpf_randomize_record(struct dpf_randomize *j, const struct dpf_batch *b,
                          uint64_t row, struct dpf_batch *out)
{
    const struct dpf_tensor *x = &b->tensor[j->x];
    const struct dpf_tensor *y = j->y >= 0 ? &b->tensor[j->y] : NULL;
    struct dpf_tensor *to = &out->tensor[0];
    bool joint = j->labels == DPF_LABELS_JOINT;
    struct dpf_randomiser_record record = {.place = j->records + row,
                                           .data = row_of(x, row)};
    struct dpf_randomiser_message message = {.data = (char *)to->data +
                                                     row * dpf_tensor_row_bytes(to)};
    if (j->method->reads == DPF_MESSAGE_CLASS)
        record.value = get_class(x, row);
    if (joint) {
        struct dpf_tensor *code = &out->tensor[1];
        record.label = get_class(y, row);
        message.code = (void *)((char *)code->data + row * dpf_tensor_row_bytes(code));
    }
    j->method->draw(j->mechanism, &j->random, &record, &message);
    if (j->method->writes == DPF_MESSAGE_CLASS)
        dpf_tensor_put_class(to, row, message.value);
    if (out->count > 1)
        take_label(j, y, row, &out->tensor[1]);
}
