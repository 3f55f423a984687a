#include "data/catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/cifar.h"
#include "data/csv.h"
#include "data/idx.h"
#include "data/nifti.h"
#include "data/npy.h"
#include "data/synth.h"

#include "base/banned.h"

enum { MAX_FILES = 4096, CIFAR_BATCHES = 5 };

/* Records of test splits of generated data start here, far from any training set. */
static const uint64_t synth_test_first = 1ull << 40;

enum set_kind {
    SET_DIGITS,
    SET_IDX,
    SET_CIFAR,
    SET_DRAWN, /* this one and those below are made from a seed */
    SET_GLYPHS,
    SET_LEAVES,
    SET_CENSUS,
    SET_TUMOUR
};

static const struct data_set {
    const char *name;
    enum set_kind kind;
    uint64_t train_count, test_count; /* generators: defaults */
} data_sets[] = {
    {"digits", SET_DIGITS, 0, 0},
    {"mnist", SET_IDX, 0, 0},
    {"fashion-mnist", SET_IDX, 0, 0},
    {"cifar-10", SET_CIFAR, 0, 0},
    {"synth-digits", SET_DRAWN, 10000, 2000},
    {"synth-glyphs", SET_GLYPHS, 10000, 2000},
    {"synth-leaves", SET_LEAVES, 10000, 2000},
    {"synth-census", SET_CENSUS, 10000, 2000},
    {"synth-tumour", SET_TUMOUR, 40, 8},
};

const char *const dpf_catalog_words[] = {"digits:train",       "digits:test",
                                         "digits:all",         "mnist:train",
                                         "mnist:test",         "fashion-mnist:train",
                                         "fashion-mnist:test", "cifar-10:train",
                                         "cifar-10:test",      "synth-digits:train",
                                         "synth-digits:test",  "synth-glyphs:train",
                                         "synth-glyphs:test",  "synth-leaves:train",
                                         "synth-leaves:test",  "synth-census:train",
                                         "synth-census:test",  "synth-tumour:train",
                                         "synth-tumour:test",  NULL};

/* ------------------------------------------------------------- files of data sets */

struct file_list {
    char *paths[MAX_FILES];
    size_t count;
};

static void file_list_release(struct file_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->paths[i]);
    l->count = 0;
}

/* DIR/SET/NAME as it is, .gz or .xz. */
static char *find_in(const char *dir, const char *set, const char *name)
{
    static const char *const endings[] = {"", ".gz", ".xz"};
    for (size_t i = 0; dir && i < sizeof endings / sizeof *endings; i++) {
        char *path = dpf_format("%s/%s/%s%s", dir, set, name, endings[i]);
        if (path && dpf_is_file(path))
            return path;
        free(path);
    }
    return NULL;
}

/* The places where data sets lie, in order. heap strings; NULL entries are skipped. */
enum { PLACES = 5 };
static void list_places(const char *data_dir, char *places[PLACES])
{
    const char *env = getenv("DPFLOW_DATA"), *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char *program = dpf_program_dir();
    places[0] = data_dir ? dpf_strdup(data_dir) : NULL;
    places[1] = env && *env ? dpf_strdup(env) : NULL;
    places[2] = dpf_strdup("datasets/data");
    /* beside a source tree that was built in place */
    places[3] = program ? dpf_format("%s/../../../datasets/data", program) : NULL;
    places[4] = cache && *cache ? dpf_format("%s/dpflow", cache)
                : home          ? dpf_format("%s/.cache/dpflow", home)
                                : NULL;
    free(program);
}

