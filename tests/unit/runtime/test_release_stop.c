/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping slipway before everything is let go of: in which order, what is waited for, and when the
 * rest must not be begun.
 */
#include "runtime/release_stop.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/metrics.h"
#include "kube/client.h"

#include "../kube/fake_transport.h"
#include "../test.h"

#define FORBIDDEN \
    "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"you may not\"}"
#define NOT_FOUND "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\",\"message\":\"\"}"
#define OWN                                                                                   \
    "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\"metadata\":{\"name\":\"slipway\"," \
    "\"namespace\":\"kube-system\",\"uid\":\"u\",\"resourceVersion\":\"7\"},\"spec\":{"       \
    "\"selector\":{\"matchLabels\":{\"app.kubernetes.io/name\":\"slipway\",\"a\":\"b\"}}}}"
#define PODS(items) \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[" items "]}"

struct stopper {
    struct sw_loop *loop;
    struct fake_transport *transport;
    struct sw_metrics *metrics;
    struct fake_log log;
    struct sw_client *client;
    struct sw_buf out;
    struct sw_release_stop_options options;
    unsigned done;
    char why[512];
};

static void on_done(void *arg, const struct sw_error *error)
{
    struct stopper *s = arg;

    s->done++;
    if (error)
        snprintf(s->why, sizeof(s->why), "%s", error->text);
}

static struct stopper *begin(const char *webhook_configuration)
{
    struct stopper *s = calloc(1, sizeof(*s));

    s->loop = sw_loop_virtual_new(0, 1);
    s->transport = fake_transport_new(s->loop);
    s->metrics = sw_metrics_new();
    fake_log_init(&s->log, s->loop);
    s->client = sw_client_new(s->loop, &s->transport->base, &(struct sw_client_options){0},
                              s->metrics, &s->log.log);
    sw_buf_init(&s->out, SIZE_MAX);
    s->options = (struct sw_release_stop_options){.namespace_ = "kube-system",
                                                  .deployment = "slipway",
                                                  .webhook_configuration = webhook_configuration};
    sw_release_stop(s->loop, s->client, &s->options, &s->out, on_done, s);
    assert_int_equal(s->done, 0);
    sw_loop_virtual_advance(s->loop, 0);
    return s;
}

static void end(struct stopper *s)
{
    assert_int_equal(s->done, 1);
    assert_int_equal(fake_open_count(s->transport), 0);
    sw_client_free(s->client);
    fake_transport_free(s->transport);
    sw_metrics_free(s->metrics);
    fake_log_done(&s->log);
    sw_buf_done(&s->out);
    assert_int_equal(sw_loop_close(s->loop), 0);
    free(s);
}

static struct fake_request *the_pods(struct stopper *s)
{
    return fake_the(s->transport, "/api/v1/namespaces/kube-system/pods?limit=1&labelSelector="
                                  "a%3Db%2Capp.kubernetes.io%2Fname%3Dslipway");
}

TEST(deletes_the_webhook_configuration_then_scales_to_0_then_waits_for_the_pods)
{
    struct stopper *s = begin("slipway");
    struct fake_request *webhook = fake_the(s->transport, "/mutatingwebhookconfigurations/slipway");

    assert_string_equal(webhook->method, "DELETE");
    fake_answer(webhook, 200, NULL, "{\"kind\":\"Status\",\"status\":\"Success\"}");
    /* It would stop the writes that follow, with nobody behind it. */
    webhook = fake_the(s->transport, "/validatingwebhookconfigurations/slipway");
    assert_string_equal(webhook->method, "DELETE");
    fake_answer(webhook, 200, NULL, "{\"kind\":\"Status\",\"status\":\"Success\"}");
    struct fake_request *scale =
        fake_the(s->transport, "/apis/apps/v1/namespaces/kube-system/deployments/slipway");
    assert_string_equal(scale->method, "PATCH");
    assert_string_equal(scale->body, "{\"spec\":{\"replicas\":0}}");
    fake_answer(scale, 200, NULL, OWN);
    fake_answer(the_pods(s), 200, NULL, PODS("{\"metadata\":{\"name\":\"slipway-1\"}}"));
    assert_int_equal(s->done, 0);
    sw_loop_virtual_advance(s->loop, 1000);
    fake_answer(the_pods(s), 200, NULL, PODS(""));
    assert_string_equal(s->out.bytes, "webhook configuration slipway: deleted\n"
                                      "validating webhook configuration slipway: deleted\n"
                                      "Deployment kube-system/slipway: scaled to 0, its Pods are "
                                      "gone\n");
    assert_string_equal(s->why, "");
    end(s);
}

