# SPDX-License-Identifier: Apache-2.0
"""Keys and certificates of one instance, made by openssl.

Two authorities, as in a cluster that was set up with care: one signs what servers show (`ca.crt`
is what clients verify with), the other signs what clients show (`client-ca.crt` is what the API
server verifies with), so that neither can be mistaken for the other. The extensions are those
that a strict verifier asks for: CA certificates say so, leaves say what they are for, and the
addresses stand as subject alternative names, the IP as an IP.
"""

import os
import subprocess

from .problem import Problem

DAYS = "3650"

SERVER_NAMES = ",".join([
    "IP:127.0.0.1", "IP:10.96.0.1", "DNS:localhost", "DNS:kubernetes", "DNS:kubernetes.default",
    "DNS:kubernetes.default.svc", "DNS:kubernetes.default.svc.cluster.local"])


def make_all(folder):
    """Fills `folder` with the whole set unless it is there already."""
    if os.path.exists(os.path.join(folder, "complete")):
        return
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _authority(folder, "ca", "slipway test control plane")
    _authority(folder, "client-ca", "slipway test control plane clients")
    _leaf(folder, "ca", "apiserver", "/CN=kube-apiserver", "serverAuth", SERVER_NAMES)
    _leaf(folder, "client-ca", "admin", "/O=system:masters/CN=admin-by-certificate", "clientAuth")
    _openssl(folder, "genrsa", "-out", "service-accounts.key", "2048")
    _openssl(folder, "rsa", "-in", "service-accounts.key", "-pubout",
             "-out", "service-accounts.pub")
    with open(os.path.join(folder, "complete"), "w"):
        pass


def _authority(folder, name, common_name):
    _openssl(
        folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-config", "/dev/null", "-keyout", name + ".key", "-out", name + ".crt", "-days", DAYS,
        "-subj", "/CN=" + common_name,
        "-addext", "basicConstraints=critical,CA:TRUE,pathlen:0",
        "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        "-addext", "subjectKeyIdentifier=hash")


def _leaf(folder, authority, name, subject, purpose, names=None):
    extensions = [
        "basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature",
        "extendedKeyUsage=" + purpose, "subjectKeyIdentifier=hash",
        "authorityKeyIdentifier=keyid"]
    if names:
        extensions.append("subjectAltName=" + names)
    _openssl(
        folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
        "-config", "/dev/null", "-keyout", name + ".key", "-out", name + ".csr", "-subj", subject)
    with open(os.path.join(folder, name + ".ext"), "w") as file:
        file.write("\n".join(extensions) + "\n")
    _openssl(
        folder, "x509", "-req", "-in", name + ".csr", "-CA", authority + ".crt",
        "-CAkey", authority + ".key", "-CAcreateserial", "-days", DAYS, "-sha256",
        "-extfile", name + ".ext", "-out", name + ".crt")
    os.unlink(os.path.join(folder, name + ".csr"))
    os.unlink(os.path.join(folder, name + ".ext"))


def _openssl(folder, *arguments):
    try:
        done = subprocess.run(
            ("openssl",) + arguments, cwd=folder, capture_output=True, text=True, umask=0o077)
    except FileNotFoundError:
        raise Problem("openssl is missing", "install it: tools/packages control-plane") from None
    if done.returncode != 0:
        raise Problem("openssl %s failed in %s:\n%s"
                      % (arguments[0], folder, done.stderr.strip()))
