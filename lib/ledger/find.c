/* Public numbers of a mechanism, looked up in a ledger by whoever reads its output. */
#include <math.h>
#include <string.h>

#include "ledger/event.h"

#include "base/banned.h"

enum { MOST = 8 };

struct search {
    const char *const *methods;
    const char *key;
    size_t count;
    double numbers[MOST];
    enum dpf_found found;
};

static bool has_method(const msgpack_object *event, const char *const *methods)
{
    const msgpack_object *method = dpf_object_get(event, "method");
    bool has = !methods;
    for (int i = 0; methods && method && methods[i]; i++)
        has = has || dpf_object_is_string(method, methods[i]);
    return has;
}

static void look_at(const msgpack_object *event, struct search *s, int depth)
{
    const msgpack_object *told = dpf_object_get(event, s->key);
    double own[MOST];
    bool good = told && told->type == MSGPACK_OBJECT_ARRAY &&
                told->via.array.size == s->count && has_method(event, s->methods);
    for (size_t i = 0; good && i < s->count; i++)
        good = dpf_object_real(&told->via.array.ptr[i], &own[i]);
    /* computed by owners on machines of all kinds: the last digits may differ */
    for (size_t i = 0; good && s->found == DPF_FOUND && i < s->count; i++)
        if (!(fabs(own[i] - s->numbers[i]) <= 1e-6 * fabs(s->numbers[i])))
            s->found = DPF_FOUND_DIFFERENT;
    if (good && s->found == DPF_NOT_FOUND) {
        memcpy(s->numbers, own, s->count * sizeof *own);
        s->found = DPF_FOUND;
    }
    const msgpack_object *branches = dpf_object_get(event, "branches");
    if (!branches || branches->type != MSGPACK_OBJECT_ARRAY || depth > 16)
        return;
    for (uint32_t i = 0; i < branches->via.array.size; i++) {
        const msgpack_object *b = &branches->via.array.ptr[i];
        for (uint32_t k = 0; b->type == MSGPACK_OBJECT_ARRAY && k < b->via.array.size;
             k++)
            look_at(&b->via.array.ptr[k], s, depth + 1);
    }
}

enum dpf_found dpf_ledger_find(const struct dpf_values *events,
                               const char *const *methods, const char *key,
                               double *numbers, size_t count)
{
    msgpack_unpacked one;
    struct search s = {.methods = methods, .key = key, .count = count};
    size_t at = 0;
    msgpack_unpacked_init(&one);
    for (uint32_t i = 0; count <= MOST && i < events->count; i++)
        if (msgpack_unpack_next(&one, (const char *)events->bytes.data,
                                events->bytes.size, &at) == MSGPACK_UNPACK_SUCCESS)
            look_at(&one.data, &s, 0);
    msgpack_unpacked_destroy(&one);
    if (s.found != DPF_NOT_FOUND)
        memcpy(numbers, s.numbers, count * sizeof *numbers);
    return s.found;
}
