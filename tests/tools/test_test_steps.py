# SPDX-License-Identifier: Apache-2.0
"""What ./tools/test does with tests that fail: a few are tried again alone, and named; a broken promise never is."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import test_steps as steps

ONCE = """
import pathlib
def test_once():
    mark = pathlib.Path(%r)
    is_first = not mark.exists()
    mark.touch()
    assert not is_first, %r
def test_good():
    pass
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs pytest on such a text, as a step does."""
    monkeypatch.setattr(steps, "LOGS", tmp_path / "logs")

    def run(text, **options):
        path = tmp_path / "test_it.py"
        path.write_text(text)
        return steps.pytest(steps.Log("it"), path, **options)
    return run


@pytest.mark.parametrize("workers", (0, 2))
def test_what_fails_beside_others_and_passes_alone_is_named(run, tmp_path, workers):
    count = run(ONCE % (str(tmp_path / "mark"), "too slow"), workers=workers)
    assert (count.passed, count.failed) == (2, 0) and len(count.repeated) == 1
    assert count.repeated[0].endswith("test_it.py::test_once")


def test_a_test_whose_cleaning_up_fails_as_well_is_one_test(run, tmp_path):
    cleaning = "import pytest\n@pytest.fixture\ndef bad():\n    yield\n    assert False\n"
    count = run(cleaning + "def test_bad(bad):\n    assert False\ndef test_good():\n    pass\n")
    assert (count.passed, count.failed, count.repeated) == (1, 1, [])


def test_a_test_whose_cleaning_up_fails_as_well_is_tried_again(run, tmp_path):
    text = ONCE.replace("test_once()", "test_once(bad)").replace("def test_once", """
import pytest
@pytest.fixture
def bad():
    is_first = not pathlib.Path(%r).exists()
    yield
    assert not is_first
def test_once""")
    count = run(text % ((str(tmp_path / "mark"),) * 2 + ("slow",)))
    assert (count.passed, count.failed, len(count.repeated)) == (2, 0, 1)


@pytest.mark.parametrize("words", ("PROMISE BROKEN: a and b roll at once", "ERROR: AddressSanitizer: heap-use-after-free", "x.c:1:2: runtime error: y"))
def test_what_must_never_happen_is_not_tried_again(run, tmp_path, words):
    count = run(ONCE % (str(tmp_path / "mark"), words))
    assert (count.passed, count.failed, count.repeated) == (1, 1, [])


def test_what_fails_twice_has_failed(run):
    count = run("def test_bad():\n    assert False\n")
    assert (count.passed, count.failed, count.repeated) == (0, 1, [])


def test_where_many_fail_none_is_tried_again(run, tmp_path):
    text = "".join((ONCE % (str(tmp_path / ("mark-%d" % i)), "slow")).replace("_once", "_once_%d" % i).replace("_good", "_good_%d" % i)
                   for i in range(steps.MOST_AGAIN + 1))
    count = run(text)
    assert (count.failed, count.repeated) == (steps.MOST_AGAIN + 1, [])


def test_a_file_that_cannot_be_read_has_failed(run):
    assert run("this is no Python\n").failed == 1


def test_no_test_at_all_has_failed(run):
    assert run("").failed == 1


def test_a_skipped_test_is_counted(run):
    count = run("import pytest\ndef test_not():\n    pytest.skip('why')\ndef test_good():\n    pass\n")
    assert (count.passed, count.failed, count.skipped) == (1, 0, 1)
