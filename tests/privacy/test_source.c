/* Sources: the owner's key, digests, parts, and who has seen whose records. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "harness.h"
#include "ledger/lineage.h"
#include "ledger/merge.h"

#include "base/banned.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ------------------------------------------------------------------------------ the key
 */

static char folder[64];

/* An empty folder, and no place for a key but what a test says. */
static void begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/dpflow-source-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
    unsetenv("DPFLOW_OWNER_KEY");
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("HOME");
}

static void end(void)
{
    dpf_remove_tree(folder);
}

static void place(const char *variable, const char *path)
{
    char whole[200];
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    setenv(variable, whole, 1);
}

static int mode_of(const char *path)
{
    char whole[200];
    struct stat st;
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    return stat(whole, &st) == 0 ? (int)(st.st_mode & 07777) : -1;
}

static bool get(unsigned char *key)
{
    bool known = false;
    return dpf_owner_key_get(key, &known, NULL) == DPF_OK && known;
}

static void test_key_places(void)
{
    unsigned char first[DPF_OWNER_KEY_BYTES], again[DPF_OWNER_KEY_BYTES];
    begin();
    mode_t before = umask(0);
    place("HOME", "home");
    CU_ASSERT(get(first) && get(again) && memcmp(first, again, sizeof first) == 0);
    CU_ASSERT_EQUAL(mode_of("home/.config/dpflow/owner.key"), 0600);
    CU_ASSERT_EQUAL(mode_of("home/.config/dpflow"), 0700);
    place("XDG_CONFIG_HOME", "config");
    CU_ASSERT(get(again) && memcmp(first, again, sizeof first) != 0);
    CU_ASSERT_EQUAL(mode_of("config/dpflow/owner.key"), 0600);
    CU_ASSERT_EQUAL(mode_of("config/dpflow"), 0700);
    place("DPFLOW_OWNER_KEY", "mine");
    CU_ASSERT(get(first) && memcmp(first, again, sizeof first) != 0);
    CU_ASSERT_EQUAL(mode_of("mine"), 0600);
    umask(before);
    end();
}

static void test_key_refused(void)
{
    static const int modes[] = {0644, 0640, 0604, 0660, 0610};
    unsigned char key[DPF_OWNER_KEY_BYTES];
    struct dpf_error e = {0};
    bool known;
    begin();
    place("DPFLOW_OWNER_KEY", "mine");
    CU_ASSERT(get(key));
    for (size_t i = 0; i < COUNT(modes); i++) {
        CU_ASSERT(chmod(getenv("DPFLOW_OWNER_KEY"), (mode_t)modes[i]) == 0);
        CU_ASSERT(dpf_owner_key_get(key, &known, &e) == DPF_PRIVACY);
        CU_ASSERT(strstr(e.message, "others can read") && strstr(e.message, "mine'"));
    }
    CU_ASSERT(chmod(getenv("DPFLOW_OWNER_KEY"), 0600) == 0 && get(key));
    /* cut off, too long, no digits */
    static const char *const texts[] = {
        "",
        "\n",
        "00ff\n",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n\n",
        "xy0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        CU_ASSERT(dpf_write_file(getenv("DPFLOW_OWNER_KEY"), texts[i], strlen(texts[i]),
                                 NULL) == DPF_OK);
        CU_ASSERT(chmod(getenv("DPFLOW_OWNER_KEY"), 0600) == 0);
        CU_ASSERT(dpf_owner_key_get(key, &known, &e) == DPF_PRIVACY);
        CU_ASSERT(strstr(e.message, "damaged") != NULL);
    }
    place("DPFLOW_OWNER_KEY", "a/folder");
    CU_ASSERT(dpf_make_dirs(getenv("DPFLOW_OWNER_KEY"), NULL) == DPF_OK);
    CU_ASSERT(dpf_owner_key_get(key, &known, &e) == DPF_PRIVACY);
    end();
}

/* Nowhere to put it: no key, and no error. */
static void test_key_without_place(void)
{
    unsigned char key[DPF_OWNER_KEY_BYTES];
    bool known = true;
    begin();
    CU_ASSERT(dpf_owner_key_get(key, &known, NULL) == DPF_OK && !known);
    setenv("HOME", "/dev/null", 1);
    known = true;
    CU_ASSERT(dpf_owner_key_get(key, &known, NULL) == DPF_OK && !known);
    setenv("DPFLOW_OWNER_KEY", "/proc/none/owner.key", 1);
    known = true;
    CU_ASSERT(dpf_owner_key_get(key, &known, NULL) == DPF_OK && !known);
    end();
}

