#!/usr/bin/env python3
"""For the script peers: what it asks the tools, and what lib/calendar/coming_from.md says that they answer.

    peers_table.py packages           prints the tools of npm, with the versions that the page names
    peers_table.py cases              prints NUMBER|ZONE|FROM|UNTIL|EXPRESSION|ONCALENDAR, times in seconds since 1970
    peers_table.py compare ANSWERS    ANSWERS is a folder with a file of lines NUMBER|POINT for each tool
"""

import collections
import itertools
import pathlib
import re
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

PAGE = pathlib.Path(__file__).resolve().parents[2] / "lib/calendar/coming_from.md"
ZONES = ("Europe/Berlin", "America/Santiago", "Australia/Lord_Howe")

# H:M, on day D of month N, is in the middle of the time that does not exist or occurs twice. L and K are hours around it.
EXPRESSIONS = ("M H * * *", "0 H * * *", "M H * * sat,sun", "M H D N *", "0,M H * * *", "M H,12 * * *", "M L-K * * *",
               "5-59/20 L-K * * *", "M 0-23 * * *", "*/30 * * * *", "0 * * * *", "*/15 H * * *", "0 */2 * * *",
               "*/20 M H * * *")
DAYS = ("0 12 13 * 5", "0 12 */2 * 5", "0 12 * * 0", "0 12 * * 7", "0 12 * * fri-sun")  # from Tuesday, 10 August

# The columns of the page, and the cases of Berlin that show what is in them.
TIMES = ("M H * * *", "0,M H * * *")
COLUMNS = {"days": ("days", DAYS[:1]), "star": ("days", DAYS[1:2]), "weekdays": ("days", DAYS[2:]),
           "spring": ("spring", TIMES), "autumn": ("autumn", TIMES), "polls": ("autumn", ("*/30 * * * *",))}
ROWS = {"rondo": "Rondo", "cron": "Debian's cron", "cronie": "Debian's cron", "systemd": "systemd OnCalendar",
        "croner": "croner", "cron-parser": "cron-parser", "node-cron": "node-cron"}
CRONS = ("cron", "cronie")
NPM = ("croner", "cron-parser", "node-cron")

# What differs in zones that are not like Berlin: cells, and single expressions whose answer ends with an error, or lacks
# the point at so many minutes after the change.
ELSEWHERE = {
    ("node-cron", "America/Santiago"): {"autumn": "first", "polls": "pauses"},
    ("cron-parser", "Australia/Lord_Howe"): {"spring": "none", "polls": "pauses"},
}
SLIPS = {
    ("cron-parser", "Australia/Lord_Howe", "spring", "*/30 * * * *"): 0,
    ("cron-parser", "Australia/Lord_Howe", "spring", "5-59/20 L-K * * *"): 15,
    ("cron-parser", "Australia/Lord_Howe", "autumn", "0 H * * *"): "error",
    ("cron-parser", "Australia/Lord_Howe", "autumn", "0 * * * *"): "error",
    ("cron-parser", "Australia/Lord_Howe", "autumn", "0 */2 * * *"): "error",
    ("systemd", "America/Santiago", "spring", "0 */2 * * *"): "error",
}

HOUR = timedelta(hours=1)
Case = collections.namedtuple("Case", "zone change season begin end template expression")


def changes(zone):
    """Gives the moment of each change in 2027, and the first local time that it skips or repeats, and how much."""
    for half_hours in range(365 * 48):
        moment = datetime(2027, 1, 1, tzinfo=timezone.utc) + half_hours * HOUR / 2
        before, after = (t.astimezone(zone).utcoffset() for t in (moment - HOUR / 2, moment))
        if before != after:
            yield moment, (moment + min(before, after)).replace(tzinfo=None), after - before


def cases():
    for zone in map(ZoneInfo, ZONES):
        for change, local, forward in changes(zone):
            local += abs(forward) / 2
            letters = {"M": local.minute, "H": local.hour, "D": local.day, "N": local.month,
                       "L": max(local.hour - 2, 0), "K": min(local.hour + 2, 23)}
            for template in EXPRESSIONS:
                yield Case(zone, change, "spring" if forward > 0 * HOUR else "autumn", change - 29.9 * HOUR,
                           change + 42 * HOUR, template, re.sub("[A-Z]", lambda letter: str(letters[letter[0]]), template))
    begin = datetime(2027, 8, 10, tzinfo=ZoneInfo(ZONES[0]))
    for expression in DAYS:
        yield Case(begin.tzinfo, None, "days", begin, begin + 12 * 24 * HOUR, expression, expression)


def six_fields(expression):
    return ["0"] * (len(expression.split()) == 5) + expression.split()


def on_calendar(expression):
    second, minute, hour, day, month, weekday = six_fields(re.sub(r"(\w)-(\w)", r"\1..\2", expression))
    weekday = re.sub(r"\d", lambda digit: "sun mon tue wed thu fri sat sun".split()[int(digit[0])], weekday)
    time = f"{hour}:{minute}:{second}".replace("*/", "0/")
    return f"{weekday.replace('*', '')} *-{month}-{day.replace('*/', '1/')} {time}".strip()


def rows():
    """Gives each tool with the first and the other cells of its row."""
    table = [re.split(r"\s*\|\s*", line)[1:-1] for line in PAGE.read_text().splitlines() if line.startswith("|")]
    for tool, start in ROWS.items():
        name, _, *cells = next(row for row in table if row[0].startswith(start))
        yield tool, name, dict(zip(COLUMNS, cells))