/* Every file name that a set may have, ended by NULL. */
static const char *const *set_files(enum set_kind kind)
{
    static const char *const idx[] = {"train-images-idx3-ubyte",
                                      "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                      "t10k-labels-idx1-ubyte", NULL};
    static const char *const cifar[] = {"data_batch_1.bin",
                                        "data_batch_2.bin",
                                        "data_batch_3.bin",
                                        "data_batch_4.bin",
                                        "data_batch_5.bin",
                                        "test_batch.bin",
                                        NULL};
    return kind == SET_IDX ? idx : cifar;
}

static bool place_has_any(const char *place, const struct data_set *set)
{
    for (const char *const *name = set_files(set->kind); *name; name++) {
        char *path = find_in(place, set->name, *name);
        free(path);
        if (path)
            return true;
    }
    return false;
}

/* All files of a set come from one place, the first that has any of them. */
static char *find_file(const char *data_dir, const struct data_set *set, const char *name)
{
    char *places[PLACES], *found = NULL;
    bool decided = false;
    list_places(data_dir, places);
    for (int i = 0; i < PLACES; i++) {
        if (!decided && places[i] && place_has_any(places[i], set)) {
            found = find_in(places[i], set->name, name);
            decided = true;
        }
        free(places[i]);
    }
    return found;
}

static enum dpf_status missing(const char *set, struct dpf_error *e)
{
    return dpf_fail(e, DPF_UNAVAILABLE,
                    "data set '%s' is not on this machine, or not whole: run "
                    "'datasets/fetch %s', or say where it is with --data-dir or "
                    "$DPFLOW_DATA",
                    set, set);
}

/* The files of a named set: idx images then labels, or the CIFAR batches that are here.
 */
static enum dpf_status list_files(const struct data_set *set, const char *data_dir,
                                  bool partial, bool train, struct file_list *l,
                                  struct dpf_error *e)
{
    if (set->kind == SET_IDX) {
        const char *stem = train ? "train" : "t10k";
        static const char *const parts[] = {"images-idx3-ubyte", "labels-idx1-ubyte"};
        for (int i = 0; i < 2; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s-%s", stem, parts[i]);
            if (!(l->paths[l->count] = find_file(data_dir, set, name)))
                return missing(set->name, e);
            l->count++;
        }
    } else if (set->kind == SET_CIFAR) {
        for (int i = 1; i <= (train ? CIFAR_BATCHES : 1); i++) {
            char name[64];
            snprintf(name, sizeof name, train ? "data_batch_%d.bin" : "test_batch.bin",
                     i);
            if ((l->paths[l->count] = find_file(data_dir, set, name)))
                l->count++;
        }
        if (l->count == 0)
            return missing(set->name, e);
        if (train && l->count < CIFAR_BATCHES && !partial)
            return dpf_fail(e, DPF_UNAVAILABLE,
                            "only %zu of the %d training batches of '%s' are here: run "
                            "'datasets/fetch %s', or accept them with --partial",
                            l->count, CIFAR_BATCHES, set->name, set->name);
        if (train && l->count < CIFAR_BATCHES)
            dpf_notice("only %zu of the %d training batches of '%s' are here", l->count,
                       CIFAR_BATCHES, set->name);
    }
    return DPF_OK;
}

/* ------------------------------------------------------------------- named sets */

static const struct data_set *find_set(const char *name, bool *train, bool *test,
                                       struct dpf_error *e)
{
    size_t size = strcspn(name, ":");
    const char *split = name[size] ? name + size + 1 : NULL;
    const char *names[sizeof data_sets / sizeof *data_sets + 1] = {NULL};
    for (size_t i = 0; i < sizeof data_sets / sizeof *data_sets; i++) {
        const struct data_set *set = &data_sets[i];
        names[i] = set->name;
        if (strlen(set->name) != size || memcmp(set->name, name, size) != 0)
            continue;
        *train = split && strcmp(split, "train") == 0;
        *test = split && strcmp(split, "test") == 0;
        if (set->kind == SET_DIGITS && split && strcmp(split, "all") == 0)
            *train = *test = true;
        if (*train || *test)
            return set;
        dpf_fail(e, DPF_USAGE, "say which part of '%s': '%s:train' or '%s:test'",
                 set->name, set->name, set->name);
        return NULL;
    }
    char bare[64];
    snprintf(bare, sizeof bare, "%.*s", (int)(size < 63 ? size : 63), name);
    const char *near = DPF_NEAREST(names, bare);
    if (near)
        dpf_fail(e, DPF_USAGE, "there is no file or data set '%s' (did you mean '%s'?)",
                 name, near);
    else
        dpf_fail(e, DPF_USAGE, "there is no file or data set '%s'", name);
    return NULL;
}

/* Options that mean nothing for what is loaded are mistakes. `list` ends with NULL. */
static enum dpf_status refuse_options(const struct dpf_load_request *q,
                                      const char *const *list, const char *what,
                                      struct dpf_error *e)
{
    for (; *list; list++)
        if (q->given && dpf_option_given(q->given, *list))
            return dpf_fail(e, DPF_USAGE, "option '--%s' does not apply to '%s'", *list,
                            what);
    return DPF_OK;
}

static enum dpf_status check_set_options(const struct dpf_load_request *q,
                                         const struct data_set *set, struct dpf_error *e)
{
    static const char *const files[] = {"labels", "columns", "classes", NULL};
    static const char *const generators[] = {"count", "seed", NULL};
    static const char *const volumes[] = {"side", "channels", NULL};
    static const char *const stored[] = {"data-dir", "partial", NULL};
    bool generated = set->kind >= SET_DRAWN; /* generators come last */
    enum dpf_status status = refuse_options(q, files, set->name, e);
    if (status == DPF_OK && !generated)
        status = refuse_options(q, generators, set->name, e);
    if (status == DPF_OK && set->kind != SET_TUMOUR)
        status = refuse_options(q, volumes, set->name, e);
    if (status == DPF_OK && (generated || set->kind == SET_DIGITS))
        status = refuse_options(q, stored, set->name, e);
    return status;
}

static enum dpf_status check_file_options(const struct dpf_load_request *q,
                                          const char *format, struct dpf_error *e)
{
    static const char *const sets[] = {"count",   "seed",     "side", "channels",
                                       "partial", "data-dir", NULL};
    static const char *const labels[] = {"labels", NULL}, *const classes[] = {"classes",
                                                                              NULL};
    static const char *const columns[] = {"columns", NULL};
    bool idx = strcmp(format, "idx") == 0, nifti = strcmp(format, "nifti") == 0;
    enum dpf_status status = refuse_options(q, sets, format, e);
    if (status == DPF_OK && !idx && !nifti)
        status = refuse_options(q, labels, format, e);
    if (status == DPF_OK && strcmp(format, "csv") != 0)
        status = refuse_options(q, columns, format, e);
    if (status == DPF_OK && !idx && !nifti && strcmp(format, "npy") != 0)
        status = refuse_options(q, classes, format, e);
    return status;
}

static enum dpf_status open_set(const struct dpf_load_request *q,
                                const struct data_set *set, bool train, bool test,
                                struct dpf_source **take, struct dpf_error *e)
{
    struct file_list files = {.count = 0};
    uint64_t first = train ? 0 : synth_test_first;
    uint64_t count = q->count ? q->count : train ? set->train_count : set->test_count;
    enum dpf_status status = check_set_options(q, set, e);
    if (status == DPF_OK)
        status = list_files(set, q->data_dir, q->partial, train, &files, e);
    if (status == DPF_OK) {
        switch (set->kind) {
        case SET_DIGITS:
            status = dpf_digits_open(train, test, take, e);
            break;
        case SET_IDX:
            status = dpf_idx_open(files.paths[0], files.paths[1], 10, take, e);
            break;
        case SET_CIFAR:
            status =
                dpf_cifar_open((const char *const *)files.paths, files.count, take, e);
            break;
        case SET_DRAWN:
            status = dpf_synth_digits_open(q->seed, first, count, take, e);
            break;
        case SET_GLYPHS:
            status = dpf_synth_glyphs_open(q->seed, first, count, take, e);
            break;
        case SET_LEAVES:
            status = dpf_synth_leaves_open(q->seed, first, count, take, e);
            break;
        case SET_CENSUS:
            status = dpf_synth_census_open(q->seed, first, count, take, e);
            break;
        case SET_TUMOUR:
            status = dpf_synth_tumour_open(q->seed, first, count,
                                           q->channels ? q->channels : 4,
                                           q->side ? q->side : 64, take, e);
            break;
        }
    }
    file_list_release(&files);
    return status;
}

/* ------------------------------------------------------------------------ files */

static const char *format_of(const char *path)
{
    static const struct {
        const char *ending, *format;
    } endings[] = {{".csv", "csv"},   {".data", "csv"},  {".npy", "npy"},
                   {".npz", "npy"},   {".nii", "nifti"}, {".bin", "cifar"},
                   {"-ubyte", "idx"}, {".idx", "idx"}};
    size_t size = strlen(path);
    if (dpf_ends_with(path, ".gz") || dpf_ends_with(path, ".xz"))
        size -= 3;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i].ending);
        if (size >= n && memcmp(path + size - n, endings[i].ending, n) == 0)
            return endings[i].format;
    }
    return NULL;
}

