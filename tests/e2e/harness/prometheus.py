# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus that scrapes: started with its configuration, asked for what it knows, stopped."""

import json
import pathlib
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from .cluster import TOP  # puts tools/ on the path
from control_plane.ports import free_port  # noqa: E402


class Prometheus:
    """scrape: one entry of scrape_configs. rules: paths of rule files."""

    def __init__(self, folder, scrape, rules=()):
        program = shutil.which("prometheus")
        assert program, "there is no prometheus here: %s/tools/packages test" % TOP
        self.folder = pathlib.Path(folder) / "prometheus"
        self.folder.mkdir(parents=True)
        self.port = free_port()
        config = self.folder / "prometheus.yml"
        config.write_text(json.dumps({"global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                                      "rule_files": list(map(str, rules)), "scrape_configs": [scrape]}))
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [program, "--config.file", config, "--storage.tsdb.path", self.folder / "data",
                 "--web.listen-address", "127.0.0.1:%d" % self.port],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def evaluate(self, path, **query):
        """The whole answer, also one that says what is wrong with the question."""
        url = "http://127.0.0.1:%d/api/v1/%s?%s" % (self.port, path, urllib.parse.urlencode(query))
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return json.loads(error.read())

    def numbers(self, expression, since):
        """All that it was from then to now, each second, of all series."""
        answer = self.evaluate("query_range", query=expression, start=since, end=time.time(), step=1)
        assert answer["status"] == "success", "%s: %s" % (expression, answer)
        return [float(value) for series in answer["data"]["result"] for _, value in series["values"]]

    def _ask(self, path):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/%s" % (self.port, path), timeout=10) as answer:
                return json.loads(answer.read())["data"]
        except OSError:
            assert self.process.poll() is None, self.log()
            return {}

    def targets(self):
        """What became of the last scrape of each: (health, error)"""
        return [(target["health"], target["lastError"]) for target in self._ask("targets").get("activeTargets") or []]

    def query(self, expression):
        """labels: value, as text, of each series"""
        found = self._ask("query?query=" + urllib.parse.quote(expression)).get("result") or []
        return [(series["metric"], series["value"][1]) for series in found]

    def log(self):
        return (self.folder / "log").read_text(errors="replace")

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
