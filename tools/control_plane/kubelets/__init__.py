# SPDX-License-Identifier: Apache-2.0
"""Who plays kubelets and the scheduler (tools/kubelets).

  settings   how a Pod is to behave: annotations, rules told live, defaults
  status     pure: the status a kubelet would report for a Pod now, and when it changes next
  placing    pure: the Node a scheduler would choose for a Pod
  queue      keys that wait to be looked at, now or later, each by one worker at a time
  agent      watches Nodes and Pods and makes the above true on the API server
  endpoint   the HTTP endpoint through which a test tells the agent things
"""
