#include "ledger/source.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "wire/stream.h"

#include "base/banned.h"

/* -------------------------------------------------------------------------- the key */

enum { KEY_TEXT = 2 * DPF_OWNER_KEY_BYTES + 1 }; /* hexadecimal digits and a line break */

static char *key_path(void)
{
    const char *own = getenv("DPFLOW_OWNER_KEY"), *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    if (own && *own)
        return dpf_strdup(own);
    if (config && *config)
        return dpf_format("%s/dpflow/owner.key", config);
    return home && *home ? dpf_format("%s/.config/dpflow/owner.key", home) : NULL;
}

/* *there is false if there is no such file. */
static enum dpf_status read_key(const char *path, unsigned char *key, bool *there,
                                struct dpf_error *e)
{
    char text[KEY_TEXT + 1];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *there = fd >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != EACCES);
    if (fd < 0)
        return *there ? dpf_fail_errno(e, "cannot read the owner's key '%s'", path)
                      : DPF_OK;
    enum dpf_status status = DPF_OK;
    long long size = -1;
    if (fstat(fd, &st) != 0)
        status = dpf_fail_errno(e, "cannot read the owner's key '%s'", path);
    else if (!S_ISREG(st.st_mode))
        status = dpf_fail(e, DPF_PRIVACY, "the owner's key '%s' is not a file", path);
    else if (st.st_uid != geteuid())
        status = dpf_fail(e, DPF_PRIVACY, "the owner's key '%s' belongs to another user",
                          path);
    else if (st.st_mode & (S_IRWXG | S_IRWXO))
        status = dpf_fail(e, DPF_PRIVACY,
                          "others can read the owner's key '%s': run 'chmod 600' on it, "
                          "or remove it to make a new one",
                          path);
    else
        size = dpf_read_full(fd, text, sizeof text);
    size_t bytes = 0;
    if (status == DPF_OK && (size != KEY_TEXT || text[KEY_TEXT - 1] != '\n' ||
                             sodium_hex2bin(key, DPF_OWNER_KEY_BYTES, text, KEY_TEXT - 1,
                                            NULL, &bytes, NULL) != 0 ||
                             bytes != DPF_OWNER_KEY_BYTES))
        status = dpf_fail(e, DPF_PRIVACY, "the owner's key '%s' is damaged", path);
    sodium_memzero(text, sizeof text);
    close(fd);
    return status;
}

/* The folders of a path, those that are made for the owner alone. */
static bool make_folders(char *path)
{
    bool good = true;
    for (char *at = strchr(path + 1, '/'); good && at; at = strchr(at + 1, '/')) {
        *at = '\0';
        good = mkdir(path, S_IRWXU) == 0 || errno == EEXIST;
        *at = '/';
    }
    return good;
}

/* Under a name of its own first; link() then gives it its name, unless somebody else was
 * faster: then theirs counts. */
static bool make_key(char *path)
{
    unsigned char key[DPF_OWNER_KEY_BYTES];
    char text[KEY_TEXT + 1];
    char *draft = dpf_format("%s.XXXXXX", path);
    int fd = draft && make_folders(path) ? mkostemp(draft, O_CLOEXEC) : -1; /* 0600 */
    bool good = fd >= 0 && sodium_init() >= 0;
    if (good) {
        randombytes_buf(key, sizeof key);
        sodium_bin2hex(text, sizeof text, key, sizeof key);
        text[KEY_TEXT - 1] = '\n';
        good = fchmod(fd, S_IRUSR | S_IWUSR) == 0 && dpf_write_all(fd, text, KEY_TEXT) &&
               fsync(fd) == 0;
        sodium_memzero(key, sizeof key);
        sodium_memzero(text, sizeof text);
    }
    if (fd >= 0) {
        good = close(fd) == 0 && good;
        good = good && (link(draft, path) == 0 || errno == EEXIST);
        unlink(draft);
    }
    free(draft);
    return good;
}

enum dpf_status dpf_owner_key_get(unsigned char key[DPF_OWNER_KEY_BYTES], bool *known,
                                  struct dpf_error *e)
{
    char *path = key_path();
    *known = false;
    if (!path)
        return DPF_OK;
    enum dpf_status status = read_key(path, key, known, e);
    if (status == DPF_OK && !*known && make_key(path))
        status = read_key(path, key, known, e);
    free(path);
    return status;
}

/* ---------------------------------------------------------------------------- digests */

static const char plain[] = "blake2b:", keyed[] = "blake2b-keyed:";

static bool is_source(const msgpack_object *o)
{
    return dpf_object_is_string(dpf_object_get(o, "event"), "source");
}

