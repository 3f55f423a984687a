/* What the catalogue's tables say of themselves. */
#include <stdio.h>

#include "base/text.h"
#include "data/catalog.h"
#include "data/formats.h"
#include "data/sets.h"

#include "base/banned.h"

void dpf_catalog_words(struct dpf_text *out)
{
    for (const struct dpf_set_entry *s = dpf_sets; s->name; s++) {
        for (const char *const *v = s->set->views; v && *v; v++)
            dpf_text_addf(out, "%s:%s\n", s->name, *v);
        if (s->set->views)
            continue;
        dpf_text_addf(out, "%s:train\n%s:test\n", s->name, s->name);
        if (s->set->has_all)
            dpf_text_addf(out, "%s:all\n", s->name);
    }
}

static void add_set(const struct dpf_set_entry *s, struct dpf_text *out)
{
    char train[32], test[32], both[80];
    dpf_format_count(train, sizeof train, s->set->train);
    dpf_format_count(test, sizeof test, s->set->test);
    snprintf(both, sizeof both, "%s%s%s", train, s->set->views ? "" : " + ",
             s->set->views ? "" : test);
    dpf_text_addf(out, "  %-14s %-16s %-34s %s\n", s->name, both, s->set->fields,
                  s->set->from);
}

static void add_format(const struct dpf_format_entry *f, struct dpf_text *out)
{
    struct dpf_text endings = {0};
    for (const char *const *ending = f->format->endings; *ending; ending++)
        dpf_text_addf(&endings, "%s%s", endings.size ? " " : "", *ending);
    if (f->format->scheme)
        dpf_text_addf(&endings, "%sFOLDER", f->format->scheme);
    dpf_text_addf(out, "  %-7s %-16s %-13s %s%s\n", f->name, f->format->title,
                  dpf_text_get(&endings), f->format->gives,
                  f->format->many ? "; several files" : "");
    dpf_text_release(&endings);
}

void dpf_catalog_tables(struct dpf_text *out)
{
    dpf_text_addf(out, "data sets\n  %-14s %-16s %-34s %s\n", "name", ":train + :test",
                  "fields", "from");
    for (const struct dpf_set_entry *s = dpf_sets; s->name; s++)
        add_set(s, out);
    dpf_text_addf(out, "\nfiles\n  %-7s %-16s %-13s %s\n", "format", "", "names",
                  "gives");
    for (const struct dpf_format_entry *f = dpf_formats; f->name; f++)
        add_format(f, out);
}