def values(field, high, low=0):
    names = "sun mon tue wed thu fri sat".split()
    field = re.sub("[a-z]+", lambda name: str(names.index(name[0])), field)
    for part in field.replace("*", f"{low}-{high}").split(","):
        first, last, step = re.fullmatch(r"(\d+)(?:-(\d+))?(?:/(\d+))?", part).groups()
        last = int(last or first)
        yield from range(int(first), last + 1 + 7 * (last < int(first)), int(step or 1))  # fri-sun goes round


def kind(tool, second, minute, hour):
    """A poll asks for elapsed time, anything else for one or several times of the day."""
    star, all_hours = "*" in (minute[0], hour[0]), len(list(values(hour, 23))) == 24
    if star if tool in CRONS else all_hours if tool == "cron-parser" else star or all_hours:
        return "poll"
    return "lists" if re.search("[-,*]", second + minute + hour) else "time"


def word(cell, about=None):
    """The word of a cell about "lists" is "both" in "first; **both for lists**", and otherwise "first"."""
    parts = cell.replace("*", "").replace("the ", "").split("; ")
    return next((part for part in parts if part.endswith(f"for {about}")), parts[0]).split(" ")[0]


def day_matches(day, month_days, months, weekdays, cells):
    matches = day.day in values(month_days, 31, 1), day.isoweekday() % 7 in {n % 7 for n in values(weekdays, 6)}
    cell = cells["star" if "*" in (month_days[0], weekdays[0]) else "days"]
    both = "*" in (month_days, weekdays) or word(cell) == "both"
    return day.month in values(months, 12, 1) and (all if both else any)(matches)


def points(local, case, spring, autumn):
    """The points of a local time. `spring` and `autumn` are words of cells."""
    first, second = (local.replace(tzinfo=case.zone, fold=fold).astimezone(timezone.utc) for fold in (0, 1))
    if first > second:  # It does not exist.
        return {"none": [], "03:00": [case.change], "03:30": [first]}[spring]
    return {"first": [first], "pauses": [first], "second": [second], "both": [first, second]}[autumn]


def predicted(tool, case, cells):
    """What the cells of its row say that a tool answers."""
    if "fri-sun" in case.expression and "fri-sun" in cells["weekdays"]:
        return ["error"] if "refused" in cells["weekdays"] else []
    cells = cells | ELSEWHERE.get((tool, case.zone.key), {})
    slip = SLIPS.get((tool, case.zone.key, case.season, case.template))
    second, minute, hour, *days = six_fields(case.expression)
    of = kind(tool, second, minute, hour)
    spring = "none" if of == "poll" else word(cells["spring"], of)
    autumn = word(cells["polls" if of == "poll" else "autumn"], of)
    found = set()
    for n in range(-1, 14):
        day = datetime.combine(case.begin, datetime.min.time()) + n * 24 * HOUR
        if day_matches(day, *days, cells):
            for h, m, s in itertools.product(values(hour, 23), list(values(minute, 59)), list(values(second, 59))):
                found.update(points(day.replace(hour=h, minute=m, second=s), case, spring, autumn))
    if isinstance(slip, int):
        found.remove(case.change + slip * HOUR / 60)
    return sorted(t.timestamp() for t in found if case.begin < t < case.end) + ["error"] * (slip == "error")


def answered(file, tool, asked):
    answers = [{} for _ in asked]  # without a point that is there twice
    for number, point in (line.split("|") for line in file.read_text().splitlines()):
        # Debian's cron starts a second late; both crons start one by one, in the same minute, what they make up for.
        point = point if point == "error" else int(point) // 60 * 60 if tool in CRONS else int(point)
        if point == "error" or point < asked[int(number)].end.timestamp():
            answers[int(number)][point] = True
    return [list(answer) for answer in answers]


def agree(points, answer):
    """After an error nothing is answered."""
    return points == answer or points[-1:] == answer[-1:] == ["error"] and points[:len(answer) - 1] == answer[:-1]


def compare(folder):
    asked = list(cases())
    answers = {tool: answered(folder / tool, tool, asked) for tool in ROWS}
    passed, wrong = 0, []
    for tool, name, cells in rows():
        unlike = set()
        for case, answer, rondo in zip(asked, answers[tool], answers["rondo"]):
            if tool in CRONS and len(case.expression.split()) == 6:
                continue
            if answer != rondo:
                unlike.add((case.zone.key, case.season, case.template))
            says = predicted(tool, case, cells)
            passed += agree(says, answer)
            for point in [] if agree(says, answer) else sorted(set(says) ^ set(answer), key=str):
                shown = point if point == "error" else datetime.fromtimestamp(point, case.zone).strftime("%F %T %z")
                wrong.append(f"{case.expression} in {case.zone.key}: {shown} is only in "
                             + (f"what {tool} answers" if point in answer else f"the row of {name}"))
        for column, (season, templates) in COLUMNS.items():
            differs = any((ZONES[0], season, template) in unlike for template in templates)
            if differs == ("**" in cells[column]):
                passed += 1
            else:
                wrong.append(f'"{cells[column]}" in the row of {name} should {"" if differs else "not "}be bold')
        print(f"{tool}: {len(unlike)} answers are not Rondo's")
    print(*wrong, f"{passed} passed, {len(wrong)} failed", sep="\n")
    return wrong != []


if __name__ == "__main__":
    if sys.argv[1:] == ["packages"]:
        print(*(name.replace(" ", "@") for tool, name, _ in rows() if tool in NPM))
    elif sys.argv[1:] == ["cases"]:
        for number, case in enumerate(cases()):
            print(number, case.zone.key, int(case.begin.timestamp()), int(case.end.timestamp()), case.expression,
                  on_calendar(case.expression), sep="|")
    elif sys.argv[1:2] == ["compare"] and len(sys.argv) == 3:
        sys.exit(compare(pathlib.Path(sys.argv[2])))
    else:
        sys.exit(__doc__)