/* Many that want it first at the same time have the same one. */
static void test_key_race(void)
{
    enum { PROCESSES = 24, ROUNDS = 8 };
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char keys[PROCESSES][DPF_OWNER_KEY_BYTES];
        int gate[2], answers[2];
        begin();
        place("HOME", "home");
        CU_ASSERT_FATAL(pipe(gate) == 0 && pipe(answers) == 0);
        for (int i = 0; i < PROCESSES; i++)
            if (fork() == 0) {
                unsigned char key[DPF_OWNER_KEY_BYTES] = {0};
                char byte;
                close(gate[1]);
                if (read(gate[0], &byte, 1) != 0 || !get(key)) /* until it is closed */
                    memset(key, 0, sizeof key);
                _exit(write(answers[1], key, sizeof key) != sizeof key);
            }
        close(gate[0]);
        close(gate[1]);
        close(answers[1]);
        CU_ASSERT(dpf_read_full(answers[0], keys, sizeof keys) == sizeof keys);
        while (wait(NULL) > 0 || errno == EINTR)
            ;
        close(answers[0]);
        unsigned char own[DPF_OWNER_KEY_BYTES];
        CU_ASSERT(get(own));
        for (int i = 0; i < PROCESSES; i++)
            CU_ASSERT(memcmp(keys[i], own, sizeof own) == 0);
        end();
    }
}

/* ------------------------------------------------------------------------------ digests
 */

static void test_digests(void)
{
    unsigned char pieces[2][DPF_PIECE_BYTES] = {{1, 2, 3}, {4, 5, 6}};
    unsigned char swapped[2][DPF_PIECE_BYTES] = {{4, 5, 6}, {1, 2, 3}};
    unsigned char key[DPF_OWNER_KEY_BYTES] = {7}, other[DPF_OWNER_KEY_BYTES] = {8};
    char texts[8][DPF_SOURCE_TEXT], again[DPF_SOURCE_TEXT];
    dpf_source_digest("xx", pieces, 2, NULL, texts[0]);
    dpf_source_digest("xx", pieces, 2, key, texts[1]);
    dpf_source_digest("xx", pieces, 2, other, texts[2]);
    dpf_source_digest("xx", swapped, 2, key, texts[3]); /* order counts */
    dpf_source_digest("xy", pieces, 2, key, texts[4]);  /* so does what they are */
    dpf_source_digest("x", pieces, 1, key, texts[5]);
    dpf_source_digest("x", pieces, 1, NULL, texts[6]);
    dpf_source_digest("", pieces, 0, NULL, texts[7]);
    for (size_t i = 0; i < COUNT(texts); i++)
        for (size_t k = 0; k < i; k++)
            CU_ASSERT(strcmp(texts[i], texts[k]) != 0);
    CU_ASSERT(strncmp(texts[0], "blake2b:", 8) == 0 && strlen(texts[0]) == 72);
    CU_ASSERT(strncmp(texts[1], "blake2b-keyed:", 14) == 0 && strlen(texts[1]) == 78);
    dpf_source_digest("xx", pieces, 2, key, again);
    CU_ASSERT_STRING_EQUAL(again, texts[1]);
}

/* -------------------------------------------------------------------------------- parts
 */

struct made {
    const char *name, *digest, *set, *part;
};

static struct dpf_header load(struct made m)
{
    struct dpf_header h = {.is_private = true, .has_records = true, .records = 10};
    const struct dpf_source_event source = {m.name, m.digest, m.set, m.part};
    msgpack_packer p = dpf_values_packer(&h.provenance);
    dpf_ledger_add_source(&h.events, "load", &source);
    msgpack_pack_map(&p, 4);
    dpf_pack_string(&p, "stage");
    dpf_pack_string(&p, "load");
    dpf_pack_string(&p, "version");
    dpf_pack_string(&p, "1");
    dpf_pack_string(&p, "options");
    msgpack_pack_map(&p, 0);
    dpf_pack_string(&p, "arguments");
    msgpack_pack_array(&p, 1);
    dpf_pack_string(&p, m.name);
    h.provenance.count = 1;
    return h;
}

static const struct dpf_partition_event halves = {.parts = 2,
                                                  .part = 0,
                                                  .by = "index",
                                                  .stability = {.replace_one = 1},
                                                  .disjoint_under = DPF_REPLACE_ONE};

static struct dpf_header split(struct dpf_header h, const struct dpf_partition_event *p)
{
    dpf_ledger_add_partition(&h.events, "split", p, &h);
    return h;
}

