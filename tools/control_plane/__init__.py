# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes control plane for tests: etcd, kube-apiserver, kube-controller-manager.

The parts, each of which knows those above it and none below:

  problem    the one exception that carries what happened, where, and what to do
  process    background processes: started, recognised again, stopped without hitting a stranger
  api        the little of an API client that these tools need
  certs      keys and certificates, by openssl
  build      the binaries: made once, cached, or taken from KUBEBUILDER_ASSETS
  recipe     the build itself, step by step (bash)
  instance   one running control plane in one folder
  kubelets/  who plays kubelets and the scheduler (tools/kubelets)

Python's standard library only, so that nothing is installed to run it.
"""
