/* The language of pipeline files: what is meant comes out, and mistakes are named with
 * their line. */
#include "pipeline/parse.h"

#include "pipeline/stages.h"
#include "stream_fixture.h"

#include "base/banned.h"

static enum dpf_status parse_n(const char *text, size_t size, struct dpf_pipeline *p,
                               struct dpf_error *e)
{
    char *exact = malloc(size ? size : 1); /* sanitizers see a step beyond the end */
    CU_ASSERT_FATAL(exact != NULL);
    memcpy(exact, text, size);
    enum dpf_status status =
        dpf_pipeline_parse(p, exact, size, "a.pipe", "/run/dir", NULL, 0, e);
    free(exact);
    return status;
}

static struct dpf_pipeline parse(const char *text)
{
    struct dpf_pipeline p;
    struct dpf_error e = {0};
    enum dpf_status status = parse_n(text, strlen(text), &p, &e);
    if (status != DPF_OK)
        printf("    %s\n", e.message);
    CU_ASSERT_FATAL(status == DPF_OK);
    return p;
}

static bool bad_n(const char *text, size_t size, const char *message)
{
    struct dpf_pipeline p;
    struct dpf_error e = {0};
    enum dpf_status status = parse_n(text, size, &p, &e);
    if (status == DPF_OK)
        dpf_pipeline_release(&p);
    return refused(status, DPF_USAGE, &e, message);
}

static bool bad(const char *text, const char *message)
{
    return bad_n(text, strlen(text), message);
}

static const char *word(const struct dpf_pipeline *p, size_t s, size_t c, size_t w)
{
    if (s >= p->count || c >= p->statements[s].count ||
        w >= p->statements[s].commands[c].count)
        return "(none)";
    const char *text = p->statements[s].commands[c].words[w].text;
    return text ? text : "(stream)";
}

/* ---- what is meant ---- */

static void test_statements(void)
{
    struct dpf_pipeline p = parse("# a comment\n"
                                  "\n"
                                  "raw = load digits   # and another\n"
                                  "bits = @raw | normalize --to 0:1 | split --part 1/4\n"
                                  "x-2_b = @bits|inspect\n"
                                  "output bits x-2_b\n");
    CU_ASSERT_FATAL(p.count == 3);
    CU_ASSERT_STRING_EQUAL(p.statements[0].name, "raw");
    CU_ASSERT_STRING_EQUAL(p.statements[0].label, "raw");
    CU_ASSERT(p.statements[0].input.stream_count == 0 && p.statements[0].line == 3);
    CU_ASSERT(p.statements[0].count == 1 && p.statements[1].count == 2);
    CU_ASSERT_STRING_EQUAL(word(&p, 0, 0, 0), "load");
    CU_ASSERT_STRING_EQUAL(word(&p, 0, 0, 1), "digits");
    CU_ASSERT_STRING_EQUAL(word(&p, 0, 0, 2), "(none)");
    CU_ASSERT_STRING_EQUAL(word(&p, 1, 0, 2), "0:1");
    CU_ASSERT_STRING_EQUAL(word(&p, 1, 1, 0), "split");
    CU_ASSERT(p.statements[1].input.stream_count == 1);
    CU_ASSERT(p.statements[1].input.streams[0] == 0);
    CU_ASSERT(p.statements[2].input.streams[0] == 1);
    CU_ASSERT_STRING_EQUAL(p.statements[2].name, "x-2_b");
    CU_ASSERT(!p.statements[0].is_output && p.statements[1].is_output);
    CU_ASSERT(p.statements[2].is_output);
    CU_ASSERT_STRING_EQUAL(p.file, "a.pipe");
    dpf_pipeline_release(&p);
    CU_ASSERT(p.count == 0 && p.file == NULL);
}

static void test_params(void)
{
    struct dpf_pipeline p =
        parse("param a = 3\n"
              "param b = \"two words\"\n"
              "param c = ${a}x$a\n"
              "param none =\n"
              "x = load $a ${a}4 '$a' \"$b\" $c pre${none}post $run/f\n");
    CU_ASSERT_FATAL(p.param_count == 4 && p.count == 1);
    CU_ASSERT_STRING_EQUAL(p.params[1].value, "two words");
    CU_ASSERT_STRING_EQUAL(p.params[3].value, "");
    CU_ASSERT(p.params[2].line == 3);
    static const char *const due[] = {
        "load", "3", "34", "$a", "two words", "3x3", "prepost", "/run/dir/f", "(none)"};
    for (size_t i = 0; i < sizeof due / sizeof *due; i++)
        CU_ASSERT_STRING_EQUAL(word(&p, 0, 0, i), due[i]);
    dpf_pipeline_release(&p);
}

