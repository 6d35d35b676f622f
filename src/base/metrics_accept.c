/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which exposition a scraper wants: the Accept header, RFC 9110 section 12.5.1. Of the ranges that
 * match a format the most specific one gives its quality; the format with the higher quality wins.
 * Where both are equally welcome, OpenMetrics has to have been asked for by name.
 */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/metrics.h"
#include "base/util.h"

struct offer {
    const char *type;
    const char *subtype;
    const char *version;
};

static const struct offer offers[] = {
    [SW_METRICS_TEXT] = {"text", "plain", "0.0.4"},
    [SW_METRICS_OPENMETRICS] = {"application", "openmetrics-text", "1.0.0"},
};

struct span {
    const char *at;
    size_t len;
};

enum { NO_MATCH = -1, ANY, ANY_SUBTYPE, BY_NAME, BY_VERSION };

static struct span trim(struct span s)
{
    while (s.len > 0 && (*s.at == ' ' || *s.at == '\t')) {
        s.at++;
        s.len--;
    }
    while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t')) {
        s.len--;
    }
    return s;
}

/* What stands before the next separator outside quotes; *rest goes behind it. */
static struct span cut(struct span *rest, char separator)
{
    bool is_quoted = false;
    size_t i = 0;
    for (; i < rest->len && (is_quoted || rest->at[i] != separator); i++) {
        if (is_quoted && rest->at[i] == '\\' && i + 1 < rest->len) {
            i++;
        } else if (rest->at[i] == '"') {
            is_quoted = !is_quoted;
        }
    }
    struct span head = {rest->at, i};
    size_t taken = i < rest->len ? i + 1 : i;
    rest->at += taken;
    rest->len -= taken;
    return trim(head);
}

static bool is_text(struct span s, const char *text)
{
    return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

static struct span unquoted(struct span s)
{
    if (s.len >= 2 && s.at[0] == '"' && s.at[s.len - 1] == '"') {
        return (struct span){s.at + 1, s.len - 2};
    }
    return s;
}

/* Thousandths; what is not a number from 0 to 1 is 0, so that a broken range asks for nothing. */
static int parse_quality(struct span s)
{
    if (s.len == 0 || s.len > 5 || (s.at[0] != '0' && s.at[0] != '1') ||
        (s.len > 1 && s.at[1] != '.')) {
        return 0;
    }
    int quality = (s.at[0] - '0') * 1000;
    int unit = 100;
    for (size_t i = 2; i < s.len; i++, unit /= 10) {
        if (s.at[i] < '0' || s.at[i] > '9') {
            return 0;
        }
        quality += (s.at[i] - '0') * unit;
    }
    return quality <= 1000 ? quality : 0;
}

/* How specifically the range names the offer. */
static int match(struct span range, const struct offer *offer, int *ret_quality)
{
    struct span subtype = cut(&range, ';');
    struct span type = cut(&subtype, '/');
    int specific = NO_MATCH;
    if (is_text(type, "*") && is_text(subtype, "*")) {
        specific = ANY;
    } else if (is_text(type, offer->type)) {
        specific = is_text(subtype, "*")              ? ANY_SUBTYPE
                   : is_text(subtype, offer->subtype) ? BY_NAME
                                                      : NO_MATCH;
    }
    *ret_quality = 1000;
    while (range.len > 0) {
        struct span value = cut(&range, ';');
        struct span name = cut(&value, '=');
        value = unquoted(trim(value));
        if (is_text(name, "q")) {
            *ret_quality = parse_quality(value);
        } else if (is_text(name, "version") && specific == BY_NAME) {
            specific = is_text(value, offer->version) ? BY_VERSION : NO_MATCH;
        }
    }
    return specific;
}

static int quality_of(const char *accept, const struct offer *offer, int *ret_specific)
{
    struct span rest = {accept, strlen(accept)};
    int best = NO_MATCH;
    int quality = 0;
    while (rest.len > 0) {
        int q;
        int specific = match(cut(&rest, ','), offer, &q);
        if (specific > best || (specific == best && q > quality)) {
            best = specific;
            quality = q;
        }
    }
    *ret_specific = best;
    return best == NO_MATCH ? 0 : quality;
}

enum sw_metrics_format sw_metrics_negotiate(const char *accept)
{
    if (!accept) {
        return SW_METRICS_TEXT;
    }
    int specific;
    int text = quality_of(accept, &offers[SW_METRICS_TEXT], &specific);
    int open = quality_of(accept, &offers[SW_METRICS_OPENMETRICS], &specific);
    if (open > text || (open == text && open > 0 && specific >= BY_NAME)) {
        return SW_METRICS_OPENMETRICS;
    }
    return SW_METRICS_TEXT;
}