/* Whether a source has a digest without a key. */
static bool is_published(const msgpack_object *source)
{
    const msgpack_object *digest = dpf_object_get(source, "digest");
    return digest && digest->type == MSGPACK_OBJECT_STR &&
           digest->via.str.size > strlen(plain) &&
           memcmp(digest->via.str.ptr, plain, strlen(plain)) == 0;
}

enum { DEEPEST = 3 * DPF_MAX_EVENT_DEPTH }; /* a branch is a list in a map in a list */

/* Whether all sources in a value are published, and how many these are. */
static bool all_published(const msgpack_object *o, int depth, uint64_t *sources)
{
    bool good = depth <= DEEPEST && (!is_source(o) || is_published(o));
    *sources += is_source(o);
    for (uint32_t i = 0; good && o->type == MSGPACK_OBJECT_MAP && i < o->via.map.size;
         i++)
        good = all_published(&o->via.map.ptr[i].val, depth + 1, sources);
    for (uint32_t i = 0; good && o->type == MSGPACK_OBJECT_ARRAY && i < o->via.array.size;
         i++)
        good = all_published(&o->via.array.ptr[i], depth + 1, sources);
    return good;
}

bool dpf_ledger_sources_published(const struct dpf_values *values)
{
    struct dpf_event_list list;
    if (dpf_event_list_init(&list, values, NULL) != DPF_OK)
        return false;
    uint64_t all = 0;
    bool good = true;
    for (uint32_t i = 0; good && i < list.array.via.array.size; i++) {
        const msgpack_object *one = &list.array.via.array.ptr[i];
        uint64_t sources = 0;
        good = all_published(one, 0, &sources) &&
               (sources > 0 || one->type != MSGPACK_OBJECT_ARRAY);
        all += sources;
    }
    dpf_event_list_release(&list);
    return good && all > 0;
}

/* Whether two values are the same but for what published sources are called. */
static bool same_but_names(const msgpack_object *a, const msgpack_object *b, int depth)
{
    if (depth > DEEPEST || a->type != b->type)
        return false;
    if (a->type == MSGPACK_OBJECT_ARRAY) {
        bool same = a->via.array.size == b->via.array.size;
        for (uint32_t i = 0; same && i < a->via.array.size; i++)
            same = same_but_names(&a->via.array.ptr[i], &b->via.array.ptr[i], depth + 1);
        return same;
    }
    if (a->type != MSGPACK_OBJECT_MAP)
        return msgpack_object_equal(*a, *b);
    bool same = a->via.map.size == b->via.map.size;
    bool called = is_source(a) && is_source(b) && is_published(a) && is_published(b);
    for (uint32_t i = 0; same && i < a->via.map.size; i++) {
        const msgpack_object_kv *x = &a->via.map.ptr[i], *y = &b->via.map.ptr[i];
        same = msgpack_object_equal(x->key, y->key) &&
               ((called && dpf_object_is_string(&x->key, "name")) ||
                same_but_names(&x->val, &y->val, depth + 1));
    }
    return same;
}

bool dpf_ledger_same(const struct dpf_values *a, const struct dpf_values *b)
{
    struct dpf_event_list x, y;
    if (dpf_event_list_init(&x, a, NULL) != DPF_OK)
        return false;
    bool same = dpf_event_list_init(&y, b, NULL) == DPF_OK;
    if (same) {
        same = same_but_names(&x.array, &y.array, 0);
        dpf_event_list_release(&y);
    }
    dpf_event_list_release(&x);
    return same;
}

void dpf_source_digest(const char *roles, unsigned char (*digests)[DPF_PIECE_BYTES],
                       size_t count, const unsigned char *key, char out[DPF_SOURCE_TEXT])
{
    static const char domain[] = "dpflow source 1";
    unsigned char raw[DPF_FINGERPRINT_HEX / 2], size[8];
    crypto_generichash_state state;
    for (int i = 0; i < 8; i++)
        size[i] = (unsigned char)((uint64_t)count >> 8 * i);
    crypto_generichash_init(&state, key, key ? DPF_OWNER_KEY_BYTES : 0, sizeof raw);
    crypto_generichash_update(&state, (const unsigned char *)domain, sizeof domain);
    crypto_generichash_update(&state, size, sizeof size);
    for (size_t i = 0; i < count; i++) {
        crypto_generichash_update(&state, (const unsigned char *)&roles[i], 1);
        crypto_generichash_update(&state, digests[i], sizeof digests[i]);
    }
    crypto_generichash_final(&state, raw, sizeof raw);
    int at = snprintf(out, DPF_SOURCE_TEXT, "%s", key ? keyed : plain);
    sodium_bin2hex(out + at, DPF_SOURCE_TEXT - (size_t)at, raw, sizeof raw);
}

