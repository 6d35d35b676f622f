/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names in certificates. The bytes come from whoever answered, before anything about him is known,
 * so every length is checked against what contains it, and what is printed is made printable.
 */
#include "net/tls_name.h"

#include <errno.h>
#include <string.h>

#include <arpa/inet.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

enum {
    TAG_BOOLEAN = 0x01,
    TAG_OCTET_STRING = 0x04,
    TAG_OID = 0x06,
    TAG_SEQUENCE = 0x30,
    TAG_DNS_NAME = 0x82,   /* [2] IA5String */
    TAG_IP_ADDRESS = 0x87, /* [7] OCTET STRING */
};

/* ---- DER ---- */

struct der {
    unsigned tag;
    const unsigned char *bytes;
    size_t len;
};

/* Takes one element from *at. Tags of more than one byte and lengths over 2^32 do not occur in
 * certificates and count as broken, as does the indefinite length, which DER forbids. */
static int take(const unsigned char **at, const unsigned char *end, struct der *ret_element)
{
    size_t left = (size_t)(end - *at);
    if (left < 2 || ((*at)[0] & 0x1f) == 0x1f) {
        return SW_E_SYNTAX;
    }
    unsigned tag = (*at)[0];
    size_t len = (*at)[1];
    size_t head = 2;
    if (len & 0x80) {
        size_t count = len & 0x7f;
        if (count == 0 || count > 4 || count > left - head) {
            return SW_E_SYNTAX;
        }
        len = 0;
        for (size_t i = 0; i < count; i++) {
            len = len << 8 | (*at)[head++];
        }
    }
    if (len > left - head) {
        return SW_E_SYNTAX;
    }
    *ret_element = (struct der){.tag = tag, .bytes = *at + head, .len = len};
    *at += head + len;
    return 0;
}

static int take_tag(const unsigned char **at, const unsigned char *end, unsigned tag,
                    struct der *ret_element)
{
    struct der element;
    int rc = take(at, end, &element);
    if (!rc && element.tag != tag) {
        rc = SW_E_SYNTAX;
    }
    if (!rc) {
        *ret_element = element;
    }
    return rc;
}

/* Extension ::= SEQUENCE { extnID OID, critical BOOLEAN DEFAULT FALSE, extnValue OCTET STRING } */
static int take_extension(const unsigned char **at, const unsigned char *end, struct der *ret_oid,
                          struct der *ret_value)
{
    struct der extension;
    int rc = take_tag(at, end, TAG_SEQUENCE, &extension);
    if (rc) {
        return rc;
    }
    const unsigned char *in = extension.bytes;
    const unsigned char *in_end = in + extension.len;
    rc = take_tag(&in, in_end, TAG_OID, ret_oid);
    if (!rc && in < in_end && *in == TAG_BOOLEAN) {
        struct der critical;
        rc = take(&in, in_end, &critical);
    }
    if (!rc) {
        rc = take_tag(&in, in_end, TAG_OCTET_STRING, ret_value);
    }
    return rc;
}

/* GeneralNames ::= SEQUENCE OF GeneralName, in the octets of the extension. */
static int open_names(const struct der *value, struct sw_san_iter *ret_iter)
{
    const unsigned char *at = value->bytes;
    struct der names;
    int rc = take_tag(&at, value->bytes + value->len, TAG_SEQUENCE, &names);
    if (rc) {
        return rc;
    }
    /* All of it is looked at once, so that the walk cannot meet anything broken. */
    for (const unsigned char *name = names.bytes; name < names.bytes + names.len;) {
        struct der element;
        rc = take(&name, names.bytes + names.len, &element);
        if (rc) {
            return rc;
        }
    }
    *ret_iter = (struct sw_san_iter){.at = names.bytes, .end = names.bytes + names.len};
    return 0;
}

int sw_san_find(const unsigned char *extensions, size_t len, struct sw_san_iter *ret_iter)
{
    static const unsigned char oid_san[] = {0x55, 0x1d, 0x11}; /* 2.5.29.17 */
    if (len == 0) {
        return -ENOENT;
    }
    const unsigned char *at = extensions;
    struct der list;
    int rc = take_tag(&at, extensions + len, TAG_SEQUENCE, &list);
    if (rc) {
        return rc;
    }
    at = list.bytes;
    while (at < list.bytes + list.len) {
        struct der oid, value;
        rc = take_extension(&at, list.bytes + list.len, &oid, &value);
        if (rc) {
            return rc;
        }
        if (oid.len == sizeof(oid_san) && memcmp(oid.bytes, oid_san, sizeof(oid_san)) == 0) {
            return open_names(&value, ret_iter);
        }
    }
    return -ENOENT;
}

