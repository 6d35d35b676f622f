# SPDX-License-Identifier: Apache-2.0
"""A CA and a serving certificate for what listens on this machine, made by openssl."""

import ipaddress
import subprocess

EC_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def _subject(host):
    """As subjectAltName has it."""
    try:
        return "IP:%s" % ipaddress.ip_address(host)
    except ValueError:
        return "DNS:" + host


def make_certificate(folder, hosts=()):
    """Writes ca.crt, tls.crt and tls.key into the folder (a Path); returns the CA as PEM. hosts: more than those of this machine."""
    folder.mkdir(parents=True, exist_ok=True)

    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)

    openssl("req", "-x509", *EC_KEY, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=slipway local CA")
    openssl("req", *EC_KEY, "-keyout", "tls.key", "-out", "tls.csr", "-subj", "/CN=slipway")
    names = dict.fromkeys(_subject(host) for host in ("127.0.0.1", "localhost", *hosts))
    (folder / "san.cnf").write_text("subjectAltName=%s\nextendedKeyUsage=serverAuth\n" % ",".join(names))
    openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", "tls.crt",
            "-days", "2", "-extfile", "san.cnf")
    return (folder / "ca.crt").read_bytes()
