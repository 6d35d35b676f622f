# SPDX-License-Identifier: Apache-2.0
"""What the chart renders, as objects."""

import functools
import json
import pathlib
import subprocess

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
CHARTS = TOP / "manifests" / "charts"
KUBERNETES = "1.30.0"
PROMETHEUS = "monitoring.coreos.com/v1"


@functools.cache
def helm_path():
    """Built where it is not there yet; fails where it cannot be."""
    done = subprocess.run([TOP / "tools" / "helm", "--path"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def helm(*args, values=None, env=None, check=True):
    """The finished process. values: an object, given by -f -."""
    argv = [helm_path(), *map(str, args), *(["-f", "-"] if values is not None else [])]
    done = subprocess.run(argv, input=json.dumps(values) if values is not None else "", capture_output=True, text=True, env=env, timeout=300)
    if check:
        assert done.returncode == 0, "helm %s: %s%s" % (" ".join(argv[1:]), done.stdout, done.stderr)
    return done


class Rendered(list):
    def of(self, kind):
        return [found for found in self if found["kind"] == kind]

    def one(self, kind, name=None):
        found = [one for one in self.of(kind) if name is None or one["metadata"]["name"] == name]
        assert len(found) == 1, "%d of kind %s, name %s" % (len(found), kind, name)
        return found[0]

    @property
    def deployment(self):
        return self.one("Deployment")

    @property
    def pod(self):
        return self.deployment["spec"]["template"]["spec"]

    @property
    def container(self):
        return self.pod["containers"][0]

    @property
    def configuration(self):
        return self.one("MutatingWebhookConfiguration")

    @property
    def webhook(self):
        return self.configuration["webhooks"][0]

    @property
    def settings(self):
        return yaml.safe_load(self.one("ConfigMap")["data"]["slipway.yaml"])

    def rules(self):
        """Of all roles that are bound for ever: (namespaced?, group, resource, name or "") -> set of verbs."""
        found = {}
        for role in self.of("ClusterRole") + self.of("Role"):
            if role["metadata"]["name"].endswith(("-release", "-release-work", "-metrics-reader")):
                continue
            for rule in role["rules"]:
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        for name in rule.get("resourceNames") or [""]:
                            found.setdefault((role["kind"] == "Role", group, resource, name), set()).update(rule["verbs"])
        return found


def render(values=None, name="slipway", namespace="kube-system", options=(), chart="slipway"):
    text = helm("template", name, CHARTS / chart, "--namespace", namespace, "--kube-version", KUBERNETES, *options, values=values or {}).stdout
    return Rendered(found for found in yaml.safe_load_all(text) if found)


def refusal(values, chart="slipway"):
    """What helm says of values that it refuses."""
    done = helm("template", "slipway", CHARTS / chart, "--kube-version", KUBERNETES, values=values, check=False)
    assert done.returncode, "not refused: %s" % values
    return done.stderr
