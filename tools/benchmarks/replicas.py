# SPDX-License-Identifier: Apache-2.0
"""What operators ask of several replicas that run for years: how long nobody leads when one ends, what renewals of the
webhook's certificate cost, whether reloads of the configuration leave anything behind, and what all of it may do."""

import base64
import http.client
import signal
import socket
import ssl
import threading
import time
import urllib.request

from benchmarks import proc
from benchmarks.admission import make_reviews, shoot
from benchmarks.figures import Figure, median, spread
from benchmarks.stand import COORDINATIONS, NAMESPACE, Failed, cluster, coordination, fill, first_core_of, has_real, ready_count, start_slipway, until
from control_plane import api
from story.access import SERVICE_ACCOUNT, manifests
from story.stage import WEBHOOK_PATH

SUMMARY = "replicas that take over, renewals, reloads, permissions"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/slipway"
SECRET = "/api/v1/namespaces/kube-system/secrets/slipway-webhook"
HOST = "slipway.kube-system.svc"
EVERY_S = 4  # two thirds of the life of a certificate
CERTIFICATE_SECONDS = "3600,%d,1,1" % (EVERY_S * 3 // 2)
RELOADS = 100


# ---- another one leads ----

def holder(stage):
    try:
        return stage.client.get(LEASE)["spec"].get("holderIdentity") or ""
    except api.ApiError:
        return ""


def start_replica(stage, number):
    slipway = stage.start_slipway("replica-%d" % number, leader_elect=True)
    slipway.wait_ready()
    return slipway


def take_over(stage, leader, follower, number):
    """Seconds from the signal until the other one's name is in the Lease."""
    until(lambda: 'holder="%s_' % leader.name in follower.log.read_text() or "holder=%s_" % leader.name in follower.log.read_text(),
          "%s follows %s" % (follower.name, leader.name), 60)
    begin = time.monotonic()
    leader.process.send_signal(number)
    until(lambda: holder(stage).startswith(follower.name + "_"), "%s leads" % follower.name, 60, 0.002)
    took = time.monotonic() - begin
    leader.process.wait(60)
    return took


def measure_take_over(bench):
    took = {signal.SIGTERM: [], signal.SIGKILL: []}
    real = has_real() and not bench.is_quick
    runs = [signal.SIGTERM] * bench.pick(3, 20) + [signal.SIGKILL] * bench.pick(1, 5)
    with cluster(bench, real=real) as stage:
        leader = start_replica(stage, 0)
        until(lambda: holder(stage).startswith(leader.name + "_"), "the first one leads", 60)
        for number, how in enumerate(runs, 1):
            bench.say("take-over %d of %d, after %s" % (number, len(runs), how.name))
            follower = start_replica(stage, number)
            took[how].append(take_over(stage, leader, follower, how))
            leader = follower
    where = "on etcd, kube-apiserver" if real else "on slipway-sim"
    stops = [1000 * seconds for seconds in took[signal.SIGTERM]]
    yield Figure("takeover_stop_ms", median(stops), "%s; from the signal to the other's name in the Lease; %s" % (where, spread(stops, 0)))
    kills = took[signal.SIGKILL]
    yield Figure("takeover_kill_s", median(kills), "%s; the Lease of the dead runs out first, 13 to 15 s after its last sign; %s" % (where, spread(kills, 1)))


# ---- renewals ----

class NewComers(threading.Thread):
    """One review after the other, each over a new connection: they are who meets a new certificate."""

    def __init__(self, port, authorities, body):
        super().__init__(daemon=True)
        self.port, self.body = port, body
        self.context = ssl.create_default_context(cadata=authorities)
        self.answered, self.failed, self.certificates = 0, [], set()
        self.is_over = threading.Event()
        self.start()

    def run(self):
        while not self.is_over.wait(0.02):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            try:
                connection.sock = self.context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), 10), server_hostname=HOST)
                self.certificates.add(connection.sock.getpeercert(True))
                connection.request("POST", WEBHOOK_PATH, self.body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                if answer.status != 200 or b'"allowed":true' not in answer.read():
                    self.failed.append("status %d" % answer.status)
                self.answered += 1
            except (OSError, http.client.HTTPException) as error:
                self.failed.append(repr(error))
            finally:
                connection.close()


def measure_renewals(bench):
    seconds = bench.pick(6, 8 * EVERY_S)
    with cluster(bench) as stage:
        reviews = make_reviews(stage.folder)
        stage.client.post(COORDINATIONS % NAMESPACE, coordination("selected"))
        stage.cluster.apply(manifests("install.yaml", ["MutatingWebhookConfiguration"]))
        slipway = stage.start_slipway("slipway", settings="webhook: {configurationName: slipway, certificates: self}\n",
                                      env={"SLIPWAY_TEST_CERTIFICATE_SECONDS": CERTIFICATE_SECONDS})
        slipway.wait_ready()
        until(lambda: ready_count(stage.client) == 1, "the coordination is Ready", 30)
        first_core_of(slipway)
        authorities = base64.b64decode(stage.client.get(SECRET)["data"]["ca.crt"]).decode()
        ca_file = stage.folder / "own-ca.crt"
        ca_file.write_text(authorities)
        bench.say("renewals every %d s, for %d s" % (EVERY_S, seconds))
        newcomers = NewComers(slipway.webhook_port, authorities, reviews[0].read_bytes())
        renewed, _ = shoot(slipway.webhook_port, ca_file, reviews, seconds, slipway.process.pid, name=HOST)
        newcomers.is_over.set()
        newcomers.join()
    with cluster(bench) as stage:
        reviews = make_reviews(stage.folder)
        stage.client.post(COORDINATIONS % NAMESPACE, coordination("selected"))
        slipway = start_slipway(stage)
        until(lambda: ready_count(stage.client) == 1, "the coordination is Ready", 30)
        first_core_of(slipway)
        newcomers_too = NewComers(slipway.webhook_port, slipway.ca_pem.decode(), reviews[0].read_bytes())
        newcomers_too.context.check_hostname = False  # of 127.0.0.1
        bench.say("and without")
        plain, _ = shoot(slipway.webhook_port, slipway.folder / "certs" / "ca.crt", reviews, seconds, slipway.process.pid)
        newcomers_too.is_over.set()
        newcomers_too.join()
    certificates = len(newcomers.certificates)
    if certificates < 2:
        raise Failed("there was no renewal to measure")
    yield Figure("renewal_per_s", renewed["per_s"],
                 "bench_admission, whose connections stay, and one new connection after the other: %d reviews; %d certificates in %d s; the slowest "
                 "review took %.0f ms" % (newcomers.answered, certificates, seconds, renewed["max_ms"]),
                 "without renewals: %.0f/s, the slowest %.0f ms" % (plain["per_s"], plain["max_ms"]))
    yield Figure("renewal_failed", len(newcomers.failed) + renewed["failed"], "of both; %s" % (newcomers.failed[0] if newcomers.failed else "none failed"))


# ---- reloads ----

def reloads(slipway):
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % slipway.metrics_port, timeout=10) as answer:
        found = [line for line in answer.read().decode().splitlines() if line.startswith('slipway_config_reloads_total{result="applied"}')]
    return int(float(found[0].split()[-1])) if found else 0


