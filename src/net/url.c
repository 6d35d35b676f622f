/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs, addresses and percent-encoding. All of it comes from configuration or from a kubeconfig, so
 * that what is refused is refused with words a person can act on. A URL is quoted in a message only
 * where it cannot hold a password.
 */
#include "net/url.h"

#include <errno.h>
#include <string.h>

#include <arpa/inet.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

enum { HOST_MAX = 253 }; /* of a DNS name as text, RFC 1035 section 2.3.4 */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int hex_value(char c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool sw_host_is_ip(const char *host)
{
    unsigned char address[16];
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

/* ---- host and port ---- */

static int parse_port(const char *text, size_t len, bool may_be_zero, uint16_t *ret_port,
                      struct sw_error *error)
{
    unsigned port = 0;
    bool is_good = len > 0 && len <= 5;
    for (size_t i = 0; is_good && i < len; i++) {
        is_good = is_digit(text[i]);
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    if (!is_good || port > UINT16_MAX || (port == 0 && !may_be_zero)) {
        return sw_error_set(error, SW_E_SYNTAX, "port \"%.*s\" is not a number from %d to 65535",
                            (int)SW_MIN(len, (size_t)32), text, may_be_zero ? 0 : 1);
    }
    *ret_port = (uint16_t)port;
    return 0;
}

/* A name as DNS and certificates know them, or an IPv4 address; underscores occur in the wild. */
static int check_name(const char *host, struct sw_error *error)
{
    bool looks_like_v4 = true;
    for (const char *c = host; *c; c++) {
        bool is_dot = *c == '.';
        if (!is_letter(*c) && !is_digit(*c) && *c != '-' && *c != '_' && !is_dot) {
            return sw_error_set(error, SW_E_SYNTAX, "host has a character that no name has: \"%s\"",
                                host);
        }
        if (is_dot && (c == host || c[1] == '.')) {
            return sw_error_set(error, SW_E_SYNTAX, "host has an empty label: \"%s\"", host);
        }
        looks_like_v4 = looks_like_v4 && (is_digit(*c) || is_dot);
    }
    if (looks_like_v4 && !sw_host_is_ip(host)) {
        return sw_error_set(error, SW_E_SYNTAX, "\"%s\" is not an IPv4 address", host);
    }
    return 0;
}

/* The host in text[0..len), brackets and all, into ret_host without them. */
static int take_host(const char *text, size_t len, char ret_host[256], struct sw_error *error)
{
    bool is_bracketed = len >= 2 && text[0] == '[' && text[len - 1] == ']';
    char host[256];
    if (is_bracketed) {
        text++;
        len -= 2;
    }
    if (len > HOST_MAX) {
        return sw_error_set(error, SW_E_SYNTAX, "host is longer than %d characters", HOST_MAX);
    }
    if (memchr(text, '\0', len)) {
        return sw_error_set(error, SW_E_SYNTAX, "host has a NUL in it");
    }
    memcpy(host, text, len);
    host[len] = '\0';
    if (is_bracketed) {
        unsigned char address[16];
        if (inet_pton(AF_INET6, host, address) != 1) {
            return sw_error_set(error, SW_E_SYNTAX, "\"[%s]\" is not an IPv6 address", host);
        }
    } else if (strchr(host, ':')) {
        return sw_error_set(error, SW_E_SYNTAX, "an IPv6 address needs brackets: \"[%s]\"", host);
    } else {
        int rc = check_name(host, error);
        if (rc) {
            return rc;
        }
    }
    memcpy(ret_host, host, len + 1);
    return 0;
}

/* Where the host ends: behind the bracket, or at the colon of the port. An unbracketed text with
 * several colons is one host, so that the message can speak of brackets. */
static size_t host_len(const char *text, size_t len)
{
    const char *bracket = len > 0 && text[0] == '[' ? memchr(text, ']', len) : NULL;
    if (bracket) {
        return (size_t)(bracket - text) + 1;
    }
    const char *colon = memchr(text, ':', len);
    if (!colon || memchr(colon + 1, ':', (size_t)(text + len - colon - 1))) {
        return len;
    }
    return (size_t)(colon - text);
}

int sw_address_parse(const char *text, char ret_host[256], uint16_t *ret_port,
                     struct sw_error *error)
{
    size_t len = strlen(text);
    size_t end = host_len(text, len);
    char host[256] = "";
    uint16_t port = 0;
    int rc = end > 0 ? take_host(text, end, host, error) : 0;
    if (!rc && (end == len || text[end] != ':')) {
        rc = sw_error_set(error, SW_E_SYNTAX, "no port; wanted is HOST:PORT, :PORT or [IPV6]:PORT");
    }
    if (!rc) {
        rc = parse_port(text + end + 1, len - end - 1, true, &port, error);
    }
    if (rc) {
        sw_error_prefix(error, "address \"%.64s\"", text);
        return rc;
    }
    memcpy(ret_host, host, sizeof(host));
    *ret_port = port;
    return 0;
}

/* ---- URLs ---- */

/* Characters of a path: pchar and "/", RFC 3986 section 3.3. */
static bool is_path_char(char c)
{
    return is_letter(c) || is_digit(c) || (c && strchr("-._~!$&'()*+,;=:@/", c));
}

static bool is_dot_segment(const char *segment, size_t len)
{
    return (len == 1 && segment[0] == '.') || (len == 2 && memcmp(segment, "..", 2) == 0);
}

static int check_path(const char *path, size_t len, struct sw_error *error)
{
    size_t segment = 1;
    for (size_t i = 0; i < len; i++) {
        if (path[i] == '%') {
            if (len - i < 3 || hex_value(path[i + 1]) < 0 || hex_value(path[i + 2]) < 0) {
                return sw_error_set(error, SW_E_SYNTAX, "path has a broken %% escape");
            }
            i += 2;
        } else if (!is_path_char(path[i])) {
            return sw_error_set(error, SW_E_SYNTAX,
                                "path has a character that must be escaped: 0x%02x",
                                (unsigned)(unsigned char)path[i]);
        }
        if (path[i] == '/' || i + 1 == len) {
            size_t end = path[i] == '/' ? i : len;
            if (end > segment && is_dot_segment(path + segment, end - segment)) {
                return sw_error_set(error, SW_E_SYNTAX, "path has a \".\" or \"..\" in it");
            }
            segment = i + 1;
        }
    }
    return 0;
}

static bool has_scheme(const char *text, const char *scheme)
{
    return strncasecmp(text, scheme, strlen(scheme)) == 0;
}

static int parse_authority(const char *text, size_t len, struct sw_url *url, struct sw_error *error)
{
    if (memchr(text, '@', len)) {
        return sw_error_set(error, SW_E_SYNTAX, "URL holds a user name or password; not supported");
    }
    size_t end = host_len(text, len);
    if (end == 0) {
        return sw_error_set(error, SW_E_SYNTAX, "URL names no host");
    }
    int rc = take_host(text, end, url->host, error);
    if (rc) {
        return rc;
    }
    url->port = url->is_https ? 443 : 80;
    if (end < len && text[end] != ':') {
        return sw_error_set(error, SW_E_SYNTAX, "URL has something between \"]\" and the port");
    }
    /* "host:" names the scheme's port, RFC 3986 section 3.2.3. */
    return end + 1 < len ? parse_port(text + end + 1, len - end - 1, false, &url->port, error) : 0;
}

int sw_url_parse(const char *text, struct sw_url *ret_url, struct sw_error *error)
{
    struct sw_url url = {.is_https = has_scheme(text, "https://")};
    if (!url.is_https && !has_scheme(text, "http://")) {
        return sw_error_set(error, SW_E_SYNTAX,
                            "URL begins with neither \"https://\" nor \"http://\"");
    }
    text += strlen(url.is_https ? "https://" : "http://");
    size_t len = strcspn(text, "/?#");
    int rc = parse_authority(text, len, &url, error);
    if (rc) {
        return rc;
    }
    const char *path = text + len;
    size_t path_len = strcspn(path, "?#");
    if (path[path_len]) {
        return sw_error_set(error, SW_E_SYNTAX, "URL has a %s; not supported here",
                            path[path_len] == '?' ? "query" : "fragment");
    }
    rc = check_path(path, path_len, error);
    if (rc) {
        return rc;
    }
    while (path_len > 0 && path[path_len - 1] == '/') {
        path_len--;
    }
    url.path = sw_strndup(path, path_len);
    *ret_url = url;
    return 0;
}

void sw_url_done(struct sw_url *url)
{
    url->path = sw_free(url->path);
}

int sw_url_authority(const struct sw_url *url, struct sw_buf *out)
{
    bool is_v6 = strchr(url->host, ':');
    int rc = sw_buf_printf(out, is_v6 ? "[%s]" : "%s", url->host);
    if (!rc && url->port != (url->is_https ? 443 : 80)) {
        rc = sw_buf_printf(out, ":%u", (unsigned)url->port);
    }
    return rc;
}

/* ---- percent-encoding ---- */

static bool is_unreserved(char c)
{
    return is_letter(c) || is_digit(c) || (c && strchr("-._~", c));
}

int sw_url_encode(struct sw_buf *out, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t len = strlen(text);
    size_t encoded = 0;
    for (size_t i = 0; i < len; i++) {
        encoded += is_unreserved(text[i]) ? 1 : 3;
    }
    if (encoded == len) {
        return sw_buf_append(out, text, len);
    }
    char *bytes = sw_malloc(encoded);
    char *at = bytes;
    for (size_t i = 0; i < len; i++) {
        if (is_unreserved(text[i])) {
            *at++ = text[i];
        } else {
            *at++ = '%';
            *at++ = digits[(unsigned char)text[i] >> 4];
            *at++ = digits[(unsigned char)text[i] & 15];
        }
    }
    int rc = sw_buf_append(out, bytes, encoded);
    sw_free(bytes);
    return rc;
}

int sw_url_decode(const char *text, size_t len, char **ret_text)
{
    SW_AUTO(char, sw_free) decoded = sw_malloc(len + 1);
    char *at = decoded;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = len - i > 2 ? hex_value(text[i + 1]) : -1;
            int low = high >= 0 ? hex_value(text[i + 2]) : -1;
            if (low < 0) {
                return -EINVAL;
            }
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0') {
            return -EINVAL;
        }
        *at++ = c;
    }
    *at = '\0';
    *ret_text = sw_steal(&decoded);
    return 0;
}

int sw_url_user_parse(const char *text, size_t len, char **ret_username, char **ret_password,
                      struct sw_error *error)
{
    const char *colon = memchr(text, ':', len);
    size_t name_len = colon ? (size_t)(colon - text) : len;
    int rc = sw_url_decode(text, name_len, ret_username);
    if (!rc && colon) {
        rc = sw_url_decode(colon + 1, len - name_len - 1, ret_password);
    }
    if (!rc && strchr(*ret_username, ':')) {
        rc = -EINVAL; /* RFC 7617 section 2: what follows would be read as the password */
    }
    return rc ? sw_error_set(error, SW_E_SYNTAX,
                             "a user or password with a broken %% escape, or a user with a colon")
              : 0;
}
