#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/score.h"

#include "base/banned.h"

enum { ROW_COLUMNS = 18, NAME_COLUMNS = 24, MATRIX_SHOWN = 20, NUMBER_COLUMNS = 9 };

/* ---- for people ---- */

static void add_count(struct dpf_findings *f, const char *what, uint64_t count,
                      const char *note)
{
    char text[40];
    dpf_format_count(text, sizeof text, count);
    dpf_findings_add_row(f, ROW_COLUMNS, what, "%s%s", text, note);
}

/* Four digits behind the point, '-' for what is undefined. */
static void format_number(char out[32], double value)
{
    snprintf(out, 32, isnan(value) ? "-" : fabs(value) < 1e6 ? "%.4f" : "%.4g", value);
}

static void add_number(struct dpf_findings *f, const char *what, double value)
{
    char text[32];
    format_number(text, value);
    dpf_findings_add_row(f, ROW_COLUMNS, what, "%s", text);
}

static void add_cell(struct dpf_text *out, double value)
{
    char text[32];
    format_number(text, value);
    dpf_text_addf(out, "  %*s", NUMBER_COLUMNS, text);
}

static void add_summary(const struct dpf_score *s, struct dpf_findings *f)
{
    add_count(f, "examples", s->examples, "");
    if (s->voxels)
        add_count(f, "voxels", s->positions, "");
    if (s->positions)
        dpf_findings_add_row(f, ROW_COLUMNS, "accuracy",
                             "%.4f  (95 %% interval %.4f to %.4f)", s->accuracy,
                             s->accuracy_low, s->accuracy_high);
    else
        add_number(f, "accuracy", s->accuracy);
    if (s->classes > DPF_SCORE_TOP)
        add_number(f, "top-5 accuracy", s->top);
    add_number(f, "loss", s->loss);
    add_number(f, "ECE", s->ece);
    add_number(f, "MCE", s->mce);
    add_number(f, "mean confidence", s->confidence);
    add_number(f, "NLL", s->nll);
    add_number(f, "Brier score", s->brier);
    if (s->voxels) {
        add_number(f, "mean Dice", s->dice_mean);
        add_number(f, "mean pooled Dice", s->dice_pooled_mean);
        add_number(f, "foreground Dice", s->dice_foreground);
    }
    if (s->not_a_number)
        add_count(f, "NaN", s->not_a_number, " without a prediction, counted as wrong");
    if (s->unlabelled)
        add_count(f, "bad labels", s->unlabelled, " left out");
}

/* Is this the first byte of a character (of UTF-8)? */
static bool starts_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* "3 cat", cut after NAME_COLUMNS characters. Names come from streams: control characters
 * are not handed to a terminal. Returns the columns taken. */
static int add_name(struct dpf_text *out, const char *const *names, uint64_t l)
{
    char number[32];
    int columns = snprintf(number, sizeof number, "%llu", (unsigned long long)l);
    dpf_text_add(out, number);
    if (!names || !names[l])
        return columns;
    dpf_text_add(out, " ");
    columns++;
    for (const char *c = names[l]; *c; c++) {
        columns += starts_character(*c);
        if (columns > NAME_COLUMNS)
            return NAME_COLUMNS;
        bool control = (unsigned char)*c < 0x20 || *c == 0x7f;
        dpf_text_addn(out, control ? "?" : c, 1);
    }
    return columns;
}

static int widest_name(const struct dpf_score *s, const char *const *names)
{
    int widest = (int)strlen("class");
    for (uint64_t l = 0; l < s->classes; l++) {
        struct dpf_text name = {0};
        int columns = add_name(&name, names, l);
        widest = columns > widest ? columns : widest;
        dpf_text_release(&name);
    }
    return widest;
}

static void add_padded_name(struct dpf_text *out, const char *const *names, uint64_t l,
                            int width)
{
    int columns = add_name(out, names, l);
    dpf_text_addf(out, "%*s", width - columns, "");
}

static void add_classes(const struct dpf_score *s, const char *const *names, int width,
                        struct dpf_text *out)
{
    static const char *const heads[] = {"support", "precision", "recall",
                                        "F1",      "Dice",      "pooled"};
    int shown = s->voxels ? 6 : 4;
    dpf_text_addf(out, "\n%-*s  %12s", width, "class", heads[0]);
    for (int i = 1; i < shown; i++)
        dpf_text_addf(out, "  %*s", NUMBER_COLUMNS, heads[i]);
    dpf_text_add(out, "\n");
    for (uint64_t l = 0; l < s->classes; l++) {
        const struct dpf_score_class *c = &s->per_class[l];
        const double numbers[] = {c->precision, c->recall, c->f1, c->dice,
                                  c->dice_pooled};
        add_padded_name(out, names, l, width);
        dpf_text_addf(out, "  %12llu", (unsigned long long)c->support);
        for (int i = 1; i < shown; i++)
            add_cell(out, numbers[i - 1]);
        dpf_text_add(out, "\n");
    }
}

