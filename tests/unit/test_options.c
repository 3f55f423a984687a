/* Options: each kind is stored, ranges are kept, mistakes are named, and help, man page
 * and completion know every option. */
#include "options/options.h"

#include "stream_fixture.h"

#include "base/banned.h"

static bool flag;
static int64_t number, plain;
static double real;
static struct dpf_range range;
static const char *string, *choice, *file, *out, *endpoint, *secret;
static struct dpf_list list;

static const char *const colours[] = {"red", "green", NULL};

static const struct dpf_option table[] = {
    DPF_OPT_FLAG("verbose", &flag, "say more"),
    {.name = "count",
     .kind = DPF_KIND_INT,
     .target = &number,
     .arg = "N",
     .lo = 1,
     .hi = 10,
     .help = "how many",
     .letter = 'n'},
    DPF_OPT_INT("plain", &plain, "N", 0, 0, "any number"),
    DPF_OPT_REAL("share", &real, "X", 0, 1, "a share"),
    DPF_OPT_RANGE("bounds", &range, "LO:HI", "public bounds"),
    DPF_OPT_STRING("name", &string, "TEXT", "a name with a-dash and .dot"),
    DPF_OPT_CHOICE("colour", &choice, colours, "COLOUR", "a colour"),
    DPF_OPT_FILE("columns", &file, "FILE", "a file"),
    DPF_OPT_END,
};

static const struct dpf_option more[] = {
    DPF_OPT_OUTFILE("picture", &out, "FILE", "a picture"),
    {.name = "with",
     .kind = DPF_KIND_ENDPOINT,
     .target = &endpoint,
     .arg = "STREAM",
     .help = "another stream",
     .flags = DPF_OPTION_REQUIRED},
    {.name = "label",
     .kind = DPF_KIND_LIST,
     .target = &list,
     .arg = "L",
     .help = "repeatable"},
    {.name = "secret",
     .kind = DPF_KIND_STRING,
     .target = &secret,
     .arg = "S",
     .help = "for tools",
     .flags = DPF_OPTION_HIDDEN},
    DPF_OPT_END,
};

static const struct dpf_option *const tables[] = {table, more, NULL};

static void clear(void)
{
    flag = false;
    number = plain = 0;
    real = 0;
    range = (struct dpf_range){0};
    string = choice = file = out = endpoint = secret = NULL;
}