def measure_reloads(bench):
    with cluster(bench) as stage:
        slipway = stage.start_slipway(arguments=["--metrics-secure=false"])
        slipway.wait_ready()
        fill(bench, stage.client, 10, 10)
        until(lambda: ready_count(stage.client) == 10, "the groups are Ready", 120)
        pid = slipway.process.pid

        def reload(number):
            slipway.configure("client: {qps: %d}\n" % (50 + number))
            slipway.process.send_signal(signal.SIGHUP)
            until(lambda: reloads(slipway) >= number, "it has read it %d times" % number, 30, 0.005)

        if not proc.until_quiet(pid):
            raise Failed("slipway does not come to rest")
        before = proc.rss_mib(pid)
        for number in range(1, RELOADS + 1):
            reload(number)
        proc.until_quiet(pid)
        after = proc.rss_mib(pid)
    how = "VmRSS at rest, 100 Deployments in 10 groups"
    yield Figure("rss_reload_0_mib", before, how)
    yield Figure("rss_reload_100_mib", after, how + "; each time another configuration, by SIGHUP")


# ---- permissions ----

def granted_rules(client):
    """Of the roles that are bound to slipway's ServiceAccount."""
    base = "/apis/rbac.authorization.k8s.io/v1"
    for plural in ("clusterrolebindings", "rolebindings"):
        for binding in client.get("%s/%s" % (base, plural))["items"]:
            if SERVICE_ACCOUNT in [(subject.get("namespace"), subject["name"]) for subject in binding.get("subjects") or []]:
                namespace = binding["metadata"].get("namespace")
                is_of_cluster = binding["roleRef"]["kind"] == "ClusterRole"
                where = "clusterroles" if is_of_cluster else "namespaces/%s/roles" % namespace
                yield from client.get("%s/%s/%s" % (base, where, binding["roleRef"]["name"]))["rules"]


def measure_verbs(bench):
    """One for each verb on each resource."""
    with cluster(bench) as stage:
        rules = list(granted_rules(stage.client))
    granted = {(group, resource, tuple(rule.get("resourceNames") or ()), verb)
               for rule in rules for group in rule.get("apiGroups") or () for resource in rule["resources"] for verb in rule["verbs"]}
    verbs = sorted({verb for _, _, _, verb in granted})
    yield Figure("rbac_verbs", len(granted), "manifests/install.yaml: %s; %d of them on one named object only" % (
        ", ".join(verbs), sum(bool(names) for _, _, names, _ in granted)))


def measure(bench):
    for part in (measure_take_over, measure_renewals, measure_reloads, measure_verbs):
        yield from part(bench)