static void test_settings(void)
{
    struct dpf_pipeline p;
    struct dpf_error e = {0};
    struct dpf_setting settings[] = {{"a", "9 | split"}, {"b", "two"}};
    const char *text = "param a = 3\nparam b = $a\nparam c = $a\nx = load $a $b $c\n";
    CU_ASSERT_FATAL(
        dpf_pipeline_parse(&p, text, strlen(text), "f", "r", settings, 2, &e) == DPF_OK);
    /* A value is one word whatever it holds. */
    CU_ASSERT(p.count == 1 && p.statements[0].count == 1);
    CU_ASSERT_STRING_EQUAL(word(&p, 0, 0, 1), "9 | split");
    CU_ASSERT_STRING_EQUAL(word(&p, 0, 0, 2), "two");
    CU_ASSERT_STRING_EQUAL(word(&p, 0, 0, 3), "9 | split");
    dpf_pipeline_release(&p);
    settings[1].name = "bb";
    CU_ASSERT(
        refused(dpf_pipeline_parse(&p, text, strlen(text), "f", "r", settings, 2, &e),
                DPF_USAGE, &e, "'f' has no parameter 'bb'"));
    text = "x = load d\n";
    CU_ASSERT(
        refused(dpf_pipeline_parse(&p, text, strlen(text), "f", "r", settings, 1, &e),
                DPF_USAGE, &e, "'f' has no parameter 'a'"));
}

static void test_quotes(void)
{
    struct dpf_pipeline p = parse("x = load 'a b' \"c|d\" e\\ f g\\|h \"i\\\"j\" 'k\\l' "
                                  "m'n o'\"p\" '' \"#no\" q#r \\$s\n");
    static const char *const due[] = {"load", "a b",  "c|d",   "e f", "g|h",
                                      "i\"j", "k\\l", "mn op", "",    "#no",
                                      "q#r",  "$s",   "(none)"};
    CU_ASSERT_FATAL(p.count == 1 && p.statements[0].count == 1);
    for (size_t i = 0; i < sizeof due / sizeof *due; i++)
        CU_ASSERT_STRING_EQUAL(word(&p, 0, 0, i), due[i]);
    dpf_pipeline_release(&p);
}

static void test_continued(void)
{
    struct dpf_pipeline p = parse("x = load \\\n"
                                  "    digits \\\r\n"
                                  "    --batch 3 | \\\n"
                                  "    split a\r\n"
                                  "y = @x | inspect");
    CU_ASSERT_FATAL(p.count == 2 && p.statements[0].count == 2);
    CU_ASSERT_STRING_EQUAL(word(&p, 0, 0, 1), "digits");
    CU_ASSERT_STRING_EQUAL(word(&p, 0, 0, 3), "3");
    CU_ASSERT_STRING_EQUAL(word(&p, 0, 1, 1), "a");
    CU_ASSERT(p.statements[0].line == 1 && p.statements[1].line == 5);
    CU_ASSERT(p.statements[0].commands[1].line == 4);
    dpf_pipeline_release(&p);
}

static void test_copies(void)
{
    struct dpf_pipeline p = parse("param k = 3\n"
                                  "data = load d\n"
                                  "part[$k] = @data | split --part $i/$k\n"
                                  "model[$k] = @part[$i] | normalize --tag t${i}\n"
                                  "one = @model[1] | inspect\n"
                                  "all = inspect @model[*] @data\n"
                                  "output model\n");
    CU_ASSERT_FATAL(p.count == 9);
    for (size_t i = 0; i < 3; i++) {
        char label[20], share[8], tag[8];
        snprintf(label, sizeof label, "model[%zu]", i);
        snprintf(share, sizeof share, "%zu/3", i);
        snprintf(tag, sizeof tag, "t%zu", i);
        CU_ASSERT_STRING_EQUAL(p.statements[4 + i].label, label);
        CU_ASSERT_STRING_EQUAL(p.statements[4 + i].name, "model");
        CU_ASSERT_STRING_EQUAL(word(&p, 1 + i, 0, 2), share);
        CU_ASSERT_STRING_EQUAL(word(&p, 4 + i, 0, 2), tag);
        CU_ASSERT_FATAL(p.statements[4 + i].input.stream_count == 1);
        CU_ASSERT(p.statements[4 + i].input.streams[0] == 1 + i);
        CU_ASSERT(p.statements[4 + i].is_output && p.statements[4 + i].line == 4);
        CU_ASSERT(p.statements[1 + i].input.streams[0] == 0);
    }
    CU_ASSERT(p.statements[7].input.streams[0] == 5);
    const struct dpf_command *all = &p.statements[8].commands[0];
    CU_ASSERT_FATAL(all->count == 3 && all->words[1].text == NULL);
    CU_ASSERT_FATAL(all->words[1].stream_count == 3 && all->words[2].stream_count == 1);
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT(all->words[1].streams[i] == 4 + i);
    CU_ASSERT(all->words[2].streams[0] == 0 && p.statements[8].input.stream_count == 0);
    dpf_pipeline_release(&p);
}

