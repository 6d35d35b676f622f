/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in tests: written with single quotes, compared as text with sorted names. */
#ifndef TESTS_UNIT_SIM_DOCUMENTS_H
#define TESTS_UNIT_SIM_DOCUMENTS_H

#include <jansson.h>

#include "kind.h"
#include "test.h"

static inline __attribute__((unused)) json_t *document(const char *text)
{
    char *quoted = strdup(text);
    for (char *c = quoted; *c; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    json_error_t error;
    json_t *made = json_loads(quoted, JSON_DECODE_ANY, &error);
    if (!made) {
        fail_msg("%s in %s", error.text, quoted);
    }
    free(quoted);
    return made;
}

static inline __attribute__((unused)) void assert_json(const json_t *got, const char *wanted)
{
    json_t *want = document(wanted);
    char *got_text = json_dumps(got, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
    char *want_text = json_dumps(want, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY);
    assert_non_null(got_text);
    assert_string_equal(got_text, want_text);
    free(got_text);
    free(want_text);
    json_decref(want);
}

static inline __attribute__((unused)) const struct sw_sim_kind *kind_of(const char *group,
                                                                        const char *name)
{
    size_t count;
    const struct sw_sim_kind *kinds = sw_sim_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(kinds[i].group, group) == 0 && strcmp(kinds[i].kind, name) == 0) {
            return &kinds[i];
        }
    }
    fail_msg("no kind %s in group %s", name, group);
    abort(); /* not reached; the compiler does not know */
}

#endif
