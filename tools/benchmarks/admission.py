# SPDX-License-Identifier: Apache-2.0
"""Reviews over TLS: slipway on one core, admission.c, which sends them, on the other; and nginx in slipway's place,
which answers the same POST with a constant."""

import contextlib
import copy
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import time

from benchmarks import proc
from benchmarks.figures import Figure, median, spread
from benchmarks.stand import BENCH_ADMISSION, BUILD, NAMESPACE, TOP, Missing, cluster, coordination, cores, COORDINATIONS, first_core_of, pin, ready_count, start_slipway, until
from story.stage import WEBHOOK_PATH, free_port

SUMMARY = "admission reviews over TLS on one core, against nginx"
KEYS = ("admission_per_s", "admission_p99_ms")
SAMPLE = TOP / "tests" / "data" / "kube" / "review-update.json"
TARGET_BYTES = 7 * 1024
CONNECTIONS = 32
RATE = 5000
SELECTED_PART = 2  # every second one is selected by a coordination
NGINX = """\
worker_processes 1;
daemon off;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_buffer_size 64k;
    client_body_temp_path .;
    proxy_temp_path .; fastcgi_temp_path .; uwsgi_temp_path .; scgi_temp_path .;
    keepalive_requests 1000000000;
    keepalive_timeout 300;
    server {
        listen 127.0.0.1:%(port)d ssl;
        ssl_certificate %(certs)s/tls.crt;
        ssl_certificate_key %(certs)s/tls.key;
        location / { default_type application/json; return 200 '%(answer)s'; }
    }
}
"""


def make_reviews(folder):
    """Files of about 7 KB: the sample with a smaller Deployment, another image in each second one."""
    sample = json.loads(SAMPLE.read_text())
    names = []
    for number in range(8):
        review = copy.deepcopy(sample)
        request = review["request"]
        request["uid"] = "00000000-0000-4000-8000-%012d" % number
        group = "selected" if number % SELECTED_PART == 0 else "other"
        for key in ("object", "oldObject"):
            slim(request[key], group)
        request["name"], request["namespace"] = request["object"]["metadata"]["name"], NAMESPACE
        if number % 4 < 2:
            request["object"]["spec"]["template"]["spec"]["containers"][0]["image"] = "example.org/frontend:%d" % number
        pad(review)
        path = folder / ("review-%d.json" % number)
        path.write_text(json.dumps(review, separators=(",", ":")))
        names.append(path)
    return names


def slim(deployment, group):
    """Without what another tool wrote twice; what is left is what most Deployments look like."""
    meta = deployment["metadata"]
    meta["namespace"] = NAMESPACE
    meta["labels"]["group"] = group
    meta["annotations"].pop("kubectl.kubernetes.io/last-applied-configuration", None)
    meta["annotations"] = {key: value for key, value in meta["annotations"].items() if not key.startswith("slipway.dev/")}
    meta["managedFields"] = []
    deployment["spec"].pop("paused", None)


def length(review):
    return len(json.dumps(review, separators=(",", ":")))


def pad(review):
    """To 7 KiB: without what slipway does not look at, or with managedFields, of which real objects are full."""
    objects = [review["request"][key] for key in ("object", "oldObject")]
    pods = [found["spec"]["template"]["spec"] for found in objects]
    for key in sorted(pods[0]):
        if length(review) > TARGET_BYTES and key != "containers":
            for pod in pods:
                pod.pop(key, None)
    while length(review) > TARGET_BYTES and all(pod["containers"][0].get("env") for pod in pods):
        for pod in pods:
            pod["containers"][0]["env"].pop()
    for number in range(1000):
        if length(review) > TARGET_BYTES - 100:
            break
        for found in objects:
            managed = found["metadata"]["managedFields"]
            if not managed:
                managed.append({"manager": "bench", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {}})
            managed[0]["fieldsV1"]["f:field-%d" % number] = {"f:value": {}}
    assert abs(length(review) - TARGET_BYTES) < TARGET_BYTES / 10, "a review of %d bytes" % length(review)


