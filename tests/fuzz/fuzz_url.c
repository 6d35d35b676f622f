/* SPDX-License-Identifier: Apache-2.0 */
/*
 * URLs of requests, as people write them and as servers redirect to them: the first line is a URL,
 * the second a reference to follow from there.
 */
#include "fuzz.h"

#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "net/http_client.h"
#include "net/url_request.h"

static bool has_dots(const char *target)
{
    size_t len = strcspn(target, "?");
    for (size_t at = 0, end; at < len; at = end) {
        end = at + 1 + strcspn(target + at + 1, "/?");
        size_t size = end - at - 1;
        if ((size == 1 && target[at + 1] == '.') ||
            (size == 2 && memcmp(target + at + 1, "..", 2) == 0)) {
            return true;
        }
    }
    return false;
}

/* What was taken can be sent, and its text leads to the same place. */
static void check(const struct sw_url_request *url)
{
    const struct sw_http_request request = {.method = "GET", .target = url->target};
    struct sw_url_request again;
    struct sw_buf text;

    sw_assert(url->origin.host[0] && url->origin.port && !url->origin.path);
    sw_assert(sw_http_is_sendable(&request));
    sw_assert(!has_dots(url->target));
    sw_buf_init(&text, SIZE_MAX);
    sw_assert(sw_url_request_text(url, &text) == 0);
    sw_assert(!strchr(text.bytes, '?'));
    sw_assert(sw_url_request_parse(text.bytes, &again, NULL) == 0);
    sw_assert(sw_url_is_same_origin(&url->origin, &again.origin));
    sw_assert(strlen(again.target) == strcspn(url->target, "?"));
    sw_assert(strncmp(again.target, url->target, strlen(again.target)) == 0);
    sw_assert(!again.username && !again.password);
    sw_url_request_done(&again);
    sw_buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    SW_AUTO(char, sw_free) text = sw_strndup((const char *)bytes, len);
    char *reference = strchr(text, '\n');
    struct sw_url_request base, next;
    struct sw_error error = {0};

    if (reference) {
        *reference++ = '\0';
    }
    if (sw_url_request_parse(text, &base, &error)) {
        sw_assert(error.code == SW_E_SYNTAX && error.text[0]);
        return 0;
    }
    check(&base);
    if (reference && sw_url_request_follow(&base, reference, &next, &error)) {
        sw_assert(error.code == SW_E_SYNTAX && error.text[0]);
    } else if (reference) {
        check(&next);
        sw_assert(!next.username && !next.password);
        sw_url_request_done(&next);
    }
    sw_url_request_done(&base);
    return 0;
}
