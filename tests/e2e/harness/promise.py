# SPDX-License-Identifier: Apache-2.0
"""What must never happen. A test that fails with such a text is never forgiven: ./tools/test tries it no second time.

The running scenario has alarms: functions that say what was broken, or nothing. Whoever waits for anything (wait.py) asks
them all the while, so that a scenario fails when it happens and not when it would have ended.
"""

BROKEN = "PROMISE BROKEN: "  # ./tools/test knows these words


class BrokenPromise(AssertionError):
    pass


def promised(truth, text):
    """An assertion of what must hold always, however busy the machine is. `text` may be a function."""
    if not truth:
        raise BrokenPromise(BROKEN + (text() if callable(text) else text))


_alarms = []


def watch(alarm):
    _alarms.append(alarm)


def unwatch(alarm):
    if alarm in _alarms:
        _alarms.remove(alarm)


def forget_all():
    _alarms.clear()


def check():
    """Raises if one of the alarms has something to say."""
    for alarm in list(_alarms):
        text = alarm()
        if text:
            raise BrokenPromise(text)
