/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding out who we are: from the token, or by asking the API server.
 */
#include "runtime/identity.h"

#include <errno.h>

#include "base/error.h"
#include "base/metrics.h"
#include "kube/client.h"
#include "kube/credentials.h"

#include "../kube/fake_transport.h"
#include "../test.h"

struct who {
    struct sw_loop *loop;
    struct fake_transport *transport;
    struct sw_metrics *metrics;
    struct fake_log log;
    struct sw_client *client;
    struct sw_credentials *credentials;
    struct sw_identity *identity;
    char told[256]; /* "name;" for each time */
};

static void on_username(void *arg, const char *username)
{
    struct who *w = arg;

    strcat(strcat(w->told, username), ";");
}

static struct who *begin(const char *user)
{
    struct who *w = calloc(1, sizeof(*w));
    struct sw_error error = {0};
    char kubeconfig[2048];

    w->loop = sw_loop_virtual_new(0, 1);
    w->transport = fake_transport_new(w->loop);
    w->metrics = sw_metrics_new();
    fake_log_init(&w->log, w->loop);
    w->client = sw_client_new(w->loop, &w->transport->base, &(struct sw_client_options){0},
                              w->metrics, &w->log.log);
    snprintf(kubeconfig, sizeof(kubeconfig),
             "{current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}], "
             "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:1'}}], "
             "users: [{name: u, user: %s}]}",
             user);
    if (sw_credentials_parse(w->loop, "test", kubeconfig, strlen(kubeconfig), "/", &w->log.log,
                             &w->credentials, &error))
        fail_msg("%s", error.text);
    w->identity = sw_identity_open(w->loop, w->client, w->credentials, &w->log.log, on_username, w);
    assert_string_equal(w->told, "");
    sw_loop_virtual_advance(w->loop, 0);
    return w;
}

static void end(struct who *w)
{
    sw_identity_close(w->identity);
    sw_credentials_close(w->credentials);
    sw_client_free(w->client);
    sw_loop_virtual_advance(w->loop, 0);
    fake_transport_free(w->transport);
    sw_metrics_free(w->metrics);
    fake_log_done(&w->log);
    assert_int_equal(sw_loop_close(w->loop), 0);
    free(w);
}

static void answer(struct who *w, const char *path, int status, const char *body)
{
    fake_answer(fake_the(w->transport, path), status, NULL, body);
}

#define NOT_FOUND "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\",\"message\":\"\"}"

/* {"sub":"system:serviceaccount:kube-system:slipway"} */
#define JWT                        \
    "{token: eyJhbGciOiJub25lIn0." \
    "eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6a3ViZS1zeXN0ZW06c2xpcHdheSJ9.c2ln}"

TEST(reads_the_subject_of_the_token)
{
    struct who *w = begin(JWT);

    assert_string_equal(w->told, "system:serviceaccount:kube-system:slipway;");
    assert_int_equal(w->transport->count, 0);
    end(w);
}

TEST(asks_the_api_server_where_the_token_says_nothing)
{
    struct who *w = begin("{token: opaque}");
    struct fake_request *r = fake_the(w->transport, "/authentication.k8s.io/v1/selfsubjectreviews");

    assert_string_equal(r->method, "POST");
    assert_string_equal(r->body, "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":"
                                 "\"SelfSubjectReview\"}");
    answer(w, "/v1/selfsubjectreviews", 201, "{\"status\":{\"userInfo\":{\"username\":\"mia\"}}}");
    assert_string_equal(w->told, "mia;");
    end(w);
}

TEST(asks_older_servers_about_its_own_token)
{
    struct who *w = begin("{token: opaque}");

    answer(w, "/v1/selfsubjectreviews", 404, NOT_FOUND);
    answer(w, "/v1beta1/selfsubjectreviews", 404, NOT_FOUND);
    answer(w, "/v1alpha1/selfsubjectreviews", 404, NOT_FOUND);
    struct fake_request *r = fake_the(w->transport, "/v1/tokenreviews");
    assert_non_null(strstr(r->body, "\"spec\":{\"token\":\"opaque\"}"));
    answer(w, "/v1/tokenreviews", 201,
           "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"admin\"}}}");
    assert_string_equal(w->told, "admin;");
    assert_false(fake_log_has(&w->log, "opaque"));
    end(w);
}

TEST(settles_for_nothing_where_nobody_says)
{
    struct who *w = begin("{}");

    answer(w, "/v1/selfsubjectreviews", 404, NOT_FOUND);
    answer(w, "/v1beta1/selfsubjectreviews", 403, NOT_FOUND);
    answer(w, "/v1alpha1/selfsubjectreviews", 200, "<html>");
    assert_string_equal(w->told, ";");
    assert_true(fake_log_has(&w->log, "does not say who we are"));
    end(w);
}

TEST(asks_again_until_there_is_an_answer)
{
    struct who *w = begin("{}");

    fake_break(fake_the(w->transport, "/v1/selfsubjectreviews"), -ECONNREFUSED);
    assert_string_equal(w->told, "");
    sw_loop_virtual_advance(w->loop, 2000);
    answer(w, "/v1/selfsubjectreviews", 500, "");
    assert_string_equal(w->told, "");
    sw_loop_virtual_advance(w->loop, 2000);
    answer(w, "/v1/selfsubjectreviews", 201, "{\"status\":{\"userInfo\":{\"username\":\"mia\"}}}");
    assert_string_equal(w->told, "mia;");
    end(w);
}

/* With a token file that is replaced, and replaced again while the question is under way. */
TEST(asks_anew_with_new_credentials_and_tells_if_the_name_differs)
{
    char *folder = test_folder_new();
    char user[300], path[256];

    snprintf(path, sizeof(path), "%s/token", folder);
    snprintf(user, sizeof(user), "{tokenFile: %s}", path);
    test_write_file(path, "first", 5);
    struct who *w = begin(user);
    answer(w, "/v1/selfsubjectreviews", 201, "{\"status\":{\"userInfo\":{\"username\":\"mia\"}}}");
    for (int i = 0; i < 2; i++) {
        test_write_file(path, i == 0 ? "second" : "fourth", 6);
        assert_true(sw_credentials_reload(w->credentials));
        sw_loop_virtual_advance(w->loop, 0);
        test_write_file(path, i == 0 ? "third" : "fifth", 5);
        assert_true(sw_credentials_reload(w->credentials));
        sw_loop_virtual_advance(w->loop, 0);
        answer(w, "/v1/selfsubjectreviews", 201,
               i == 0 ? "{\"status\":{\"userInfo\":{\"username\":\"mia\"}}}"
                      : "{\"status\":{\"userInfo\":{\"username\":\"max\"}}}");
    }
    assert_string_equal(w->told, "mia;max;");
    test_write_file(path, "sixth", 5);
    assert_true(sw_credentials_reload(w->credentials));
    sw_loop_virtual_advance(w->loop, 0);
    end(w); /* with a question under way */
    test_folder_done(folder);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("identity", reads_the_subject_of_the_token),
        CASE("identity", asks_the_api_server_where_the_token_says_nothing),
        CASE("identity", asks_older_servers_about_its_own_token),
        CASE("identity", settles_for_nothing_where_nobody_says),
        CASE("identity", asks_again_until_there_is_an_answer),
        CASE("identity", asks_anew_with_new_credentials_and_tells_if_the_name_differs),
    };
    return RUN(tests);
}