/* ------------------------------------------------------------------------------ parts */

static void add_whole(struct dpf_fingerprint *f, uint64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    dpf_fingerprint_add(f, bytes, sizeof bytes);
}

static void add_span(struct dpf_fingerprint *f, struct dpf_span s)
{
    add_whole(f, s.size);
    dpf_fingerprint_add(f, s.text, s.size);
}

static void add_json(struct dpf_fingerprint *f, const msgpack_object *o)
{
    struct dpf_text json = {0};
    dpf_object_to_json(o, &json);
    dpf_fingerprint_add_string(f, dpf_text_get(&json));
    dpf_text_release(&json);
}

struct naming {
    struct dpf_fingerprint f;
    bool by_content;
    size_t sources;
    bool unknown;
};

/* Whether records have other bytes each time. */
static bool draws_values(enum dpf_event_kind kind)
{
    return kind == DPF_EVENT_MECHANISM || kind == DPF_EVENT_RANDOMISED ||
           kind == DPF_EVENT_NONE || kind == DPF_EVENT_SEED;
}

/* Everything but what sources are called. */
static void name_events(struct naming *n, const msgpack_object *array, int depth)
{
    n->unknown = n->unknown || depth > DPF_MAX_EVENT_DEPTH;
    add_whole(&n->f, array->via.array.size);
    for (uint32_t i = 0; !n->unknown && i < array->via.array.size; i++) {
        const msgpack_object *o = &array->via.array.ptr[i];
        struct dpf_event v;
        if (dpf_event_read(o, &v, NULL) != DPF_OK) {
            n->unknown = true;
            return;
        }
        add_whole(&n->f, (uint64_t)v.kind);
        if (v.kind == DPF_EVENT_SOURCE && v.digest.text) {
            n->sources++;
            add_span(&n->f, v.digest);
        } else if (v.kind == DPF_EVENT_SOURCE) {
            n->unknown = true;
        } else if (v.kind == DPF_EVENT_MODEL) {
            /* its values may be in the records now; two models may be called the same */
            n->unknown = n->unknown || n->by_content;
        } else if (v.kind == DPF_EVENT_MERGE || v.kind == DPF_EVENT_TEACHERS) {
            /* the provenance does not say which step was applied to which branch */
            n->unknown = n->unknown || n->by_content;
            add_whole(&n->f, v.branches->via.array.size);
            for (uint32_t k = 0; k < v.branches->via.array.size; k++)
                name_events(n, &v.branches->via.array.ptr[k], depth + 1);
        } else {
            n->unknown = n->unknown || (n->by_content && draws_values(v.kind));
            add_json(&n->f, o);
        }
    }
}

/* Whether an option names a stream, which the provenance does not tell more about. */
static bool reads_stream(const msgpack_object *step)
{
    const msgpack_object *options = dpf_object_get(step, "options");
    bool found = false;
    for (uint32_t k = 0;
         options && options->type == MSGPACK_OBJECT_MAP && k < options->via.map.size; k++)
        found = found || dpf_object_is_string(&options->via.map.ptr[k].val, "stream");
    return found;
}

/* Options but for `public`: whose records they are does not change which ones. */
static void add_options(struct naming *n, const msgpack_object *options)
{
    enum { MOST = 64 };
    msgpack_object_kv kept[MOST];
    msgpack_object copy = *options;
    uint32_t count = 0;
    bool is_map = options->type == MSGPACK_OBJECT_MAP && options->via.map.size <= MOST;
    for (uint32_t i = 0; is_map && i < options->via.map.size; i++)
        if (!dpf_object_is_string(&options->via.map.ptr[i].key, "public"))
            kept[count++] = options->via.map.ptr[i];
    if (is_map) {
        copy.via.map.ptr = kept;
        copy.via.map.size = count;
    }
    add_json(&n->f, &copy);
}

/* How records were read from their sources (steps that have arguments), with their
 * options. Other steps change neither how many there are nor their order, or they leave
 * an event; but they change bytes. Where bytes decide, they must be exact: the same
 * everywhere. */
static void name_steps(struct naming *n, const msgpack_object *array)
{
    for (uint32_t i = 0; i < array->via.array.size; i++) {
        const msgpack_object *step = &array->via.array.ptr[i];
        const msgpack_object *named[] = {dpf_object_get(step, "stage"),
                                         dpf_object_get(step, "version"),
                                         dpf_object_get(step, "options")};
        bool source = dpf_object_get(step, "arguments") != NULL;
        if (!source && !n->by_content)
            continue;
        n->unknown = n->unknown || reads_stream(step) ||
                     (!source && !dpf_object_get(step, "exact"));
        for (size_t k = 0; k < sizeof named / sizeof *named; k++) {
            n->unknown = n->unknown || !named[k];
            if (named[k] && k == 2)
                add_options(n, named[k]);
            else if (named[k])
                add_json(&n->f, named[k]);
        }
    }
}

