# SPDX-License-Identifier: Apache-2.0
"""tests/kube/probe.c as the tests see it: lines to and fro."""

import json
import os
import pathlib
import re
import subprocess
import threading
import time

from harness.wait import until

PROGRAM = pathlib.Path(os.environ.get("SLIPWAY_BUILD", "build")) / "tests" / "kube" / "probe"
FAST = ("--backoff-ms", "20", "--backoff-limit-ms", "200")  # faults follow each other quickly here


class Line(str):
    """A line of output, with when it came."""

    def __new__(cls, text, at):
        line = super().__new__(cls, text)
        line.at = at
        return line


class Reply:
    def __init__(self, line):
        _, number, status, code, sent, self.text = (line + " ").split(" ", 5)
        self.number, self.status, self.code, self.was_sent = int(number), int(status), int(code), sent == "sent"
        self.text = self.text.strip()


class Probe:
    def __init__(self, cluster, proxy, namespace, folder, arguments, user, kubeconfig):
        self._cluster, self.namespace = cluster, namespace
        self.log = folder / "log"
        where = []
        if kubeconfig.pop("is_written", True):  # else the environment says where to look
            where = ["--kubeconfig", folder / "kubeconfig"]
            where[1].write_text(self._kubeconfig(proxy, user, **kubeconfig))
        self.lines = []
        self._is_killed = False
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [PROGRAM, *where, "--namespace", namespace, *arguments], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.until_line("started|error: .*")

    def _kubeconfig(self, proxy, user, **cluster):
        about = {"server": proxy.url if proxy else self._cluster.server,
                 "certificate-authority": str(proxy.ca_file if proxy else self._cluster.ca_file)}
        about.update(cluster)
        user = user or {"tokenFile": str(self._cluster.folder / "admin.token")}
        return json.dumps({
            "current-context": "here", "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
            "clusters": [{"name": "here", "cluster": {name: value for name, value in about.items() if value is not None}}],
            "users": [{"name": "here", "user": user}]})

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(Line(line.rstrip("\n"), time.monotonic()))

    # ---- to and fro ----

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def until_line(self, pattern, since=0, timeout_s=30):
        """The first line that matches wholly, from the given number on."""
        def found():
            return next((line for line in self.lines[since:] if re.fullmatch(pattern, line)), None)

        def what():
            return "%r in\n%s\n%s" % (pattern, "\n".join(self.lines[-20:]), self.said()[-3000:])
        return until(found, what, timeout_s, 0.01)

    def ask(self, command, pattern, timeout_s=30):
        since = len(self.lines)
        self.say(command)
        return self.until_line(pattern, since, timeout_s)

    def call(self, command, timeout_s=60):
        return Reply(self.ask(command, r"reply .*", timeout_s))

    def state(self):
        line = self.ask("state", r"state.*")
        return dict(part.split("=", 1) for part in line.split(" ")[1:])

    def until_state(self, wanted, timeout_s=30):
        until(lambda: self.state() == wanted, lambda: "%r, but it is %r\n%s" % (wanted, self.state(), self.said()[-3000:]),
              timeout_s, 0.05)

    def until_listed(self, count, timeout_s=30):
        return self.until_line(r"listed \w+ %d" % count, timeout_s=timeout_s)

    def relist(self):
        """A list that is sent after this call."""
        return self.ask("relist", r"listed consistent \d+")

    def deltas(self):
        return [line.split(" ") for line in self.lines if line[:2] in ("+ ", "~ ", "- ")]

    def said(self):
        return self.log.read_text()

    def kill(self):
        self._is_killed = True
        self.process.kill()
        self.process.wait()

    def close(self):
        """What went wrong, or None."""
        if self._is_killed:
            return None
        try:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
        except OSError:
            pass
        try:
            status = self.process.wait(90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self._reader.join(10)
        wanted = 1 if self.lines and self.lines[0].startswith("error") else 0
        return None if status == wanted else "%s ended with %d:\n%s" % (PROGRAM, status, self.said()[-5000:])


class Objects:
    """ConfigMaps of a namespace, written directly, past the proxy."""

    def __init__(self, cluster, namespace):
        self._api, self._path = cluster.api, "/api/v1/namespaces/%s/configmaps" % namespace

    def create(self, name, value):
        about = {"metadata": {"name": name}, "data": {"value": value}}
        return self._api.post(self._path, about)["metadata"]["resourceVersion"]

    def change(self, name, value):
        return self._api.patch(self._path + "/" + name, {"data": {"value": value}})["metadata"]["resourceVersion"]

    def delete(self, name):
        self._api.delete(self._path + "/" + name)

    def get(self, name):
        return self._api.get(self._path + "/" + name)

    def state(self):
        return {item["metadata"]["name"]: item["data"]["value"] for item in self._api.get(self._path)["items"]}


def check_deltas(deltas):
    """Each follows from the one before, and no version comes twice or goes back."""
    there = {}
    seen = {}
    for kind, name, version, *_ in deltas:
        if kind == "-":
            assert name in there, "%s was deleted without being there" % name
            del there[name]
            continue
        assert (kind == "~") == (name in there), "%s %s %s" % (kind, name, version)
        assert int(version) > seen.get(name, 0), "%s went back, or came twice: %s" % (name, version)
        there[name] = seen[name] = int(version)
