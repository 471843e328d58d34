# SPDX-License-Identifier: Apache-2.0
"""Certificates for one test run, made with openssl."""

import base64
import os
import subprocess


def openssl(*arguments):
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(arguments)}: {done.stderr}")


def key(path):
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)
    os.chmod(path, 0o600)
    return path


class Authority:
    """A CA with what it issued, all under one directory: NAME.crt and NAME.key."""

    def __init__(self, directory, name):
        self.directory = directory
        self.cert = os.path.join(directory, f"{name}-ca.crt")
        self.key = key(os.path.join(directory, f"{name}-ca.key"))
        openssl("req", "-x509", "-new", "-key", self.key, "-out", self.cert, "-days", "2", "-subj", f"/CN={name}-ca",
                "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def pair(self, name):
        """Where a leaf's certificate and key lie."""
        return tuple(os.path.join(self.directory, f"{name}.{ending}") for ending in ("crt", "key"))

    def issue(self, name, subject, names=()):
        """A leaf: for a server if it is given names, else for a client. Returns (cert, key)."""
        cert, private = self.pair(name)
        request, extensions = cert + ".csr", cert + ".ext"
        key(private)
        openssl("req", "-new", "-key", private, "-out", request, "-subj", subject)
        with open(extensions, "w") as out:
            out.write("basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n")
            out.write(f"extendedKeyUsage={'serverAuth' if names else 'clientAuth'}\n")
            if names:
                out.write("subjectAltName=" + ",".join(names) + "\n")
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial",
                "-out", cert, "-days", "2", "-extfile", extensions)
        return cert, private


def inline(path):
    """A file as kubeconfigs and webhook configurations hold it."""
    with open(path, "rb") as file:
        return base64.b64encode(file.read()).decode()