static enum dpf_status open_files(const struct dpf_load_request *q,
                                  struct dpf_source **take, struct dpf_error *e)
{
    const char *format = q->format ? q->format : format_of(q->names[0]);
    if (!format)
        return dpf_fail(e, DPF_USAGE,
                        "cannot tell the format of '%s' by its name: give --format",
                        q->names[0]);
    enum dpf_status status = check_file_options(q, format, e);
    if (status != DPF_OK)
        return status;
    bool many = strcmp(format, "cifar") == 0 || strcmp(format, "nifti") == 0;
    if (q->name_count > 1 && !many)
        return dpf_fail(e, DPF_USAGE, "format %s takes one file", format);
    if (strcmp(format, "idx") == 0)
        return dpf_idx_open(q->names[0], q->label_count ? q->labels[0] : NULL, q->classes,
                            take, e);
    if (strcmp(format, "cifar") == 0)
        return dpf_cifar_open(q->names, q->name_count, take, e);
    if (strcmp(format, "csv") == 0)
        return dpf_csv_open(q->names[0], q->columns, NULL, take, e);
    if (strcmp(format, "npy") == 0)
        return dpf_npy_open(q->names[0], q->classes, take, e);
    if (q->label_count && q->label_count != q->name_count)
        return dpf_fail(e, DPF_USAGE, "%zu volumes need as many masks, not %zu",
                        q->name_count, q->label_count);
    return dpf_nifti_open(q->names, q->name_count, q->label_count ? q->labels : NULL,
                          q->classes, take, e);
}

