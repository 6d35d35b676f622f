/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proxies: where they are, and for whom they are not. The rules of NO_PROXY are those of
 * golang.org/x/net/http/httpproxy; there is no standard.
 */
#include "net/proxy.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/util.h"
#include "net/http.h"
#include "net/url.h"

/* ---- URLs ---- */

static const struct scheme {
    const char *text;
    enum sw_proxy_kind kind;
    uint16_t port;
} schemes[] = {
    {"http://", SW_PROXY_HTTP, 80},
    {"https://", SW_PROXY_HTTPS, 443},
    {"socks5://", SW_PROXY_SOCKS5, 1080},
    {"socks5h://", SW_PROXY_SOCKS5, 1080},
};

static const struct scheme *scheme_of(const char *url)
{
    for (size_t i = 0; i < SW_ARRAY_SIZE(schemes); i++) {
        if (strncasecmp(url, schemes[i].text, strlen(schemes[i].text)) == 0) {
            return &schemes[i];
        }
    }
    return NULL;
}

/* Host, port and path are read as those of any URL. */
static int parse_place(const struct scheme *scheme, const char *text, struct sw_proxy *proxy,
                       struct sw_error *error)
{
    SW_AUTO(char, sw_free) plain = sw_asprintf("http://%s", text);
    size_t authority_len = strcspn(text, "/?#");
    size_t port_at = authority_len;
    while (port_at > 0 && text[port_at - 1] >= '0' && text[port_at - 1] <= '9') {
        port_at--;
    }
    bool has_port = port_at > 0 && port_at < authority_len && text[port_at - 1] == ':';
    struct sw_url url;
    int rc = sw_url_parse(plain, &url, error);
    if (rc) {
        sw_error_prefix(error, "the proxy's URL");
        return rc;
    }
    memcpy(proxy->host, url.host, sizeof(proxy->host));
    proxy->port = has_port ? url.port : scheme->port;
    sw_url_done(&url);
    return 0;
}

int sw_proxy_parse(const char *url, struct sw_proxy *ret_proxy, struct sw_error *error)
{
    const struct scheme *scheme = scheme_of(url);
    if (!scheme) {
        return sw_error_set(error, SW_E_SYNTAX,
                            "the proxy's URL begins with none of http://, https:// and socks5://");
    }
    struct sw_proxy proxy = {.kind = scheme->kind};
    const char *rest = url + strlen(scheme->text);
    size_t authority_len = strcspn(rest, "/?#");
    const char *at = memrchr(rest, '@', authority_len);
    int rc =
        at ? sw_url_user_parse(rest, (size_t)(at - rest), &proxy.username, &proxy.password, error)
           : 0;
    if (rc) {
        sw_error_prefix(error, "the proxy's URL");
    }
    rc = rc ? rc : parse_place(scheme, at ? at + 1 : rest, &proxy, error);
    if (rc) {
        sw_proxy_done(&proxy);
        return rc;
    }
    *ret_proxy = proxy;
    return 0;
}

void sw_proxy_done(struct sw_proxy *proxy)
{
    sw_free(proxy->username);
    sw_free_secret_text(proxy->password);
    *proxy = (struct sw_proxy){0};
}

/* ---- addresses ---- */

struct address {
    int family; /* 0: it is a name */
    unsigned char bytes[16];
};

static struct address address_of(const char *host)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct address address = {0};
    if (inet_pton(AF_INET, host, address.bytes) == 1) {
        address.family = AF_INET;
    } else if (inet_pton(AF_INET6, host, address.bytes) == 1) {
        address.family = AF_INET6;
        if (memcmp(address.bytes, mapped, sizeof(mapped)) == 0) {
            memmove(address.bytes, address.bytes + 12, 4);
            memset(address.bytes + 4, 0, 12);
            address.family = AF_INET;
        }
    }
    return address;
}

static bool is_loopback(const struct address *address)
{
    static const unsigned char one[16] = {[15] = 1};
    return (address->family == AF_INET && address->bytes[0] == 127) ||
           (address->family == AF_INET6 && memcmp(address->bytes, one, sizeof(one)) == 0);
}

static bool has_prefix(const struct address *address, const struct address *net, unsigned bits)
{
    if (memcmp(address->bytes, net->bytes, bits / 8) != 0) {
        return false;
    }
    unsigned mask = 0xff00U >> (bits % 8) & 0xffU;
    return bits % 8 == 0 || (address->bytes[bits / 8] & mask) == (net->bytes[bits / 8] & mask);
}