/* An option in the provenance: `name` has `value`. */
static void step(struct dpf_header *h, const char *name, const char *value)
{
    msgpack_packer p = dpf_values_packer(&h->provenance);
    msgpack_pack_map(&p, 4);
    dpf_pack_string(&p, "exact");
    msgpack_pack_true(&p);
    dpf_pack_string(&p, "stage");
    dpf_pack_string(&p, "scale");
    dpf_pack_string(&p, "version");
    dpf_pack_string(&p, "1");
    dpf_pack_string(&p, "options");
    msgpack_pack_map(&p, 1);
    dpf_pack_string(&p, name);
    dpf_pack_string(&p, value);
    h->provenance.count++;
}

static void test_cuts(void)
{
    char texts[10][DPF_SOURCE_TEXT], again[DPF_SOURCE_TEXT];
    struct dpf_header a = load((struct made){.name = "a", .digest = "d"});
    struct dpf_header copy = load((struct made){.name = "copy", .digest = "d"});
    struct dpf_header other = load((struct made){.name = "a", .digest = "e"});
    struct dpf_header unknown = load((struct made){.name = "a"});
    struct dpf_header nothing = {.is_private = true};
    struct dpf_partition_event p = halves;
    CU_ASSERT(dpf_source_cut(&p, &a, texts[0]));
    p.part = 1; /* which part it is does not change what is divided */
    CU_ASSERT(dpf_source_cut(&p, &copy, again));
    CU_ASSERT_STRING_EQUAL(again, texts[0]);
    CU_ASSERT(dpf_source_cut(&p, &other, texts[1]));
    p.seed = 1;
    CU_ASSERT(dpf_source_cut(&p, &a, texts[2]));
    p = halves;
    p.parts = 3;
    CU_ASSERT(dpf_source_cut(&p, &a, texts[3]));
    p = halves;
    p.share = 0.5;
    CU_ASSERT(dpf_source_cut(&p, &a, texts[4]));
    p = halves;
    p.by = "order";
    CU_ASSERT(dpf_source_cut(&p, &a, texts[5]));
    p.by = "content";
    CU_ASSERT(dpf_source_cut(&p, &a, texts[6]));
    CU_ASSERT(dpf_source_cut(&p, &copy, again)); /* what it is called does not matter */
    CU_ASSERT_STRING_EQUAL(again, texts[6]);
    /* values that were changed are other contents, in the same places */
    step(&copy, "unit", "0:1");
    CU_ASSERT(dpf_source_cut(&halves, &copy, again));
    CU_ASSERT_STRING_EQUAL(again, texts[0]);
    CU_ASSERT(dpf_source_cut(&p, &copy, texts[7]));
    step(&copy, "relevance", "stream"); /* of another stream: nobody can tell which */
    CU_ASSERT(dpf_source_cut(&halves, &copy, again));
    CU_ASSERT(!dpf_source_cut(&p, &copy, again));
    /* fewer records, and how they were chosen */
    const struct dpf_selection_event first = {
        .by = "order", .rule = "first 9", .stability = {2, 1}};
    const struct dpf_selection_event fewer = {
        .by = "order", .rule = "first 8", .stability = {2, 1}};
    dpf_ledger_add_selection(&a.events, "load", &first);
    CU_ASSERT(dpf_source_cut(&halves, &a, texts[8]));
    dpf_ledger_add_selection(&other.events, "load", &fewer);
    CU_ASSERT(dpf_source_cut(&halves, &other, texts[9]));
    for (size_t i = 0; i < COUNT(texts); i++)
        for (size_t k = 0; k < i; k++)
            CU_ASSERT(strcmp(texts[i], texts[k]) != 0);
    CU_ASSERT(!dpf_source_cut(&halves, &unknown, again));
    CU_ASSERT(!dpf_source_cut(&halves, &nothing, again));
    /* known and unknown together are unknown */
    CU_ASSERT(dpf_header_merge(&a, &unknown, dpf_ledger_merge, NULL) == DPF_OK);
    CU_ASSERT(!dpf_source_cut(&halves, &a, again));
    struct dpf_header *all[] = {&a, &copy, &other, &unknown, &nothing};
    for (size_t i = 0; i < COUNT(all); i++)
        dpf_header_release(all[i]);
}

/* ------------------------------------------------------------------------------ lineage
 */

static enum dpf_membership compare(struct dpf_header take_model,
                                   struct dpf_header take_records)
{
    struct dpf_lineage l;
    dpf_lineage_read(&l, &take_model, &take_records);
    enum dpf_membership m = l.membership;
    dpf_lineage_release(&l);
    dpf_header_release(&take_model);
    dpf_header_release(&take_records);
    return m;
}

