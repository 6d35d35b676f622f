/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens of service accounts.
 */
#include "test.h"

#include <string.h>

#include "base/util.h"
#include "token.h"

TEST(who_it_is_and_how_long)
{
    static const char *const names[] = {"a", "ab", "slipway", "x-1.y"};

    for (size_t i = 0; i < SW_ARRAY_SIZE(names); i++) {
        SW_AUTO(char, sw_free) token = sw_sim_token_new("kube-system", names[i], 1000);
        SW_AUTO(char, sw_free)
        wanted = sw_asprintf("system:serviceaccount:kube-system:%s", names[i]);
        SW_AUTO(char, sw_free) subject = sw_sim_token_subject(token, 999);
        assert_non_null(subject);
        assert_string_equal(subject, wanted);
        assert_null(sw_sim_token_subject(token, 1000));
        assert_null(strpbrk(token, "+/="));
    }
}

TEST(what_is_no_token)
{
    static const char *const texts[] = {"",      ".",      "..",    "a.b",
                                        "a.b.c", "a.!!.c", "admin", "a.e30.c"};

    for (size_t i = 0; i < SW_ARRAY_SIZE(texts); i++)
        assert_null(sw_sim_token_subject(texts[i], 0));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("token", who_it_is_and_how_long),
        CASE("token", what_is_no_token),
    };

    return RUN(tests);
}
