# SPDX-License-Identifier: Apache-2.0
"""Parts of what makes the image: the reading of the Containerfile and of Debian's copyright files, archives."""

import os
import tarfile

import pytest
from conftest import TOP
from container_image import containerfile, layout
from dpkg import paragraphs
from licences import Licence

FILE = """
ARG BASE=debian
FROM ${BASE} AS build
ARG WHEN=0
# a comment
RUN one   two
FROM scratch AS image
ARG VERSION=1
COPY --from=build /a /
LABEL title="of two words" \\
      version="${VERSION}"
EXPOSE 1 2
ENTRYPOINT ["/a", "b"]
"""


def test_containerfile_stages_have_their_own_arguments():
    stages = containerfile.parse(FILE, {"WHEN": "5", "BASE": "other"})
    assert stages["build"].base == "other" and stages["build"].values == {"WHEN": "5"} and stages["build"].texts("RUN") == ["one two"]
    image = stages["image"]
    assert image.labels() == {"title": "of two words", "version": "1"}
    assert image.ports() == {"1/tcp": {}, "2/tcp": {}} and image.entrypoint() == ["/a", "b"] and image.copied_from("build") == ("/a", "/")


@pytest.mark.parametrize("text, told", (
    ("FROM a AS b\nHEALTHCHECK NONE\n", "line 2: HEALTHCHECK is not understood here"),
    ("RUN x\n", "line 1: RUN stands before the first FROM"),
    ("FROM a\n", "line 1: each stage needs a name"),
    ("FROM a AS b\n\nUSER ${WHO}\n", "line 3: no ARG in this stage names 'WHO'"),
))
def test_containerfile_what_is_not_understood_is_refused_with_its_line(text, told):
    with pytest.raises(containerfile.Problem, match=told):
        containerfile.parse(text, {})


def test_containerfile_an_argument_that_it_does_not_have_is_refused():
    with pytest.raises(containerfile.Problem, match="no ARG names COLOUR"):
        containerfile.parse(FILE, {"COLOUR": "red"})


def test_containerfile_what_must_stand_once_does():
    image = containerfile.parse(FILE, {})["image"]
    with pytest.raises(containerfile.Problem, match="the stage image has 0 times USER"):
        image.only("USER")


def test_containerfile_ours_is_understood():
    stages = containerfile.parse((TOP / "manifests/container/Containerfile").read_text(), {"REVISION": "r", "SOURCE_DATE_EPOCH": "1"})
    assert list(stages) == ["build", "sbom", "image"], "the image is the last, which engines build"
    assert stages["image"].base == "scratch" and stages["image"].only("USER") == "65532:65532"


MACHINE_READABLE = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: it

Files: *
Copyright: 2001 One
           2002 Two
License: Expat

Files: a.c b.c
Copyright: 2003 Three
License: GPL-2+ or Odd-1.0 and BSD-2-clause

Files: c.c
Copyright: 2003 Three
License: LGPL-2.1 and Expat

Files: d.c
Copyright: 2004 Four
License: One, and another
 All of it.

Files: debian/*
Copyright: 2005 Five
License: AGPL-3

License: Odd-1.0
 Odd
 .
 text.
"""


def test_licences_of_a_machine_readable_file():
    found = Licence("it", MACHINE_READABLE)
    assert found.expression == ("MIT AND (GPL-2.0-or-later OR LicenseRef-it-Odd-1.0 AND BSD-2-Clause) AND LGPL-2.1-only AND "
                                "LicenseRef-it-One-and-another")
    assert found.texts == {"LicenseRef-it-Odd-1.0": "Odd\n\ntext.", "LicenseRef-it-One-and-another": "All of it."}
    assert found.holders == "2001 One\n2002 Two\n2003 Three\n2004 Four"


def test_licences_of_any_other_file_are_its_text():
    found = Licence("it", "Written by somebody.\n\nCopyright: you may: do it\n")
    assert found.expression == "LicenseRef-it-copyright" and found.holders is None
    assert found.texts == {"LicenseRef-it-copyright": "Written by somebody.\n\nCopyright: you may: do it\n"}


def test_licences_a_name_without_a_text_is_told_by_the_whole_file():
    text = "Format: x\n\nFiles: *\nCopyright: 2001 One\nLicense: Strange\n"
    assert Licence("it", text).texts == {"LicenseRef-it-Strange": text}


def test_paragraphs_keep_lines_that_go_on():
    assert list(paragraphs("A: 1\nB:\n x\n  y\n\n\nA: 2\n")) == [{"A": "1", "B": "\n x\n  y"}, {"A": "2"}]


def test_layout_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(layout.Problem, match="pipe is neither file, folder nor symbolic link"):
        layout.layer(tmp_path, 0)


def test_layout_an_archive_of_something_else_is_refused(tmp_path):
    with tarfile.open(tmp_path / "other.tar", "w") as tar:
        tar.add(__file__, "file")
    with pytest.raises(layout.Problem, match="other.tar is no OCI archive of one image"):
        layout.Archive(tmp_path / "other.tar")