def ask(port, ca_file, body):
    """One review, and its answer decoded."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=ssl.create_default_context(cafile=ca_file))
    try:
        connection.request("POST", WEBHOOK_PATH, body=body, headers={"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())["response"]
    finally:
        connection.close()


def check(port, ca_file, reviews):
    """That these are reviews which slipway understands, and how many of them it changes."""
    changed = 0
    for path in reviews:
        body = path.read_bytes()
        answer = ask(port, ca_file, body)
        assert answer["uid"] == json.loads(body)["request"]["uid"] and answer["allowed"], answer
        changed += "patch" in answer
    assert 0 < changed < len(reviews), "%d of %d reviews are answered with a patch" % (changed, len(reviews))
    return changed


def shoot(port, ca_file, reviews, seconds, pid, rate=None, name=None):
    """(what admission.c prints, which part of its core the process `pid` was busy). name: that the certificate is for."""
    _, core = cores()
    argv = ["taskset", "-c", str(core), BUILD / BENCH_ADMISSION, "--port", str(port), "--ca", ca_file,
            "--path", WEBHOOK_PATH, "--connections", str(CONNECTIONS), "--seconds", str(seconds),
            *(["--rate", str(rate)] if rate else []), *(["--name", name] if name else []), *reviews]
    before, begin = proc.cpu_ns(pid), time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True)
    busy = (proc.cpu_ns(pid) - before) / 1e9 / (time.monotonic() - begin)
    if done.returncode:
        raise AssertionError("bench_admission: %s%s" % (done.stderr, done.stdout))
    return json.loads(done.stdout), busy


@contextlib.contextmanager
def nginx(folder, certs):
    """(port, pid of the one worker), pinned."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not os.access(program, os.X_OK):
        raise Missing("no nginx here for the baseline: ./tools/packages test")
    answer = '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"0","allowed":true}}'
    port = free_port()
    (folder / "nginx.conf").write_text(NGINX % {"port": port, "certs": certs, "answer": answer})
    with open(folder / "nginx.log", "wb") as log:
        process = subprocess.Popen([program, "-p", folder, "-c", folder / "nginx.conf", "-e", "stderr"], stdin=subprocess.DEVNULL,
                                   stdout=log, stderr=subprocess.STDOUT)
    try:
        children = "/proc/%d/task/%d/children" % (process.pid, process.pid)
        until(lambda: process.poll() is not None or open(children).read().split(), "nginx has a worker", 10)
        if process.poll() is not None:
            raise AssertionError("nginx: " + (folder / "nginx.log").read_text())
        worker = int(open(children).read().split()[0])
        pin(worker, cores()[0])
        yield port, worker
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(10)


def measure(bench):
    runs, seconds = bench.pick((1, 2), (5, 6))
    with cluster(bench) as stage:
        reviews = make_reviews(stage.folder)
        size = sum(path.stat().st_size for path in reviews) // len(reviews)
        stage.client.post(COORDINATIONS % NAMESPACE, coordination("selected"))
        slipway = start_slipway(stage)
        until(lambda: ready_count(stage.client) == 1, "the coordination is Ready", 30)
        certs = slipway.folder / "certs"
        first_core_of(slipway)
        changed = check(slipway.webhook_port, certs / "ca.crt", reviews)
        ours, theirs, paced, busy = [], [], [], []
        with nginx(stage.folder, certs) as (port, worker):
            for number in range(runs):
                bench.say("run %d of %d: as many as there can be, slipway, nginx; then %d/s" % (number + 1, runs, RATE))
                found, part = shoot(slipway.webhook_port, certs / "ca.crt", reviews, seconds, slipway.process.pid)
                ours.append(found["per_s"])
                busy.append(part)
                theirs.append(shoot(port, certs / "ca.crt", reviews, seconds, worker))
                paced.append(shoot(slipway.webhook_port, certs / "ca.crt", reviews, seconds, slipway.process.pid, RATE)[0])
            baseline = shoot(port, certs / "ca.crt", reviews, seconds, worker, RATE)[0]
    rate, nginx_rate, nginx_busy = median(ours), median([found["per_s"] for found, _ in theirs]), median([part for _, part in theirs])
    yield Figure("admission_per_s", rate,
                 "bench_admission, %d connections; %s; reviews of %d bytes, %d of %d answered with a patch; slipway had %.0f %% of its core, nginx "
                 "%.0f %%: the rest others had, or the generator could send no more" % (
                     CONNECTIONS, spread(ours, 0), size, changed, len(reviews), 100 * median(busy), 100 * nginx_busy),
                 "nginx, a constant: %.0f/s. For each second of processor time: ours %.0f, nginx %.0f" % (
                     nginx_rate, rate / median(busy), nginx_rate / nginx_busy))
    p99 = [found["p99_ms"] for found in paced]
    yield Figure("admission_p99_ms", median(p99),
                 "%d/s due at even distances, counted from when each was due; %s; median %.2f ms, of %.0f/s" % (
                     RATE, spread(p99), median([found["median_ms"] for found in paced]), median([found["per_s"] for found in paced])),
                 "nginx: %.2f ms" % baseline["p99_ms"])