static void add_matrix(const struct dpf_score *s, const char *const *names, int width,
                       struct dpf_text *out)
{
    uint64_t n = s->classes, most = n - 1; /* the longest heading */
    for (uint64_t i = 0; i < n * n; i++)
        most = s->confusion[i] > most ? s->confusion[i] : most;
    int column = 2 + snprintf(NULL, 0, "%llu", (unsigned long long)most);
    dpf_text_addf(out,
                  "\nconfusion: a row for each true class, a column for each "
                  "predicted one\n%*s",
                  width, "");
    for (uint64_t l = 0; l < n; l++)
        dpf_text_addf(out, "%*llu", column, (unsigned long long)l);
    dpf_text_add(out, "\n");
    for (uint64_t l = 0; l < n; l++) {
        add_padded_name(out, names, l, width);
        for (uint64_t p = 0; p < n; p++)
            dpf_text_addf(out, "%*llu", column,
                          (unsigned long long)s->confusion[l * n + p]);
        dpf_text_add(out, "\n");
    }
}

static void add_details(const struct dpf_score *s, const char *const *names,
                        struct dpf_text *out)
{
    int width = widest_name(s, names);
    add_classes(s, names, width, out);
    if (s->confusion && s->classes <= MATRIX_SHOWN)
        add_matrix(s, names, width, out);
}

void dpf_score_table(const struct dpf_score *s, const char *const *class_names,
                     struct dpf_text *out)
{
    struct dpf_findings f = {0};
    add_summary(s, &f);
    add_details(s, class_names, &f.details);
    dpf_findings_table(&f, out);
    dpf_findings_release(&f);
}

/* ---- for programs ---- */

static void json_real(struct dpf_text *out, const char *key, double value)
{
    dpf_text_add_key(out, key);
    dpf_text_add_real(out, value);
}

static void json_count(struct dpf_text *out, const char *key, uint64_t value)
{
    dpf_text_add_key(out, key);
    dpf_text_addf(out, "%llu", (unsigned long long)value);
}

static void json_summary(const struct dpf_score *s, struct dpf_text *out)
{
    json_count(out, "examples", s->examples);
    if (s->voxels)
        json_count(out, "positions", s->positions);
    json_real(out, "accuracy", s->accuracy);
    json_real(out, "accuracy_low", s->accuracy_low);
    json_real(out, "accuracy_high", s->accuracy_high);
    if (s->classes > DPF_SCORE_TOP)
        json_real(out, "top5", s->top);
    json_real(out, "loss", s->loss);
    json_real(out, "nll", s->nll);
    json_real(out, "brier", s->brier);
    json_real(out, "ece", s->ece);
    json_real(out, "mce", s->mce);
    json_real(out, "confidence", s->confidence);
    json_count(out, "not_a_number", s->not_a_number);
    json_count(out, "unlabelled", s->unlabelled);
    if (s->voxels) {
        json_real(out, "dice_mean", s->dice_mean);
        json_real(out, "dice_pooled_mean", s->dice_pooled_mean);
        json_real(out, "dice_foreground", s->dice_foreground);
    }
}

static void json_classes(const struct dpf_score *s, struct dpf_text *out)
{
    dpf_text_add(out, ",\"per_class\":[");
    for (uint64_t l = 0; l < s->classes; l++) {
        const struct dpf_score_class *c = &s->per_class[l];
        dpf_text_addf(out, "%s{\"class\":%llu", l ? "," : "", (unsigned long long)l);
        json_count(out, "support", c->support);
        json_real(out, "precision", c->precision);
        json_real(out, "recall", c->recall);
        json_real(out, "f1", c->f1);
        if (s->voxels) {
            json_real(out, "dice", c->dice);
            json_real(out, "dice_pooled", c->dice_pooled);
        }
        dpf_text_add(out, "}");
    }
    dpf_text_add(out, "]");
}

static void json_matrix(const struct dpf_score *s, struct dpf_text *out)
{
    if (!s->confusion) {
        dpf_text_add(out, ",\"confusion\":null");
        return;
    }
    dpf_text_add(out, ",\"confusion\":[");
    for (uint64_t l = 0; l < s->classes; l++) {
        const uint64_t *row = s->confusion + l * s->classes;
        dpf_text_add(out, l ? ",[" : "[");
        for (uint64_t p = 0; p < s->classes; p++) {
            if (p)
                dpf_text_addn(out, ",", 1);
            if (row[p]) /* large matrices are nearly empty, and formatting is slow */
                dpf_text_addf(out, "%llu", (unsigned long long)row[p]);
            else
                dpf_text_addn(out, "0", 1);
        }
        dpf_text_add(out, "]");
    }
    dpf_text_add(out, "]");
}

static void json_members(const struct dpf_score *s, struct dpf_text *out)
{
    json_summary(s, out);
    json_classes(s, out);
    json_matrix(s, out);
}

void dpf_score_json(const struct dpf_score *s, struct dpf_text *out)
{
    dpf_text_add(out, "{");
    json_members(s, out);
    dpf_text_add(out, "}");
}

void dpf_score_report(const struct dpf_score *s, const char *const *class_names,
                      struct dpf_findings *f)
{
    add_summary(s, f);
    add_details(s, class_names, &f->details);
    json_members(s, &f->members);
}
