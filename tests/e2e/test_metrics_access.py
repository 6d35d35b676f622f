# SPDX-License-Identifier: Apache-2.0
"""Metrics over HTTPS: who may read them is found out from the API server, and strangers cost it little."""

import concurrent.futures
import http.client
import ssl
import time

import pytest

from harness.cluster import only_real
from harness.prometheus import Prometheus
from harness.scene import RBAC
from harness.slipway import make_certificate
from harness.wait import until

READER = "slipway-metrics-reader"  # of manifests/install.yaml
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
STRANGERS, AT_ONCE = 120, 50  # connections, of 64 that there may be


class Metrics:
    def __init__(self, scene):
        self.scene = scene

    def slipway(self, **options):
        """Without a webhook: what waits for that reads the metrics."""
        return self.scene.slipway(webhook=False, metrics_secure=True, **options)

    def account(self, *names):
        for name in names:
            self.scene.api.post("/api/v1/namespaces/%s/serviceaccounts" % self.scene.namespace,
                                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
        return self

    def token(self, name):
        return self.scene.cluster.token(self.scene.namespace, name)

    def let_read(self, *names):
        self.scene.api.put_in_place("/apis/%s/clusterrolebindings" % RBAC, {
            "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": self.binding},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER},
            "subjects": [{"kind": "ServiceAccount", "namespace": self.scene.namespace, "name": name} for name in names]})

    def until_let_in(self, slipway, name):
        """The API server takes a moment to notice a binding. Each time with another token: who may not is not asked about again
        for half a minute."""
        def is_let_in():
            token = self.token(name)
            return scrape(slipway, token)[0] == 200 and token
        return until(is_let_in, "%s may read" % name, 60, 1.1)

    @property
    def binding(self):
        return "metrics-" + self.scene.namespace

    def forbid(self):
        self.scene.api.remove("/apis/%s/clusterrolebindings/%s" % (RBAC, self.binding))


@pytest.fixture
def metrics(scene):
    made = Metrics(scene)
    yield made
    made.forbid()


def connect(process, ca_file=None):
    context = ssl.create_default_context(cafile=ca_file)
    if not ca_file:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection("127.0.0.1", process.metrics_port, timeout=30, context=context)


def scrape(process, token=None, connection=None, method="GET", ca_file=None):
    """(status, text, WWW-Authenticate)"""
    used = connection or connect(process, ca_file)
    try:
        used.request(method, "/metrics", headers={"Authorization": "Bearer " + token} if token else {})
        answer = used.getresponse()
        return answer.status, answer.read().decode(), answer.getheader("WWW-Authenticate")
    finally:
        if not connection:
            used.close()


def test_metrics_are_for_those_who_may(metrics):
    metrics.account("reader").let_read("reader")
    slipway = metrics.slipway()
    assert scrape(slipway) == (401, "a bearer token is needed\n", 'Bearer realm="slipway"')
    assert scrape(slipway, "invalid-garbage")[0] == 401
    token = metrics.until_let_in(slipway, "reader")
    assert scrape(slipway, "invalid" + token)[0] == 401
    status, text, _ = scrape(slipway, token)
    assert status == 200 and 'slipway_build_info{' in text, text
    assert scrape(slipway, token, method="HEAD")[:2] == (200, "")
    assert scrape(slipway, token, method="POST")[0] == 405
    # Probes stay what kubelets expect, and nobody reads metrics in the clear.
    assert slipway.get(slipway.health_port, "/readyz") == (200, "ok")
    assert slipway.get(slipway.health_port, "/metrics")[0] == 404
    with pytest.raises((OSError, http.client.HTTPException)):
        scrape(slipway, token, http.client.HTTPConnection("127.0.0.1", slipway.metrics_port, timeout=30))
    assert token not in slipway.log() and token.split(".")[1] not in slipway.log() and "invalid-garbage" not in slipway.log()


@only_real("slipway-sim allows everybody everything")
def test_a_token_alone_is_not_enough(metrics):
    metrics.account("stranger")
    slipway = metrics.slipway()
    status, text, _ = scrape(slipway, metrics.token("stranger"))
    assert status == 403 and text == ("system:serviceaccount:%s:stranger may not get /metrics: bind it to a ClusterRole that may, such as %s\n"
                                      % (metrics.scene.namespace, READER))
    metrics.let_read("stranger")
    metrics.until_let_in(slipway, "stranger")


