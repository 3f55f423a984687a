#include "base/text.h"
#include "wire/stream.h"

#include "base/banned.h"

static bool is_tensor(const msgpack_object *o)
{
    return dpf_object_get(o, "nd") && dpf_object_get(o, "data");
}

static void tensor_to_json(const msgpack_object *o, struct dpf_text *out)
{
    const msgpack_object *type = dpf_object_get(o, "type");
    const msgpack_object *shape = dpf_object_get(o, "shape");
    const msgpack_object *bits = dpf_object_get(o, "bits");
    dpf_text_add(out, "{\"tensor\":{");
    if (type) {
        dpf_text_add(out, "\"type\":");
        dpf_object_to_json(type, out);
    }
    if (shape) {
        dpf_text_add(out, ",\"shape\":");
        dpf_object_to_json(shape, out);
    }
    if (bits) {
        dpf_text_add(out, ",\"bits\":");
        dpf_object_to_json(bits, out);
    }
    dpf_text_add(out, "}}");
}

static void map_to_json(const msgpack_object *o, struct dpf_text *out)
{
    dpf_text_add(out, "{");
    for (uint32_t i = 0; i < o->via.map.size; i++) {
        const msgpack_object_kv *kv = &o->via.map.ptr[i];
        if (i)
            dpf_text_add(out, ",");
        if (kv->key.type == MSGPACK_OBJECT_STR || kv->key.type == MSGPACK_OBJECT_BIN) {
            dpf_object_to_json(&kv->key, out);
        } else { /* JSON keys are strings */
            struct dpf_text key = {0};
            dpf_object_to_json(&kv->key, &key);
            dpf_text_add_json(out, dpf_text_get(&key), key.size);
            dpf_text_release(&key);
        }
        dpf_text_add(out, ":");
        dpf_object_to_json(&kv->val, out);
    }
    dpf_text_add(out, "}");
}

/* Recursion is bounded: dpf_frame_check() has limited the nesting. */
void dpf_object_to_json(const msgpack_object *o, struct dpf_text *out)
{
    switch (o->type) {
    case MSGPACK_OBJECT_NIL:
        dpf_text_add(out, "null");
        break;
    case MSGPACK_OBJECT_BOOLEAN:
        dpf_text_add(out, o->via.boolean ? "true" : "false");
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        dpf_text_addf(out, "%llu", (unsigned long long)o->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        dpf_text_addf(out, "%lld", (long long)o->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        dpf_text_add_real(out, o->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
        dpf_text_add_json(out, o->via.str.ptr, o->via.str.size);
        break;
    case MSGPACK_OBJECT_BIN:
        dpf_text_add_json(out, o->via.bin.ptr, o->via.bin.size);
        break;
    case MSGPACK_OBJECT_ARRAY:
        dpf_text_add(out, "[");
        for (uint32_t i = 0; i < o->via.array.size; i++) {
            if (i)
                dpf_text_add(out, ",");
            dpf_object_to_json(&o->via.array.ptr[i], out);
        }
        dpf_text_add(out, "]");
        break;
    case MSGPACK_OBJECT_MAP:
        if (is_tensor(o))
            tensor_to_json(o, out);
        else
            map_to_json(o, out);
        break;
    case MSGPACK_OBJECT_EXT:
        dpf_text_add(out, "null");
        break;
    }
}
