/* One table describes a program's options; parsing, --help, man pages, shell completion
 * and the provenance of a stream are all made from it, so they cannot disagree. */
#ifndef DPF_OPTIONS_OPTIONS_H
#define DPF_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "base/words.h"

enum dpf_option_kind {
    DPF_KIND_END = 0,
    DPF_KIND_FLAG,   /* bool */
    DPF_KIND_INT,    /* int64_t within [lo, hi] */
    DPF_KIND_REAL,   /* double within [lo, hi] */
    DPF_KIND_RANGE,  /* struct dpf_range, LO:HI */
    DPF_KIND_STRING, /* const char * */
    DPF_KIND_CHOICE, /* const char *, one of choices */
    DPF_KIND_FILE,   /* const char *, a file that is read: its content is what matters; an
                      * empty name is as good as none */
    DPF_KIND_OUTFILE,   /* const char *, a file or folder that is written as a side effect
                         */
    DPF_KIND_ENDPOINT,  /* const char *, another stream that is read */
    DPF_KIND_LIST,      /* struct dpf_list, repeatable */
    DPF_KIND_ENDPOINTS, /* the same, of streams that are read */
};

enum {
    DPF_OPTION_IMMATERIAL = 1, /* cannot change the result: not in the provenance */
    DPF_OPTION_REQUIRED = 2,
    DPF_OPTION_HIDDEN = 4, /* for dpflow's own tools */
};

struct dpf_range {
    bool given;
    double lo, hi;
};

enum { DPF_LIST_MAX = 4096 };
struct dpf_list {
    size_t count;
    const char **items; /* heap; each item points into argv */
};

struct dpf_option {
    const char *name;
    enum dpf_option_kind kind;
    void *target;
    const char *arg; /* shown in help: "LO:HI" */
    const char *help;
    const void *choices; /* a table of base/words.h */
    size_t choice_bytes; /* of one of its rows */
    double lo, hi;       /* inclusive, when lo < hi */
    char letter;         /* short form, or 0 */
    unsigned flags;
    /* Why work that was put aside may go on with another value; NULL: it may not, and the
     * value belongs to what identifies the work (dpf_options_identity). Being immaterial
     * is no reason yet: each option that may change says so for itself. */
    const char *may_change;
};

#define DPF_OPT_FLAG(n, t, h)                                                            \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_FLAG, .target = t, .help = h                         \
    }
#define DPF_OPT_INT(n, t, a, l, u, h)                                                    \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_INT, .target = t, .arg = a, .lo = l, .hi = u,        \
        .help = h                                                                        \
    }
#define DPF_OPT_REAL(n, t, a, l, u, h)                                                   \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_REAL, .target = t, .arg = a, .lo = l, .hi = u,       \
        .help = h                                                                        \
    }
#define DPF_OPT_RANGE(n, t, a, h)                                                        \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_RANGE, .target = t, .arg = a, .help = h              \
    }
#define DPF_OPT_STRING(n, t, a, h)                                                       \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_STRING, .target = t, .arg = a, .help = h             \
    }
/* The rows of a table, as what an option may be. */
#define DPF_CHOICES(table) .choices = (table), .choice_bytes = sizeof *(table)
#define DPF_OPT_CHOICE(n, t, c, a, h)                                                    \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_CHOICE, .target = t, DPF_CHOICES(c), .arg = a,       \
        .help = h                                                                        \
    }
#define DPF_OPT_FILE(n, t, a, h)                                                         \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_FILE, .target = t, .arg = a, .help = h               \
    }
#define DPF_OPT_OUTFILE(n, t, a, h)                                                      \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_OUTFILE, .target = t, .arg = a, .help = h,           \
        .flags = DPF_OPTION_IMMATERIAL                                                   \
    }
/* The same for options that cannot change the result. */
#define DPF_OPT_INT_IMMATERIAL(n, t, a, l, u, h)                                         \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_INT, .target = t, .arg = a, .lo = l, .hi = u,        \
        .help = h, .flags = DPF_OPTION_IMMATERIAL                                        \
    }
/* The same for options that may change while work is put aside, and why. */
#define DPF_OPT_INT_MAY_CHANGE(n, t, a, l, u, h, w)                                      \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_INT, .target = t, .arg = a, .lo = l, .hi = u,        \
        .help = h, .flags = DPF_OPTION_IMMATERIAL, .may_change = w                       \
    }
#define DPF_OPT_OUTFILE_MAY_CHANGE(n, t, a, h, w)                                        \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_OUTFILE, .target = t, .arg = a, .help = h,           \
        .flags = DPF_OPTION_IMMATERIAL, .may_change = w                                  \
    }
#define DPF_OPT_ENDPOINT(n, t, a, h, f)                                                  \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_ENDPOINT, .target = t, .arg = a, .help = h,          \
        .flags = f                                                                       \
    }
#define DPF_OPT_LIST(n, t, a, h)                                                         \
    {                                                                                    \
        .name = n, .kind = DPF_KIND_LIST, .target = t, .arg = a, .help = h               \
    }
#define DPF_OPT_END                                                                      \
    {                                                                                    \
        .kind = DPF_KIND_END                                                             \
    }

struct dpf_given {
    const struct dpf_option *option;
    const char *value; /* "" for a flag */
};

/* What a command line said. Zero-initialise; release with dpf_parsed_release(). */
struct dpf_parsed {
    struct dpf_given *given;
    size_t given_count, given_capacity;
    const char **args; /* positional, pointing into argv */
    size_t arg_count, arg_capacity;
};

/* Parse argv[1..] against `tables` (each ends with DPF_OPT_END; the list with NULL).
 * Accepts --name VALUE, --name=VALUE, -x VALUE, `--` before positional arguments.
 * DPF_USAGE names the option and, for a misspelling, the nearest one. */
enum dpf_status dpf_options_parse(const struct dpf_option *const *tables, int argc,
                                  char **argv, struct dpf_parsed *parsed,
                                  struct dpf_error *e);
void dpf_parsed_release(struct dpf_parsed *parsed);
bool dpf_option_given(const struct dpf_parsed *parsed, const char *name);

/* A line "--name value" for each option of the table that may not change while work is
 * put aside. The value is the one in effect, given or by default, and the same however it
 * was written: numbers with all their digits, words quoted, a file as the digest of its
 * content. A stream that was read is only said to be there: whoever read it knows its
 * content. Fails if a file cannot be read. */
enum dpf_status dpf_options_identity(const struct dpf_option *table, struct dpf_text *out,
                                     struct dpf_error *e);

/* The option lines of --help for one table. */
void dpf_options_help(const struct dpf_option *table, struct dpf_text *out);
/* The same in roff for a man page. */
void dpf_options_man(const struct dpf_option *table, struct dpf_text *out);
/* One line an option, "--name<TAB>kind<TAB>choices", for the completion script. */
void dpf_options_completion(const struct dpf_option *table, struct dpf_text *out);
/* Text with the characters escaped that roff takes for its own. */
void dpf_roff_escape(const char *text, struct dpf_text *out);

#endif
