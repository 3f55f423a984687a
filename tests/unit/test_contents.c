/* lib/data/contents: files told by what they hold. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "data/catalog.h"
#include "harness.h"

#include "base/banned.h"

static char folder[64];
static const char text[] = "x\n1\n2\n3\n";
/* SHA-256 of it */
static const char sum[] =
    "4bf0e63035dd1fafdbe5915d64110833dacd4754cfbb5e70330440fd3bb5f53b";

static const char *path(const char *name)
{
    static char whole[4][200];
    static int next;
    next = (next + 1) % 4;
    snprintf(whole[next], sizeof whole[next], "%s/%s", folder, name);
    return whole[next];
}

static void begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/dpflow-contents-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
    const char *const names[] = {"a.csv", "b.csv"};
    for (int i = 0; i < 2; i++)
        CU_ASSERT_FATAL(dpf_write_file(path(names[i]), text, sizeof text - 1, NULL) ==
                        DPF_OK);
    CU_ASSERT_FATAL(dpf_write_file(path("c.csv"), text, sizeof text - 3, NULL) == DPF_OK);
    gzFile packed = gzopen(path("a.csv.gz"), "wb");
    CU_ASSERT_FATAL(packed && gzwrite(packed, text, sizeof text - 1) > 0);
    gzclose(packed);
}

static struct dpf_contents of(const char *const *names)
{
    struct dpf_contents c = {.unknown = false};
    for (; *names; names++)
        CU_ASSERT(dpf_contents_add_file(&c, 'x', path(*names), NULL, NULL) == DPF_OK);
    CU_ASSERT(dpf_contents_read(&c, NULL) == DPF_OK);
    return c;
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_digests(void)
{
    begin();
    struct dpf_contents c = of(NAMES("a.csv", "b.csv", "c.csv", "a.csv.gz"));
    CU_ASSERT(!c.unknown && c.count == 4);
    CU_ASSERT(memcmp(c.digests[0], c.digests[1], sizeof *c.digests) == 0);
    CU_ASSERT(memcmp(c.digests[0], c.digests[2], sizeof *c.digests) != 0);
    CU_ASSERT(memcmp(c.digests[0], c.digests[3], sizeof *c.digests) == 0);
    CU_ASSERT_EQUAL(dpf_contents_copies(&c), 3);
    c.roles[3] = 'y'; /* masks may be equal */
    CU_ASSERT_EQUAL(dpf_contents_copies(&c), 2);
    dpf_contents_release(&c);
    c = of(NAMES("a.csv", "c.csv"));
    CU_ASSERT_EQUAL(dpf_contents_copies(&c), 1);
    dpf_contents_release(&c);
    CU_ASSERT(mkfifo(path("pipe"), 0600) == 0);
    c = of(NAMES("a.csv", "pipe"));
    CU_ASSERT(c.unknown);
    dpf_contents_release(&c);
    dpf_remove_tree(folder);
}

static void test_genuine(void)
{
    static const char *const names[] = {"a.csv", "a.csv.gz", "c.csv"};
    begin();
    struct dpf_contents c = {.unknown = false};
    for (int i = 0; i < 3; i++)
        CU_ASSERT(dpf_contents_add_file(&c, 'x', path(names[i]), sum, NULL) == DPF_OK);
    CU_ASSERT(dpf_contents_read(&c, NULL) == DPF_OK);
    CU_ASSERT(c.files[0].genuine && c.files[1].genuine && !c.files[2].genuine);
    CU_ASSERT(!dpf_contents_genuine(&c));
    dpf_contents_release(&c);
    dpf_remove_tree(folder);
}

static void test_changes(void)
{
    struct dpf_error e = {0};
    begin();
    struct dpf_contents c = of(NAMES("a.csv", "b.csv"));
    CU_ASSERT(dpf_contents_unchanged(&c, NULL) == DPF_OK);
    CU_ASSERT(dpf_write_file(path("b.csv"), text, sizeof text - 3, NULL) == DPF_OK);
    CU_ASSERT(dpf_contents_unchanged(&c, &e) == DPF_SYSTEM);
    CU_ASSERT(strstr(e.message, "b.csv' was changed") != NULL);
    dpf_contents_release(&c);
    c = of(NAMES("a.csv"));
    CU_ASSERT(unlink(path("a.csv")) == 0);
    CU_ASSERT(dpf_contents_unchanged(&c, NULL) == DPF_SYSTEM);
    CU_ASSERT(dpf_contents_read(&c, &e) == DPF_SYSTEM);
    CU_ASSERT(strstr(e.message, "a.csv'") != NULL);
    dpf_contents_release(&c);
    dpf_remove_tree(folder);
}

static struct dpf_contents asked_for(const char *name, uint64_t count, uint64_t seed)
{
    struct dpf_contents c = {.unknown = false};
    struct dpf_file_list files = {0};
    const struct dpf_load_request q = {
        .names = &name, .name_count = 1, .count = count, .seed = seed, .files = &files};
    CU_ASSERT(dpf_catalog_list(&q, &files, NULL) == DPF_OK);
    CU_ASSERT(dpf_catalog_contents(&q, &c, NULL) == DPF_OK);
    dpf_file_list_release(&files);
    return c;
}

static void test_catalogue(void)
{
    struct dpf_contents c = asked_for("digits:train", 0, 0), d;
    CU_ASSERT_STRING_EQUAL(c.set, "digits");
    CU_ASSERT_STRING_EQUAL(c.part, "train");
    d = asked_for("digits:all", 0, 0);
    CU_ASSERT_STRING_EQUAL(d.part, "all");
    CU_ASSERT(memcmp(c.digests, d.digests, sizeof *c.digests) != 0);
    dpf_contents_release(&c);
    dpf_contents_release(&d);
    c = asked_for("synth-digits:test", 0, 7);
    CU_ASSERT_STRING_EQUAL(c.set, "synth-digits seed 7");
    CU_ASSERT_STRING_EQUAL(c.part, "test");
    d = asked_for("synth-digits:test", 2000, 7); /* what it is without being asked */
    CU_ASSERT(memcmp(c.digests, d.digests, sizeof *c.digests) == 0);
    dpf_contents_release(&d);
    d = asked_for("synth-digits:test", 2001, 7);
    CU_ASSERT(memcmp(c.digests, d.digests, sizeof *c.digests) != 0);
    dpf_contents_release(&c);
    dpf_contents_release(&d);
    /* so many that they reach into the test's */
    c = asked_for("synth-digits:train", (1ull << 40) + 1, 0);
    CU_ASSERT(!*c.set);
    dpf_contents_release(&c);
}

const char dpf_suite[] = "contents";
const struct dpf_test dpf_tests[] = {
    {"files are told by content, packed or not", test_digests},
    {"published sums, of the file or of what is in it", test_genuine},
    {"a file that changes", test_changes},
    {"what the catalogue knows", test_catalogue},
    {NULL, NULL},
};
