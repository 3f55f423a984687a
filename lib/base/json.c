/* Is it JSON? For text from a stream that is to become part of a JSON file. */
#include <string.h>

#include "base/text.h"

#include "base/banned.h"

struct cursor {
    const char *at, *end;
    int depth;
};

static bool value(struct cursor *c);

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && strchr(" \t\n\r", *c->at) && *c->at)
        c->at++;
}

static bool take(struct cursor *c, char wanted)
{
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool string(struct cursor *c)
{
    if (!take(c, '"'))
        return false;
    while (c->at < c->end && *c->at != '"') {
        unsigned char byte = (unsigned char)*c->at++;
        if (byte < 0x20)
            return false;
        if (byte != '\\')
            continue;
        if (c->at == c->end || !*c->at || !strchr("\"\\/bfnrtu", *c->at))
            return false;
        int digits = *c->at++ == 'u' ? 4 : 0;
        for (; digits > 0; digits--, c->at++)
            if (c->at == c->end || !*c->at || !strchr("0123456789abcdefABCDEF", *c->at))
                return false;
    }
    return take(c, '"');
}

static size_t digits(struct cursor *c)
{
    const char *start = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return (size_t)(c->at - start);
}

static bool number(struct cursor *c)
{
    if (c->at < c->end && *c->at == '-')
        c->at++;
    const char *start = c->at;
    size_t whole = digits(c);
    if (whole == 0 || (whole > 1 && *start == '0'))
        return false;
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (digits(c) == 0)
            return false;
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-'))
            c->at++;
        return digits(c) > 0;
    }
    return true;
}

static bool word(struct cursor *c, const char *wanted)
{
    size_t size = strlen(wanted);
    if ((size_t)(c->end - c->at) < size || memcmp(c->at, wanted, size) != 0)
        return false;
    c->at += size;
    return true;
}

/* Members of an object or elements of an array, up to its end. */
static bool members(struct cursor *c, char end, bool keys)
{
    if (++c->depth > 32)
        return false;
    bool more = !take(c, end);
    while (more) {
        if (keys && (!string(c) || !take(c, ':')))
            return false;
        if (!value(c))
            return false;
        more = take(c, ',');
        if (!more && !take(c, end))
            return false;
    }
    c->depth--;
    return true;
}

static bool value(struct cursor *c)
{
    skip_space(c);
    if (take(c, '{'))
        return members(c, '}', true);
    if (take(c, '['))
        return members(c, ']', false);
    if (c->at < c->end && *c->at == '"')
        return string(c);
    return word(c, "true") || word(c, "false") || word(c, "null") || number(c);
}

bool dpf_json_is_object(const char *bytes, size_t size)
{
    struct cursor c = {bytes, bytes + size, 0};
    if (!take(&c, '{') || !members(&c, '}', true))
        return false;
    skip_space(&c);
    return c.at == c.end;
}
