#include <ctype.h>
#include <string.h>

#include "base/version.h"
#include "stage/stage.h"

#include "base/banned.h"

static const char exit_statuses[] =
    "0 ok, 1 system, 2 usage, 3 bad or truncated stream, 4 privacy refused, 5 backend or "
    "data unavailable";

void dpf_stage_help(const struct dpf_stage_info *info, const struct dpf_option *common,
                    struct dpf_text *out)
{
    dpf_text_addf(out, "usage: dpflow %s [options]%s%s\n\n%s\n\n", info->name,
                  info->arguments ? " " : "", info->arguments ? info->arguments : "",
                  info->summary);
    dpf_text_addf(out, "reads    %s\nwrites   %s\nprivacy  %s\n\n", info->reads,
                  info->writes, info->privacy);
    if (info->detail)
        dpf_text_addf(out, "%s\n\n", info->detail);
    if (info->add_tables) {
        info->add_tables(out);
        dpf_text_add(out, "\n");
    }
    if (info->options && info->options->kind != DPF_KIND_END) {
        dpf_text_add(out, "options\n");
        dpf_options_help(info->options, out);
        dpf_text_add(out, "\n");
    }
    dpf_text_add(out, "options of every stage\n");
    dpf_options_help(common, out);
    dpf_text_addf(out, "\nexample\n  %s\n\nexit status\n  %s\n", info->example,
                  exit_statuses);
}

static void section(struct dpf_text *out, const char *title, const char *text)
{
    dpf_text_addf(out, ".SH %s\n", title);
    dpf_roff_escape(text, out);
    dpf_text_add(out, "\n");
}

/* Lines as they are. */
static void add_tables(const struct dpf_stage_info *info, struct dpf_text *out)
{
    struct dpf_text tables = {0};
    info->add_tables(&tables);
    dpf_text_add(out, ".SH TABLES\n.EX\n");
    dpf_roff_escape(dpf_text_get(&tables), out);
    dpf_text_add(out, ".EE\n");
    dpf_text_release(&tables);
}

void dpf_stage_man(const struct dpf_stage_info *info, const struct dpf_option *common,
                   struct dpf_text *out)
{
    dpf_text_add(out, ".TH \"DPFLOW-");
    for (const char *c = info->name; *c; c++)
        dpf_text_addf(out, "%c", toupper((unsigned char)*c));
    dpf_text_addf(out, "\" 1 \"\" \"dpflow %s\" \"dpflow manual\"\n", DPF_VERSION);
    dpf_text_addf(out, ".SH NAME\ndpflow\\-");
    dpf_roff_escape(info->name, out);
    dpf_text_add(out, " \\- ");
    dpf_roff_escape(info->summary, out);
    dpf_text_add(out, "\n.SH SYNOPSIS\n\\fBdpflow ");
    dpf_roff_escape(info->name, out);
    dpf_text_add(out, "\\fR [\\fIoptions\\fR]");
    if (info->arguments)
        dpf_text_addf(out, " \\fI%s\\fR", info->arguments);
    dpf_text_add(out, "\n");
    if (info->detail)
        section(out, "DESCRIPTION", info->detail);
    if (info->add_tables)
        add_tables(info, out);
    section(out, "READS", info->reads);
    section(out, "WRITES", info->writes);
    section(out, "PRIVACY", info->privacy);
    dpf_text_add(out, ".SH OPTIONS\n");
    if (info->options)
        dpf_options_man(info->options, out);
    dpf_text_add(out, ".SH OPTIONS OF EVERY STAGE\n");
    dpf_options_man(common, out);
    dpf_text_add(out, ".SH EXAMPLE\n.EX\n");
    dpf_roff_escape(info->example, out);
    dpf_text_add(out, "\n.EE\n");
    section(out, "EXIT STATUS", exit_statuses);
    dpf_text_add(out, ".SH SEE ALSO\n\\fBdpflow\\fR(1)\n");
}