static void test_membership(void)
{
    const struct made a = {"a", "d", NULL, NULL}, copy = {"b", "d", NULL, NULL};
    const struct made other = {"a", "e", NULL, NULL}, pipe = {"a", NULL, NULL, NULL};
    const struct made train = {"t", "f", "mnist", "train"},
                      test = {"u", "g", "mnist", "test"};
    const struct made some = {"v", "h", "mnist", "train"},
                      all = {"w", "i", "mnist", "all"};
    const struct made else_test = {"x", "j", "cifar-10", "test"};
    struct dpf_partition_event rest = halves, thirds = halves;
    rest.part = 1;
    thirds.parts = 3;
    thirds.part = 1;
    CU_ASSERT(compare(load(a), load(copy)) == DPF_SEEN);
    CU_ASSERT(compare(load(a), load(other)) == DPF_UNKNOWN); /* in another order? */
    CU_ASSERT(compare(load(a), load(pipe)) == DPF_UNKNOWN);
    CU_ASSERT(compare(load(pipe), load(pipe)) == DPF_UNKNOWN);
    CU_ASSERT(compare((struct dpf_header){0}, load(a)) == DPF_UNKNOWN);
    CU_ASSERT(compare(load(a), (struct dpf_header){0}) == DPF_UNKNOWN);
    CU_ASSERT(compare(split(load(a), &halves), split(load(copy), &rest)) == DPF_HELD_OUT);
    CU_ASSERT(compare(split(load(a), &halves), split(load(copy), &halves)) == DPF_SEEN);
    CU_ASSERT(compare(split(load(a), &halves), split(load(copy), &thirds)) == DPF_SEEN);
    CU_ASSERT(compare(split(load(a), &halves), split(load(other), &rest)) == DPF_UNKNOWN);
    CU_ASSERT(compare(split(load(pipe), &halves), split(load(pipe), &rest)) ==
              DPF_UNKNOWN);
    CU_ASSERT(compare(load(train), load(test)) == DPF_HELD_OUT);
    CU_ASSERT(compare(load(train), load(some)) == DPF_SEEN);
    CU_ASSERT(compare(load(train), load(all)) == DPF_SEEN);
    CU_ASSERT(compare(load(all), load(test)) == DPF_SEEN);
    CU_ASSERT(compare(load(train), load(else_test)) == DPF_UNKNOWN);
    CU_ASSERT(compare(load(train), load(a)) == DPF_UNKNOWN);
    /* copies of a record go to different parts, unless they are made of parts */
    struct dpf_header copies[2] = {load(a), load(copy)};
    struct dpf_header late[2] = {split(load(a), &halves), split(load(copy), &rest)};
    for (int i = 0; i < 2; i++) {
        dpf_ledger_add_augmentation(&copies[i].events, "augment", 3, "index",
                                    (struct dpf_stability){.replace_one = 3});
        dpf_ledger_add_augmentation(&late[i].events, "augment", 3, "index",
                                    (struct dpf_stability){.replace_one = 3});
    }
    CU_ASSERT(compare(split(copies[0], &halves), split(copies[1], &rest)) == DPF_SEEN);
    CU_ASSERT(compare(late[0], late[1]) == DPF_HELD_OUT);
    /* parts of parts */
    CU_ASSERT(compare(split(split(load(a), &halves), &rest),
                      split(split(load(copy), &rest), &rest)) == DPF_HELD_OUT);
    CU_ASSERT(compare(split(split(load(a), &halves), &halves),
                      split(split(load(copy), &halves), &rest)) == DPF_HELD_OUT);
    CU_ASSERT(compare(split(load(a), &halves),
                      split(split(load(copy), &halves), &rest)) == DPF_SEEN);
}

/* What a model was made with counts, and is not divided by what comes later. */
static void test_models(void)
{
    const struct made a = {"a", "d", NULL, NULL}, b = {"b", "e", NULL, NULL};
    struct dpf_partition_event rest = halves;
    rest.part = 1;
    struct dpf_header first = load(b), model = load(a);
    dpf_ledger_add_model(&model.events, "train", &first);
    CU_ASSERT(compare(model, load(b)) == DPF_SEEN);
    dpf_header_release(&first);
    /* a model of all of it, then the one half of it: the other half was seen */
    first = load(a);
    model = split(load(a), &halves);
    dpf_ledger_add_model(&model.events, "train", &first);
    CU_ASSERT(compare(model, split(load(a), &rest)) == DPF_SEEN);
    dpf_header_release(&first);
    first = load(a);
    struct dpf_header records = load(b);
    dpf_ledger_add_model(&records.events, "infer", &first);
    model = load(a);
    dpf_ledger_add_model(&model.events, "infer", &first);
    /* records that a model of `a` looked at are not `a` */
    CU_ASSERT(compare(model, records) == DPF_UNKNOWN);
    dpf_header_release(&first);
}

