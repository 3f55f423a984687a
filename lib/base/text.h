/* Growable text, and the few string helpers that C lacks. */
#ifndef DPF_BASE_TEXT_H
#define DPF_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise. `data` is always NUL-terminated once anything was added; failures of
 * memory are sticky in `failed`. */
struct dpf_text {
    char *data;
    size_t size;
    size_t capacity;
    bool failed;
};

void dpf_text_add(struct dpf_text *t, const char *string);
void dpf_text_addn(struct dpf_text *t, const char *bytes, size_t size);
void dpf_text_addf(struct dpf_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void dpf_text_addv(struct dpf_text *t, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
/* Text of a stranger for one line of a terminal: whatever would move the cursor, end the
 * line or turn the direction of writing stands there as \n, \x1b or \u{202e}, a backslash
 * as two, a byte that is no UTF-8 as \xff. */
void dpf_text_add_visible(struct dpf_text *t, const char *bytes, size_t size);
/* Whether it is UTF-8 and would stand there as it is, but for backslashes. */
bool dpf_text_is_visible(const char *bytes, size_t size);
/* A JSON string with its quotes; invalid UTF-8 becomes U+FFFD. What
 * dpf_text_add_visible() would not let through is written as \uXXXX. */
void dpf_text_add_json(struct dpf_text *t, const char *bytes, size_t size);
/* The key of a member of a JSON object, behind a comma unless it is the first one. */
void dpf_text_add_key(struct dpf_text *t, const char *key);
/* A word as a shell reads it back: in single quotes. */
void dpf_text_add_quoted(struct dpf_text *t, const char *word);
/* The shortest decimal that reads back as the same double; "null" if not finite. */
void dpf_text_add_real(struct dpf_text *t, double value);
/* The text, never NULL. Owned by t. */
const char *dpf_text_get(const struct dpf_text *t);
void dpf_text_reset(struct dpf_text *t);
void dpf_text_release(struct dpf_text *t);

/* Whether the bytes are one JSON object and nothing else, nested at most 32 deep. */
bool dpf_json_is_object(const char *bytes, size_t size);

/* A heap copy, or NULL. */
char *dpf_strdup(const char *string);
char *dpf_strndup(const char *string, size_t size);
/* printf into a heap string, or NULL. */
char *dpf_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool dpf_starts_with(const char *string, const char *prefix);
bool dpf_ends_with(const char *string, const char *suffix);
/* 1234567 -> "1,234,567". */
void dpf_format_count(char *out, size_t size, unsigned long long value);
/* 1536 -> "1.5 KiB". */
void dpf_format_bytes(char *out, size_t size, double bytes);

#endif
