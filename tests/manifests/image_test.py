#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The image: small, nothing in it that is not needed, runs as nobody on a read-only root, and twice the same.
As root only (buildah, debootstrap)."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

from render import ROOT

MOST_BYTES = 20 * 1024 * 1024
NAME = ""
LIBRARY = re.compile(r"usr/lib(64)?/([\w-]+/)?[\w.+-]+\.so(\.[\w.]+)?$")


def build(*options):
    done = subprocess.run(["scripts/image.sh", *options], cwd=ROOT)
    if done.returncode:
        sys.exit(done.returncode)


def product(ending):
    return os.path.join(ROOT, "build", "image", f"{NAME}.{ending}")


def read(path):
    with open(path) as file:
        return file.read()


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rayhook-image-")
        cls.root = os.path.join(cls.folder.name, "root")
        with tarfile.open(product("tar")) as archive:
            [cls.manifest] = json.load(archive.extractfile("manifest.json"))
            cls.config = json.load(archive.extractfile(cls.manifest["Config"]))
            cls.files = {}
            for layer in cls.manifest["Layers"]:
                with tarfile.open(fileobj=archive.extractfile(layer)) as files:
                    cls.files.update({file.name: file for file in files})
                    files.extractall(cls.root, numeric_owner=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def inside(self, *arguments, **options):
        """On a read-only root, as the image's user."""
        script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && root="$1" && shift && exec chroot --userspec=65532:65532 "$root" /usr/bin/rayhook "$@"'
        return subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", self.root, *arguments], capture_output=True, text=True, timeout=60, **options)

    def needed(self, path):
        out = subprocess.run(["readelf", "--dynamic", "--wide", path], capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"\(NEEDED\).*\[(.*)\]", out))

    def test_settings(self):
        config = self.config["config"]
        self.assertEqual((config["User"], config["Entrypoint"]), ("65532:65532", ["/usr/bin/rayhook"]))
        version = re.search(r'kVersion = "([^"]+)"', read(os.path.join(ROOT, "lib", "version.hpp"))).group(1)
        labels = config["Labels"]
        self.assertEqual((labels["org.opencontainers.image.version"], labels["org.opencontainers.image.licenses"]), (version, "Apache-2.0"))
        self.assertRegex(labels["org.opencontainers.image.revision"], "^[0-9a-f]{40}$")

    def test_small(self):
        self.assertLess(sum(file.size for file in self.files.values()), MOST_BYTES)

    def test_nothing_but_what_it_needs(self):
        programs = {name for name, file in self.files.items() if file.isfile() and not name.startswith(("usr/share/doc/", "usr/share/sbom/"))}
        libraries = {name for name in programs if LIBRARY.search(name)}
        self.assertEqual(programs - libraries, {"usr/bin/rayhook"})
        wanted = set()
        for name in programs:
            wanted |= self.needed(os.path.join(self.root, name))
        self.assertEqual({os.path.basename(name) for name in libraries}, wanted)
        for name, file in self.files.items():
            self.assertFalse(file.mode & (0 if file.issym() else 0o6022), f"{name}: mode {file.mode:o}")
            self.assertEqual(file.uid, 0, name)

    def test_runs(self):
        done = self.inside("version")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(ROOT, "examples", "static-ray-cluster.yaml")) as example:
            done = self.inside("mutate", "-f", "-", "-o", "diff", stdin=example)
        self.assertIn("--address=service-ray-cluster:6380", done.stdout, done.stderr)

    def test_bill_of_materials(self):
        inside = read(os.path.join(self.root, "usr/share/sbom/rayhook.spdx.json"))
        self.assertEqual(inside, read(product("spdx.json")))
        bill = json.loads(inside)
        packages = {package["name"]: package for package in bill["packages"]}
        self.assertEqual(bill["spdxVersion"], "SPDX-2.3")
        linked = {r["relatedSpdxElement"] for r in bill["relationships"] if r["relationshipType"] == "DYNAMIC_LINK"}
        self.assertEqual({packages[name]["SPDXID"] for name in os.listdir(os.path.join(self.root, "usr/share/doc"))}, linked)
        for name in ("libc6", "libssl3", "libstdc++6", "libyaml-0-2", "libboost1.81-dev", "nlohmann-json3-dev"):
            self.assertRegex(packages[name]["versionInfo"], r"^\d")
            self.assertIn(f"pkg:deb/debian/{name}@", packages[name]["externalRefs"][0]["referenceLocator"])
        identifiers = [package["SPDXID"] for package in bill["packages"]]
        self.assertEqual(len(identifiers), len(set(identifiers)))
        for name in os.listdir(os.path.join(self.root, "usr/share/doc")):
            self.assertTrue(os.path.getsize(os.path.join(self.root, "usr/share/doc", name, "copyright")))

    def test_twice_the_same(self):
        before = read(product("digest"))
        build("--again")
        self.assertEqual(read(product("digest")), before)


if __name__ == "__main__":
    VERSION = re.search(r'kVersion = "([^"]+)"', read(os.path.join(ROOT, "lib", "version.hpp"))).group(1)
    NAME = f"rayhook-{VERSION}-amd64"
    build()
    unittest.main()