@only_real("slipway-sim allows everybody everything")
def test_slipway_says_which_right_of_its_own_is_missing(metrics):
    metrics.account("reader").let_read("reader")
    metrics.account("powerless")
    slipway = metrics.slipway(token=metrics.token("powerless"), start=False)
    slipway.start(wait=False)
    until(lambda: "create tokenreviews.authentication.k8s.io" in slipway.log(), lambda: slipway.log_tail())
    until(lambda: scrape(slipway, metrics.token("reader"))[0] == 500, "it may not ask who is there")
    assert "give the permission to our role" in slipway.log()


def test_readers_go_on_while_the_api_server_is_away(metrics):
    metrics.account("reader", "other").let_read("reader", "other")
    slipway, proxy = metrics.scene.slipway_behind_proxy(webhook=False, metrics_secure=True)
    token, other = metrics.until_let_in(slipway, "reader"), metrics.token("other")
    broken = proxy.cut_request(path="reviews$")
    assert scrape(slipway, other)[:2] == (503, "the API server does not say now who you are and what you may\n")
    assert scrape(slipway, token)[0] == 200
    broken.remove()
    assert scrape(slipway, other)[0] == 200


def test_strangers_cost_little(metrics):
    """They come all at once, each with a token of its own, over most of the connections that there may be; a reader still reads."""
    metrics.account("reader").let_read("reader")
    slipway, proxy = metrics.scene.slipway_behind_proxy(webhook=False, metrics_secure=True)
    token = metrics.until_let_in(slipway, "reader")
    began = time.monotonic()

    def come(first):
        connection, statuses = connect(slipway), []
        try:
            for number in range(first, STRANGERS, AT_ONCE):
                statuses.append(scrape(slipway, "invalid%d" % number, connection)[0])
        finally:
            connection.close()
        return statuses

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        coming = [pool.submit(come, first) for first in range(AT_ONCE)]
        readings = 0
        while concurrent.futures.wait(coming, 0.2).not_done:
            assert scrape(slipway, token)[0] == 200
            readings += 1
    statuses = [status for one in coming for status in one.result()]
    assert readings > 0 and set(statuses) == {401, 503}, (readings, set(statuses))
    asked = [request for request in proxy.requests if request.target == TOKEN_REVIEWS and b'"invalid' in request.body]
    # 20 at once, and 10 a second.
    assert len(asked) <= 21 + 10 * (time.monotonic() - began) and len(asked) < STRANGERS, len(asked)
    assert statuses.count(401) <= len(asked)


def test_the_certificate_may_come_from_files(metrics):
    metrics.account("reader").let_read("reader")
    folder = metrics.scene.folder / "metrics-certs"
    folder.mkdir()
    slipway = metrics.slipway(settings="metrics: {certDir: %s}\n" % folder)
    token = metrics.until_let_in(slipway, "reader")  # one that was made here is served meanwhile
    make_certificate(folder)
    until(lambda: is_trusted(slipway, token, str(folder / "ca.crt")), "that of the folder is served")


def is_trusted(slipway, token, ca_file):
    try:
        return scrape(slipway, token, ca_file=ca_file)[0] == 200
    except ssl.SSLCertVerificationError:
        return False


def test_prometheus_scrapes(metrics):
    metrics.account("prometheus").let_read("prometheus")
    slipway = metrics.slipway()
    file = metrics.scene.folder / "token"
    file.write_text(metrics.until_let_in(slipway, "prometheus"))
    prometheus = Prometheus(metrics.scene.folder, {
        "job_name": "slipway", "scheme": "https", "authorization": {"credentials_file": str(file)},
        "tls_config": {"insecure_skip_verify": True}, "static_configs": [{"targets": ["127.0.0.1:%d" % slipway.metrics_port]}]})
    try:
        until(lambda: prometheus.targets() == [("up", "")], lambda: "the target is up: %s\n%s" % (prometheus.targets(), prometheus.log()))

        def names():
            return {labels["__name__"] for labels, _ in prometheus.query('{__name__=~"up|slipway_.+",job="slipway"}')}
        until(lambda: {"up", "slipway_build_info", "slipway_metrics_requests_total"} <= names(), lambda: "its series are there: %s" % names())
        assert prometheus.query('up{job="slipway"}')[0][1] == "1"
    finally:
        prometheus.stop()
