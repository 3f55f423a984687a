#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

void dpf_text_addn(struct dpf_text *t, const char *bytes, size_t size)
{
    if (t->failed || size > SIZE_MAX - t->size - 1 ||
        !dpf_grow(&t->data, &t->capacity, t->size + size + 1, 1)) {
        t->failed = true;
        return;
    }
    if (size)
        memcpy(t->data + t->size, bytes, size);
    t->size += size;
    t->data[t->size] = '\0';
}

void dpf_text_add(struct dpf_text *t, const char *string)
{
    dpf_text_addn(t, string, strlen(string));
}

void dpf_text_addf(struct dpf_text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    dpf_text_addv(t, format, arguments);
    va_end(arguments);
}

void dpf_text_addv(struct dpf_text *t, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int needed = vsnprintf(NULL, 0, format, arguments);
    if (needed < 0 || t->failed ||
        !dpf_grow(&t->data, &t->capacity, t->size + (size_t)needed + 1, 1)) {
        t->failed = true;
    } else {
        vsnprintf(t->data + t->size, (size_t)needed + 1, format, again);
        t->size += (size_t)needed;
    }
    va_end(again);
}

/* Length of the valid UTF-8 sequence at s, or 0. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    if (n == 0 || s[0] > 0xf4 || left < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

/* The code point of a valid sequence of n bytes. */
static unsigned long code_point(const unsigned char *s, size_t n)
{
    unsigned long code = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        code = code << 6 | (s[i] & 0x3f);
    return code;
}

/* Whether a terminal or a reader could take it for more than a sign in its place:
 * controls (C0, DEL, C1), separators of lines, marks that turn the direction of writing,
 * and signs without width. */
static bool steers(unsigned long code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad ||
           code == 0x61c || code == 0x180e || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
           code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) ||
           (code >= 0xe0000 && code <= 0xe007f);
}

bool dpf_text_is_visible(const char *bytes, size_t size)
{
    const unsigned char *s = (const unsigned char *)bytes;
    size_t i = 0, n = 1;
    for (; n && i < size; i += n) {
        n = utf8_length(s + i, size - i);
        if (n && steers(code_point(s + i, n)))
            n = 0;
    }
    return n > 0;
}

void dpf_text_add_visible(struct dpf_text *t, const char *bytes, size_t size)
{
    const unsigned char *s = (const unsigned char *)bytes;
    for (size_t i = 0; i < size;) {
        size_t n = utf8_length(s + i, size - i);
        unsigned long code = n ? code_point(s + i, n) : s[i];
        if (n == 0 || (n == 1 && steers(code) && code != '\n'))
            dpf_text_addf(t, "\\x%02lx", code);
        else if (code == '\n')
            dpf_text_add(t, "\\n");
        else if (code == '\\')
            dpf_text_add(t, "\\\\");
        else if (steers(code))
            dpf_text_addf(t, "\\u{%lx}", code);
        else
            dpf_text_addn(t, bytes + i, n);
        i += n ? n : 1;
    }
}

void dpf_text_add_key(struct dpf_text *t, const char *key)
{
    if (t->size && t->data[t->size - 1] != '{')
        dpf_text_add(t, ",");
    dpf_text_addf(t, "\"%s\":", key);
}

/* Beyond 16 bits as a pair of surrogates, as JSON wants it. */
static void add_json_code(struct dpf_text *t, unsigned long code)
{
    if (code < 0x10000)
        dpf_text_addf(t, "\\u%04lx", code);
    else
        dpf_text_addf(t, "\\u%04lx\\u%04lx", 0xd800 + ((code - 0x10000) >> 10),
                      0xdc00 + ((code - 0x10000) & 0x3ff));
}

void dpf_text_add_json(struct dpf_text *t, const char *bytes, size_t size)
{
    const unsigned char *s = (const unsigned char *)bytes;
    dpf_text_add(t, "\"");
    for (size_t i = 0; i < size;) {
        size_t n = utf8_length(s + i, size - i);
        if (n == 0) {
            dpf_text_add(t, "\\ufffd");
            i++;
            continue;
        }
        if (s[i] == '"' || s[i] == '\\')
            dpf_text_addf(t, "\\%c", s[i]);
        else if (s[i] == '\n')
            dpf_text_add(t, "\\n");
        else if (steers(code_point(s + i, n)))
            add_json_code(t, code_point(s + i, n));
        else
            dpf_text_addn(t, bytes + i, n);
        i += n;
    }
    dpf_text_add(t, "\"");
}

void dpf_text_add_quoted(struct dpf_text *t, const char *word)
{
    dpf_text_add(t, "'");
    for (; *word; word++)
        if (*word == '\'')
            dpf_text_add(t, "'\\''");
        else
            dpf_text_addn(t, word, 1);
    dpf_text_add(t, "'");
}

void dpf_text_add_real(struct dpf_text *t, double value)
{
    if (!isfinite(value)) {
        dpf_text_add(t, "null");
        return;
    }
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    dpf_text_add(t, digits);
}

const char *dpf_text_get(const struct dpf_text *t)
{
    return t->data ? t->data : "";
}

void dpf_text_reset(struct dpf_text *t)
{
    t->size = 0;
    t->failed = false;
    if (t->data)
        t->data[0] = '\0';
}

void dpf_text_release(struct dpf_text *t)
{
    free(t->data);
    *t = (struct dpf_text){0};
}

char *dpf_strndup(const char *string, size_t size)
{
    char *copy = malloc(size + 1);
    if (!copy)
        return NULL;
    memcpy(copy, string, size);
    copy[size] = '\0';
    return copy;
}

char *dpf_strdup(const char *string)
{
    return dpf_strndup(string, strlen(string));
}

char *dpf_format(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int needed = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *out = needed < 0 ? NULL : malloc((size_t)needed + 1);
    if (out)
        vsnprintf(out, (size_t)needed + 1, format, again);
    va_end(again);
    return out;
}

bool dpf_starts_with(const char *string, const char *prefix)
{
    return strncmp(string, prefix, strlen(prefix)) == 0;
}

bool dpf_ends_with(const char *string, const char *suffix)
{
    size_t n = strlen(string), m = strlen(suffix);
    return n >= m && memcmp(string + n - m, suffix, m) == 0;
}

void dpf_format_count(char *out, size_t size, unsigned long long value)
{
    char plain[32];
    int n = snprintf(plain, sizeof plain, "%llu", value);
    size_t used = 0;
    for (int i = 0; i < n && used + 2 < size; i++) {
        if (i && (n - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = plain[i];
    }
    out[used < size ? used : size - 1] = '\0';
}

void dpf_format_bytes(char *out, size_t size, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, size, unit && bytes < 10 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}
