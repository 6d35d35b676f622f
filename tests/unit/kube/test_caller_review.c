/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about callers, and what is read from the answers of a real API server (1.20).
 */
#include "kube/caller_review.h"

#include <errno.h>

#include <slipway/arena.h>
#include <slipway/json.h>

#include "base/buf.h"

#include "../test.h"

TEST(takes_for_a_token_what_may_stand_in_the_field)
{
    static const char *const tokens[] = {"a", "eyJh.eyJz-_.sig", "A1~+/=="};
    static const char *const others[] = {"",    "=",   "a b",      " ",  "a\"b",
                                         "a\\", "a=b", "\xc3\xa4", "a,b"};

    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++)
        assert_true(sw_is_bearer_token(tokens[i]));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(sw_is_bearer_token(others[i]));
}

TEST(asks_whose_a_token_is)
{
    struct sw_buf out;

    sw_buf_init(&out, 200);
    assert_int_equal(sw_token_review_put(&out, "a.b-c"), 0);
    assert_string_equal(out.bytes,
                        "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
                        "\"spec\":{\"token\":\"a.b-c\"}}");
    sw_buf_done(&out);
    sw_buf_init(&out, 50);
    assert_int_equal(sw_token_review_put(&out, "a.b-c"), -ENOBUFS);
    sw_buf_done(&out);
}

static const char known[] =
    "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\",\"metadata\":{"
    "\"creationTimestamp\":null},\"spec\":{\"token\":\"t\"},\"status\":{\"authenticated\":true,"
    "\"user\":{\"username\":\"system:serviceaccount:monitoring:prometheus\",\"uid\":\"1-2\","
    "\"groups\":[\"system:serviceaccounts\",\"system:authenticated\"],\"extra\":{"
    "\"authentication.kubernetes.io/pod-name\":[\"prometheus-0\"]}},"
    "\"audiences\":[\"https://kubernetes.default.svc\"]}}";

static int read_user(struct sw_arena *arena, const char *text, const struct sw_json **user)
{
    return sw_token_review_read(arena, text, strlen(text), user);
}

TEST(reads_whose_it_is)
{
    struct sw_arena *arena = sw_arena_new(0);
    const struct sw_json *user;

    assert_int_equal(read_user(arena, known, &user), 0);
    assert_string_equal(sw_json_get_string(user, "username"),
                        "system:serviceaccount:monitoring:prometheus");
    static const char *const of_nobody[] = {
        "{\"kind\":\"TokenReview\",\"status\":{\"user\":{},\"error\":\"invalid bearer token\"}}",
        "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":false,\"user\":{\"username\":"
        "\"a\"}}}",
        "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,\"user\":{\"username\":\"\"}}"
        "}",
        "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true}}",
    };
    for (size_t i = 0; i < sizeof(of_nobody) / sizeof(of_nobody[0]); i++) {
        assert_int_equal(read_user(arena, of_nobody[i], &user), 0);
        assert_null(user);
    }
    static const char *const others[] = {
        "", "[]", "{\"kind\":\"Status\",\"status\":\"Failure\"}", "{\"kind\":\"TokenReview\"}",
        "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"a\"}}}"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(read_user(arena, others[i], &user), -EINVAL);
    sw_arena_free(arena);
}

TEST(asks_what_he_may_with_all_that_is_known_of_him)
{
    struct sw_arena *arena = sw_arena_new(0);
    const struct sw_json *user;
    size_t len;

    assert_int_equal(read_user(arena, known, &user), 0);
    const char *text = sw_access_review_text(arena, user, "/metrics", "get", &len);
    assert_string_equal(
        text, "{\"spec\":{\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":\"get\"},"
              "\"user\":\"system:serviceaccount:monitoring:prometheus\",\"uid\":\"1-2\",\"groups\":"
              "[\"system:serviceaccounts\",\"system:authenticated\"],\"extra\":{"
              "\"authentication.kubernetes.io/pod-name\":[\"prometheus-0\"]}},"
              "\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\"}");
    assert_int_equal(len, strlen(text));
    assert_int_equal(read_user(arena,
                               "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true,"
                               "\"user\":{\"username\":\"mia\"}}}",
                               &user),
                     0);
    text = sw_access_review_text(arena, user, "/metrics", "get", &len);
    assert_non_null(strstr(text, "\"user\":\"mia\",\"groups\":[]}"));
    sw_arena_free(arena);
}

static void expect_allowed(const char *status, bool is_allowed)
{
    struct sw_arena *arena = sw_arena_new(0);
    const char *text = sw_arena_printf(
        arena, "{\"kind\":\"SubjectAccessReview\",\"spec\":{},\"status\":%s}", status);
    bool found = !is_allowed;

    assert_int_equal(sw_access_review_read(arena, text, strlen(text), &found), 0);
    assert_int_equal(found, is_allowed);
    sw_arena_free(arena);
}

TEST(reads_what_he_may)
{
    struct sw_arena *arena = sw_arena_new(0);
    bool is_allowed;

    expect_allowed("{\"allowed\":true,\"reason\":\"RBAC: allowed by ...\"}", true);
    expect_allowed("{\"allowed\":false}", false);
    expect_allowed("{\"allowed\":true,\"denied\":true}", false);
    expect_allowed("{}", false);
    expect_allowed("{\"allowed\":\"true\"}", false);
    assert_int_equal(
        sw_access_review_read(arena, "{\"status\":{\"allowed\":true}}", 27, &is_allowed), -EINVAL);
    sw_arena_free(arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("caller_review", takes_for_a_token_what_may_stand_in_the_field),
        CASE("caller_review", asks_whose_a_token_is),
        CASE("caller_review", reads_whose_it_is),
        CASE("caller_review", asks_what_he_may_with_all_that_is_known_of_him),
        CASE("caller_review", reads_what_he_may),
    };
    return RUN(tests);
}
