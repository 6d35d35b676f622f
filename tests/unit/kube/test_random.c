/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder against jansson on random documents. A failure prints the seed of its document:
 *     SLIPWAY_SEED=0x... build/tests/unit/kube/test_kube_random
 */
#include "test.h"

#include <inttypes.h>
#include <time.h>

#include <slipway/apps.h>

#include "base/error.h"
#include "base/map.h"
#include "base/util.h"
#include "generate.h"
#include "kube/decode.h"
#include "oracle.h"
#include "widget.h"

enum { DOCUMENTS = 6000, MUTANTS = 15000 };

static uint64_t first_seed(void)
{
    const char *text = getenv("SLIPWAY_SEED");
    return text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL) << 20;
}

static bool has_given_seed(void)
{
    return getenv("SLIPWAY_SEED");
}

struct tally {
    int accepted, refused;
};

/* In memory of just the text's size, so that a sanitizer sees the byte too far. */
static void check(struct sw_decoder *decoder, const struct sw_kind *kind, const char *text,
                  size_t len, uint64_t seed, struct tally *tally)
{
    struct sw_object *object = NULL;
    struct sw_error error = {0};
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    int code = sw_decode_object(decoder, copy, len, NULL, &object, &error);
    assert_int_equal(code, object ? 0 : SW_E_SYNTAX);
    assert_int_equal(error.text[0] != 0, code != 0);
    const char *why = oracle_check(kind, copy, len, object);
    if (why) {
        fail_msg("SLIPWAY_SEED=0x%" PRIx64 ": %s\n%s\n%.*s", seed, why, error.text, (int)len, text);
    }
    tally->accepted += object != NULL;
    tally->refused += object == NULL;
    sw_object_free(decoder, object);
    free(copy);
}

static void run(const struct sw_kind *kind, bool is_mutated, int count, struct tally *tally)
{
    struct sw_intern *intern = sw_intern_new();
    struct sw_decoder *decoder = sw_decoder_new(kind, intern);
    uint64_t seed = first_seed();
    struct sw_buf buf;
    sw_buf_init(&buf, SIZE_MAX);
    for (int i = 0; i < (has_given_seed() ? 1 : count); i++, seed++) {
        struct chance chance = {seed};
        sw_buf_clear(&buf);
        generate_object(&chance, kind, &buf);
        for (unsigned n = is_mutated ? 1 + chance_below(&chance, 3) : 0; n > 0; n--) {
            static const char likely[] = "{}[]\",:\\\n0-eu \x80";
            buf.bytes[chance_below(&chance, (unsigned)buf.len)] =
                likely[chance_below(&chance, sizeof(likely))];
        }
        check(decoder, kind, buf.bytes, buf.len, seed, tally);
    }
    sw_buf_done(&buf);
    sw_decoder_free(decoder);
    sw_intern_free(intern); /* asserts that every reference came back */
}

TEST(agrees_with_jansson_on_widgets)
{
    struct tally tally = {0};
    run(&widget_kind, false, DOCUMENTS, &tally);
    if (!has_given_seed()) {
        assert_in_range(tally.accepted, DOCUMENTS / 4, DOCUMENTS); /* else it tests little */
        assert_in_range(tally.refused, DOCUMENTS / 50, DOCUMENTS);
    }
}

TEST(agrees_with_jansson_on_deployments)
{
    struct tally tally = {0};
    run(&sw_kind_deployment, false, DOCUMENTS, &tally);
    if (!has_given_seed()) {
        assert_in_range(tally.accepted, DOCUMENTS / 4, DOCUMENTS);
        assert_in_range(tally.refused, DOCUMENTS / 50, DOCUMENTS);
    }
}

TEST(agrees_with_jansson_on_damaged_documents)
{
    struct tally tally = {0};
    run(&widget_kind, true, MUTANTS, &tally);
    if (!has_given_seed()) {
        assert_in_range(tally.accepted, MUTANTS / 50, MUTANTS);
        assert_in_range(tally.refused, MUTANTS / 4, MUTANTS);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("decoder", agrees_with_jansson_on_widgets),
        CASE("decoder", agrees_with_jansson_on_deployments),
        CASE("decoder", agrees_with_jansson_on_damaged_documents),
    };
    return RUN(tests);
}
