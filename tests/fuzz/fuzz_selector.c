/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selectors: any bytes are read, as JSON and as text, or refused with a reason; what was read is
 * the same selector after it was written and read again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <slipway/selector.h>

#include "base/util.h"
#include "fuzz.h"

static void check(struct sw_selector *selector)
{
    static const struct sw_label at[] = {{"a", "1"}, {"app", "web"}, {"b", ""}};
    static const struct sw_labels labels = {at, 3};
    static const struct sw_labels none = {NULL, 0};
    struct sw_selector *again = NULL;
    char why[256];
    char *text = sw_selector_text(selector);
    sw_assert(sw_selector_parse_text(text, &again, why, sizeof(why)) == 0);
    char *text_again = sw_selector_text(again);
    sw_assert(strcmp(text, text_again) == 0);
    sw_assert(sw_selector_matches(selector, &labels) == sw_selector_matches(again, &labels));
    sw_assert(sw_selector_matches(selector, &none) == sw_selector_matches(again, &none));
    sw_selector_free(again);
    sw_selector_free(selector);
    free(text_again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct sw_selector *selector = NULL;
    char why[256] = "";
    int code = sw_selector_parse((const char *)bytes, len, &selector, why, sizeof(why));
    sw_assert(code == 0 || (code == -EINVAL && !selector && why[0]));
    if (code == 0) {
        check(selector);
    }
    char *text = sw_strndup((const char *)bytes, len);
    selector = NULL;
    why[0] = 0;
    code = sw_selector_parse_text(text, &selector, why, sizeof(why));
    sw_assert(code == 0 || (code == -EINVAL && !selector && why[0]));
    if (code == 0) {
        check(selector);
    }
    sw_free(text);
    return 0;
}
