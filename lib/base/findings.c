#include "base/findings.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"

void dpf_findings_add_row(struct dpf_findings *f, int columns, const char *name,
                          const char *format, ...)
{
    va_list arguments;
    dpf_text_addf(&f->rows, "%-*s ", columns, name);
    va_start(arguments, format);
    dpf_text_addv(&f->rows, format, arguments);
    va_end(arguments);
    dpf_text_add(&f->rows, "\n");
}

/* Text behind text, with its failure. */
static void append(struct dpf_text *out, const struct dpf_text *part)
{
    dpf_text_addn(out, dpf_text_get(part), part->size);
    out->failed = out->failed || part->failed;
}

void dpf_findings_table(const struct dpf_findings *f, struct dpf_text *out)
{
    append(out, &f->rows);
    append(out, &f->details);
}

void dpf_findings_json(const struct dpf_findings *f, struct dpf_text *out)
{
    dpf_text_add(out, "{");
    append(out, &f->members);
    dpf_text_add(out, "}");
}

void dpf_findings_release(struct dpf_findings *f)
{
    dpf_text_release(&f->rows);
    dpf_text_release(&f->details);
    dpf_text_release(&f->members);
}