enum dpf_status dpf_catalog_open(const struct dpf_load_request *q,
                                 struct dpf_source **take, struct dpf_error *e)
{
    bool train, test;
    if (q->format || dpf_is_file(q->names[0]))
        return open_files(q, take, e);
    const struct data_set *set = find_set(q->names[0], &train, &test, e);
    if (!set)
        return DPF_USAGE;
    if (q->name_count > 1)
        return dpf_fail(e, DPF_USAGE, "load one data set at a time");
    return open_set(q, set, train, test, take, e);
}

enum dpf_status dpf_catalog_fingerprint(const struct dpf_load_request *q,
                                        struct dpf_fingerprint *f, struct dpf_error *e)
{
    bool train, test;
    enum dpf_status status = DPF_OK;
    if (q->format || dpf_is_file(q->names[0])) {
        for (size_t i = 0; status == DPF_OK && i < q->name_count; i++)
            status = dpf_fingerprint_add_file(f, q->names[i], e);
        for (size_t i = 0; status == DPF_OK && i < q->label_count; i++)
            status = dpf_fingerprint_add_file(f, q->labels[i], e);
        return status;
    }
    const struct data_set *set = find_set(q->names[0], &train, &test, e);
    if (!set)
        return DPF_USAGE;
    struct file_list files = {.count = 0};
    status = list_files(set, q->data_dir, q->partial, train, &files, e);
    for (size_t i = 0; status == DPF_OK && i < files.count; i++)
        status = dpf_fingerprint_add_file(f, files.paths[i], e);
    file_list_release(&files);
    return status;
}

/* --------------------------------------------------------------------- contents */

