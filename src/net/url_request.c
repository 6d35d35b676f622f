/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of requests. What is not allowed in a URL is refused, not mended: whoever wrote it shall see
 * it, and no two programs mend alike.
 */
#include "net/url_request.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

/* ---- path and query ---- */

static bool is_hex(char c)
{
    return c && strchr("0123456789abcdefABCDEF", c);
}

/* More than RFC 3986 allows, and less than what could end the target or the line, or what some
 * programs take for something else (a backslash for a slash). */
static bool may_be_sent(char c)
{
    return c > 0x20 && c < 0x7f && !strchr("\"<>\\", c);
}

static int check(const char *what, const char *text, size_t len, struct sw_error *error)
{
    for (size_t i = 0; i < len; i++) {
        if (!may_be_sent(text[i])) {
            return sw_error_set(error, SW_E_SYNTAX,
                                "%s has a character that must be escaped: 0x%02x", what,
                                (unsigned)(unsigned char)text[i]);
        }
        if (text[i] == '%' && (len - i < 3 || !is_hex(text[i + 1]) || !is_hex(text[i + 2]))) {
            return sw_error_set(error, SW_E_SYNTAX, "%s has a broken %% escape", what);
        }
    }
    return 0;
}

/* RFC 3986 section 5.2.4, in place; the path is empty or begins with a slash. Returns its length.
 */
static size_t remove_dot_segments(char *path, size_t len)
{
    size_t to = 0;
    for (size_t at = 0, end; at < len; at = end) {
        for (end = at + 1; end < len && path[end] != '/'; end++) {
        }
        size_t size = end - at - 1;
        bool is_up = size == 2 && memcmp(path + at, "/..", 3) == 0;
        if (is_up) {
            while (to > 0 && path[--to] != '/') {
            }
        }
        if (!is_up && !(size == 1 && path[at + 1] == '.')) {
            memmove(path + to, path + at, end - at);
            to += end - at;
        } else if (end == len) {
            path[to++] = '/';
        }
    }
    return to;
}

static int parse_target(const char *text, char **ret_target, struct sw_error *error)
{
    size_t path_len = strcspn(text, "?#");
    const char *query = text + path_len;
    size_t query_len = strcspn(query, "#");
    int rc = check("path", text, path_len, error);
    rc = rc ? rc : check("query", query, query_len, error);
    if (rc) {
        return rc;
    }
    SW_AUTO(char, sw_free) path = sw_strndup(text, path_len);
    path_len = remove_dot_segments(path, path_len);
    *ret_target = sw_asprintf("%.*s%.*s", (int)SW_MAX(path_len, 1U), path_len ? path : "/",
                              (int)query_len, query);
    return 0;
}

/* ---- the whole ---- */

static const char *scheme_of(const char *text)
{
    return strncasecmp(text, "https://", 8) == 0  ? "https://"
           : strncasecmp(text, "http://", 7) == 0 ? "http://"
                                                  : NULL;
}

static int parse_place(const char *scheme, const char *authority, size_t len,
                       struct sw_url_request *url, struct sw_error *error)
{
    const char *at = memrchr(authority, '@', len);
    size_t user_len = at ? (size_t)(at - authority) : 0;
    int rc = check("user", authority, user_len, error);
    if (!rc && at) {
        rc = sw_url_user_parse(authority, user_len, &url->username, &url->password, error);
    }
    if (rc) {
        return rc;
    }
    const char *host = at ? at + 1 : authority;
    SW_AUTO(char, sw_free)
    plain = sw_asprintf("%s%.*s", scheme, (int)(authority + len - host), host);
    rc = sw_url_parse(plain, &url->origin, error);
    if (!rc) {
        sw_url_done(&url->origin);
    }
    return rc;
}

int sw_url_request_parse(const char *text, struct sw_url_request *ret_url, struct sw_error *error)
{
    const char *scheme = scheme_of(text);
    if (!scheme) {
        return sw_error_set(error, SW_E_SYNTAX,
                            "URL begins with neither \"https://\" nor \"http://\"");
    }
    if (strlen(text) > SW_URL_LIMIT) {
        return sw_error_set(error, SW_E_SYNTAX, "URL is longer than %d bytes", SW_URL_LIMIT);
    }
    const char *authority = text + strlen(scheme);
    size_t len = strcspn(authority, "/?#");
    struct sw_url_request url = {0};
    int rc = parse_place(scheme, authority, len, &url, error);
    rc = rc ? rc : parse_target(authority + len, &url.target, error);
    if (rc) {
        sw_url_request_done(&url);
        return rc;
    }
    *ret_url = url;
    return 0;
}

void sw_url_request_done(struct sw_url_request *url)
{
    sw_url_done(&url->origin);
    url->target = sw_free(url->target);
    url->username = sw_free(url->username);
    url->password = sw_free_secret_text(url->password);
}

/* ---- redirects ---- */

static bool has_scheme(const char *reference)
{
    size_t len = strcspn(reference, ":/?#");
    return len > 0 && reference[len] == ':';
}

static const char *scheme_text(const struct sw_url *origin)
{
    return origin->is_https ? "https://" : "http://";
}

/* Bytes of the base's target that stay in front of a reference without an authority. */
static size_t kept_of(const char *target, const char *reference)
{
    size_t path_len = strcspn(target, "?");
    if (reference[0] == '/') {
        return 0;
    }
    if (reference[0] == '?') {
        return path_len;
    }
    if (reference[0] == '\0' || reference[0] == '#') {
        return strlen(target);
    }
    return (size_t)((const char *)memrchr(target, '/', path_len) - target) + 1;
}

int sw_url_request_follow(const struct sw_url_request *base, const char *location,
                          struct sw_url_request *ret_url, struct sw_error *error)
{
    struct sw_buf whole;
    sw_buf_init(&whole, SIZE_MAX);
    if (has_scheme(location)) {
        sw_buf_puts(&whole, location);
    } else if (strncmp(location, "//", 2) == 0) {
        sw_buf_printf(&whole, "%s%s", scheme_text(&base->origin), location + 2);
    } else {
        sw_buf_puts(&whole, scheme_text(&base->origin));
        sw_url_authority(&base->origin, &whole);
        sw_buf_append(&whole, base->target, kept_of(base->target, location));
        sw_buf_puts(&whole, location);
    }
    int rc = sw_url_request_parse(whole.bytes, ret_url, error);
    sw_buf_done(&whole);
    if (!rc) {
        ret_url->username = sw_free(ret_url->username);
        ret_url->password = sw_free_secret_text(ret_url->password);
    }
    return rc;
}

bool sw_url_is_same_origin(const struct sw_url *a, const struct sw_url *b)
{
    return a->is_https == b->is_https && a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

int sw_url_request_text(const struct sw_url_request *url, struct sw_buf *out)
{
    int rc = sw_buf_puts(out, scheme_text(&url->origin));
    rc = rc ? rc : sw_url_authority(&url->origin, out);
    return rc ? rc : sw_buf_append(out, url->target, strcspn(url->target, "?"));
}