static void test_stages(void)
{
    size_t count = 0;
    for (const struct dpf_stage_entry *s = dpf_stage_entries; s->name; s++, count++) {
        CU_ASSERT(dpf_stage_find(s->name) == s && s->summary[0]);
        char text[64];
        snprintf(text, sizeof text, "x = %s a\n", s->name);
        bool tool = strcmp(s->name, "run") == 0 || strcmp(s->name, "keygen") == 0;
        struct dpf_pipeline p;
        struct dpf_error e = {0};
        enum dpf_status status = parse_n(text, strlen(text), &p, &e);
        CU_ASSERT(status == (tool ? DPF_USAGE : DPF_OK));
        if (status == DPF_OK)
            dpf_pipeline_release(&p);
    }
    CU_ASSERT(count >= 4 && dpf_stage_find("nothing") == NULL);
    CU_ASSERT(dpf_stage_find("") == NULL);
}

/* ---- mistakes ---- */

static void test_words_refused(void)
{
    CU_ASSERT(bad("x = load d\n\ny = laod d\n",
                  "a.pipe:3: unknown stage 'laod' (did you mean 'load'?)"));
    CU_ASSERT(bad("x = qqqqqqqq\n", "a.pipe:1: unknown stage 'qqqqqqqq'"));
    CU_ASSERT(bad("x = run a.pipe\n", "a.pipe:1: 'run' cannot be part of a pipeline"));
    CU_ASSERT(bad("x = \n", "a.pipe:1: a stage is missing"));
    CU_ASSERT(bad("x = load d |\n", "a.pipe:1: a stage is missing"));
    CU_ASSERT(bad("x = | load d\n", "a.pipe:1: a stage is missing"));
    CU_ASSERT(bad("x = load \\\n d \\\n | laod\n", "a.pipe:3: unknown stage 'laod'"));
    CU_ASSERT(bad("x = load $a\n", "a.pipe:1: unknown parameter 'a'"));
    CU_ASSERT(bad("x = load d\\\n\ny = load \\\n $b\n", "a.pipe:4: unknown parameter"));
    CU_ASSERT(bad("x = load ${a\n", "a.pipe:1: '$' is not followed"));
    CU_ASSERT(bad("x = load a$\n", "a.pipe:1: '$' is not followed"));
    CU_ASSERT(bad("x = load $i\n", "a.pipe:1: unknown parameter 'i'"));
    CU_ASSERT(bad("x = load d\ny = load 'abc\nz = load 'd\n",
                  "a.pipe:2: a quote is not closed"));
    CU_ASSERT(bad("x = load \"abc", "a.pipe:1: a quote is not closed"));
    CU_ASSERT(bad("x = load \"abc\\\n def\"\n", "a.pipe:1: a quote is not closed"));
    CU_ASSERT(bad("5x = load d\n", "a.pipe:1: a line starts with a name"));
    CU_ASSERT(bad("x load d\n", "a.pipe:1: 'x' is not followed by '='"));
    CU_ASSERT(bad("x\n", "a.pipe:1: 'x' is not followed by '='"));
    CU_ASSERT(bad("", "'a.pipe' makes no stream"));
    CU_ASSERT(bad("# only this", "'a.pipe' makes no stream"));
}

static void test_names_refused(void)
{
    CU_ASSERT(bad("x = load d\n# c\nx = load e\n",
                  "a.pipe:3: stream 'x' was made in line 1 already"));
    CU_ASSERT(bad("x[2] = load d\nx = load e\n", "a.pipe:2: stream 'x' was made"));
    CU_ASSERT(bad("param a = 1\nparam a = 2\nx = load d\n",
                  "a.pipe:2: parameter 'a' was declared in line 1 already"));
    CU_ASSERT(bad("param i = 1\n", "a.pipe:1: 'i' is reserved"));
    CU_ASSERT(bad("param run = 1\n", "a.pipe:1: 'run' is reserved"));
    CU_ASSERT(bad("param = 1\n", "a.pipe:1: 'param' is not followed by a name"));
    CU_ASSERT(bad("param a 1\n", "a.pipe:1: 'param a' is not followed by '='"));
    CU_ASSERT(bad("param a = 1 2\n", "a.pipe:1: the value of 'a' has blanks"));
    CU_ASSERT(bad("param a = \"x\n", "a.pipe:1: a quote is not closed"));
    CU_ASSERT(bad("x = load d\noutput y\n", "a.pipe:2: 'output' names no stream"));
    CU_ASSERT(bad("output x\nx = load d\n", "a.pipe:1: 'output' names no stream"));
    CU_ASSERT(bad("x = load d\noutput\n", "a.pipe:2: 'output' names no stream"));
    CU_ASSERT(bad("x = load d\noutput x, x\n", "a.pipe:2: 'output' names no stream"));
}