static void test_merged(void)
{
    const struct made train = {"t", "f", "mnist", "train"},
                      test = {"u", "g", "mnist", "test"};
    const struct made pipe = {"a", NULL, NULL, NULL};
    struct dpf_header both = load(train), one = load(test);
    CU_ASSERT(dpf_header_merge(&both, &one, dpf_ledger_merge, NULL) == DPF_OK);
    dpf_header_release(&one);
    CU_ASSERT(compare(both, load(test)) == DPF_SEEN);
    both = load(train);
    one = load(pipe);
    CU_ASSERT(dpf_header_merge(&both, &one, dpf_ledger_merge, NULL) == DPF_OK);
    dpf_header_release(&one);
    CU_ASSERT(compare(both, load(test)) == DPF_UNKNOWN);
    /* the same records twice, divided: one goes here, its copy goes there */
    struct dpf_partition_event rest = halves;
    struct dpf_header twice[2];
    rest.part = 1;
    for (int sets = 0; sets < 2; sets++) {
        for (int i = 0; i < 2; i++) {
            twice[i] = load(train);
            one = load(sets ? test : train);
            CU_ASSERT(dpf_header_merge(&twice[i], &one, dpf_ledger_merge, NULL) ==
                      DPF_OK);
            dpf_header_release(&one);
        }
        CU_ASSERT(compare(split(twice[0], &halves), split(twice[1], &rest)) ==
                  (sets ? DPF_HELD_OUT : DPF_SEEN));
    }
    /* an event that nobody knows could be anything */
    one = load(test);
    msgpack_packer p = dpf_values_packer(&one.events);
    msgpack_pack_map(&p, 1);
    dpf_pack_string(&p, "event");
    dpf_pack_string(&p, "teleport");
    one.events.count++;
    CU_ASSERT(compare(load(train), one) == DPF_UNKNOWN);
}

/* ------------------------------------------------------------------------------- counts
 */

static void test_counts(void)
{
    const struct made a = {"a", "d", NULL, NULL};
    const struct dpf_selection_event by_label = {
        .by = "label", .rule = "y is 3", .stability = {1, 0}, .count_private = true};
    struct dpf_partition_event by_content = halves;
    by_content.by = "content";
    by_content.count_private = true;
    struct dpf_header h = load(a);
    CU_ASSERT(!dpf_ledger_count_is_private(&h.events));
    h = split(h, &halves);
    CU_ASSERT(!dpf_ledger_count_is_private(&h.events));
    struct dpf_header content = split(load(a), &by_content);
    CU_ASSERT(dpf_ledger_count_is_private(&content.events));
    CU_ASSERT(dpf_header_merge(&h, &content, dpf_ledger_merge, NULL) == DPF_OK);
    CU_ASSERT(dpf_ledger_count_is_private(&h.events)); /* in a branch */
    dpf_header_release(&h);
    h = load(a);
    dpf_ledger_add_model(&h.events, "infer", &content); /* other records */
    CU_ASSERT(!dpf_ledger_count_is_private(&h.events));
    dpf_ledger_add_selection(&h.events, "split", &by_label);
    CU_ASSERT(dpf_ledger_count_is_private(&h.events));
    h.events.count++; /* more than there is: nobody knows */
    CU_ASSERT(dpf_ledger_count_is_private(&h.events));
    dpf_header_release(&h);
    dpf_header_release(&content);
}

const char dpf_suite[] = "source";
const struct dpf_test dpf_tests[] = {
    {"the owner's key: three places, for the owner alone", test_key_places},
    {"a key that others can read, or that is none, is refused", test_key_refused},
    {"no place for a key is no error", test_key_without_place},
    {"many make the key at the same time", test_key_race},
    {"digests: order, roles and keys count", test_digests},
    {"parts are named by what is divided, and how", test_cuts},
    {"held out, seen, unknown", test_membership},
    {"models of models, and of other records", test_models},
    {"merged sources", test_merged},
    {"the number of records is private after a choice by content", test_counts},
    {NULL, NULL},
};