/* Parse words (NULL-terminated, without the program's name). */
static enum dpf_status parse(const char *const *words, struct dpf_parsed *p,
                             struct dpf_error *e)
{
    char *argv[32] = {(char *)"program"};
    int argc = 1;
    for (; *words; words++)
        argv[argc++] = (char *)*words;
    *p = (struct dpf_parsed){0};
    clear();
    return dpf_options_parse(tables, argc, argv, p, e);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_kinds(void)
{
    struct dpf_parsed p;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(
        parse(WORDS("--verbose", "--count", "10", "--plain=-9223372036854775808",
                    "--share=0.25", "--bounds", "-1:2", "--name=", "--colour", "green",
                    "--columns=c.txt", "--picture", "p.png", "--with=fd:3", "--label",
                    "a", "--label=b=c", "--secret", "s", "data", "-", "--", "--verbose"),
              &p, &e) == DPF_OK);
    CU_ASSERT(flag && number == 10 && plain == INT64_MIN && real == 0.25);
    CU_ASSERT(range.given && range.lo == -1 && range.hi == 2);
    CU_ASSERT_STRING_EQUAL(string, "");
    CU_ASSERT(choice == colours[1]);
    CU_ASSERT_STRING_EQUAL(file, "c.txt");
    CU_ASSERT_STRING_EQUAL(out, "p.png");
    CU_ASSERT_STRING_EQUAL(endpoint, "fd:3");
    CU_ASSERT_STRING_EQUAL(secret, "s");
    CU_ASSERT_FATAL(list.count == 2 && p.arg_count == 3 && p.given_count == 13);
    CU_ASSERT_STRING_EQUAL(list.items[0], "a");
    CU_ASSERT_STRING_EQUAL(list.items[1], "b=c");
    CU_ASSERT_STRING_EQUAL(p.args[0], "data");
    CU_ASSERT_STRING_EQUAL(p.args[1], "-");
    CU_ASSERT_STRING_EQUAL(p.args[2], "--verbose");
    CU_ASSERT(dpf_option_given(&p, "count") && dpf_option_given(&p, "label"));
    CU_ASSERT(!dpf_option_given(&p, "help") && p.given[0].option == &table[0]);
    CU_ASSERT_STRING_EQUAL(p.given[0].value, "");
    CU_ASSERT_STRING_EQUAL(p.given[1].value, "10");
    dpf_parsed_release(&p);
    CU_ASSERT(list.count == 0 && list.items == NULL && p.given == NULL);
}

static void test_letters(void)
{
    struct dpf_parsed p;
    struct dpf_error e = {0};
    CU_ASSERT(parse(WORDS("-n", "3"), &p, &e) == DPF_OK && number == 3);
    dpf_parsed_release(&p);
    CU_ASSERT(parse(WORDS("-n7"), &p, &e) == DPF_OK && number == 7);
    dpf_parsed_release(&p);
    CU_ASSERT(parse(WORDS("--share", "1", "--share=0"), &p, &e) == DPF_OK && real == 0);
    dpf_parsed_release(&p); /* the last one counts */
    CU_ASSERT(refused(parse(WORDS("-x"), &p, &e), DPF_USAGE, &e, "unknown option '-x'"));
    dpf_parsed_release(&p);
}

static void check_bad(const char *const *words, const char *text)
{
    struct dpf_parsed p;
    struct dpf_error e = {0};
    CU_ASSERT(refused(parse(words, &p, &e), DPF_USAGE, &e, text));
    CU_ASSERT(number == 0 && real == 0 && !range.given && !choice);
    dpf_parsed_release(&p);
}

static void test_refused(void)
{
    check_bad(WORDS("--count", "0"), "'--count' must be from 1 to 10, not '0'");
    check_bad(WORDS("--count=11"), "'--count' must be from 1 to 10, not '11'");
    check_bad(WORDS("--count=ten"), "'--count' needs a whole number, not 'ten'");
    check_bad(WORDS("--count=1.5"), "'--count' needs a whole number");
    check_bad(WORDS("--count="), "'--count' needs a whole number, not ''");
    check_bad(WORDS("--count=9999999999999999999"), "'--count' needs a whole number");
    check_bad(WORDS("--share=1.01"), "'--share' must be from 0 to 1");
    check_bad(WORDS("--share", "-0.1"), "'--share' must be from 0 to 1");
    check_bad(WORDS("--share=nan"), "'--share' needs a finite number");
    check_bad(WORDS("--share=0x1"), "'--share' needs a finite number");
    check_bad(WORDS("--bounds=2:1"), "'--bounds' needs LO:HI with LO below HI");
    check_bad(WORDS("--bounds=1"), "'--bounds' needs LO:HI");
    check_bad(WORDS("--colour=blue"), "'--colour' is one of red, green, not 'blue'");
    check_bad(WORDS("--colour=gree"), "not 'gree'");
    check_bad(WORDS("--verbose=yes"), "'--verbose' takes no value");
    check_bad(WORDS("--count"), "'--count' needs a value (N)");
    check_bad(WORDS("-n"), "'--count' needs a value (N)");
}

static void test_unknown(void)
{
    check_bad(WORDS("--cuont=3"), "unknown option '--cuont' (did you mean '--count'?)");
    check_bad(WORDS("--colours", "red"), "(did you mean '--colour'?)");
    check_bad(WORDS("--lable=x"), "(did you mean '--label'?)");
    struct dpf_parsed p;
    struct dpf_error e = {0};
    CU_ASSERT(parse(WORDS("--zzzzzzzz"), &p, &e) == DPF_USAGE);
    CU_ASSERT(strstr(e.message, "did you mean") == NULL);
    dpf_parsed_release(&p);
    CU_ASSERT(parse(WORDS("--secre"), &p, &e) == DPF_USAGE); /* hidden: not offered */
    CU_ASSERT(strstr(e.message, "secret") == NULL);
    dpf_parsed_release(&p);
    check_bad(WORDS("--coun"), "unknown option '--coun'"); /* no abbreviations */
    static char wide[400] = "--";
    memset(wide + 2, 'w', sizeof wide - 3);
    check_bad(WORDS(wide), "unknown option '--www");
}

static void test_many(void)
{
    static char word[] = "--label=x", name[] = "p";
    char *argv[DPF_LIST_MAX + 2];
    struct dpf_parsed p = {0};
    struct dpf_error e = {0};
    argv[0] = name;
    for (int i = 1; i < DPF_LIST_MAX + 2; i++)
        argv[i] = word;
    CU_ASSERT(dpf_options_parse(tables, DPF_LIST_MAX + 1, argv, &p, &e) == DPF_OK);
    CU_ASSERT(list.count == DPF_LIST_MAX);
    dpf_parsed_release(&p);
    CU_ASSERT(refused(dpf_options_parse(tables, DPF_LIST_MAX + 2, argv, &p, &e),
                      DPF_USAGE, &e, "'--label' is given more than 4096 times"));
    dpf_parsed_release(&p);
}

static void test_nearest(void)
{
    static const char *const names[] = {"load", "split", "normalize", NULL};
    CU_ASSERT(DPF_NEAREST(names, "laod") == names[0]);
    CU_ASSERT(DPF_NEAREST(names, "splt") == names[1]);
    CU_ASSERT(DPF_NEAREST(names, "normalise") == names[2]);
    CU_ASSERT(DPF_NEAREST(names, "quux") == NULL);
    CU_ASSERT(DPF_NEAREST(names, "") == NULL);
    CU_ASSERT(DPF_NEAREST(names, "a word that is much too long to be near to anything") ==
              NULL);
}

static void test_described(void)
{
    for (int i = 0; i < 2; i++) {
        struct dpf_text help = {0}, man = {0}, completion = {0};
        dpf_options_help(tables[i], &help);
        dpf_options_man(tables[i], &man);
        dpf_options_completion(tables[i], &completion);
        for (const struct dpf_option *o = tables[i]; o->kind != DPF_KIND_END; o++) {
            char dashed[40], roff[40], line[40];
            bool shown = !(o->flags & DPF_OPTION_HIDDEN);
            snprintf(dashed, sizeof dashed, "--%s", o->name);
            snprintf(roff, sizeof roff, "\\fB\\-\\-%s\\fR", o->name);
            snprintf(line, sizeof line, "--%s\t", o->name);
            CU_ASSERT((strstr(help.data, dashed) != NULL) == shown);
            CU_ASSERT((strstr(help.data, o->help) != NULL) == shown);
            CU_ASSERT((strstr(man.data, roff) != NULL) == shown);
            CU_ASSERT((strstr(completion.data, line) != NULL) == shown);
            CU_ASSERT(!shown || !o->arg || strstr(help.data, o->arg) != NULL);
        }
        if (i == 0) {
            CU_ASSERT(strstr(help.data, "-n, --count N") != NULL);
            CU_ASSERT(strstr(help.data, "(red|green)") != NULL);
            CU_ASSERT(strstr(man.data, "a\\-dash") != NULL);
            CU_ASSERT(strstr(completion.data, "--colour\tchoice\tred green\n") != NULL);
            CU_ASSERT(strstr(completion.data, "--verbose\tflag\t\n") != NULL);
        } else {
            CU_ASSERT(strstr(help.data, "(required)") != NULL);
        }
        for (char *l = help.data; *l; l += strcspn(l, "\n") + 1)
            CU_ASSERT(strcspn(l, "\n") <= 88);
        dpf_text_release(&help);
        dpf_text_release(&man);
        dpf_text_release(&completion);
    }
}

static void test_roff(void)
{
    struct dpf_text t = {0};
    dpf_roff_escape(".dot\n'quote\nback\\slash -x .", &t);
    CU_ASSERT_STRING_EQUAL(t.data, "\\&.dot\n\\&'quote\nback\\eslash \\-x .");
    dpf_text_release(&t);
}

/* Values in effect, one line an option, but for those that may change. */
static void test_identity(void)
{
    static const struct dpf_option free_table[] = {
        DPF_OPT_INT_MAY_CHANGE("count", &number, "N", 1, 10, "how many", "a count"),
        DPF_OPT_OUTFILE_MAY_CHANGE("picture", &out, "FILE", "a picture", "a copy"),
        DPF_OPT_END,
    };
    struct dpf_parsed p;
    struct dpf_error e = {0};
    struct dpf_text text = {0}, same = {0};
    CU_ASSERT_FATAL(parse(WORDS("--with", "d"), &p, &e) == DPF_OK);
    CU_ASSERT(dpf_options_identity(table, &text, &e) == DPF_OK);
    CU_ASSERT_STRING_EQUAL(dpf_text_get(&text), "--verbose no\n--count 0\n--plain 0\n"
                                                "--share 0\n--bounds none\n--name none\n"
                                                "--colour none\n--columns none\n");
    dpf_parsed_release(&p);
    dpf_text_release(&text);
    folder_begin();
    CU_ASSERT(dpf_write_file(in_folder("a"), "x", 1, &e) == DPF_OK);
    CU_ASSERT(dpf_write_file(in_folder("b"), "x", 1, &e) == DPF_OK);
    CU_ASSERT_FATAL(parse(WORDS("--columns", in_folder("a"), "--share", "0.5", "--name",
                                "x\n--share 1", "--label", "l"),
                          &p, &e) == DPF_OK);
    CU_ASSERT(dpf_options_identity(table, &text, &e) == DPF_OK);
    CU_ASSERT(strstr(dpf_text_get(&text), "--name \"x\\n--share 1\"\n") != NULL);
    CU_ASSERT(dpf_options_identity(more, &text, &e) == DPF_OK);
    CU_ASSERT(strstr(dpf_text_get(&text), "--with none\n--label 1 \"l\"\n") != NULL);
    dpf_parsed_release(&p);
    CU_ASSERT_FATAL(parse(WORDS("--columns", in_folder("b"), "--share", "5e-1", "--name",
                                "x\n--share 1", "--label", "l"),
                          &p, &e) == DPF_OK);
    CU_ASSERT(dpf_options_identity(table, &same, &e) == DPF_OK);
    CU_ASSERT(dpf_options_identity(more, &same, &e) == DPF_OK);
    CU_ASSERT_STRING_EQUAL(dpf_text_get(&text), dpf_text_get(&same));
    unlink(in_folder("b"));
    CU_ASSERT(dpf_options_identity(table, &same, &e) == DPF_SYSTEM);
    dpf_parsed_release(&p);
    dpf_text_release(&text);
    dpf_text_release(&same);
    CU_ASSERT(dpf_options_identity(free_table, &text, &e) == DPF_OK && text.size == 0);
    dpf_text_release(&text);
    folder_end();
}

const char dpf_suite[] = "options";

const struct dpf_test dpf_tests[] = {
    {"every kind is stored", test_kinds},
    {"letters, and the last one counts", test_letters},
    {"values out of range or malformed", test_refused},
    {"unknown options with the nearest name", test_unknown},
    {"lists are bounded", test_many},
    {"nearest names", test_nearest},
    {"help, man page and completion know each option", test_described},
    {"roff is escaped", test_roff},
    {"an identity is made of values in effect, files by content", test_identity},
    {0},
};