static void test_references_refused(void)
{
    CU_ASSERT(bad("y = @x | inspect\nx = load d\n",
                  "a.pipe:1: no stream 'x' was made above this line"));
    CU_ASSERT(bad("x = load @x\n", "a.pipe:1: no stream 'x' was made"));
    CU_ASSERT(bad("x = load d\ny = @x[0] | inspect\n", "a.pipe:2: no stream 'x[0]' was"));
    CU_ASSERT(bad("x = load d\ny = @x[*] | inspect\n", "a.pipe:2: no stream 'x[*]' was"));
    CU_ASSERT(bad("x[2] = load d\ny = @x[2] | inspect\n", "a.pipe:2: no stream 'x[2]'"));
    CU_ASSERT(bad("x[2] = load d\ny = @x | inspect\n", "a.pipe:2: no stream 'x' was"));
    CU_ASSERT(
        bad("x[2] = load d\ny[3] = @x[$i] | inspect\n", "a.pipe:2: no stream 'x[2]"));
    CU_ASSERT(bad("x[2] = load d @x[0]\n", "a.pipe:1: no stream 'x[0]' was made"));
    CU_ASSERT(bad("x = load d\ny = @x\n", "a.pipe:2: a stream is read by a stage"));
    CU_ASSERT(
        bad("x = load d\ny = @x inspect\n", "a.pipe:2: a stream is read by a stage"));
    CU_ASSERT(bad("x = load d\ny = @x.mp | inspect\n",
                  "a.pipe:2: '@x' has something attached to it"));
    CU_ASSERT(bad("x = load d\ny = inspect @x,@x\n", "'@x' has something attached"));
    CU_ASSERT(bad("x = load d\ny = inspect | @x\n", "a stream stands where a stage"));
    CU_ASSERT(bad("y = @ | inspect\n", "a.pipe:1: '@' is not followed by a stream's"));
    CU_ASSERT(bad("x[2 = load d\n", "a.pipe:1: '[' is not closed"));
    CU_ASSERT(
        bad("x[2] = load d\n\ny = @x[1 | inspect\n", "a.pipe:3: '[' is not closed"));
    CU_ASSERT(bad("x[2] = load d\ny = @x[", "a.pipe:2: '[' is not closed"));
}

static void test_copies_refused(void)
{
    CU_ASSERT(bad("x[1000000] = load d\n",
                  "a.pipe:1: 'x[1000000]' needs a number of copies from 1 to 4096"));
    CU_ASSERT(bad("x[4097] = load d\n", "needs a number of copies"));
    CU_ASSERT(bad("x[0] = load d\n", "needs a number of copies"));
    CU_ASSERT(bad("x[-1] = load d\n", "needs a number of copies"));
    CU_ASSERT(bad("x[] = load d\n", "needs a number of copies"));
    CU_ASSERT(bad("x[a] = load d\n", "needs a number of copies"));
    CU_ASSERT(bad("x[99999999999999999999] = load d\n", "needs a number of copies"));
    CU_ASSERT(bad("x[$i] = load d\n", "a.pipe:1: unknown parameter 'i'"));
    struct dpf_pipeline p = parse("x[4096] = load d\n");
    CU_ASSERT(p.count == 4096);
    CU_ASSERT_STRING_EQUAL(p.statements[4095].label, "x[4095]");
    dpf_pipeline_release(&p);
    struct dpf_text many = {0};
    dpf_text_add(&many, "x[4096] = load d");
    for (int i = 0; i < 16; i++)
        dpf_text_add(&many, " | split a");
    CU_ASSERT(bad(many.data, "a.pipe:1: more than 65536 stages"));
    dpf_text_release(&many);
}