bool dpf_source_cut(const struct dpf_partition_event *p, const struct dpf_header *of,
                    char out[DPF_SOURCE_TEXT])
{
    struct naming n = {.by_content = strcmp(p->by, "content") == 0};
    struct dpf_event_list list;
    uint64_t share;
    memcpy(&share, &p->share, sizeof share);
    dpf_fingerprint_init(&n.f);
    dpf_fingerprint_add_string(&n.f, "dpflow partition 1");
    dpf_fingerprint_add_string(&n.f, p->by);
    add_whole(&n.f, p->parts);
    add_whole(&n.f, p->seed);
    add_whole(&n.f, share);
    add_whole(&n.f, of->has_records); /* a share of a known number is drawn otherwise */
    add_whole(&n.f, of->records);
    if (dpf_event_list_init(&list, &of->events, NULL) != DPF_OK)
        return false;
    name_events(&n, &list.array, 0);
    dpf_event_list_release(&list);
    if (dpf_event_list_init(&list, &of->provenance, NULL) != DPF_OK)
        return false;
    name_steps(&n, &list.array);
    dpf_event_list_release(&list);
    int at = snprintf(out, DPF_SOURCE_TEXT, "blake2b:");
    dpf_fingerprint_hex(&n.f, out + at);
    return !n.unknown && n.sources > 0;
}

/* A map but for the name of what was divided. */
static void add_deed(struct dpf_fingerprint *f, const msgpack_object *o)
{
    for (uint32_t i = 0; o->type == MSGPACK_OBJECT_MAP && i < o->via.map.size; i++)
        if (!dpf_object_is_string(&o->via.map.ptr[i].key, "cut")) {
            add_json(f, &o->via.map.ptr[i].key);
            add_json(f, &o->via.map.ptr[i].val);
        }
}

static void add_deeds(struct dpf_fingerprint *f, const msgpack_object *array, int depth)
{
    for (uint32_t i = 0; depth <= DPF_MAX_EVENT_DEPTH && i < array->via.array.size; i++) {
        const msgpack_object *o = &array->via.array.ptr[i];
        struct dpf_event v;
        bool known = dpf_event_read(o, &v, NULL) == DPF_OK;
        if (known && v.kind == DPF_EVENT_SOURCE)
            continue;
        if (!known || (!v.branches && !v.events)) {
            add_deed(f, o);
            continue;
        }
        add_whole(f, (uint64_t)v.kind);
        if (v.events)
            add_deeds(f, v.events, depth + 1);
        for (uint32_t k = 0; v.branches && k < v.branches->via.array.size; k++)
            add_deeds(f, &v.branches->via.array.ptr[k], depth + 1);
    }
}

void dpf_ledger_fingerprint(const struct dpf_values *events, struct dpf_fingerprint *f)
{
    struct dpf_event_list list;
    if (dpf_event_list_init(&list, events, NULL) != DPF_OK) {
        dpf_fingerprint_add(f, events->bytes.data, events->bytes.size);
        return;
    }
    add_deeds(f, &list.array, 0);
    dpf_event_list_release(&list);
}

static bool keeps_apart(const struct dpf_event *a, const struct dpf_event *b)
{
    return dpf_span_same(a->cut, b->cut) && a->parts == b->parts && a->part != b->part;
}

enum dpf_sharing dpf_origins_share(const struct dpf_origin *a, const struct dpf_origin *b)
{
    for (size_t i = 0; i < a->cut_count; i++)
        for (size_t k = 0; k < b->cut_count; k++)
            if (keeps_apart(&a->cuts[i], &b->cuts[k]))
                return DPF_SHARE_NONE;
    if (dpf_span_same(a->digest, b->digest))
        return DPF_SHARE_SOME;
    /* What the catalogue knows: parts of one set have no record in common, but `all` is
     * all of them, and as much of a part as was loaded is of that part. */
    if (!a->digest.text || !b->digest.text || !dpf_span_same(a->set, b->set) ||
        !a->part_name.text || !b->part_name.text)
        return DPF_SHARE_UNKNOWN;
    return dpf_span_same(a->part_name, b->part_name) ||
                   dpf_span_is(a->part_name, "all") || dpf_span_is(b->part_name, "all")
               ? DPF_SHARE_SOME
               : DPF_SHARE_NONE;
}
