/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keyed digest against what Python's hmac module says.
 */
#include "net/tls_digest.h"

#include "../test.h"

static const char *hex(const uint8_t digest[SW_DIGEST_BYTES])
{
    static char text[2 * SW_DIGEST_BYTES + 1];

    for (size_t i = 0; i < SW_DIGEST_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

/* hmac.new(bytes(range(32)), b"...", "sha256").hexdigest() */
TEST(is_what_another_implementation_says)
{
    uint8_t key[SW_DIGEST_BYTES], digest[SW_DIGEST_BYTES];

    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = (uint8_t)i;
    sw_digest(key, "", 0, digest);
    assert_string_equal(hex(digest),
                        "d38b42096d80f45f826b44a9d5607de72496a415d3f4a1a8c88e3bb9da8dc1cb");
    sw_digest(key, "a token", 7, digest);
    assert_string_equal(hex(digest),
                        "0de4b1f646da1cbca1c8a5e67087a130b32c3e95d1e54f1c03ada2a6e6e5698c");
}

TEST(differs_with_the_key)
{
    uint8_t key[SW_DIGEST_BYTES] = {0}, one[SW_DIGEST_BYTES], two[SW_DIGEST_BYTES];

    sw_digest(key, "a token", 7, one);
    key[31] = 1;
    sw_digest(key, "a token", 7, two);
    assert_memory_not_equal(one, two, sizeof(one));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("digest", is_what_another_implementation_says),
        CASE("digest", differs_with_the_key),
    };
    return RUN(tests);
}