/* "10.0.0.0/8". *ret_matches is only written where it is a CIDR. */
static bool read_cidr(const char *entry, const struct address *address, bool *ret_matches)
{
    const char *slash = strchr(entry, '/');
    char *end;
    if (!slash || slash[1] < '0' || slash[1] > '9') {
        return false;
    }
    SW_AUTO(char, sw_free) base = sw_strndup(entry, (size_t)(slash - entry));
    struct address net = address_of(base);
    unsigned long bits = strtoul(slash + 1, &end, 10);
    if (!net.family || *end || bits > (net.family == AF_INET ? 32 : 128)) {
        return false;
    }
    *ret_matches = address->family == net.family && has_prefix(address, &net, (unsigned)bits);
    return true;
}

/* ---- NO_PROXY ---- */

struct target {
    const char *host;
    uint16_t port;
    struct address address;
};

/* Cuts ":PORT" off, and brackets. False: it is of another port, or has no host. */
static bool take_port(char *entry, uint16_t port, const char **ret_host)
{
    char *colon = strrchr(entry, ':');
    bool is_bracketed = entry[0] == '[';
    bool is_v6 = !is_bracketed && colon && strchr(entry, ':') != colon;
    if (is_bracketed && colon && colon[-1] != ']') {
        colon = NULL;
    }
    if (colon && !is_v6) {
        *colon = '\0';
        if (strtoul(colon + 1, NULL, 10) != port && colon[1]) {
            return false;
        }
    }
    size_t len = strlen(entry);
    if (is_bracketed && len > 1 && entry[len - 1] == ']') {
        entry[len - 1] = '\0';
        entry++;
    }
    *ret_host = entry;
    return entry[0] != '\0';
}

/* The name itself, unless the entry begins with a dot; and all below it. */
static bool matches_domain(const char *entry, const char *host)
{
    if (strncmp(entry, "*.", 2) == 0) {
        entry++;
    }
    bool is_below_only = entry[0] == '.';
    const char *domain = is_below_only ? entry + 1 : entry;
    size_t len = strlen(domain), host_len = strlen(host);
    if (len == 0 || host_len < len || strcasecmp(host + host_len - len, domain) != 0) {
        return false;
    }
    return host_len == len ? !is_below_only : host[host_len - len - 1] == '.';
}

static bool matches(char *entry, const struct target *target)
{
    bool is_in_net;
    const char *host;
    if (strcmp(entry, "*") == 0) {
        return true;
    }
    if (read_cidr(entry, &target->address, &is_in_net)) {
        return is_in_net;
    }
    if (!take_port(entry, target->port, &host)) {
        return false;
    }
    struct address address = address_of(host);
    if (address.family) {
        return address.family == target->address.family &&
               memcmp(address.bytes, target->address.bytes, sizeof(address.bytes)) == 0;
    }
    return !target->address.family && matches_domain(host, target->host);
}

bool sw_proxy_is_bypassed(const char *no_proxy, const char *host, uint16_t port)
{
    static const char white[] = " \t";
    struct target target = {host, port, address_of(host)};
    if (strcasecmp(host, "localhost") == 0 || is_loopback(&target.address)) {
        return true;
    }
    for (const char *at = no_proxy; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t len = strcspn(at, ",");
        size_t skipped = SW_MIN(strspn(at, white), len);
        SW_AUTO(char, sw_free) entry = sw_strndup(at + skipped, len - skipped);
        entry[strcspn(entry, white)] = '\0';
        if (entry[0] && matches(entry, &target)) {
            return true;
        }
    }
    return false;
}

/* ---- the environment ---- */

static const char *either(const char *upper, const char *lower)
{
    const char *value = getenv(upper);
    return value && value[0] ? value : getenv(lower);
}

int sw_proxy_from_environment(bool is_https, const char *host, uint16_t port,
                              struct sw_proxy *ret_proxy, struct sw_error *error)
{
    const char *name = is_https ? "HTTPS_PROXY" : "HTTP_PROXY";
    const char *url = is_https ? either(name, "https_proxy") : either(name, "http_proxy");
    *ret_proxy = (struct sw_proxy){0};
    if (!url || !url[0] || sw_proxy_is_bypassed(either("NO_PROXY", "no_proxy"), host, port)) {
        return 0;
    }
    /* "proxy:3128" is common, and means http. */
    SW_AUTO(char, sw_free) whole = strstr(url, "://") ? NULL : sw_asprintf("http://%s", url);
    int rc = sw_proxy_parse(whole ? whole : url, ret_proxy, error);
    if (rc) {
        sw_error_prefix(error, "%s in the environment", name);
    }
    return rc;
}
