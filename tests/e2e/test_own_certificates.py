# SPDX-License-Identifier: Apache-2.0
"""Certificates that slipway makes itself: whoever asks it, trusting what caBundle says at that moment, is always answered."""

import base64
import contextlib
import http.client
import json
import socket
import ssl
import uuid

import pytest

from harness.cluster import SERVICE_ACCOUNT, api
from harness.configuration import RBAC, Configuration
from harness.scene import deployment
from harness.storm import Askers
from harness.wait import until

SECRET = "slipway-webhook"
# An authority is renewed after 30 s, a certificate after 12 s; caBundle is believed to be known after 1 s, a pair after 3 s.
SECONDS = "45,18,1,3"


class OwnCertificates:
    def __init__(self, scene):
        self.scene, self.configuration = scene, Configuration(scene)
        self.path = "/api/v1/namespaces/%s/secrets" % scene.namespace
        self.configuration.permit()
        scene.cluster.apply({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": RBAC, "kind": "Role", "metadata": {"name": "certificates", "namespace": scene.namespace}, "rules": [
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
                {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET], "verbs": ["list", "watch", "patch"]}]},
            {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": "certificates", "namespace": scene.namespace},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "certificates"},
             "subjects": [{"kind": "ServiceAccount", "namespace": SERVICE_ACCOUNT[0], "name": SERVICE_ACCOUNT[1]}]}]})

    def slipway(self, name, seconds=SECONDS, **options):
        process = self.scene.slipway(name, start=False, webhook=False, leader_elect=True,
                                     settings="webhook: {configurationName: %s, certificates: self}\n" % self.configuration.name, **options)
        if seconds:
            process.env["SLIPWAY_TEST_CERTIFICATE_SECONDS"] = seconds
        return process

    def read(self):
        """name of a part: its PEM"""
        try:
            data = self.scene.api.get(self.path + "/" + SECRET).get("data") or {}
        except api.ApiError as error:
            assert error.status == 404
            data = {}
        return {name: base64.b64decode(value).decode() for name, value in data.items()}

    def bundle(self):
        return base64.b64decode(self.configuration.ours["clientConfig"].get("caBundle") or "").decode()

    @property
    def host(self):
        return "slipway.%s.svc" % self.scene.namespace

    def ask(self, process):
        """One review over a new connection, as an API server that knows caBundle would ask it."""
        context = ssl.create_default_context(cadata=self.bundle())
        made = deployment("a", replicas=1)
        made["metadata"]["namespace"] = self.scene.namespace
        uid = str(uuid.uuid4())
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
            "uid": uid, "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"}, "name": "a", "namespace": self.scene.namespace,
            "operation": "CREATE", "userInfo": {"username": "a person"}, "object": made, "oldObject": None, "dryRun": False, "options": {}}}
        connection = http.client.HTTPConnection("127.0.0.1", process.webhook_port)
        with contextlib.closing(connection):
            connection.sock = context.wrap_socket(socket.create_connection(("127.0.0.1", process.webhook_port), 30), server_hostname=self.host)
            connection.request("POST", "/mutate-apps-v1-deployment", json.dumps(review), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200 and json.loads(text)["response"]["uid"] == uid, text


class DirectAskers(Askers):
    """They ask every process without a pause."""

    def __init__(self, certificates, processes):
        super().__init__(processes)
        self._certificates = certificates

    def ask_on(self, process):
        while not self.is_over:
            try:
                self._certificates.ask(process)
                self.answered += 1
            except (AssertionError, OSError, http.client.HTTPException, api.ApiError) as error:
                self.failed.append("%s: %r" % (process.name, error))


@pytest.fixture
def certificates(scene):
    made = OwnCertificates(scene)
    yield made
    made.configuration.forbid()


def made(processes, what):
    return sum(process.log().count(what) for process in processes)


AUTHORITY = "a new authority for the webhook is made"
ISSUED = "a new certificate for the webhook is made"
DROPPED = "older authorities of the webhook are dropped"


def test_the_first_start_makes_them_and_two_that_start_at_once_share_them(scene, certificates):
    one, two = processes = certificates.slipway("one", seconds=None), certificates.slipway("two", seconds=None)
    for process in processes:
        process.start(wait=False)
    certificates.configuration.make(one)
    for process in processes:
        process.wait_ready()
    until(lambda: certificates.bundle() == certificates.read()["ca.crt"], "caBundle is that of the Secret")
    for process in processes:
        certificates.ask(process)
    found = certificates.read()
    assert set(found) == {"tls.crt", "tls.key", "ca.crt", "ca.key"} and found["ca.crt"].count("BEGIN CERTIFICATE") == 1
    assert scene.api.get(certificates.path + "/" + SECRET)["type"] == "kubernetes.io/tls"
    assert made(processes, AUTHORITY) == 1
    for process in processes:  # the harness looks for them when it ends
        process.secrets += [line for part in ("tls.key", "ca.key") for line in found[part].splitlines() if len(line) > 20 and "-----" not in line]
        process.secrets += [base64.b64encode(found[part].encode()).decode()[:64] for part in ("tls.key", "ca.key")]
    # After a restart they are what they were.
    for process in processes:
        process.stop()
    one.start()
    certificates.ask(one)
    assert certificates.read() == found


def test_a_secret_that_was_made_empty_is_filled(scene, certificates):
    """So that nobody needs to be allowed to create Secrets."""
    scene.api.request("PATCH", "/apis/%s/namespaces/%s/roles/certificates" % (RBAC, scene.namespace), {"rules": [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET], "verbs": ["list", "watch", "patch"]}]},
        "application/merge-patch+json")
    scene.api.post(certificates.path, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "type": "kubernetes.io/tls",
                                       "data": {"tls.crt": "", "tls.key": ""}})
    slipway = certificates.slipway("one", seconds=None)
    certificates.configuration.make(slipway)
    slipway.start()
    until(lambda: certificates.bundle() == certificates.read()["ca.crt"], "caBundle is that of the Secret")
    certificates.ask(slipway)