static void test_long_values(void)
{
    struct dpf_text t = {0};
    dpf_text_add(&t, "param a0 = 0123456789abcdef\n");
    for (int i = 1; i < 40; i++) /* doubles with each line */
        dpf_text_addf(&t, "param a%d = $a%d$a%d\n", i, i - 1, i - 1);
    dpf_text_add(&t, "x = load $a39\n");
    CU_ASSERT(bad(t.data, "a.pipe:14: a value is longer than 65536 characters"));
    dpf_text_reset(&t);
    dpf_text_add(&t, "x = load ");
    for (int i = 0; i < 70000; i++)
        dpf_text_add(&t, "w");
    CU_ASSERT(bad(t.data, "a.pipe:1: a word is too long"));
    dpf_text_release(&t);
}

static void test_nul(void)
{
    static const char in_word[] = "x = load a\0b\n", alone[] = "x = load d\n\0\n";
    static const char in_quotes[] = "x = load 'a\0b'\n", in_param[] = "param a = \0\n";
    static const char in_name[] = "x\0y = load d\n";
    CU_ASSERT(
        bad_n(in_word, sizeof in_word - 1, "a.pipe:1: a word is too long, or holds"));
    CU_ASSERT(bad_n(in_quotes, sizeof in_quotes - 1, "a.pipe:1: a word is too long"));
    CU_ASSERT(bad_n(in_param, sizeof in_param - 1, "a.pipe:1: a word is too long"));
    CU_ASSERT(bad_n(alone, sizeof alone - 1, "a.pipe:2: a line starts with a name"));
    CU_ASSERT(bad_n(in_name, sizeof in_name - 1, "a.pipe:1: 'x' is not followed"));
}

/* A NUL must not hide what stands behind it in brackets. */
static void test_nul_in_brackets(void)
{
    static const char count[] = "x[2\0junk] = load d\n";
    static const char index[] = "x[2] = load d\ny = @x[1\0junk] | inspect\n";
    CU_ASSERT(bad_n(count, sizeof count - 1, "a.pipe:1:"));
    CU_ASSERT(bad_n(index, sizeof index - 1, "a.pipe:2:"));
}

static int parse_in_child(void *context)
{
    struct dpf_pipeline p;
    return (int)dpf_pipeline_parse(&p, context, strlen(context), "f", "r", NULL, 0, NULL);
}

/* A backslash that continues nothing ends in a word or an error, not in a loop. */
static void test_last_backslash(void)
{
    static char at_end[] = "x = load \\", before_return[] = "x = load \\\rd\n";
    static char in_word[] = "x = load d\\";
    char *const texts[] = {at_end, before_return, in_word};
    for (int i = 0; i < 3; i++) {
        int result = in_child(parse_in_child, texts[i], 300);
        CU_ASSERT(result == DPF_OK || result == DPF_USAGE);
    }
}

/* Every prefix of a good file, and the file with each byte spoiled, is parsed or refused
 * with one line. */
static void test_spoiled(void)
{
    static const char good[] = "param k = 2\n"
                               "d = load 'a b' # c\n"
                               "p[$k] = @d | split --part \"$i/${k}\" |inspect\n"
                               "a = inspect @p[*] @p[1]\n"
                               "output a p\n";
    char text[sizeof good];
    for (size_t i = 0; i < sizeof good - 1; i++) {
        struct dpf_pipeline p;
        struct dpf_error e = {0};
        if (parse_n(good, i, &p, &e) == DPF_OK)
            dpf_pipeline_release(&p);
        else
            CU_ASSERT(e.status == DPF_USAGE && strstr(e.message, "a.pipe") != NULL);
        static const char spoil[] = {'\0', '$',  '@', '[', ']',
                                     '\'', '\n', '|', '=', '\xff'};
        for (size_t k = 0; k < sizeof spoil; k++) {
            memcpy(text, good, sizeof good);
            text[i] = spoil[k];
            enum dpf_status status = parse_n(text, sizeof good - 1, &p, &e);
            CU_ASSERT(status == DPF_OK || (status == DPF_USAGE && e.message[0]));
            if (status == DPF_OK)
                dpf_pipeline_release(&p);
        }
    }
}

const char dpf_suite[] = "parse";

const struct dpf_test dpf_tests[] = {
    {"statements, comments, output", test_statements},
    {"parameters are put in", test_params},
    {"settings replace parameters", test_settings},
    {"quotes and backslashes", test_quotes},
    {"continued lines", test_continued},
    {"copies and references to them", test_copies},
    {"stages", test_stages},
    {"bad words", test_words_refused},
    {"bad names", test_names_refused},
    {"bad references", test_references_refused},
    {"bad numbers of copies", test_copies_refused},
    {"values that explode", test_long_values},
    {"NUL bytes", test_nul},
    {"NUL bytes in brackets", test_nul_in_brackets},
    {"a backslash at the end", test_last_backslash},
    {"spoiled files", test_spoiled},
    {0},
};