/* SHA-256 of the files of stored sets as they are published: see datasets/fetch. */
static const struct {
    const char *set, *file, *sha256;
} published[] = {
    {"mnist", "train-images-idx3-ubyte",
     "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
    {"mnist", "train-labels-idx1-ubyte",
     "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
    {"mnist", "t10k-images-idx3-ubyte",
     "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
    {"mnist", "t10k-labels-idx1-ubyte",
     "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
    {"fashion-mnist", "train-images-idx3-ubyte",
     "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
    {"fashion-mnist", "train-labels-idx1-ubyte",
     "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
    {"fashion-mnist", "t10k-images-idx3-ubyte",
     "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
    {"fashion-mnist", "t10k-labels-idx1-ubyte",
     "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"},
    {"cifar-10", "data_batch_1.bin",
     "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
    {"cifar-10", "data_batch_2.bin",
     "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
    {"cifar-10", "data_batch_3.bin",
     "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
    {"cifar-10", "data_batch_4.bin",
     "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
    {"cifar-10", "data_batch_5.bin",
     "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
    {"cifar-10", "test_batch.bin",
     "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
};

static const char *published_sum(const char *set, const char *path)
{
    const char *base = dpf_path_base(path);
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        if (strcmp(published[i].set, set) == 0 &&
            dpf_starts_with(base, published[i].file))
            return published[i].sha256;
    return NULL;
}

/* Files that lie there under the name of a set may hold anything: only what was published
 * is taken for it. */
static enum dpf_status add_stored(const struct data_set *set,
                                  const struct file_list *files, struct dpf_contents *c,
                                  struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    for (size_t i = 0; status == DPF_OK && i < files->count; i++)
        status = dpf_contents_add_file(c, set->kind == SET_IDX && i > 0 ? 'y' : 'x',
                                       files->paths[i],
                                       published_sum(set->name, files->paths[i]), e);
    return status;
}

/* Made from a seed, or embedded: what was asked for tells what comes. */
static enum dpf_status add_made(const struct dpf_load_request *q,
                                const struct data_set *set, bool train,
                                struct dpf_contents *c, struct dpf_error *e)
{
    uint64_t count = q->count ? q->count : train ? set->train_count : set->test_count;
    char *text =
        dpf_format("%s seed %llu count %llu side %llu channels %llu", q->names[0],
                   (unsigned long long)q->seed, (unsigned long long)count,
                   (unsigned long long)q->side, (unsigned long long)q->channels);
    enum dpf_status status =
        text ? dpf_contents_add_text(c, text, e) : dpf_fail_memory(e);
    free(text);
    return status;
}

static enum dpf_status set_contents(const struct dpf_load_request *q,
                                    const struct data_set *set, bool train, bool test,
                                    struct dpf_contents *c, struct dpf_error *e)
{
    struct file_list files = {.count = 0};
    bool generated = set->kind >= SET_DRAWN;
    bool made = generated || set->kind == SET_DIGITS;
    enum dpf_status status = list_files(set, q->data_dir, q->partial, train, &files, e);
    if (status == DPF_OK)
        status = made ? add_made(q, set, train, c, e) : add_stored(set, &files, c, e);
    file_list_release(&files);
    if (status == DPF_OK)
        status = dpf_contents_read(c, e);
    /* of so many, the last training records would be the first of the test */
    if (status != DPF_OK || !dpf_contents_genuine(c) ||
        (generated && q->count > synth_test_first))
        return status;
    if (generated)
        snprintf(c->set, sizeof c->set, "%s seed %llu", set->name,
                 (unsigned long long)q->seed);
    else
        snprintf(c->set, sizeof c->set, "%s", set->name);
    snprintf(c->part, sizeof c->part, "%s", !test ? "train" : !train ? "test" : "all");
    return DPF_OK;
}

enum dpf_status dpf_catalog_contents(const struct dpf_load_request *q,
                                     struct dpf_contents *c, struct dpf_error *e)
{
    bool train, test;
    enum dpf_status status = DPF_OK;
    if (!q->format && !dpf_is_file(q->names[0])) {
        const struct data_set *set = find_set(q->names[0], &train, &test, e);
        return set ? set_contents(q, set, train, test, c, e) : DPF_USAGE;
    }
    for (size_t i = 0; status == DPF_OK && i < q->name_count; i++)
        status = dpf_contents_add_file(c, 'x', q->names[i], NULL, e);
    for (size_t i = 0; status == DPF_OK && i < q->label_count; i++)
        status = dpf_contents_add_file(c, 'y', q->labels[i], NULL, e);
    return status == DPF_OK ? dpf_contents_read(c, e) : status;
}
