# SPDX-License-Identifier: Apache-2.0
"""What is read out of a trace of slipway-sim."""

import json

import pytest

from benchmarks.stand import SLIPWAY_USER
from benchmarks.traces import Trace

DEPLOYMENTS = "/apis/apps/v1/namespaces/shop/deployments"
STATUS = "/apis/apps.containerinfra.nl/v1/namespaces/shop/deploymentcoordinations/shop/status"


def deployment(name, updated):
    return {"type": "MODIFIED", "object": {
        "kind": "Deployment", "metadata": {"namespace": "shop", "name": name, "generation": 2}, "spec": {"replicas": 1},
        "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": updated, "availableReplicas": 1}}}


class Writer:
    """Lines as tools/sim/trace.h tells them."""

    def __init__(self, path):
        self.path, self.number = path, 1
        self.lines = ["5\t1\trequest\t%s\t127.0.0.1:9\tGET\t/apis/apps/v1/deployments?watch=true\t" % SLIPWAY_USER]

    def piece(self, ns, *events):
        self.lines.append("%d\t1\tpiece\t%s" % (ns, " ".join(json.dumps(event) for event in events)))

    def write(self, came, answered, target, body, status=200, user=SLIPWAY_USER, port=10):
        self.number += 1
        self.lines.append("%d\t%d\trequest\t%s\t127.0.0.1:%d\tPATCH\t%s?fieldManager=x\t%s" % (came, self.number, user, port, target, json.dumps(body)))
        self.lines.append("%d\t%d\tanswer\t%d\t100" % (answered, self.number, status))

    def handovers(self, wire=None, since=0):
        self.path.write_text("\n".join(self.lines) + "\n")
        return list(Trace(self.path, wire).handovers(since))


def marked(value):
    return {"metadata": {"annotations": {"slipway.dev/released-by": value}}}


@pytest.fixture
def trace(tmp_path):
    return Writer(tmp_path / "trace")


def hand_over(trace, status=200):
    trace.piece(100, deployment("a", 0))
    trace.piece(1000, deployment("b", 1), deployment("a", 1))
    trace.write(1010, 1500, DEPLOYMENTS + "/a", marked(None))
    trace.write(1520, 1900, STATUS, {"status": {}})
    trace.write(1930, 2500, DEPLOYMENTS + "/b", marked("coordination/shop"), status)


def test_our_own_time_is_what_the_server_had_no_part_in(trace):
    hand_over(trace)
    assert trace.handovers() == [([10, 20, 30], 1500)]


def test_a_second_event_that_says_complete_does_not_begin_it_anew(trace):
    trace.piece(900, deployment("a", 1))
    hand_over(trace)
    assert trace.handovers() == [([10, 20, 30], 1500)], "a was not complete at 100"
    trace.lines.insert(4, "1005\t1\tpiece\t" + json.dumps(deployment("a", 1)))
    assert trace.handovers() == [([10, 20, 30], 1500)]


def test_a_release_that_was_refused_is_no_hand_over(trace):
    hand_over(trace, status=409)
    assert trace.handovers() == []


def test_what_others_write_is_not_ours(trace):
    trace.piece(1000, deployment("a", 1))
    trace.write(1010, 1500, DEPLOYMENTS + "/a", marked(None), user="admin")
    trace.write(1520, 1900, STATUS, {"status": {}})
    trace.write(1930, 2500, DEPLOYMENTS + "/b", marked("coordination/shop"))
    assert trace.handovers() == []


def test_a_first_release_has_none_before_it(trace):
    trace.write(1520, 1900, STATUS, {"status": {}})
    trace.write(1930, 2500, DEPLOYMENTS + "/b", marked("coordination/shop"))
    assert trace.handovers() == []


def test_a_turn_that_begins_when_nobody_had_waited_is_no_hand_over(trace):
    trace.piece(1000, deployment("a", 1))
    trace.write(1010, 1500, DEPLOYMENTS + "/a", marked(None))
    trace.write(1520, 1900, STATUS, {"status": {"activeDeployments": []}})
    trace.write(900000, 900100, STATUS, {"status": {"activeDeployments": ["shop/b"]}})
    trace.write(900200, 900300, DEPLOYMENTS + "/b", marked("coordination/shop"))
    assert trace.handovers() == []


def test_what_was_before_the_measurement_is_left_out(trace):
    hand_over(trace)
    assert trace.handovers(since=1931) == []


class Wire:
    """Each request came 5 before the server read it; what the server had for a client left it 3 later."""

    def sent_before(self, port, ns):
        return ns - 5 if port == 10 else None

    def received_after(self, port, ns):
        return ns + 3


def test_the_wire_knows_better_when_bytes_were_sent(trace):
    hand_over(trace)
    assert trace.handovers(Wire()) == [([2, 12, 22], 1500)]


def test_a_request_that_the_wire_has_missed_is_not_counted(trace):
    class Deaf(Wire):
        def sent_before(self, port, ns):
            return 500

    hand_over(trace)
    assert trace.handovers(Deaf()) == []


def test_an_event_or_answer_that_the_wire_has_missed_is_not_counted(trace):
    class Deaf(Wire):
        def __init__(self, missed):
            self.missed = missed

        def received_after(self, port, ns):
            return None if ns == self.missed else ns

    hand_over(trace)
    assert trace.handovers(Deaf(0)) == [([5, 15, 25], 1500)]
    for missed in (1000, 1500, 1900):
        assert trace.handovers(Deaf(missed)) == [], missed


def test_a_trace_that_is_cut_is_refused(trace):
    trace.path.write_text("5\t1\trequest\tx")
    with pytest.raises(ValueError, match="cut"):
        Trace(trace.path)