bool sw_san_next(struct sw_san_iter *iter, struct sw_san *ret_san)
{
    struct der element;
    while (iter->at < iter->end && take(&iter->at, iter->end, &element) == 0) {
        if (element.tag == TAG_DNS_NAME || element.tag == TAG_IP_ADDRESS) {
            ret_san->kind = element.tag == TAG_DNS_NAME ? SW_SAN_DNS : SW_SAN_IP;
            ret_san->bytes = element.bytes;
            ret_san->len = element.len;
            return true;
        }
    }
    return false;
}

/* ---- comparing ---- */

/* An address as octets; 0 where it is none. */
static size_t ip_octets(const char *host, unsigned char octets[16])
{
    if (inet_pton(AF_INET, host, octets) == 1) {
        return 4;
    }
    return inet_pton(AF_INET6, host, octets) == 1 ? 16 : 0;
}

static unsigned char lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + ('a' - 'A')) : c;
}

static bool is_equal(const unsigned char *a, const char *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (lower(a[i]) != lower((unsigned char)b[i])) {
            return false;
        }
    }
    return true;
}

static bool dns_matches(const unsigned char *pattern, size_t pattern_len, const char *host,
                        size_t host_len)
{
    if (pattern_len > 2 && pattern[0] == '*' && pattern[1] == '.') {
        const char *dot = memchr(host, '.', host_len);
        if (!dot || dot == host) {
            return false;
        }
        host_len -= (size_t)(dot - host);
        host = dot;
        pattern++;
        pattern_len--;
    }
    return pattern_len == host_len && is_equal(pattern, host, host_len);
}

bool sw_san_matches(const struct sw_san *san, const char *host)
{
    unsigned char octets[16];
    size_t octets_len = ip_octets(host, octets);
    if (san->kind == SW_SAN_IP) {
        return octets_len > 0 && octets_len == san->len &&
               memcmp(octets, san->bytes, san->len) == 0;
    }
    size_t len = strlen(host);
    if (len > 0 && host[len - 1] == '.') {
        len--; /* of a fully qualified name; certificates leave it out */
    }
    return octets_len == 0 && len > 0 && dns_matches(san->bytes, san->len, host, len);
}

/* ---- saying what it is for ---- */

static void print_name(const struct sw_san *san, struct sw_buf *out)
{
    char text[INET6_ADDRSTRLEN];
    if (san->kind == SW_SAN_IP) {
        bool is_address = (san->len == 4 && inet_ntop(AF_INET, san->bytes, text, sizeof(text))) ||
                          (san->len == 16 && inet_ntop(AF_INET6, san->bytes, text, sizeof(text)));
        sw_buf_puts(out, is_address ? text : "(a broken address)");
        return;
    }
    for (size_t i = 0; i < SW_MIN(san->len, (size_t)64); i++) {
        unsigned char c = san->bytes[i];
        sw_buf_printf(out, "%c", c > ' ' && c < 0x7f ? c : '?');
    }
    if (san->len > 64) {
        sw_buf_puts(out, "...");
    }
}

/* "kubernetes, kubernetes.default, 10.96.0.1 and 3 more" */
static void print_names(struct sw_san_iter iter, struct sw_buf *out)
{
    enum { SHOWN = 6 };
    struct sw_san san;
    size_t count = 0;
    while (sw_san_next(&iter, &san)) {
        if (count++ < SHOWN) {
            sw_buf_puts(out, count > 1 ? ", " : "");
            print_name(&san, out);
        }
    }
    if (count > SHOWN) {
        sw_buf_printf(out, " and %zu more", count - SHOWN);
    }
    if (count == 0) {
        sw_buf_puts(out, "no DNS name and no address");
    }
}

int sw_tls_name_check(const unsigned char *extensions, size_t len, const char *host,
                      struct sw_error *error)
{
    struct sw_san_iter iter;
    int rc = sw_san_find(extensions, len, &iter);
    if (rc == -ENOENT) {
        return sw_error_set(error, SW_E_CERTIFICATE,
                            "certificate has no subject alternative name, so it is not for %s (the "
                            "common name does not count)",
                            host);
    }
    if (rc) {
        return sw_error_set(error, SW_E_CERTIFICATE, "certificate has malformed extensions");
    }
    struct sw_san_iter walk = iter;
    struct sw_san san;
    while (sw_san_next(&walk, &san)) {
        if (sw_san_matches(&san, host)) {
            return 0;
        }
    }
    struct sw_buf names;
    sw_buf_init(&names, SIZE_MAX);
    print_names(iter, &names);
    rc = sw_error_set(error, SW_E_CERTIFICATE, "certificate is for %s; not for %s", names.bytes,
                      host);
    sw_buf_done(&names);
    return rc;
}