TEST(what_is_not_there_need_not_be_stopped)
{
    struct stopper *s = begin("slipway");

    fake_answer(fake_the(s->transport, "/mutatingwebhookconfigurations/slipway"), 404, NULL,
                NOT_FOUND);
    fake_answer(fake_the(s->transport, "/validatingwebhookconfigurations/slipway"), 404, NULL,
                NOT_FOUND);
    fake_answer(fake_the(s->transport, "/deployments/slipway"), 404, NULL, NOT_FOUND);
    assert_string_equal(s->why, "");
    assert_non_null(strstr(s->out.bytes, "Deployment kube-system/slipway: not there"));
    end(s);
}

TEST(goes_on_without_a_pod_that_does_not_end)
{
    struct stopper *s = begin(NULL);

    fake_answer(fake_the(s->transport, "/deployments/slipway"), 200, NULL, OWN);
    for (int i = 0; i < 60; i++) {
        fake_answer(the_pods(s), 200, NULL, PODS("{}"));
        assert_int_equal(s->done, 0);
        sw_loop_virtual_advance(s->loop, 1000);
    }
    fake_answer(the_pods(s), 200, NULL, PODS("{}"));
    assert_string_equal(s->why, "");
    assert_non_null(strstr(s->out.bytes, "but a Pod of it does not end"));
    end(s);
}

TEST(who_may_not_stop_it_releases_nothing)
{
    struct stopper *s = begin("slipway");

    fake_answer(fake_the(s->transport, "/mutatingwebhookconfigurations/slipway"), 403, NULL,
                FORBIDDEN);
    assert_string_equal(s->why, "webhook configuration cannot be deleted: 403 you may not; nothing "
                                "was released");
    end(s);
    s = begin(NULL);
    fake_answer(fake_the(s->transport, "/deployments/slipway"), 403, NULL, FORBIDDEN);
    assert_string_equal(s->why, "slipway's Deployment cannot be scaled to 0: 403 you may not; "
                                "nothing was released");
    end(s);
}

TEST(tries_again_where_the_api_server_is_busy)
{
    struct stopper *s = begin(NULL);

    fake_answer(fake_the(s->transport, "/deployments/slipway"), 503, NULL, "{}");
    assert_null(fake_find(s->transport, "/deployments/slipway"));
    sw_loop_virtual_advance(s->loop, 1000);
    fake_answer(fake_the(s->transport, "/deployments/slipway"), 200, NULL, OWN);
    fake_break(the_pods(s), -104);
    sw_loop_virtual_advance(s->loop, 1000);
    fake_answer(the_pods(s), 200, NULL, PODS(""));
    assert_string_equal(s->why, "");
    end(s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE("release-stop",
             deletes_the_webhook_configuration_then_scales_to_0_then_waits_for_the_pods),
        CASE("release-stop", what_is_not_there_need_not_be_stopped),
        CASE("release-stop", goes_on_without_a_pod_that_does_not_end),
        CASE("release-stop", who_may_not_stop_it_releases_nothing),
        CASE("release-stop", tries_again_where_the_api_server_is_busy),
    };
    return RUN(tests);
}
