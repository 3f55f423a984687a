#include "pipeline/manual.h"

#include "base/version.h"
#include "options/options.h"
#include "pipeline/stages.h"

#include "base/banned.h"

void dpf_manual(struct dpf_text *out)
{
    dpf_text_addf(out, ".TH DPFLOW 1 \"\" \"dpflow %s\" \"dpflow manual\"\n",
                  DPF_VERSION);
    dpf_text_add(out,
                 ".SH NAME\ndpflow \\- differentially private training as a Unix "
                 "dataflow\n"
                 ".SH SYNOPSIS\n\\fBdpflow\\fR \\fISTAGE\\fR [\\fIoptions\\fR]\n.br\n"
                 "\\fBdpflow run\\fR \\fIFILE\\fR [\\fIname=value\\fR...]\n.br\n"
                 "\\fBdpflow help\\fR \\fISTAGE\\fR\n.br\n"
                 "\\fBdpflow completion\\fR bash|zsh\n"
                 ".SH DESCRIPTION\nStages are programs that read and write streams of "
                 "records. They are connected by pipes, files, ZeroMQ or MPI, by hand "
                 "in a shell or by a pipeline file. Each has a man page of its own.\n"
                 ".SH STAGES\n");
    for (const struct dpf_stage_entry *s = dpf_stage_entries; s->name; s++) {
        dpf_text_add(out, ".TP\n\\fBdpflow\\-");
        dpf_roff_escape(s->name, out);
        dpf_text_add(out, "\\fR(1)\n");
        dpf_roff_escape(s->summary, out);
        dpf_text_add(out, s->spends_privacy ? " (spends privacy)\n" : "\n");
    }
    dpf_text_add(out,
                 ".SH ENVIRONMENT\n.TP\n\\fBDPFLOW_DATA\\fR\nwhere named data sets are "
                 "looked for\n.TP\n\\fBTMPDIR\\fR\nfor temporary files and sockets\n");
}