def test_renewals_and_new_authorities_cost_no_review(scene, certificates):
    one, two = processes = certificates.slipway("one"), certificates.slipway("two")
    one.start(wait=False)
    certificates.configuration.make(one)
    one.wait_ready()
    one.until_leading()
    two.start()
    until(lambda: certificates.bundle() == certificates.read()["ca.crt"], "caBundle is that of the Secret")
    with DirectAskers(certificates, processes) as askers:
        until(lambda: made(processes, AUTHORITY) >= 3 and made(processes, DROPPED) >= 2 and made(processes, ISSUED) >= 4,
              "two more authorities, and the certificates between", 120)
        # Somebody takes the Secret away, or garbles it, in the middle of it.
        for trouble in ({"method": "DELETE"}, {"method": "PATCH", "body": {"data": {"ca.key": base64.b64encode(b"garbled").decode()}}},
                        {"method": "PATCH", "body": {"data": {"tls.key": base64.b64encode(b"garbled").decode()}}}):
            before = certificates.read()
            scene.api.request(trouble["method"], certificates.path + "/" + SECRET, trouble.get("body"), "application/merge-patch+json")
            until(lambda: {"tls.crt", "tls.key", "ca.crt", "ca.key"} <= set(certificates.read())
                  and "garbled" not in "".join(certificates.read().values()), "it is made anew")
            drops = made(processes, DROPPED)
            until(lambda: made(processes, DROPPED) > drops or len(certificates.read()["ca.crt"].split("BEGIN CERT")) == 2,
                  "there is one authority again", 60)
            assert certificates.read() != before
    # The next leader goes on.
    with DirectAskers(certificates, [two]) as more:
        one.stop()  # and gives the lease back: a dead leader's takes longer than this certificate lives
        two.until_leading(60)
        issued = made([two], ISSUED)
        until(lambda: made([two], ISSUED) > issued, "the successor renews", 60)
    print("%d reviews" % (askers.answered + more.answered))
    failed = askers.failed + more.failed
    assert not failed, (len(failed), askers.answered, failed[:5])
    assert askers.answered > 100 and more.answered > 10
